//===- Type.h - element and tensor types ---------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_IR_TYPE_H
#define TENON_IR_TYPE_H

#include "ir/Dim.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <optional>

namespace tenon::ir {

enum class ElementType : uint8_t {
#define TN_TYPE(Name, mnemonic, bits, category) Name,
#include "ir/Types.def"
};

inline constexpr unsigned numElementTypes = 0
#define TN_TYPE(...) +1
#include "ir/Types.def"
    ;

enum class TypeCategory : uint8_t { Float, Signed, Unsigned, Bool };

/// "f32", "i64", "bool" ...
llvm::StringRef mnemonic(ElementType type);
std::optional<ElementType> parseElementType(llvm::StringRef mnemonic);
/// Storage size of one element in bits (4 for i4).
unsigned bitWidth(ElementType type);
TypeCategory category(ElementType type);
inline bool isFloat(ElementType t) {
  return category(t) == TypeCategory::Float;
}
inline bool isInteger(ElementType t) {
  return category(t) == TypeCategory::Signed ||
         category(t) == TypeCategory::Unsigned;
}
/// Types that nothing is computed in: casts from and to them are how they are
/// used. 8-bit floats, and everything below a byte.
inline bool isStorageOnly(ElementType t) {
  return bitWidth(t) < 8 || (bitWidth(t) == 8 && isFloat(t));
}
/// Bytes of \p count packed elements, or nullopt on overflow.
std::optional<uint64_t> byteSize(ElementType type, uint64_t count);

/// The dimensions of a tensor, outermost first. Rank 0 is a scalar.
using Shape = llvm::SmallVector<Dim, 4>;
using ShapeRef = llvm::ArrayRef<Dim>;

/// An element type and a shape of symbolic dimensions; printed
/// `f32[batch, seq, 768]`, a scalar as `f32`.
struct TensorType {
  ElementType element = ElementType::F32;
  Shape shape;

  unsigned rank() const { return shape.size(); }
  bool isScalar() const { return shape.empty(); }
  bool operator==(const TensorType &) const = default;
  void print(llvm::raw_ostream &os) const;
};
llvm::raw_ostream &operator<<(llvm::raw_ostream &os, const TensorType &type);

/// The product of the dimensions (1 for a scalar).
Dim numElements(ShapeRef shape);
/// The dimensions as integers, if all are constant.
std::optional<llvm::SmallVector<int64_t>> constantShape(ShapeRef shape);
/// NumPy broadcasting of \p a and \p b; nullopt when two constant dimensions
/// differ and neither is 1. Unrelated symbols give `broadcast(a, b)`.
std::optional<Shape> broadcastShapes(ShapeRef a, ShapeRef b);

} // namespace tenon::ir

#endif // TENON_IR_TYPE_H
