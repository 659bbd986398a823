//===- Elements.cpp - single elements of tensors -------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ir/eval/Elements.h"

#include "ir/eval/Loops.h"
#include "ir/support/Diag.h"
#include <cstring>

using namespace llvm;

namespace tenon::ir {

void copyElements(Tensor &to, uint64_t i, const Tensor &from, uint64_t j,
                  uint64_t count) {
  assert(to.element == from.element && "copies do not convert");
  if (unsigned bits = bitWidth(to.element); bits >= 8) {
    if (count != 0)
      std::memcpy(&to.bytes[i * (bits / 8)], &from.bytes[j * (bits / 8)],
                  count * (bits / 8));
    return;
  }
  for (uint64_t k = 0; k < count; ++k) {
    if (to.isFloatTensor())
      to.set(i + k, from.at(j + k));
    else
      to.setInt(i + k, from.intAt(j + k));
  }
}

namespace {

int64_t toInt32(double x) {
  return x > -0x1p31 - 1 && x < 0x1p31 ? int64_t(x) : INT32_MIN;
}

int64_t toInt64(double x) {
  return x >= -0x1p63 && x < 0x1p63 ? int64_t(x) : INT64_MIN;
}

} // namespace

int64_t floatToInteger(double x, ElementType to) {
  if (to == ElementType::I64 || to == ElementType::U32)
    return toInt64(x);
  if (to != ElementType::U64)
    return toInt32(x);
  return x >= 0x1p63 ? toInt64(x - 0x1p63) ^ INT64_MIN : toInt64(x);
}

Expected<int64_t> evaluateDim(Dim dim, const DimEnv &env) {
  std::optional<int64_t> value =
      dim.evaluate([&](StringRef name) -> std::optional<int64_t> {
        auto it = env.find(name);
        return it == env.end() ? std::nullopt : std::optional(it->second);
      });
  if (value)
    return *value;
  std::string text;
  raw_string_ostream(text) << dim;
  return userError("the expression '{0}' has no value: a symbol is not bound, "
                   "or sizes in it do not fit",
                   text);
}

Expected<int64_t> resolveIndex(int64_t index, int64_t extent,
                               const Tensor &indices, uint64_t position,
                               int64_t axis) {
  if (index >= -extent && index < extent)
    return index < 0 ? index + extent : index;
  Extents at(indices.rank());
  for (size_t d = indices.rank(); d-- > 0;) {
    at[d] = position % indices.shape[d];
    position /= indices.shape[d];
  }
  return userError("index {0} at {1} of operand 'indices' is out of range for "
                   "dimension {2} of operand 'x', which has {3}",
                   index, extentsText(at), axis, extent);
}

} // namespace tenon::ir
