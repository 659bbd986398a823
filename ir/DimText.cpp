//===- DimText.cpp - symbolic dimensions: printing and parsing -----------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ir/DimImpl.h"
#include "ir/support/Quote.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace tenon::ir {

namespace {

constexpr StringLiteral funcNames[] = {"floordiv", "ceildiv", "mod",
                                       "min",      "max",     "broadcast"};

std::optional<DimFunc> parseFunc(StringRef name) {
  for (const auto &[i, known] : enumerate(funcNames))
    if (known == name)
      return DimFunc(i);
  return std::nullopt;
}

void printAtom(raw_ostream &os, const Dim::Atom *atom) {
  if (!atom->symbol) {
    os << dimFuncName(atom->func) << '(' << atom->lhs() << ", " << atom->rhs()
       << ')';
    return;
  }
  // A symbol called `min` must not read as the function.
  if (parseFunc(*atom->symbol))
    printQuoted(os, *atom->symbol);
  else
    printIdentifier(os, *atom->symbol);
}

/// coefficient * atoms, without its sign.
void printMagnitude(raw_ostream &os, const Dim::Term &term) {
  uint64_t magnitude = term.coefficient < 0 ? -uint64_t(term.coefficient)
                                            : uint64_t(term.coefficient);
  ListSeparator times(" * ");
  if (magnitude != 1 || term.atoms.empty())
    os << times << magnitude;
  for (const Dim::Atom *atom : term.atoms) {
    os << times;
    printAtom(os, atom);
  }
}

/// Recursive descent over
///   sum    = ["-"] product {("+" | "-") product}
///   product = factor {"*" factor}
///   factor = integer | name | string | function "(" sum "," sum ")"
///          | "(" sum ")" | "-" factor
class DimParser {
public:
  explicit DimParser(StringRef text) : text(text) {}

  std::optional<Dim> sum(unsigned depth = 0);
  void skipSpace() { text = text.ltrim(" \t\r\n"); }
  StringRef text;

private:
  std::optional<Dim> product(bool negative, unsigned depth);
  std::optional<Dim> factor(unsigned depth);
  std::optional<Dim> call(DimFunc f, unsigned depth);
  std::optional<Dim> integer(bool negative);
  bool consume(char c) {
    skipSpace();
    return text.consume_front(StringRef(&c, 1));
  }
};

/// Adds pairwise, so that a long sum makes few intermediate expressions.
Dim balancedSum(MutableArrayRef<Dim> parts) {
  for (size_t n = parts.size(); n > 1; n = (n + 1) / 2)
    for (size_t i = 0; i < n; i += 2)
      parts[i / 2] = i + 1 < n ? parts[i] + parts[i + 1] : parts[i];
  return parts.front();
}

std::optional<Dim> DimParser::sum(unsigned depth) {
  if (depth > 2 * maxDimDepth)
    return std::nullopt;
  SmallVector<Dim, 4> parts;
  bool negative = consume('-');
  do {
    std::optional<Dim> part = product(negative, depth);
    if (!part)
      return std::nullopt;
    parts.push_back(*part);
    negative = consume('-');
  } while (negative || consume('+'));
  return balancedSum(parts);
}

std::optional<Dim> DimParser::product(bool negative, unsigned depth) {
  skipSpace();
  // The sign belongs to the number: -9223372036854775808 has no positive form.
  bool isNumber = !text.empty() && isDigit(text.front());
  std::optional<Dim> result = isNumber ? integer(negative) : factor(depth);
  if (!result)
    return std::nullopt;
  if (negative && !isNumber)
    result = Dim(0) - *result;
  while (consume('*')) {
    std::optional<Dim> next = factor(depth);
    if (!next)
      return std::nullopt;
    result = *result * *next;
  }
  return result;
}

std::optional<Dim> DimParser::integer(bool negative) {
  StringRef digits = text.take_while(isDigit);
  uint64_t magnitude;
  if (digits.getAsInteger(10, magnitude) ||
      magnitude > uint64_t(INT64_MAX) + negative)
    return std::nullopt;
  text = text.drop_front(digits.size());
  return Dim(int64_t(negative ? -magnitude : magnitude));
}

std::optional<Dim> DimParser::call(DimFunc f, unsigned depth) {
  std::optional<Dim> a = sum(depth + 1);
  if (!a || !consume(','))
    return std::nullopt;
  std::optional<Dim> b = sum(depth + 1);
  if (!b || !consume(')'))
    return std::nullopt;
  return Dim::func(f, *a, *b);
}

std::optional<Dim> DimParser::factor(unsigned depth) {
  skipSpace();
  if (text.empty())
    return std::nullopt;
  if (isDigit(text.front()))
    return integer(/*negative=*/false);
  if (text.front() == '"') {
    std::optional<std::string> name = consumeQuoted(text);
    return name ? std::optional(Dim::symbol(*name)) : std::nullopt;
  }
  if (consume('-')) {
    std::optional<Dim> value =
        depth > 2 * maxDimDepth ? std::nullopt : factor(depth + 1);
    return value ? std::optional(Dim(0) - *value) : std::nullopt;
  }
  if (consume('(')) {
    std::optional<Dim> value = sum(depth + 1);
    return value && consume(')') ? value : std::nullopt;
  }
  StringRef name =
      text.take_while([](char c) { return isAlnum(c) || c == '_'; });
  if (name.empty())
    return std::nullopt;
  text = text.drop_front(name.size());
  if (std::optional<DimFunc> f = parseFunc(name); f && consume('('))
    return call(*f, depth);
  return Dim::symbol(name);
}

} // namespace

StringRef dimFuncName(DimFunc f) { return funcNames[unsigned(f)]; }

void Dim::print(raw_ostream &os) const {
  if (isOverflow()) {
    os << "<overflow>";
    return;
  }
  if (terms().empty())
    os << '0';
  for (const auto &[i, term] : enumerate(terms())) {
    if (i == 0)
      os << (term.coefficient < 0 ? "-" : "");
    else
      os << (term.coefficient < 0 ? " - " : " + ");
    printMagnitude(os, term);
  }
}

raw_ostream &operator<<(raw_ostream &os, Dim dim) {
  dim.print(os);
  return os;
}

std::optional<Dim> parseDimPrefix(StringRef &text) {
  DimParser parser(text);
  std::optional<Dim> result = parser.sum();
  text = parser.text;
  return result && !result->isOverflow() ? result : std::nullopt;
}

std::optional<Dim> parseDim(StringRef text) {
  std::optional<Dim> result = parseDimPrefix(text);
  return text.ltrim(" \t\r\n").empty() ? result : std::nullopt;
}

} // namespace tenon::ir
