//===- Weights.cpp - weights as an artifact stores them ------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/plan/Weights.h"
#include "codegen/kernels/cpu/gemm_pack.h"
#include "llvm/Support/MathExtras.h"

namespace tenon::codegen {

using kernel::Weight;
using Write = llvm::function_ref<llvm::Error(llvm::ArrayRef<uint8_t>)>;

namespace {

/// Panels packed at a time: about a megabyte.
constexpr int64_t pieceFloats = 1 << 18;

llvm::Error storePanels(const float *elements, const Weight::Matrix &m,
                        Write write) {
  int64_t panels = llvm::divideCeil(m.n, tn::panel_columns);
  int64_t panelFloats = m.k * tn::panel_columns;
  if (panels == 0 || panelFloats == 0)
    return llvm::Error::success();
  int64_t step = std::max<int64_t>(1, pieceFloats / panelFloats);
  std::vector<float> piece(step * panelFloats);
  for (int64_t b = 0; b < m.batch; ++b) {
    const float *matrix = elements + m.offset + b * m.batchStride;
    for (int64_t first = 0; first < panels; first += step) {
      int64_t last = std::min(panels, first + step);
      tn::pack_b(matrix, m.k, m.n, m.rowStride, m.columnStride, first, last,
                 piece.data());
      llvm::ArrayRef<uint8_t> bytes(
          reinterpret_cast<const uint8_t *>(piece.data()),
          (last - first) * panelFloats * sizeof(float));
      if (llvm::Error error = write(bytes))
        return error;
    }
  }
  return llvm::Error::success();
}

} // namespace

llvm::Error storeWeight(const Weight &weight, Write write) {
  bool dense = weight.value->form() == ir::Constant::Form::Dense;
  bool aligned =
      reinterpret_cast<uintptr_t>(weight.value->bytes().data()) % 4 == 0;
  bool packed = weight.layout == kernel::WeightLayout::Panels16;
  std::vector<uint8_t> expanded;
  llvm::ArrayRef<uint8_t> bytes = weight.value->bytes();
  if (!dense || (packed && !aligned)) {
    expanded = weight.value->materialize();
    bytes = expanded;
  }
  if (!packed)
    return write(bytes);
  return storePanels(reinterpret_cast<const float *>(bytes.data()),
                     weight.matrix, write);
}

} // namespace tenon::codegen
