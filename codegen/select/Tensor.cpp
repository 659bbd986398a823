//===- Tensor.cpp - the fast attention of GPUs ---------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/select/Tensor.h"
#include "codegen/select/FewRows.h"
#include "runtime/format/plan.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

namespace tenon::codegen {

using ir::ElementType;

namespace {

enum class TuningElement { half, single };

struct AttentionTuning {
  TuningElement element;
  int64_t maxD, bm, bn;
  unsigned arch;
};

constexpr AttentionTuning attentionTunings[] = {
#define TN_ATTENTION_TUNING(NAME, ELEMENT, MAX_D, BM, BN, ARCH)                \
  {TuningElement::ELEMENT, MAX_D, BM, BN, ARCH},
#include "codegen/kernels/cuda/tunings.def"
};

/// Whether all that \p spec reads and writes, but the mask, is of one type.
bool isOfOneType(const LaunchSpec &spec, const Lowering &lowering) {
  ElementType element = spec.results[0].element;
  if (element != ElementType::F32 && !isHalf(element))
    return false;
  if (element == ElementType::BF16 && lowering.lowestArch() < 80)
    return false;
  auto fits = [&](const View &view) {
    return view.element == element && view.strides[3].isConstant(1);
  };
  return fits(spec.results[0]) &&
         llvm::all_of(llvm::ArrayRef(spec.operands).take_front(3), fits);
}

} // namespace

bool useFlashAttention(const Lowering &lowering, LaunchSpec &spec, bool hasMask,
                       int64_t d, int64_t dv) {
  const View &q = spec.operands[0];
  ElementType element = q.element;
  unsigned lowest = lowering.lowestArch();
  if (!isOfOneType(spec, lowering))
    return false;
  bool half = isHalf(element);
  int64_t head = std::max(d, dv);
  std::optional<int64_t> queries = q.shape[1].constant();
  const AttentionTuning *chosen = nullptr;
  for (const AttentionTuning &tuning : attentionTunings) {
    if ((tuning.element == TuningElement::half) != half || tuning.maxD < head ||
        tuning.arch > lowest)
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
  int64_t size = ir::bitWidth(element) / 8, warps = half ? chosen->bm / 16 : 4;
  int64_t key = padded(d * size), value = padded(dv * size);
  if (!half)
    value = std::max<int64_t>(value, 8);
  int64_t shared = chosen->bm * 16 * (half ? std::max(key, value) : key) +
                   chosen->bn * 16 * (key + value);
  if (hasMask || !half)
    shared += chosen->bm * (chosen->bn + 8) * 4;
  spec.kernel = half ? "attention_mma" : "attention_fma";
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

namespace {

/// As DecodeShape of kernels/cuda/attention_decode.cuh counts it.
int64_t decodeSharedBytes(int64_t rows, int64_t split, int64_t dv,
                          int64_t size) {
  int64_t vectors = (dv * size + 15) / 16;
  int64_t across = vectors > 16 ? 32 : vectors > 8 ? 16 : vectors > 4 ? 8 : 4;
  int64_t padded = (vectors + across - 1) / across * across * 16 / size;
  return rows * split * 4 + rows * 8 + 128 / across * padded * 4;
}

} // namespace

std::optional<DecodeAttention> decodeAttention(const Lowering &lowering,
                                               const LaunchSpec &attention,
                                               bool hasMask, int64_t d,
                                               int64_t dv) {
  constexpr int64_t fewHeads = 8, greatHead = 128;
  const View &q = attention.operands[0], &k = attention.operands[1];
  Dim batch = q.shape[0], queries = q.shape[1], keys = k.shape[1];
  Dim few = isAtMost(queries, fewRows);
  if (few.isConstant(0) || (!few.isConstant(1) && !lowering.decodes()) ||
      !isOfOneType(attention, lowering))
    return std::nullopt;
  std::optional<int64_t> heads = q.shape[2].constant(),
                         kvHeads = k.shape[2].constant();
  if (!heads || !kvHeads || *kvHeads == 0)
    return std::nullopt;
  ElementType element = q.element;
  int64_t group = std::max<int64_t>(1, *heads / *kvHeads);
  // Heads that share keys are read together; splits are smaller where there are
  // few blocks.
  int64_t rows =
      std::clamp<int64_t>(group * queries.constant().value_or(1), 1,
                          std::max(d, dv) > greatHead ? fewRows / 4 : fewRows);
  int64_t split = *kvHeads <= fewHeads ? 64 : 128;
  LaunchSpec spec = attention;
  spec.kernel = "attention_decode";
  spec.config.type("T", element)
      .type("MaskT", hasMask ? spec.operands[3].element : element)
      .rank("align_rows", ir::bitWidth(element) / 8)
      .rank("rows", rows)
      .rank("split", split);
  Dim groups = Dim(*kvHeads) * Dim::ceilDiv(Dim(group) * queries, Dim(rows));
  Dim splits = Dim::max(Dim::ceilDiv(keys, Dim(split)), 1);
  kernel::Geometry &geometry = spec.geometry.emplace();
  geometry.threads = 128;
  geometry.sharedBytes =
      decodeSharedBytes(rows, split, dv, ir::bitWidth(element) / 8);
  geometry.grid[0] = splits;
  geometry.grid[1] = groups;
  geometry.grid[2] = Dim::min(batch, Dim(65535));
  spec.scratchBytes = batch * groups * splits * Dim(4 * rows * (dv + 2));
  int64_t most = *kvHeads * ((group * fewRows + rows - 1) / rows);
  Dim counted = isAtMost(batch * Dim(most), rt::maxLaunchCounters);
  bool always = counted.isConstant(1);
  return DecodeAttention{std::move(spec), few * counted,
                         always ? isAbove(queries, fewRows)
                                : Dim(1) - few * counted};
}

} // namespace tenon::codegen
