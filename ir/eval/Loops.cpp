//===- Loops.cpp - loops that the reference semantics share --------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ir/eval/Loops.h"
#include "llvm/Support/raw_ostream.h"
#include <limits>

using namespace tenon::ir;

int64_t tenon::ir::integerLimit(ElementType element, bool lowest) {
  unsigned bits = bitWidth(element);
  if (category(element) == TypeCategory::Bool)
    return !lowest;
  if (category(element) == TypeCategory::Unsigned)
    return lowest ? 0 : static_cast<int64_t>(~uint64_t(0) >> (64 - bits));
  int64_t low = std::numeric_limits<int64_t>::min() >> (64 - bits);
  return lowest ? low : ~low;
}

Extents tenon::ir::broadcastStrides(llvm::ArrayRef<int64_t> from,
                                    llvm::ArrayRef<int64_t> to) {
  assert(from.size() <= to.size() && "broadcasting cannot drop dimensions");
  Extents own = rowMajorStrides(from);
  Extents strides(to.size(), 0);
  size_t lead = to.size() - from.size();
  for (size_t i = 0; i != from.size(); ++i)
    strides[lead + i] = from[i] == 1 ? 0 : own[i];
  return strides;
}

std::optional<Extents>
tenon::ir::broadcastExtents(llvm::ArrayRef<int64_t> a,
                            llvm::ArrayRef<int64_t> b) {
  if (a.size() < b.size())
    std::swap(a, b);
  Extents result(a.begin(), a.end());
  for (size_t i = 0; i != b.size(); ++i) {
    int64_t &dim = result[a.size() - b.size() + i];
    if (dim == 1)
      dim = b[i];
    else if (b[i] != 1 && b[i] != dim)
      return std::nullopt;
  }
  return result;
}

std::string tenon::ir::extentsText(llvm::ArrayRef<int64_t> shape) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << '[';
  llvm::interleaveComma(shape, os);
  os << ']';
  return text;
}

Tensor tenon::ir::broadcastTo(const Tensor &tensor,
                              llvm::ArrayRef<int64_t> shape) {
  if (llvm::ArrayRef<int64_t>(tensor.shape) == shape)
    return tensor;
  Tensor result(tensor.element, shape);
  unsigned bits = bitWidth(tensor.element);
  uint64_t next = 0;
  forEachOffset<1>(shape, {broadcastStrides(tensor.shape, shape)},
                   [&](const std::array<int64_t, 1> &from) {
                     if (bits >= 8)
                       std::memcpy(&result.bytes[next * (bits / 8)],
                                   &tensor.bytes[from[0] * (bits / 8)],
                                   bits / 8);
                     else
                       result.set(next, tensor.at(from[0]));
                     ++next;
                   });
  return result;
}
