//===- Jinja.cpp - chat templates -----------------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/tokenizer/Jinja.h"

#include "codegen/tokenizer/JinjaParser.h"
#include "ir/support/Diag.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <map>

namespace tenon::codegen {

using llvm::StringRef;
using namespace jinja;

namespace {

constexpr size_t maxOutput = 1 << 20;
constexpr unsigned maxSteps = 20000, maxCalls = 50;

StringRef white(StringRef chars) { return chars.empty() ? " \t\r\n" : chars; }

class Interpreter {
public:
  explicit Interpreter(const JinjaValue::Fields &variables) {
    scopes.emplace_back();
    for (const auto &[name, value] : variables)
      scopes.back()[name] = value;
  }

  llvm::Expected<std::string> run(const std::vector<Node> &nodes) {
    exec(nodes);
    if (!problem.empty())
      return userError("{0}", problem);
    return std::move(out);
  }

private:
  std::vector<std::map<std::string, JinjaValue, std::less<>>> scopes;
  std::map<std::string, const Node *, std::less<>> macros;
  std::string out, problem;
  unsigned steps = 0, calls = 0;
  enum class Leave { No, Break, Continue } leave = Leave::No;

  JinjaValue fail(const llvm::Twine &why) {
    if (problem.empty())
      problem = why.str();
    return {};
  }
  bool stopped() {
    if (++steps > maxSteps || out.size() > maxOutput)
      fail("it does not come to an end");
    return !problem.empty() || leave != Leave::No;
  }

  const JinjaValue *find(StringRef name) const {
    for (const auto &scope : llvm::reverse(scopes))
      if (auto found = scope.find(name.str()); found != scope.end())
        return &found->second;
    return nullptr;
  }

  //===- Statements -------------------------------------------------------===//

  void exec(const std::vector<Node> &nodes) {
    for (const Node &node : nodes) {
      if (stopped())
        return;
      exec(node);
    }
  }

  void exec(const Node &node) {
    switch (node.kind) {
    case Node::Text:
      out += node.text;
      return;
    case Node::Output:
      out += textOf(eval(*node.value));
      return;
    case Node::If:
      return exec(eval(*node.value).isTrue() ? node.body : node.otherwise);
    case Node::For:
      return loop(node);
    case Node::Set:
      return assign(node);
    case Node::Macro:
      macros[node.text] = &node;
      return;
    case Node::Break:
      leave = Leave::Break;
      return;
    case Node::Continue:
      leave = Leave::Continue;
      return;
    }
  }

  void assign(const Node &node) {
    JinjaValue value;
    if (node.value)
      value = eval(*node.value);
    else
      value = JinjaValue::string(captured([&] { exec(node.body); }));
    if (node.text.empty()) {
      scopes.back()[node.names[0]] = std::move(value);
      return;
    }
    const JinjaValue *target = find(node.names[0]);
    if (!target || target->kind != JinjaValue::Dict)
      fail("'" + node.names[0] + "' is no namespace");
    else
      JinjaValue(*target).set(node.text, std::move(value));
  }

  template <class F> std::string captured(F &&run) {
    std::string before = std::move(out);
    out.clear();
    run();
    std::swap(before, out);
    return before;
  }

  JinjaValue::Items itemsOf(const JinjaValue &value) {
    JinjaValue::Items items;
    if (value.kind == JinjaValue::List)
      return *value.items;
    if (value.kind == JinjaValue::Dict)
      for (const auto &[key, unused] : *value.fields)
        items.push_back(JinjaValue::string(key));
    else if (value.kind == JinjaValue::Text)
      for (char c : value.text)
        items.push_back(JinjaValue::string(StringRef(&c, 1)));
    else if (value.kind != JinjaValue::Undefined)
      fail("a loop over what has no items");
    return items;
  }

  void bind(const Node &node, const JinjaValue &item) {
    if (node.names.size() == 1) {
      scopes.back()[node.names[0]] = item;
      return;
    }
    for (const auto &[i, name] : llvm::enumerate(node.names))
      scopes.back()[name] =
          item.kind == JinjaValue::List && i < item.items->size()
              ? (*item.items)[i]
              : JinjaValue();
  }

  void loop(const Node &node) {
    JinjaValue::Items items = itemsOf(eval(*node.value));
    scopes.emplace_back();
    if (node.condition)
      llvm::erase_if(items, [&](const JinjaValue &item) {
        bind(node, item);
        return !eval(*node.condition).isTrue();
      });
    for (const auto &[i, item] : llvm::enumerate(items)) {
      if (stopped())
        break;
      scopes.back().clear(); // what an iteration sets ends with it
      bind(node, item);
      scopes.back()["loop"] = loopVariable(items, i);
      exec(node.body);
      bool ends = leave == Leave::Break;
      leave = Leave::No;
      if (ends)
        break;
    }
    scopes.pop_back();
    if (items.empty())
      exec(node.otherwise);
  }

  static JinjaValue loopVariable(const JinjaValue::Items &items, size_t i) {
    int64_t n = int64_t(items.size());
    JinjaValue::Fields fields = {
        {"index", JinjaValue::integer(int64_t(i) + 1)},
        {"index0", JinjaValue::integer(int64_t(i))},
        {"revindex", JinjaValue::integer(n - int64_t(i))},
        {"first", JinjaValue::boolean(i == 0)},
        {"last", JinjaValue::boolean(i + 1 == items.size())},
        {"length", JinjaValue::integer(n)}};
    if (i > 0)
      fields.push_back({"previtem", items[i - 1]});
    if (i + 1 < items.size())
      fields.push_back({"nextitem", items[i + 1]});
    return JinjaValue::dict(std::move(fields));
  }

  //===- Expressions ------------------------------------------------------===//

  std::string textOf(const JinjaValue &value) {
    switch (value.kind) {
    case JinjaValue::Undefined:
      return "";
    case JinjaValue::None:
      return "None";
    case JinjaValue::Bool:
      return value.number ? "True" : "False";
    case JinjaValue::Int:
      return std::to_string(value.number);
    case JinjaValue::Text:
      return value.text;
    default:
      fail("a list or dictionary is written out");
      return "";
    }
  }

  JinjaValue eval(const Expr &e) {
    if (stopped())
      return {};
    switch (e.kind) {
    case Expr::Literal:
      return e.value;
    case Expr::Name:
      if (const JinjaValue *value = find(e.text))
        return *value;
      return {};
    case Expr::MakeList: {
      JinjaValue::Items items;
      for (const ExprPtr &part : e.parts)
        items.push_back(eval(*part));
      return JinjaValue::list(std::move(items));
    }
    case Expr::MakeDict:
      return JinjaValue::dict(named(e));
    case Expr::Attribute:
      return eval(*e.parts[0]).get(e.text);
    case Expr::Index:
      return index(eval(*e.parts[0]),
                   e.parts[1] ? eval(*e.parts[1]) : JinjaValue());
    case Expr::Slice:
      return slice(e);
    case Expr::Call:
      return call(e);
    case Expr::Filter:
      return filter(e, eval(*e.parts[0]));
    case Expr::Test:
      return JinjaValue::boolean(test(e));
    case Expr::Unary:
      return unary(e.text, eval(*e.parts[0]));
    case Expr::Binary:
      return binary(e);
    case Expr::Choose:
      return eval(*e.parts[eval(*e.parts[1]).isTrue() ? 0 : 2]);
    }
    return {};
  }

  JinjaValue::Fields named(const Expr &e) {
    JinjaValue::Fields fields;
    for (const Argument &argument : e.arguments)
      fields.push_back({argument.name, eval(*argument.value)});
    return fields;
  }

  static JinjaValue unary(StringRef op, const JinjaValue &x) {
    if (op == "-")
      return JinjaValue::integer(-x.number);
    return JinjaValue::boolean(x.isTrue() == (op == "bool"));
  }

  JinjaValue index(const JinjaValue &x, const JinjaValue &i) {
    if (x.kind == JinjaValue::Dict && i.kind == JinjaValue::Text)
      return x.get(i.text);
    if (i.kind != JinjaValue::Int)
      return {};
    int64_t n = x.kind == JinjaValue::List   ? int64_t(x.items->size())
                : x.kind == JinjaValue::Text ? int64_t(x.text.size())
                                             : 0;
    int64_t at = i.number < 0 ? i.number + n : i.number;
    if (at < 0 || at >= n)
      return {};
    return x.kind == JinjaValue::List
               ? (*x.items)[size_t(at)]
               : JinjaValue::string(StringRef(x.text).substr(size_t(at), 1));
  }

  JinjaValue slice(const Expr &e) {
    JinjaValue x = eval(*e.parts[0]);
    int64_t n = x.kind == JinjaValue::List   ? int64_t(x.items->size())
                : x.kind == JinjaValue::Text ? int64_t(x.text.size())
                                             : 0;
    int64_t step = e.parts[3] ? eval(*e.parts[3]).number : 1;
    auto bound = [&](unsigned i, int64_t missing) {
      if (!e.parts[i])
        return missing;
      int64_t at = eval(*e.parts[i]).number;
      return std::clamp<int64_t>(at < 0 ? at + n : at, 0, n);
    };
    if (step != 1 && step != -1)
      return fail("a slice with a step");
    if (step < 0 && (e.parts[1] || e.parts[2]))
      return fail("a slice backwards with bounds");
    int64_t begin = bound(1, 0), end = std::max(begin, bound(2, n));
    if (x.kind == JinjaValue::Text) {
      std::string text = x.text.substr(size_t(begin), size_t(end - begin));
      if (step < 0)
        std::reverse(text.begin(), text.end());
      return JinjaValue::string(text);
    }
    JinjaValue::Items items;
    for (int64_t i = begin; i < end; ++i)
      items.push_back((*x.items)[size_t(step < 0 ? n - 1 - i : i)]);
    return JinjaValue::list(std::move(items));
  }

  JinjaValue binary(const Expr &e) {
    StringRef op = e.text;
    JinjaValue a = eval(*e.parts[0]);
    if (op == "and" || op == "or")
      return a.isTrue() == (op == "or") ? a : eval(*e.parts[1]);
    JinjaValue b = eval(*e.parts[1]);
    if (op == "==")
      return JinjaValue::boolean(a == b);
    if (op == "!=")
      return JinjaValue::boolean(!(a == b));
    if (op == "in" || op == "not in")
      return JinjaValue::boolean(contains(b, a) == (op == "in"));
    if (op == "~")
      return JinjaValue::string(textOf(a) + textOf(b));
    if (a.kind == JinjaValue::Text && b.kind == JinjaValue::Text) {
      if (op == "+")
        return JinjaValue::string(a.text + b.text);
      return compare(op, a.text.compare(b.text), 0);
    }
    if (a.kind == JinjaValue::List && b.kind == JinjaValue::List && op == "+") {
      JinjaValue::Items items = *a.items;
      items.insert(items.end(), b.items->begin(), b.items->end());
      return JinjaValue::list(std::move(items));
    }
    bool numbers = (a.kind == JinjaValue::Int || a.kind == JinjaValue::Bool) &&
                   (b.kind == JinjaValue::Int || b.kind == JinjaValue::Bool);
    if (!numbers)
      return fail("'" + op + "' of values that it is not for");
    return arithmetic(op, a.number, b.number);
  }

  JinjaValue compare(StringRef op, int64_t a, int64_t b) {
    if (op == "<")
      return JinjaValue::boolean(a < b);
    if (op == "<=")
      return JinjaValue::boolean(a <= b);
    if (op == ">")
      return JinjaValue::boolean(a > b);
    if (op == ">=")
      return JinjaValue::boolean(a >= b);
    return fail("'" + op + "' is not supported");
  }

  JinjaValue arithmetic(StringRef op, int64_t a, int64_t b) {
    int64_t r = 0;
    if (op == "+" && !__builtin_add_overflow(a, b, &r))
      return JinjaValue::integer(r);
    if (op == "-" && !__builtin_sub_overflow(a, b, &r))
      return JinjaValue::integer(r);
    if (op == "*" && !__builtin_mul_overflow(a, b, &r))
      return JinjaValue::integer(r);
    if ((op == "%" || op == "//") && b > 0) {
      int64_t rest = ((a % b) + b) % b;
      return JinjaValue::integer(op == "%" ? rest : (a - rest) / b);
    }
    return compare(op, a, b);
  }

  static bool contains(const JinjaValue &all, const JinjaValue &one) {
    if (all.kind == JinjaValue::Text)
      return one.kind == JinjaValue::Text &&
             StringRef(all.text).contains(one.text);
    if (all.kind == JinjaValue::Dict)
      return one.kind == JinjaValue::Text &&
             llvm::any_of(*all.fields,
                          [&](const auto &f) { return f.first == one.text; });
    return all.kind == JinjaValue::List && llvm::is_contained(*all.items, one);
  }

  //===- Tests, filters, calls --------------------------------------------===//

  bool test(const Expr &e) {
    JinjaValue x = eval(*e.parts[0]);
    StringRef name = e.text;
    // What the environment has, although it is no variable.
    if (name == "defined" || name == "undefined") {
      bool known = x.kind != JinjaValue::Undefined ||
                   (e.parts[0]->kind == Expr::Name &&
                    (e.parts[0]->text == "raise_exception" ||
                     macros.count(e.parts[0]->text)));
      return known == (name == "defined");
    }
    auto is = [&](JinjaValue::Kind kind) { return x.kind == kind; };
    if (name == "none")
      return is(JinjaValue::None);
    if (name == "string")
      return is(JinjaValue::Text);
    if (name == "mapping")
      return is(JinjaValue::Dict);
    if (name == "iterable" || name == "sequence")
      return is(JinjaValue::List) || is(JinjaValue::Dict) ||
             is(JinjaValue::Text);
    if (name == "number" || name == "integer")
      return is(JinjaValue::Int) || (is(JinjaValue::Bool) && name == "number");
    if (name == "boolean")
      return is(JinjaValue::Bool);
    if (name == "true" || name == "false")
      return is(JinjaValue::Bool) && x.isTrue() == (name == "true");
    if (name == "eq" || name == "equalto")
      return !e.arguments.empty() && x == eval(*e.arguments[0].value);
    if (name == "in")
      return !e.arguments.empty() && contains(eval(*e.arguments[0].value), x);
    fail("the test '" + name + "' is not supported");
    return false;
  }

  /// The argument number \p i, or named \p name.
  JinjaValue argument(const Expr &e, size_t i, StringRef name) {
    for (const auto &[at, a] : llvm::enumerate(e.arguments))
      if (a.name.empty() ? at == i : a.name == name)
        return eval(*a.value);
    return {};
  }

  JinjaValue filter(const Expr &e, const JinjaValue &x) {
    StringRef name = e.text, text = x.text;
    if (name == "trim")
      return JinjaValue::string(text.trim(white(argument(e, 0, "chars").text)));
    if (name == "length" || name == "count")
      return JinjaValue::integer(x.kind == JinjaValue::Text
                                     ? int64_t(countCharacters(text))
                                     : int64_t(itemsOf(x).size()));
    if (name == "upper" || name == "lower")
      return JinjaValue::string(name == "upper" ? text.upper() : text.lower());
    if (name == "string" || name == "safe")
      return JinjaValue::string(textOf(x));
    if (name == "default" || name == "d") {
      bool replace = x.kind == JinjaValue::Undefined ||
                     (argument(e, 1, "boolean").isTrue() && !x.isTrue());
      return replace ? argument(e, 0, "default_value") : x;
    }
    if (name == "first" || name == "last") {
      JinjaValue::Items items = itemsOf(x);
      return items.empty() ? JinjaValue()
                           : (name == "first" ? items.front() : items.back());
    }
    if (name == "list")
      return JinjaValue::list(itemsOf(x));
    if (name == "items")
      return pairs(x);
    if (name == "join") {
      std::string joined;
      std::string between = argument(e, 0, "d").text;
      for (const auto &[i, item] : llvm::enumerate(itemsOf(x)))
        joined += (i ? between : "") + textOf(item);
      return JinjaValue::string(joined);
    }
    if (name == "replace")
      return replaced(text, argument(e, 0, "old").text,
                      argument(e, 1, "new").text);
    return fail("the filter '" + name + "' is not supported");
  }

  static size_t countCharacters(StringRef text) {
    return llvm::count_if(text, [](char c) { return (c & 0xc0) != 0x80; });
  }

  JinjaValue pairs(const JinjaValue &x) {
    JinjaValue::Items items;
    if (x.kind == JinjaValue::Dict)
      for (const auto &[key, value] : *x.fields)
        items.push_back(JinjaValue::list({JinjaValue::string(key), value}));
    return JinjaValue::list(std::move(items));
  }

  JinjaValue replaced(StringRef text, StringRef from, StringRef to) {
    std::string result;
    while (!from.empty() && text.contains(from)) {
      auto [head, tail] = text.split(from);
      result += (head + to).str();
      text = tail;
    }
    return JinjaValue::string(result + text.str());
  }

  JinjaValue call(const Expr &e) {
    const Expr &callee = *e.parts[0];
    if (callee.kind == Expr::Attribute)
      return method(e, eval(*callee.parts[0]), callee.text);
    if (callee.kind != Expr::Name)
      return fail("a call of what is no function");
    if (callee.text == "raise_exception")
      return fail("the template raises: " + textOf(argument(e, 0, "message")));
    if (callee.text == "namespace" || callee.text == "dict")
      return JinjaValue::dict(named(e));
    if (callee.text == "range") {
      JinjaValue::Items items;
      JinjaValue a = argument(e, 0, ""), b = argument(e, 1, "");
      int64_t begin = b.kind == JinjaValue::Int ? a.number : 0,
              end = b.kind == JinjaValue::Int ? b.number : a.number;
      if (end - begin > int64_t(maxSteps))
        return fail("a range is too long");
      for (int64_t i = begin; i < end; ++i)
        items.push_back(JinjaValue::integer(i));
      return JinjaValue::list(std::move(items));
    }
    auto macro = macros.find(callee.text);
    if (macro == macros.end())
      return fail("the function '" + callee.text + "' is not supported");
    return expand(*macro->second, e);
  }

  JinjaValue expand(const Node &macro, const Expr &e) {
    if (++calls > maxCalls)
      return fail("macros call each other too deep");
    std::map<std::string, JinjaValue, std::less<>> scope;
    for (const auto &[i, name] : llvm::enumerate(macro.names)) {
      scope[name] = argument(e, i, name);
      if (scope[name].kind == JinjaValue::Undefined && macro.defaults[i])
        scope[name] = eval(*macro.defaults[i]);
    }
    scopes.push_back(std::move(scope));
    std::string text = captured([&] { exec(macro.body); });
    scopes.pop_back();
    --calls;
    return JinjaValue::string(text);
  }

  JinjaValue method(const Expr &e, const JinjaValue &x, StringRef name) {
    if (x.kind == JinjaValue::Dict)
      return dictMethod(e, x, name);
    if (x.kind != JinjaValue::Text)
      return fail("the method '" + name + "' of what has none");
    StringRef text = x.text;
    std::string first = argument(e, 0, "").text;
    if (name == "strip")
      return JinjaValue::string(text.trim(white(first)));
    if (name == "lstrip")
      return JinjaValue::string(text.ltrim(white(first)));
    if (name == "rstrip")
      return JinjaValue::string(text.rtrim(white(first)));
    if (name == "startswith")
      return JinjaValue::boolean(text.starts_with(first));
    if (name == "endswith")
      return JinjaValue::boolean(text.ends_with(first));
    if (name == "upper" || name == "lower")
      return JinjaValue::string(name == "upper" ? text.upper() : text.lower());
    if (name == "replace")
      return replaced(text, first, argument(e, 1, "").text);
    if (name == "split") {
      llvm::SmallVector<StringRef, 8> parts;
      if (first.empty())
        llvm::SplitString(text, parts, " \t\r\n");
      else
        text.split(parts, first);
      JinjaValue::Items items;
      for (StringRef part : parts)
        items.push_back(JinjaValue::string(part));
      return JinjaValue::list(std::move(items));
    }
    return fail("the method '" + name + "' is not supported");
  }

  JinjaValue dictMethod(const Expr &e, const JinjaValue &x, StringRef name) {
    if (name == "items")
      return pairs(x);
    if (name == "keys")
      return JinjaValue::list(itemsOf(x));
    if (name == "get") {
      JinjaValue found = x.get(argument(e, 0, "").text);
      if (found.kind != JinjaValue::Undefined)
        return found;
      JinjaValue other = argument(e, 1, "");
      if (other.kind == JinjaValue::Undefined)
        other.kind = JinjaValue::None;
      return other;
    }
    return fail("the method '" + name + "' is not supported");
  }
};

} // namespace

llvm::Expected<std::string> renderJinja(StringRef source,
                                        const JinjaValue::Fields &variables) {
  auto nodes = parse(source);
  if (!nodes)
    return nodes.takeError();
  return Interpreter(variables).run(*nodes);
}

} // namespace tenon::codegen
