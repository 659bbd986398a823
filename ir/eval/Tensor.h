//===- Tensor.h - tensors of the reference evaluator ---------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_IR_EVAL_TENSOR_H
#define TENON_IR_EVAL_TENSOR_H

#include "ir/Constant.h"
#include "llvm/ADT/StringMap.h"
#include <vector>

namespace tenon::ir {

/// Values of symbols while evaluating.
using DimEnv = llvm::StringMap<int64_t>;

/// A tensor with concrete shape and owned, packed, row-major storage. Slow and
/// obvious on purpose.
struct Tensor {
  ElementType element = ElementType::F32;
  llvm::SmallVector<int64_t, 4> shape;
  std::vector<uint8_t> bytes;

  Tensor() = default;
  Tensor(ElementType element, llvm::ArrayRef<int64_t> shape);

  uint64_t numElements() const;
  unsigned rank() const { return shape.size(); }
  /// Element \p i in row-major order as a double (exact for all types up to 53
  /// bits) or an integer; setting rounds to nearest even, integers wrap.
  double at(uint64_t i) const { return loadElement(element, bytes.data(), i); }
  void set(uint64_t i, double v) { storeElement(element, bytes.data(), i, v); }
  int64_t intAt(uint64_t i) const {
    return loadInteger(element, bytes.data(), i);
  }
  void setInt(uint64_t i, int64_t v) {
    storeInteger(element, bytes.data(), i, v);
  }
  bool isFloatTensor() const { return isFloat(element); }
  static Tensor fromConstant(const Constant &constant);
};

/// Row-major strides, in elements, of \p shape.
llvm::SmallVector<int64_t, 4> rowMajorStrides(llvm::ArrayRef<int64_t> shape);

/// Calls \p visit with each multi-index of \p shape in row-major order.
void forEachIndex(llvm::ArrayRef<int64_t> shape,
                  llvm::function_ref<void(llvm::ArrayRef<int64_t>)> visit);

} // namespace tenon::ir

#endif // TENON_IR_EVAL_TENSOR_H
