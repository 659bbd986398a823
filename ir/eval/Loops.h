//===- Loops.h - loops that the reference semantics share ----------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_IR_EVAL_LOOPS_H
#define TENON_IR_EVAL_LOOPS_H

#include "ir/eval/Tensor.h"
#include "llvm/Support/Error.h"
#include <array>
#include <cstring>
#include <type_traits>

namespace tenon::ir {

using Extents = llvm::SmallVector<int64_t, 4>;

/// Element \p i of \p tensor as a double or, exact for all 64 bits, an integer.
template <class T> T loadAs(const Tensor &tensor, uint64_t i) {
  if constexpr (std::is_floating_point_v<T>)
    return tensor.at(i);
  else
    return static_cast<T>(tensor.intAt(i));
}

template <class T> void storeAs(Tensor &tensor, uint64_t i, T value) {
  if constexpr (std::is_floating_point_v<T>)
    tensor.set(i, value);
  else
    tensor.setInt(i, static_cast<int64_t>(value));
}

/// All elements of \p tensor, converted once, for loops that read them often.
template <class T> std::vector<T> loadAll(const Tensor &tensor) {
  std::vector<T> values(tensor.numElements());
  if (tensor.element == ElementType::F32) {
    for (size_t i = 0; i != values.size(); ++i) {
      float value;
      std::memcpy(&value, tensor.bytes.data() + i * sizeof(float),
                  sizeof(float));
      values[i] = static_cast<T>(value);
    }
    return values;
  }
  for (size_t i = 0; i != values.size(); ++i)
    values[i] = loadAs<T>(tensor, i);
  return values;
}

/// The lowest (highest) value of an integer type or bool.
int64_t integerLimit(ElementType element, bool lowest);

/// Strides with which a tensor of shape \p from is read at the indices of its
/// broadcast \p to: 0 where it repeats.
Extents broadcastStrides(llvm::ArrayRef<int64_t> from,
                         llvm::ArrayRef<int64_t> to);

/// The broadcast of \p a and \p b, or nullopt when they don't fit.
std::optional<Extents> broadcastExtents(llvm::ArrayRef<int64_t> a,
                                        llvm::ArrayRef<int64_t> b);

/// \p tensor repeated to \p shape, to which it must broadcast.
Tensor broadcastTo(const Tensor &tensor, llvm::ArrayRef<int64_t> shape);

/// Text such as `[2, 3]`, for messages.
std::string extentsText(llvm::ArrayRef<int64_t> shape);

/// Calls \p visit(offsets) for each index of \p shape in row-major order, where
/// offsets[n] is the sum of index * strides[n].
template <size_t N, class Visit>
void forEachOffset(llvm::ArrayRef<int64_t> shape,
                   const std::array<Extents, N> &strides, Visit visit) {
  if (llvm::is_contained(shape, 0))
    return;
  std::array<int64_t, N> offsets{};
  Extents index(shape.size(), 0);
  while (true) {
    visit(offsets);
    size_t d = shape.size();
    for (; d > 0; --d) {
      for (size_t n = 0; n != N; ++n)
        offsets[n] += strides[n][d - 1];
      if (++index[d - 1] != shape[d - 1])
        break;
      for (size_t n = 0; n != N; ++n)
        offsets[n] -= strides[n][d - 1] * shape[d - 1];
      index[d - 1] = 0;
    }
    if (d == 0)
      return;
  }
}

} // namespace tenon::ir

#endif // TENON_IR_EVAL_LOOPS_H
