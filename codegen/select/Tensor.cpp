//===- Tensor.cpp - the fast contractions and attention of GPUs ----------===//
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

enum class Math { tensor, tf32, tf32x3, fma };
enum class Operand { half, single, byte };

struct GemmTuning {
  Math math;
  Operand operand;
  int64_t bm, bn, kBytes, wm, wn, stages;
  unsigned arch;

  int64_t warps() const { return bm / wm * (bn / wn); }
  /// As GemmShape of kernels/cuda/gemm_shape.cuh counts it.
  int64_t sharedBytes() const {
    int64_t slab = 16 * (wn + 8) * 4;
    return std::max(stages * (bm + bn) * kBytes, warps() * slab);
  }
};

constexpr GemmTuning gemmTunings[] = {
#define TN_GEMM_TUNING(NAME, MATH, OPERAND, BM, BN, K_BYTES, WM, WN, STAGES,   \
                       ARCH)                                                   \
  {Math::MATH, Operand::OPERAND, BM, BN, K_BYTES, WM, WN, STAGES, ARCH},
#include "codegen/kernels/cuda/tunings.def"
};

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

/// The greatest power of two up to 16 that divides the address of every row,
/// the dimension \p inner being along rows.
int64_t alignmentOf(const View &view, unsigned inner) {
  int64_t size = ir::bitWidth(view.element) / 8;
  for (int64_t bytes = 16; bytes > size; bytes /= 2) {
    auto divides = [&](Dim dim) {
      return Dim::divideExactly(dim, Dim(bytes / size)).has_value();
    };
    bool all = divides(view.offset);
    for (unsigned i = 0; i < view.rank() && all; ++i)
      all =
          i == inner || view.shape[i].isConstant(1) || divides(view.strides[i]);
    if (all)
      return bytes;
  }
  return size;
}

/// Blocks of a tuning that a product has, where the sizes are known; a symbolic
/// number of rows counts as 256.
int64_t blocksOf(const GemmTuning &tuning, Dim m, Dim n, Dim batches) {
  int64_t rows = m.constant().value_or(256),
          columns = n.constant().value_or(1024);
  auto ceilDiv = [](int64_t a, int64_t b) { return (a + b - 1) / b; };
  return ceilDiv(rows, tuning.bm) * ceilDiv(columns, tuning.bn) *
         batches.constant().value_or(1);
}

/// The first tuning, the largest, of which enough blocks are there to fill a
/// GPU and whose rows are not mostly beyond the end; else the last.
const GemmTuning *chooseGemm(const Lowering &lowering, ElementType element,
                             Dim m, Dim n, Dim batches) {
  constexpr int64_t enoughBlocks = 96;
  Operand operand = isHalf(element) ? Operand::half : Operand::single;
  Math math = operand == Operand::half ? Math::tensor
              : lowering.usesTf32()    ? Math::tf32
                                       : Math::fma;
  unsigned lowest = lowering.lowestArch(), generation = 0;
  const GemmTuning *last = nullptr;
  for (const GemmTuning &tuning : gemmTunings)
    if (tuning.math == math && tuning.operand == operand &&
        tuning.arch <= lowest)
      generation = std::max(generation, tuning.arch);
  for (const GemmTuning &tuning : gemmTunings) {
    if (tuning.math != math || tuning.operand != operand ||
        tuning.arch != generation)
      continue;
    last = &tuning;
    std::optional<int64_t> rows = m.constant();
    bool tall = rows && *rows * 2 <= tuning.bm;
    if (!tall && blocksOf(tuning, m, n, batches) >= enoughBlocks)
      return last;
    if (!tall && !rows && tuning.bm <= 64)
      return last;
  }
  return last;
}

llvm::StringRef mathName(Math math) {
  static constexpr llvm::StringLiteral names[] = {
      "tn::Math::tensor", "tn::Math::tf32", "tn::Math::tf32x3",
      "tn::Math::fma"};
  return names[unsigned(math)];
}

} // namespace

std::optional<LaunchSpec> tensorProduct(const Lowering &lowering, const View &a,
                                        const View &b, const View &c,
                                        const Epilogue &epilogue) {
  unsigned rank = c.rank(), column = rank - 1, row = rank - 2;
  bool types = a.element == b.element &&
               (isHalf(a.element) || a.element == ElementType::F32) &&
               (isHalf(c.element) || c.element == ElementType::F32);
  bool kn = b.strides[column].isConstant(1), nk = b.strides[row].isConstant(1);
  if (a.element == ElementType::BF16 && lowering.lowestArch() < 80)
    return std::nullopt;
  if (!types || !a.strides[column].isConstant(1) ||
      !c.strides[column].isConstant(1) || (!kn && !nk))
    return std::nullopt;
  Dim batches = ir::numElements(ir::ShapeRef(c.shape).drop_back(2));
  Dim m = c.shape[row], n = c.shape[column];
  // Tensor cores know bf16 from sm_80 on.
  if (a.element == ElementType::BF16 && lowering.lowestArch() < 80)
    return std::nullopt;
  const GemmTuning *tuning = chooseGemm(lowering, a.element, m, n, batches);
  if (!tuning)
    return std::nullopt;
  LaunchSpec spec;
  spec.kernel = "gemm";
  spec.config.type("In", a.element)
      .type("Out", c.element)
      .types("Operands", epilogue.elements)
      .raw("using", "Tiling",
           llvm::formatv("tn::GemmTiling<{0}, {1}, {2}, {3}, {4}, {5}>",
                         tuning->bm, tuning->bn, tuning->kBytes, tuning->wm,
                         tuning->wn, tuning->stages)
               .str())
      .raw("tn::Math", "math", mathName(tuning->math))
      .raw("tn::Layout", "b", kn ? "tn::Layout::kn" : "tn::Layout::nk")
      .rank("align_a", alignmentOf(a, column))
      .rank("align_b", alignmentOf(b, kn ? column : row))
      .flag("stream", false)
      .rank("rank", rank);
  spec.operands = {a, b};
  kernel::Geometry &geometry = spec.geometry.emplace();
  geometry.threads = tuning->warps() * 32;
  geometry.sharedBytes = tuning->sharedBytes();
  geometry.grid[0] =
      Dim::ceilDiv(m, Dim(tuning->bm)) * Dim::ceilDiv(n, Dim(tuning->bn));
  geometry.grid[2] = Dim::min(batches, Dim(65535));
  return spec;
}

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
