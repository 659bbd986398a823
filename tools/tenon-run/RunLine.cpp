//===- RunLine.cpp - what a `// run:` line says --------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "RunLine.h"

#include "ir/support/Diag.h"
#include "llvm/ADT/StringExtras.h"
#include <limits>

using namespace tenon;
using namespace tenon::run;

namespace {

/// Deeper lists than any tensor's rank are refused.
constexpr unsigned maxDepth = 16;
/// What `~` allows unless the line says otherwise.
constexpr ir::Tolerance defaultTolerance{1e-5, 1e-6};

bool isNameChar(char c) { return llvm::isAlnum(c) || c == '_' || c == '.'; }

class Parser {
public:
  explicit Parser(llvm::StringRef text) : rest(text.trim()) {}
  llvm::Expected<Run> run();

private:
  bool accept(llvm::StringRef token);
  llvm::Error expect(llvm::StringRef token);
  llvm::StringRef word();
  llvm::Error number(Number &result);
  llvm::Error literal(Literal &result);
  llvm::Error list(Literal &result, unsigned depth);
  llvm::Error options(Argument &argument);
  llvm::Error generator(llvm::StringRef name, Argument &argument);
  llvm::Error argument(Argument &result);
  llvm::Error arguments();
  llvm::Error expectation();
  llvm::Error tolerances();

  llvm::StringRef rest;
  Run result;
};

bool Parser::accept(llvm::StringRef token) {
  rest = rest.ltrim();
  return rest.consume_front(token);
}

llvm::Error Parser::expect(llvm::StringRef token) {
  if (accept(token))
    return llvm::Error::success();
  if (rest.empty())
    return userError("expected '{0}' at the end of the run line", token);
  return userError("expected '{0}' before '{1}'", token, rest.take_front(20));
}

llvm::StringRef Parser::word() {
  rest = rest.ltrim();
  llvm::StringRef name = rest.take_while(isNameChar);
  rest = rest.drop_front(name.size());
  return name;
}

llvm::Error Parser::number(Number &result) {
  rest = rest.ltrim();
  llvm::StringRef text = rest.take_while(
      [](char c) { return isNameChar(c) || c == '+' || c == '-'; });
  llvm::StringRef unsignedText = text.ltrim('-');
  bool negative = text.size() != unsignedText.size();
  if (unsignedText == "inf" || unsignedText == "nan") {
    result.real = unsignedText == "inf"
                      ? std::numeric_limits<double>::infinity()
                      : std::numeric_limits<double>::quiet_NaN();
    result.real = negative ? -result.real : result.real;
  } else if (text == "true" || text == "false") {
    result = {double(text == "true"), text == "true", true};
  } else if (uint64_t wide; !text.getAsInteger(10, result.integer)) {
    result.isInteger = true;
    result.real = static_cast<double>(result.integer);
  } else if (!text.getAsInteger(10, wide)) {
    result = {static_cast<double>(wide), static_cast<int64_t>(wide), true};
  } else if (text.getAsDouble(result.real)) {
    return userError("expected a number, found '{0}'", rest.take_front(20));
  }
  rest = rest.drop_front(text.size());
  return llvm::Error::success();
}

/// The elements after a '['. Every list of one depth has the same length.
llvm::Error Parser::list(Literal &result, unsigned depth) {
  if (depth == maxDepth)
    return userError("a literal is nested more than {0} deep", maxDepth);
  if (result.shape.size() == depth)
    result.shape.push_back(-1);
  int64_t length = 0;
  if (!accept("]")) {
    do {
      ++length;
      bool nested = accept("[");
      bool known = result.shape.size() > depth + 1 || !result.elements.empty();
      if (known && nested != (result.shape.size() > depth + 1))
        return userError("numbers and lists are mixed in a literal");
      if (llvm::Error error =
              nested ? list(result, depth + 1)
                     : number(result.elements.emplace_back()))
        return error;
    } while (accept(","));
    if (llvm::Error error = expect("]"))
      return error;
  }
  if (result.shape[depth] != -1 && result.shape[depth] != length)
    return userError("lists of {0} and of {1} elements in one dimension of a "
                     "literal",
                     result.shape[depth], length);
  result.shape[depth] = length;
  return llvm::Error::success();
}

llvm::Error Parser::literal(Literal &result) {
  if (accept("["))
    return list(result, 0);
  return number(result.elements.emplace_back());
}

/// `name = number` separated by commas, up to the closing parenthesis.
llvm::Error Parser::options(Argument &argument) {
  while (!accept(")")) {
    llvm::StringRef name = word();
    if (name.empty())
      return userError("expected an option before '{0}'", rest.take_front(20));
    if (llvm::Error error = expect("="))
      return error;
    Number value;
    if (llvm::Error error = number(value))
      return error;
    if (name == "low" || name == "high") {
      (name == "low" ? argument.low : argument.high) = value;
    } else if (!value.isInteger || value.integer < 0) {
      return userError("'{0}' must be an integer that is not negative", name);
    } else if (name == "seed") {
      argument.seed = static_cast<uint64_t>(value.integer);
    } else if (auto [it, inserted] =
                   result.symbols.try_emplace(name, value.integer);
               !inserted && it->second != value.integer) {
      return userError("the symbol '{0}' is both {1} and {2}", name, it->second,
                       value.integer);
    }
    if (!accept(",")) {
      if (llvm::Error error = expect(")"))
        return error;
      break;
    }
  }
  return llvm::Error::success();
}

llvm::Error Parser::generator(llvm::StringRef name, Argument &argument) {
  bool constant = name == "ones" || name == "zeros";
  bool splat = name == "splat";
  argument.form = name == "random" ? Argument::Form::Random
                  : name == "iota" ? Argument::Form::Iota
                                   : Argument::Form::Splat;
  if (constant)
    argument.literal.elements.push_back(
        {double(name == "ones"), name == "ones", true});
  if (!accept("("))
    return constant || name == "iota"
               ? llvm::Error::success()
               : userError("expected '(' after '{0}'", name);
  if (splat) {
    if (llvm::Error error = number(argument.literal.elements.emplace_back()))
      return error;
    if (!accept(","))
      return expect(")");
  }
  return options(argument);
}

llvm::Error Parser::argument(Argument &result) {
  llvm::StringRef before = rest;
  llvm::StringRef name = word();
  for (llvm::StringRef known : {"random", "iota", "ones", "zeros", "splat"})
    if (name == known)
      return generator(name, result);
  rest = before;
  return literal(result.literal);
}

llvm::Error Parser::arguments() {
  if (accept(")"))
    return llvm::Error::success();
  do {
    if (llvm::Error error = argument(result.arguments.emplace_back()))
      return error;
  } while (accept(","));
  return expect(")");
}

/// `, rtol = 1e-5, atol = 1e-6` up to the end.
llvm::Error Parser::tolerances() {
  while (!rest.empty()) {
    llvm::StringRef name = word();
    if (name != "rtol" && name != "atol")
      return userError("expected rtol or atol, found '{0}'",
                       name.empty() ? rest.take_front(20) : name);
    if (llvm::Error error = expect("="))
      return error;
    Number value;
    if (llvm::Error error = number(value))
      return error;
    ir::Tolerance &tolerance = result.expectation.tolerance;
    (name == "rtol" ? tolerance.rtol : tolerance.atol) = value.real;
    if (!accept(",") && !rest.empty())
      return userError("expected ',' before '{0}'", rest.take_front(20));
  }
  return llvm::Error::success();
}

llvm::Error Parser::expectation() {
  Expectation &expected = result.expectation;
  if (accept("!error:")) {
    expected.form = Expectation::Form::Error;
    expected.errorText = rest.trim().str();
    return llvm::Error::success();
  }
  if (accept("~"))
    expected.tolerance = defaultTolerance;
  else if (!accept("=="))
    return rest.empty() ? llvm::Error::success()
                        : userError("expected ==, ~ or !error: before '{0}'",
                                    rest.take_front(20));
  if (accept("ref")) {
    expected.form = Expectation::Form::Reference;
    if (!accept(",") && !rest.empty())
      return userError("expected ',' before '{0}'", rest.take_front(20));
    return tolerances();
  }
  expected.form = Expectation::Form::Literals;
  do {
    rest = rest.ltrim();
    if (rest.starts_with("rtol") || rest.starts_with("atol"))
      return tolerances();
    if (llvm::Error error = literal(expected.literals.emplace_back()))
      return error;
  } while (accept(","));
  return rest.empty()
             ? llvm::Error::success()
             : userError("expected ',' before '{0}'", rest.take_front(20));
}

llvm::Expected<Run> Parser::run() {
  if (llvm::Error error = expect("@"))
    return error;
  llvm::StringRef func = word();
  if (func.empty())
    return userError("expected a function's name after '@'");
  result.func = func.str();
  if (llvm::Error error = expect("("))
    return error;
  if (llvm::Error error = arguments())
    return error;
  rest = rest.trim();
  if (llvm::Error error = expectation())
    return error;
  return std::move(result);
}

} // namespace

llvm::Expected<Run> tenon::run::parseRun(llvm::StringRef text) {
  text = text.trim();
  text.consume_front("//");
  text = text.ltrim();
  text.consume_front("run:");
  return Parser(text).run();
}
