//===- JinjaParser.cpp - the syntax of chat templates ---------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/tokenizer/JinjaParser.h"

#include "codegen/tokenizer/JinjaLexer.h"
#include "ir/support/Diag.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

namespace tenon::codegen::jinja {

using llvm::StringRef;

namespace {

constexpr unsigned maxDepth = 100;

class Parser {
public:
  explicit Parser(std::vector<Token> tokens) : tokens(std::move(tokens)) {}

  llvm::Expected<std::vector<Node>> run() {
    std::vector<Node> nodes = block({});
    if (problem.empty() && at < tokens.size())
      fail("unexpected '" + tokens[std::min(at + 1, tokens.size() - 1)].text +
           "'");
    if (!problem.empty())
      return userError("{0}", problem);
    return nodes;
  }

private:
  std::vector<Token> tokens;
  size_t at = 0;
  unsigned depth = 0;
  std::string problem;

  bool failed() const { return !problem.empty(); }
  std::nullptr_t fail(const std::string &why) {
    if (problem.empty())
      problem = why;
    return nullptr;
  }

  bool is(Token::Kind kind, StringRef text = "") const {
    return at < tokens.size() && tokens[at].kind == kind &&
           (text.empty() || tokens[at].text == text);
  }
  bool eat(StringRef symbol) {
    if (!is(Token::Symbol, symbol))
      return false;
    ++at;
    return true;
  }
  bool word(StringRef name) {
    if (!is(Token::Name, name))
      return false;
    ++at;
    return true;
  }
  void expect(StringRef symbol) {
    if (!eat(symbol))
      fail("expected '" + symbol.str() + "'" + found());
  }
  std::string found() const {
    return at < tokens.size() ? ", found '" + tokens[at].text + "'" : "";
  }
  std::string name() {
    if (!is(Token::Name)) {
      fail("expected a name" + found());
      return "";
    }
    return tokens[at++].text;
  }
  void endTag() {
    if (!is(Token::End))
      fail("unexpected '" + (at < tokens.size() ? tokens[at].text : "") +
           "' in a tag");
    ++at;
  }
  /// Whether the next tag begins with one of \p words.
  bool atTag(llvm::ArrayRef<StringRef> words) const {
    return is(Token::BeginBlock) && at + 1 < tokens.size() &&
           llvm::is_contained(words, StringRef(tokens[at + 1].text));
  }

  std::vector<Node> block(llvm::ArrayRef<StringRef> ends) {
    std::vector<Node> nodes;
    if (++depth > maxDepth)
      fail("blocks are too deep");
    while (at < tokens.size() && !failed() && !atTag(ends)) {
      if (is(Token::Text)) {
        nodes.emplace_back();
        nodes.back().text = tokens[at++].text;
      } else if (is(Token::BeginOutput)) {
        ++at;
        nodes.emplace_back();
        nodes.back().kind = Node::Output;
        nodes.back().value = expression();
        endTag();
      } else if (is(Token::BeginBlock)) {
        ++at;
        statement(nodes);
      } else {
        fail("unexpected '" + tokens[at].text + "'");
      }
    }
    --depth;
    return nodes;
  }

  void endOf(StringRef word) {
    if (!atTag({word})) {
      fail("expected '" + word.str() + "'");
      return;
    }
    at += 2;
    endTag();
  }

  void statement(std::vector<Node> &nodes) {
    std::string kind = name();
    if (failed())
      return;
    if (kind == "generation" || kind == "endgeneration") // marks, no effect
      return endTag();
    Node node;
    if (kind == "if")
      parseIf(node);
    else if (kind == "for")
      parseFor(node);
    else if (kind == "set")
      parseSet(node);
    else if (kind == "macro")
      parseMacro(node);
    else if (kind == "break" || kind == "continue") {
      node.kind = kind == "break" ? Node::Break : Node::Continue;
      endTag();
    } else {
      fail("the tag '" + kind + "' is not supported");
    }
    nodes.push_back(std::move(node));
  }

  void parseIf(Node &node) {
    node.kind = Node::If;
    node.value = expression();
    endTag();
    node.body = block({"elif", "else", "endif"});
    if (atTag({"elif"})) {
      at += 2;
      if (++depth > maxDepth)
        fail("blocks are too deep");
      node.otherwise.emplace_back();
      if (!failed())
        parseIf(node.otherwise.back()); // takes the endif
      --depth;
      return;
    }
    if (atTag({"else"})) {
      at += 2;
      endTag();
      node.otherwise = block({"endif"});
    }
    endOf("endif");
  }

  void parseFor(Node &node) {
    node.kind = Node::For;
    do
      node.names.push_back(name());
    while (eat(","));
    if (!word("in"))
      fail("expected 'in'" + found());
    node.value = orExpression();
    if (word("if"))
      node.condition = expression();
    endTag();
    node.body = block({"else", "endfor"});
    if (atTag({"else"})) {
      at += 2;
      endTag();
      node.otherwise = block({"endfor"});
    }
    endOf("endfor");
  }

  void parseSet(Node &node) {
    node.kind = Node::Set;
    node.names.push_back(name());
    if (eat("."))
      node.text = name();
    if (eat("=")) {
      node.value = expression();
      return endTag();
    }
    endTag();
    node.body = block({"endset"});
    endOf("endset");
  }

  void parseMacro(Node &node) {
    node.kind = Node::Macro;
    node.text = name();
    expect("(");
    while (!failed() && !eat(")")) {
      node.names.push_back(name());
      node.defaults.push_back(eat("=") ? expression() : nullptr);
      if (!is(Token::Symbol, ")"))
        expect(",");
    }
    endTag();
    node.body = block({"endmacro"});
    endOf("endmacro");
  }

  //===- Expressions ------------------------------------------------------===//

  static ExprPtr make(Expr::Kind kind, StringRef text = "") {
    auto e = std::make_unique<Expr>();
    e->kind = kind;
    e->text = text.str();
    return e;
  }
  template <class... Parts>
  static ExprPtr make(Expr::Kind kind, StringRef text, Parts... parts) {
    ExprPtr e = make(kind, text);
    (e->parts.push_back(std::move(parts)), ...);
    return e;
  }

  ExprPtr expression() {
    if (++depth > maxDepth)
      fail("an expression is too deep");
    ExprPtr e = failed() ? make(Expr::Literal) : orExpression();
    if (!failed() && word("if")) {
      ExprPtr condition = orExpression();
      ExprPtr other = word("else") ? expression() : make(Expr::Literal);
      e = make(Expr::Choose, "", std::move(e), std::move(condition),
               std::move(other));
    }
    --depth;
    return e;
  }

  ExprPtr orExpression() {
    ExprPtr e = andExpression();
    while (!failed() && word("or"))
      e = make(Expr::Binary, "or", std::move(e), andExpression());
    return e;
  }

  ExprPtr andExpression() {
    ExprPtr e = notExpression();
    while (!failed() && word("and"))
      e = make(Expr::Binary, "and", std::move(e), notExpression());
    return e;
  }

  ExprPtr notExpression() {
    unsigned times = 0;
    while (word("not"))
      ++times;
    ExprPtr e = comparison();
    return times == 0  ? std::move(e)
           : times % 2 ? make(Expr::Unary, "not", std::move(e))
                       : make(Expr::Unary, "bool", std::move(e));
  }

  ExprPtr comparison() {
    ExprPtr e = sum();
    while (!failed()) {
      std::string op;
      for (StringRef symbol : {"==", "!=", "<=", ">=", "<", ">"})
        if (op.empty() && eat(symbol))
          op = symbol.str();
      if (op.empty() && word("in"))
        op = "in";
      if (op.empty() && is(Token::Name, "not") && at + 1 < tokens.size() &&
          tokens[at + 1].text == "in") {
        at += 2;
        op = "not in";
      }
      if (op.empty())
        break;
      e = make(Expr::Binary, op, std::move(e), sum());
    }
    return e;
  }

  ExprPtr binary(llvm::ArrayRef<StringRef> symbols, ExprPtr (Parser::*next)()) {
    ExprPtr e = (this->*next)();
    for (bool more = true; more && !failed();) {
      more = false;
      for (StringRef symbol : symbols)
        if (eat(symbol)) {
          e = make(Expr::Binary, symbol, std::move(e), (this->*next)());
          more = true;
          break;
        }
    }
    return e;
  }
  ExprPtr sum() { return binary({"+", "-"}, &Parser::concat); }
  ExprPtr concat() { return binary({"~"}, &Parser::term); }
  ExprPtr term() { return binary({"*", "//", "/", "%"}, &Parser::unary); }
  ExprPtr unary() {
    if (eat("-"))
      return make(Expr::Unary, "-", postfix());
    return postfix();
  }

  ExprPtr postfix() {
    ExprPtr e = primary();
    while (!failed()) {
      if (eat("."))
        e = make(Expr::Attribute, name(), std::move(e));
      else if (eat("["))
        e = subscript(std::move(e));
      else if (is(Token::Symbol, "("))
        arguments(*(e = make(Expr::Call, "", std::move(e))));
      else if (eat("|"))
        arguments(*(e = make(Expr::Filter, name(), std::move(e))));
      else if (word("is"))
        e = test(std::move(e));
      else
        break;
    }
    return e;
  }

  ExprPtr test(ExprPtr e) {
    bool negated = word("not");
    e = make(Expr::Test, name(), std::move(e));
    arguments(*e);
    return negated ? make(Expr::Unary, "not", std::move(e)) : std::move(e);
  }

  ExprPtr subscript(ExprPtr e) {
    ExprPtr bounds[3];
    unsigned colons = 0;
    while (!failed() && !eat("]")) {
      if (eat(":")) {
        if (++colons > 2)
          fail("too many ':'");
      } else {
        bounds[std::min(colons, 2u)] = expression();
      }
    }
    if (colons == 0)
      return make(Expr::Index, "", std::move(e), std::move(bounds[0]));
    return make(Expr::Slice, "", std::move(e), std::move(bounds[0]),
                std::move(bounds[1]), std::move(bounds[2]));
  }

  /// What stands in parentheses, if anything does.
  void arguments(Expr &e) {
    if (!eat("("))
      return;
    while (!failed() && !eat(")")) {
      Argument argument;
      if (is(Token::Name) && at + 1 < tokens.size() &&
          tokens[at + 1].kind == Token::Symbol && tokens[at + 1].text == "=") {
        argument.name = name();
        ++at;
      }
      argument.value = expression();
      e.arguments.push_back(std::move(argument));
      if (!is(Token::Symbol, ")"))
        expect(",");
    }
  }

  ExprPtr primary() {
    if (is(Token::String)) {
      ExprPtr e = make(Expr::Literal);
      std::string text;
      while (is(Token::String))
        text += tokens[at++].text;
      e->value = JinjaValue::string(text);
      return e;
    }
    if (is(Token::Number)) {
      ExprPtr e = make(Expr::Literal);
      int64_t number = 0;
      if (StringRef(tokens[at++].text).getAsInteger(10, number))
        fail("a number is too large");
      e->value = JinjaValue::integer(number);
      return e;
    }
    if (is(Token::Name))
      return named();
    if (eat("("))
      return tuple(")");
    if (eat("["))
      return tuple("]");
    if (eat("{"))
      return dict();
    fail("expected a value" + found());
    return make(Expr::Literal);
  }

  ExprPtr named() {
    std::string text = name();
    ExprPtr e = make(Expr::Literal);
    if (text == "true" || text == "True")
      e->value = JinjaValue::boolean(true);
    else if (text == "false" || text == "False")
      e->value = JinjaValue::boolean(false);
    else if (text == "none" || text == "None")
      e->value.kind = JinjaValue::None;
    else
      return make(Expr::Name, text);
    return e;
  }

  /// A list, or in parentheses one value alone.
  ExprPtr tuple(StringRef end) {
    ExprPtr e = make(Expr::MakeList);
    bool comma = end == "]";
    while (!failed() && !eat(end)) {
      e->parts.push_back(expression());
      if (eat(","))
        comma = true;
      else if (!is(Token::Symbol, end))
        expect(",");
    }
    return comma || e->parts.size() != 1 ? std::move(e)
                                         : std::move(e->parts[0]);
  }

  ExprPtr dict() {
    ExprPtr e = make(Expr::MakeDict);
    while (!failed() && !eat("}")) {
      if (!is(Token::String))
        fail("expected a string as a key" + found());
      Argument entry;
      entry.name = failed() ? "" : tokens[at++].text;
      expect(":");
      entry.value = expression();
      e->arguments.push_back(std::move(entry));
      if (!is(Token::Symbol, "}"))
        expect(",");
    }
    return e;
  }
};

} // namespace

llvm::Expected<std::vector<Node>> parse(StringRef source) {
  auto tokens = lex(source);
  if (!tokens)
    return tokens.takeError();
  return Parser(std::move(*tokens)).run();
}

} // namespace tenon::codegen::jinja
