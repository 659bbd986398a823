//===- Literals.cpp - numbers and constants as text ----------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ir/text/Literals.h"
#include "ir/support/Quote.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

using namespace llvm;

namespace tenon::ir {

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

namespace {

/// Longer numbers are refused: reading one takes quadratic time.
constexpr size_t maxNumberLength = 80;

/// An element's bits, for comparing and printing NaNs.
uint64_t bitsOf(ElementType type, const uint8_t *bytes, uint64_t index) {
  ElementType same = bitWidth(type) == 64   ? ElementType::U64
                     : bitWidth(type) == 32 ? ElementType::U32
                     : bitWidth(type) == 16 ? ElementType::U16
                     : bitWidth(type) == 8  ? ElementType::U8
                                            : ElementType::U4;
  return uint64_t(loadInteger(same, bytes, index));
}

void setBits(ElementType type, uint8_t *bytes, uint64_t index, uint64_t bits) {
  ElementType same = bitWidth(type) == 64   ? ElementType::U64
                     : bitWidth(type) == 32 ? ElementType::U32
                     : bitWidth(type) == 16 ? ElementType::U16
                     : bitWidth(type) == 8  ? ElementType::U8
                                            : ElementType::U4;
  storeInteger(same, bytes, index, int64_t(bits));
}

template <class T> StringRef shortest(T value, char (&buffer)[64]) {
  auto [end, error] = std::to_chars(buffer, buffer + sizeof(buffer), value);
  return StringRef(buffer, end - buffer);
}

/// The shortest of the value itself (`448`) and of the fewest digits that give
/// it again when rounded to a type of 16 bits or less (`0.1`).
std::string shortestSmall(ElementType type, double value) {
  char buffer[64];
  std::string exact = shortest(value, buffer).str();
  uint8_t want[8] = {}, got[8] = {};
  storeElement(type, want, 0, value);
  for (int digits = 1; digits <= 9; ++digits) {
    auto [end, error] = std::to_chars(buffer, buffer + sizeof(buffer), value,
                                      std::chars_format::general, digits);
    double back = 0;
    std::from_chars(buffer, end, back);
    storeElement(type, got, 0, back);
    if (std::memcmp(want, got, sizeof(want)) == 0)
      return size_t(end - buffer) < exact.size() ? std::string(buffer, end)
                                                 : exact;
  }
  return exact;
}

void printFloat(raw_ostream &os, ElementType type, const uint8_t *bytes,
                uint64_t index) {
  double value = loadElement(type, bytes, index);
  if (std::isnan(value)) {
    uint8_t usual[8] = {};
    storeElement(type, usual, 0, std::numeric_limits<double>::quiet_NaN());
    os << "nan";
    uint64_t bits = bitsOf(type, bytes, index);
    if (bits != bitsOf(type, usual, 0))
      os << "(" << format_hex(bits, 2) << ")";
    return;
  }
  if (std::isinf(value)) {
    os << (value < 0 ? "-inf" : "inf");
    return;
  }
  char buffer[64];
  if (type == ElementType::F64)
    os << shortest(value, buffer);
  else if (type == ElementType::F32)
    os << shortest(float(value), buffer);
  else
    os << shortestSmall(type, value);
}

/// Reads decimal digits exactly as the type rounds them.
bool decimalToDouble(Cursor &cursor, ElementType type, double &value) {
  StringRef text = cursor.token().text;
  if (text.size() > maxNumberLength)
    return cursor.fail("a number of more than " + Twine(maxNumberLength) +
                       " characters");
  bool single = type == ElementType::F32;
  APFloat parsed(single ? APFloat::IEEEsingle() : APFloat::IEEEdouble());
  Expected<APFloat::opStatus> status =
      parsed.convertFromString(text, APFloat::rmNearestTiesToEven);
  if (!status) {
    consumeError(status.takeError());
    return cursor.fail("'" + text + "' is not a number");
  }
  value = single ? parsed.convertToFloat() : parsed.convertToDouble();
  cursor.advance();
  return true;
}

/// After `nan`: perhaps `(0xbits)`.
bool parseNan(Cursor &cursor, ElementType type, uint8_t *bytes,
              uint64_t index) {
  storeElement(type, bytes, index, std::numeric_limits<double>::quiet_NaN());
  if (!cursor.consumeIf("("))
    return true;
  uint64_t bits;
  if (cursor.token().kind != Token::Number ||
      cursor.token().text.getAsInteger(0, bits))
    return cursor.expected("the bits of a NaN in hexadecimal");
  setBits(type, bytes, index, bits);
  if (!std::isnan(loadElement(type, bytes, index)))
    return cursor.fail("not the bits of a NaN of type " + mnemonic(type));
  cursor.advance();
  return cursor.expect(")", "after the bits of a NaN");
}

bool parseFloat(Cursor &cursor, ElementType type, uint8_t *bytes,
                uint64_t index) {
  bool negative = cursor.consumeIf("-");
  if (cursor.consumeKeyword("nan"))
    return parseNan(cursor, type, bytes, index);
  double value = std::numeric_limits<double>::infinity();
  if (!cursor.consumeKeyword("inf")) {
    if (cursor.token().kind != Token::Number)
      return cursor.expected("a number");
    if (!decimalToDouble(cursor, type, value))
      return false;
  }
  storeElement(type, bytes, index, negative ? -value : value);
  return true;
}

bool parseBool(Cursor &cursor, uint8_t *bytes, uint64_t index) {
  bool value = cursor.token().isKeyword("true");
  if (!value && !cursor.token().isKeyword("false"))
    return cursor.expected("'true' or 'false'");
  cursor.advance();
  storeInteger(ElementType::Bool, bytes, index, value);
  return true;
}

bool parseInteger(Cursor &cursor, ElementType type, uint8_t *bytes,
                  uint64_t index) {
  const char *begin = cursor.token().begin;
  bool negative = cursor.consumeIf("-");
  StringRef text = cursor.token().text;
  uint64_t magnitude;
  if (cursor.token().kind != Token::Number || text.getAsInteger(10, magnitude))
    return cursor.expected("an integer of type " + mnemonic(type));
  bool isSigned = category(type) == TypeCategory::Signed;
  uint64_t limit = UINT64_MAX >> (64 - bitWidth(type) + isSigned);
  bool fits =
      negative ? magnitude <= (isSigned ? limit + 1 : 0) : magnitude <= limit;
  if (!fits)
    return cursor.failAt(begin, Twine(negative ? "-" : "") + text +
                                    " does not fit " + mnemonic(type));
  storeInteger(type, bytes, index, int64_t(negative ? -magnitude : magnitude));
  cursor.advance();
  return true;
}

} // namespace

void printElement(raw_ostream &os, ElementType type, const uint8_t *bytes,
                  uint64_t index) {
  int64_t integer = 0;
  switch (category(type)) {
  case TypeCategory::Float:
    return printFloat(os, type, bytes, index);
  case TypeCategory::Bool:
    os << (loadInteger(type, bytes, index) ? "true" : "false");
    return;
  case TypeCategory::Signed:
    os << loadInteger(type, bytes, index);
    return;
  case TypeCategory::Unsigned:
    integer = loadInteger(type, bytes, index);
    os << uint64_t(integer);
    return;
  }
}

bool parseElement(Cursor &cursor, ElementType type, uint8_t *bytes,
                  uint64_t index) {
  switch (category(type)) {
  case TypeCategory::Float:
    return parseFloat(cursor, type, bytes, index);
  case TypeCategory::Bool:
    return parseBool(cursor, bytes, index);
  case TypeCategory::Signed:
  case TypeCategory::Unsigned:
    return parseInteger(cursor, type, bytes, index);
  }
  llvm_unreachable("a type category");
}

void printDouble(raw_ostream &os, double value) {
  uint8_t bytes[8];
  std::memcpy(bytes, &value, 8);
  printElement(os, ElementType::F64, bytes, 0);
}

bool parseDouble(Cursor &cursor, double &value) {
  uint8_t bytes[8];
  if (!parseElement(cursor, ElementType::F64, bytes, 0))
    return false;
  std::memcpy(&value, bytes, 8);
  return true;
}

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

namespace {

/// Where a constant goes while it is parsed.
struct ConstantParser {
  Cursor &cursor;
  ElementType element;
  SmallVector<int64_t> shape;
  uint64_t count;
  ConstantLookup lookup;

  bool splat(ConstantRef &value);
  bool random(ConstantRef &value);
  bool list(ConstantRef &value);
  bool dense(ConstantRef &value);
  std::string typeText() const { return typeText(element, shape); }
  static std::string typeText(ElementType element, ArrayRef<int64_t> shape) {
    std::string text;
    raw_string_ostream os(text);
    os << TensorType{element, Shape(shape.begin(), shape.end())};
    return text;
  }
};

bool ConstantParser::splat(ConstantRef &value) {
  std::vector<uint8_t> bytes(*byteSize(element, 1));
  if (!cursor.expect("(", "after 'splat'") ||
      !parseElement(cursor, element, bytes.data(), 0) ||
      !cursor.expect(")", "after the value of 'splat'"))
    return false;
  value = Constant::splatBytes(element, shape, bytes);
  return true;
}

bool ConstantParser::random(ConstantRef &value) {
  if (!cursor.expect("(", "after 'random'"))
    return false;
  if (!cursor.consumeKeyword("seed"))
    return cursor.expected("'seed'");
  uint64_t seed;
  if (!cursor.expect("=", "after 'seed'"))
    return false;
  if (cursor.token().kind != Token::Number ||
      cursor.token().text.getAsInteger(10, seed))
    return cursor.expected("a seed, an unsigned integer");
  cursor.advance();
  value = Constant::generated(Constant::Form::Random, element, shape, seed);
  return cursor.expect(")", "after the seed");
}

bool ConstantParser::list(ConstantRef &value) {
  const char *begin = cursor.token().begin;
  // Grows with the text, not with the shape that the text claims.
  std::vector<uint8_t> bytes;
  uint64_t found = 0;
  bool parsed = cursor.list([&] {
    bytes.resize(*byteSize(element, found + 1));
    return parseElement(cursor, element, bytes.data(), found++);
  });
  if (!parsed)
    return false;
  if (found != count)
    return cursor.failAt(begin, "expected " + Twine(count) + " elements for " +
                                    typeText() + ", found " + Twine(found));
  value = Constant::copy(element, shape, bytes);
  return true;
}

bool ConstantParser::dense(ConstantRef &value) {
  const char *begin = cursor.token().begin;
  std::string name;
  if (!cursor.expect("<", "after 'dense'") || !cursor.string(name) ||
      !cursor.expect(">", "after the name"))
    return false;
  value = lookup ? lookup(name) : nullptr;
  if (!value)
    return cursor.failAt(
        begin, "no data for dense<\"" + name +
                   "\">: it comes from a weights file beside the text, which " +
                   (lookup ? "has none of that name" : "is not there") +
                   "; splat(1), iota or random(seed = 1) need none");
  if (value->element() != element || value->shape() != ArrayRef<int64_t>(shape))
    return cursor.failAt(begin, "the data of dense<\"" + name + "\"> is " +
                                    typeText(value->element(), value->shape()) +
                                    ", but the text says " + typeText());
  return true;
}

} // namespace

void printConstant(raw_ostream &os, const Constant &constant,
                   uint64_t maxInline, StringRef name) {
  switch (constant.form()) {
  case Constant::Form::Splat:
    os << "splat(";
    printElement(os, constant.element(), constant.bytes().data(), 0);
    os << ')';
    return;
  case Constant::Form::Iota:
    os << "iota";
    return;
  case Constant::Form::Random:
    os << "random(seed = " << constant.seed() << ')';
    return;
  case Constant::Form::Dense:
  case Constant::Form::Concat:
  case Constant::Form::Converted:
    break;
  }
  if (constant.numElements() > maxInline) {
    os << "dense<";
    printQuoted(os, name);
    os << '>';
    return;
  }
  std::vector<uint8_t> bytes = constant.materialize();
  os << '[';
  ListSeparator comma;
  for (uint64_t i = 0; i < constant.numElements(); ++i) {
    os << comma;
    printElement(os, constant.element(), bytes.data(), i);
  }
  os << ']';
}

bool parseConstant(Cursor &cursor, const TensorType &type,
                   ConstantLookup lookup, ConstantRef &value) {
  std::optional<SmallVector<int64_t>> shape = constantShape(type.shape);
  std::optional<uint64_t> count = shape ? elementCount(*shape) : std::nullopt;
  if (!count || !byteSize(type.element, *count))
    return cursor.fail(
        "a constant's dimensions must be integers of a size that "
        "can be addressed");
  ConstantParser parser{cursor, type.element, *shape, *count, lookup};
  if (cursor.is("["))
    return parser.list(value);
  if (cursor.consumeKeyword("splat"))
    return parser.splat(value);
  if (cursor.consumeKeyword("random"))
    return parser.random(value);
  if (cursor.consumeKeyword("dense"))
    return parser.dense(value);
  if (cursor.consumeKeyword("iota")) {
    value = Constant::generated(Constant::Form::Iota, type.element, *shape, 0);
    return true;
  }
  return cursor.expected("'[', 'splat', 'iota', 'random' or 'dense'");
}

} // namespace tenon::ir
