//===- Type.cpp - element and tensor types -------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ir/Type.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace tenon::ir {

namespace {

struct TypeInfo {
  StringLiteral mnemonic;
  unsigned bits;
  TypeCategory category;
};

constexpr TypeInfo typeTable[] = {
#define TN_TYPE(Name, mnemonic, bits, category)                                \
  {mnemonic, bits, TypeCategory::category},
#include "ir/Types.def"
};

const TypeInfo &info(ElementType type) { return typeTable[unsigned(type)]; }

} // namespace

StringRef mnemonic(ElementType type) { return info(type).mnemonic; }

std::optional<ElementType> parseElementType(StringRef mnemonic) {
  for (const auto &[i, entry] : enumerate(typeTable))
    if (entry.mnemonic == mnemonic)
      return ElementType(i);
  return std::nullopt;
}

unsigned bitWidth(ElementType type) { return info(type).bits; }

TypeCategory category(ElementType type) { return info(type).category; }

std::optional<uint64_t> byteSize(ElementType type, uint64_t count) {
  uint64_t bits = bitWidth(type);
  if (bits < 8) {
    uint64_t perByte = 8 / bits;
    return count / perByte + (count % perByte != 0);
  }
  uint64_t size;
  if (__builtin_mul_overflow(count, bits / 8, &size))
    return std::nullopt;
  return size;
}

void TensorType::print(raw_ostream &os) const {
  os << mnemonic(element);
  if (shape.empty())
    return;
  os << '[';
  interleaveComma(shape, os);
  os << ']';
}

raw_ostream &operator<<(raw_ostream &os, const TensorType &type) {
  type.print(os);
  return os;
}

Dim numElements(ShapeRef shape) {
  Dim product = 1;
  for (Dim dim : shape)
    product = product * dim;
  return product;
}

std::optional<SmallVector<int64_t>> constantShape(ShapeRef shape) {
  SmallVector<int64_t> result;
  for (Dim dim : shape) {
    std::optional<int64_t> value = dim.constant();
    if (!value)
      return std::nullopt;
    result.push_back(*value);
  }
  return result;
}

std::optional<Shape> broadcastShapes(ShapeRef a, ShapeRef b) {
  if (a.size() < b.size())
    std::swap(a, b);
  Shape result(a);
  size_t lead = a.size() - b.size();
  for (size_t i = 0; i < b.size(); ++i) {
    Dim &dim = result[lead + i];
    std::optional<int64_t> x = dim.constant(), y = b[i].constant();
    if (x && y && *x != *y && *x != 1 && *y != 1)
      return std::nullopt;
    dim = Dim::broadcast(dim, b[i]);
  }
  return result;
}

} // namespace tenon::ir
