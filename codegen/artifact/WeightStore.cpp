//===- WeightStore.cpp - streams a program's weights --------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/artifact/WeightStore.h"

#include "codegen/plan/Weights.h"
#include "codegen/toolchain/Parallel.h"
#include "llvm/ADT/STLExtras.h"
#include <numeric>

namespace tenon::codegen {

llvm::Error storeWeights(
    llvm::ArrayRef<kernel::Weight> weights, llvm::ArrayRef<uint64_t> offsets,
    unsigned jobs,
    llvm::function_ref<llvm::Error(uint64_t, llvm::ArrayRef<uint8_t>)> write) {
  // The largest first, so that no thread is left alone with one at the end.
  std::vector<size_t> order(weights.size());
  std::iota(order.begin(), order.end(), size_t(0));
  llvm::stable_sort(order, [&](size_t a, size_t b) {
    return weights[a].bytes > weights[b].bytes;
  });
  return parallelFor(order.size(), jobs, [&](size_t n) {
    size_t index = order[n];
    uint64_t at = offsets[index];
    return storeWeight(weights[index], [&](llvm::ArrayRef<uint8_t> bytes) {
      llvm::Error error = write(at, bytes);
      at += bytes.size();
      return error;
    });
  });
}

} // namespace tenon::codegen
