//===- Tensor.cpp - tensors of the reference evaluator -------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ir/eval/Tensor.h"

using namespace tenon::ir;

Tensor::Tensor(ElementType element, llvm::ArrayRef<int64_t> shape)
    : element(element), shape(shape) {
  std::optional<uint64_t> size = byteSize(element, numElements());
  assert(size && "callers check the size of a tensor before making it");
  bytes.resize(*size);
}

uint64_t Tensor::numElements() const {
  uint64_t count = 1;
  for (int64_t dim : shape)
    count *= static_cast<uint64_t>(dim);
  return count;
}

Tensor Tensor::fromConstant(const Constant &constant) {
  Tensor tensor;
  tensor.element = constant.element();
  tensor.shape.assign(constant.shape().begin(), constant.shape().end());
  tensor.bytes = constant.materialize();
  return tensor;
}

llvm::SmallVector<int64_t, 4>
tenon::ir::rowMajorStrides(llvm::ArrayRef<int64_t> shape) {
  llvm::SmallVector<int64_t, 4> strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;)
    strides[i - 1] = strides[i] * shape[i];
  return strides;
}

void tenon::ir::forEachIndex(
    llvm::ArrayRef<int64_t> shape,
    llvm::function_ref<void(llvm::ArrayRef<int64_t>)> visit) {
  if (llvm::is_contained(shape, 0))
    return;
  llvm::SmallVector<int64_t, 4> index(shape.size(), 0);
  while (true) {
    visit(index);
    size_t d = shape.size();
    while (d > 0 && ++index[d - 1] == shape[d - 1])
      index[--d] = 0;
    if (d == 0)
      return;
  }
}
