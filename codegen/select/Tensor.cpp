//===- Tensor.cpp - the fast attention of GPUs ---------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/select/Tensor.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

namespace tenon::codegen {

using ir::ElementType;

namespace {

struct AttentionTuning {
  int64_t maxD, bm, bn;
  unsigned arch;
};

constexpr AttentionTuning attentionTunings[] = {
#define TN_ATTENTION_TUNING(NAME, MAX_D, BM, BN, ARCH) {MAX_D, BM, BN, ARCH},
#include "codegen/kernels/cuda/tunings.def"
};

bool isHalf(ElementType element) {
  return element == ElementType::F16 || element == ElementType::BF16;
}

} // namespace

bool useTensorAttention(const Lowering &lowering, LaunchSpec &spec,
                        bool hasMask, int64_t d, int64_t dv) {
  const View &q = spec.operands[0], &o = spec.results[0];
  ElementType element = q.element;
  bool same = isHalf(element) && o.element == element &&
              spec.operands[1].element == element &&
              spec.operands[2].element == element;
  unsigned lowest = lowering.lowestArch();
  if (!same || (element == ElementType::BF16 && lowest < 80))
    return false;
  for (const View &view : llvm::ArrayRef(spec.operands).take_front(3))
    if (!view.strides[3].isConstant(1))
      return false;
  if (!o.strides[3].isConstant(1))
    return false;
  int64_t head = std::max(d, dv);
  std::optional<int64_t> queries = q.shape[1].constant();
  const AttentionTuning *chosen = nullptr;
  for (const AttentionTuning &tuning : attentionTunings) {
    if (tuning.maxD < head || tuning.arch > lowest)
      continue;
    // Heads of one limit lie together; among them the least that has all
    // queries, else the first.
    if (chosen && tuning.maxD != chosen->maxD)
      break;
    if (!chosen || (queries && *queries <= tuning.bm))
      chosen = &tuning;
  }
  if (!chosen)
    return false;
  int64_t align = 16;
  for (unsigned i = 0; i < 3; ++i)
    align = std::min(align, alignmentOf(spec.operands[i], 3));
  // As AttentionShape of kernels/cuda/attention_shape.cuh counts it.
  auto padded = [](int64_t bytes) {
    int64_t chunks = (bytes + 15) / 16;
    return chunks <= 2 ? 2 : chunks <= 4 ? 4 : (chunks + 7) / 8 * 8;
  };
  int64_t warps = chosen->bm / 16, key = padded(d * 2), value = padded(dv * 2);
  int64_t shared =
      chosen->bm * 16 * std::max(key, value) + chosen->bn * 16 * (key + value);
  if (hasMask)
    shared += warps * 16 * (chosen->bn + 8) * 4;
  spec.kernel = "attention_mma";
  spec.config.type("T", element)
      .type("MaskT", hasMask ? spec.operands[3].element : element)
      .raw(
          "using", "Tiling",
          llvm::formatv("tn::AttentionTiling<{0}, {1}>", chosen->bm, chosen->bn)
              .str())
      .flag("has_mask", hasMask)
      .rank("align_rows", align);
  kernel::Geometry &geometry = spec.geometry.emplace();
  geometry.threads = warps * 32;
  geometry.sharedBytes = shared;
  geometry.grid[0] = Dim::ceilDiv(q.shape[1], Dim(chosen->bm));
  geometry.grid[1] = q.shape[2];
  geometry.grid[2] = Dim::min(q.shape[0], Dim(65535));
  return true;
}

} // namespace tenon::codegen
