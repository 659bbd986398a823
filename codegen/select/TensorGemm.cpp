//===- TensorGemm.cpp - matrix products on tensor cores ------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

/// \file
/// Which tiles a product gets, how its k is shared among blocks, and where the
/// form of sm_90a takes its place. The rules, with S the least number of
/// multiprocessors of the architectures asked for, T the tiles of all batches,
/// D the k blocks of a tile:
///
///   tiles    the largest that suit the number of rows and of which, k being
///            shared, there are enough to fill a GPU
///   split-K  where T < S: each tile's k among min(S / T, D / 4) blocks
///   stream-K where the blocks that this makes, of one batch, fill less than
///            four fifths of their waves, which are four at most: S blocks
///            share all k, if each has four k blocks
///   sm_90a   where rows are more than 64 and T at least a quarter of 132
///
/// With a symbolic number of rows these are formulas of the plan.

#include "codegen/emit/CppText.h"
#include "codegen/select/FewRows.h"
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
  /// Whether registers are left for sharing k among blocks, or for a gather.
  bool mayShare() const {
    return bm * bn <= (operand == Operand::byte ? 64 : 128) * 128;
  }
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

struct BulkTuning {
  int64_t bn, stages;

  /// As BulkShape of kernels/cuda/gemm_sm90.cuh counts it.
  int64_t sharedBytes() const {
    int64_t slabs = 8 * 16 * (bn + 8) * 4;
    return std::max(stages * (bm + bn) * 128, slabs) + stages * 16;
  }
  static constexpr int64_t bm = 128;
};

constexpr BulkTuning bulkTunings[] = {
#define TN_BULK_TUNING(NAME, BN, STAGES) {BN, STAGES},
#include "codegen/kernels/cuda/tunings.def"
};

/// What is multiplied, and how.
struct Form {
  Operand operand;
  Math math;
  std::string in; ///< Cfg::In
  int64_t size;   ///< bytes of an element
  /// B is gathered, which takes registers.
  bool gathers = false;
};

/// What a product's sizes are.
struct Sizes {
  Dim m, n, k, batches;

  Dim tiles(int64_t bm, int64_t bn) const {
    return Dim::ceilDiv(m, Dim(bm)) * Dim::ceilDiv(n, Dim(bn));
  }
  /// Tiles of all batches, for a choice that is made when compiling: a symbolic
  /// number of rows counts as 256.
  int64_t guess(int64_t bm, int64_t bn) const {
    auto ceilDiv = [](int64_t a, int64_t b) { return (a + b - 1) / b; };
    return ceilDiv(m.constant().value_or(256), bm) *
           ceilDiv(n.constant().value_or(1024), bn) *
           batches.constant().value_or(1);
  }
};

/// k blocks of a tile that a block has at least, if it shares them.
constexpr int64_t leastShare = 4;

/// k blocks of a tile; 1 if the size is unknown: then nothing is shared.
int64_t depthOf(const GemmTuning &tuning, const Form &form, Dim k) {
  int64_t elements = tuning.kBytes / form.size;
  return (k.constant().value_or(1) + elements - 1) / elements;
}

/// Into how many shares a tile's k may be cut.
int64_t mostShares(const GemmTuning &tuning, const Form &form, Dim k) {
  return std::max<int64_t>(1, depthOf(tuning, form, k) / leastShare);
}

/// The least number of blocks with which a GPU is busy.
constexpr int64_t enoughBlocks = 96;

/// Blocks of a batch, and scratch, by the rules above.
struct Share {
  Dim blocks;
  Dim scratchBytes = 0;
  bool stream = false;
};

Share shareOf(const Lowering &lowering, const GemmTuning &tuning,
              const Form &form, const Sizes &sizes) {
  Dim tiles = sizes.tiles(tuning.bm, tuning.bn);
  Share share{tiles};
  int64_t most = mostShares(tuning, form, sizes.k);
  if (most < 2)
    return share;
  Dim s = lowering.leastMultiprocessors(), total = tiles * sizes.batches;
  Dim shares = Dim::max(
      Dim(1), Dim::min(Dim::floorDiv(s, Dim::max(total, Dim(1))), Dim(most)));
  Dim blocks = tiles * shares;
  if (sizes.batches.isConstant(1)) {
    Dim waves = Dim::ceilDiv(blocks, s);
    Dim all = tiles * Dim(depthOf(tuning, form, sizes.k));
    Dim streams = isAtMost(waves, 4) *
                  isAbove(waves * s * Dim(4) - blocks * Dim(5), 0) *
                  isAbove(all - s * Dim(leastShare), -1);
    blocks = blocks + streams * (s - blocks);
  }
  if (blocks == tiles)
    return share;
  share.blocks = blocks;
  share.stream = true;
  // No more blocks than that share anything.
  Dim sharing = blocks.constant() ? blocks * sizes.batches : s;
  if (!sizes.batches.constant())
    sharing = s;
  share.scratchBytes = sharing * Dim(2 * tuning.bm * tuning.bn * 4);
  return share;
}

/// The first tuning, the largest, of which enough blocks are there to fill a
/// GPU, without sharing k where its registers do not allow that, and whose rows
/// are not mostly beyond the end; else the last.
const GemmTuning *chooseGemm(const Lowering &lowering, const Form &form,
                             const Sizes &sizes) {
  unsigned lowest = lowering.lowestArch(), generation = 0;
  const GemmTuning *last = nullptr;
  for (const GemmTuning &tuning : gemmTunings)
    if (tuning.math == form.math && tuning.operand == form.operand &&
        tuning.arch <= lowest)
      generation = std::max(generation, tuning.arch);
  for (const GemmTuning &tuning : gemmTunings) {
    if (tuning.math != form.math || tuning.operand != form.operand ||
        tuning.arch != generation)
      continue;
    last = &tuning;
    std::optional<int64_t> rows = sizes.m.constant();
    bool tall = rows && *rows * 2 <= tuning.bm;
    if (!tuning.mayShare() &&
        (form.gathers || shareOf(lowering, tuning, form, sizes).stream))
      continue;
    int64_t blocks =
        sizes.guess(tuning.bm, tuning.bn) * mostShares(tuning, form, sizes.k);
    if (!tall && blocks >= enoughBlocks)
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

/// Whether one map describes all matrices of \p view, and whether they are one.
bool isMappable(const View &view, unsigned inner, bool &shared) {
  unsigned rank = view.rank();
  llvm::ArrayRef<Dim> leading = llvm::ArrayRef(view.strides).drop_back(2);
  shared =
      llvm::all_of(leading, [](Dim stride) { return stride.isConstant(0); });
  unsigned outer = inner == rank - 1 ? rank - 2 : rank - 1;
  return alignmentOf(view, inner) == 16 && !view.strides[outer].isConstant(0) &&
         (shared || mergeDims(view, 0, rank - 2));
}

/// The form of sm_90a, where it fits.
std::optional<VariantSpec> hopperForm(const Lowering &lowering,
                                      const Form &form, const View &a,
                                      const View &b, const View &c, bool kn,
                                      const Sizes &sizes,
                                      const Epilogue &epilogue) {
  constexpr int64_t quarter = 132 / 4;
  unsigned rank = c.rank();
  bool sharedA = false, sharedB = false;
  if (!lowering.hasHopper() || form.operand == Operand::single ||
      (kn && form.operand == Operand::byte) || !sizes.k.constant() ||
      sizes.k.isConstant(0) || !isMappable(a, rank - 1, sharedA) ||
      !isMappable(b, kn ? rank - 1 : rank - 2, sharedB))
    return std::nullopt;
  const BulkTuning *tuning = nullptr;
  for (const BulkTuning &each : bulkTunings)
    if (!tuning || sizes.guess(tuning->bm, tuning->bn) < enoughBlocks)
      tuning = &each;
  Dim tiles = sizes.tiles(tuning->bm, tuning->bn);
  VariantSpec variant;
  variant.when =
      isAbove(sizes.m, 64) * isAbove(tiles * sizes.batches, quarter - 1);
  if (variant.when.isConstant(0))
    return std::nullopt;
  variant.arch = 90;
  variant.kernel = "gemm_sm90";
  variant.config.raw("using", "In", form.in)
      .type("Out", c.element)
      .types("Operands", epilogue.elements)
      .raw("using", "Tiling",
           llvm::formatv("tn::BulkTiling<{0}, {1}>", tuning->bn, tuning->stages)
               .str())
      .raw("tn::Layout", "b", kn ? "tn::Layout::kn" : "tn::Layout::nk")
      .flag("shared_a", sharedA)
      .flag("shared_b", sharedB)
      .rank("rank", rank);
  variant.geometry.threads = 384;
  variant.geometry.sharedBytes = tuning->sharedBytes();
  variant.geometry.grid[0] = tiles;
  variant.geometry.grid[2] = Dim::min(sizes.batches, Dim(65535));
  unsigned rows = BulkTuning::bm, columns = tuning->bn,
           across = unsigned(128 / form.size);
  variant.maps.push_back({0, false, sharedA, {across, rows}});
  variant.maps.push_back({1, !kn, sharedB, {across, kn ? across : columns}});
  return variant;
}

} // namespace

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

namespace {

/// The launch of gemm.cuh, or of what shares its tiles, without operands.
std::optional<LaunchSpec> tiledGemm(const Lowering &lowering, const Form &form,
                                    const Sizes &sizes, bool kn, int64_t alignA,
                                    ElementType out, const Epilogue &epilogue) {
  const GemmTuning *tuning = chooseGemm(lowering, form, sizes);
  if (!tuning)
    return std::nullopt;
  Share share = shareOf(lowering, *tuning, form, sizes);
  LaunchSpec spec;
  spec.kernel = "gemm";
  spec.config.raw("using", "In", form.in)
      .type("Out", out)
      .types("Operands", epilogue.elements)
      .raw("using", "Tiling",
           llvm::formatv("tn::GemmTiling<{0}, {1}, {2}, {3}, {4}, {5}>",
                         tuning->bm, tuning->bn, tuning->kBytes, tuning->wm,
                         tuning->wn, tuning->stages)
               .str())
      .raw("tn::Math", "math", mathName(tuning->math))
      .raw("tn::Layout", "b", kn ? "tn::Layout::kn" : "tn::Layout::nk")
      .rank("align_a", alignA)
      .flag("stream", share.stream);
  if (share.stream)
    spec.scratchBytes = share.scratchBytes;
  kernel::Geometry &geometry = spec.geometry.emplace();
  geometry.threads = tuning->warps() * 32;
  geometry.sharedBytes = tuning->sharedBytes();
  geometry.grid[0] = share.blocks;
  geometry.grid[2] = Dim::min(sizes.batches, Dim(65535));
  return spec;
}

/// Its operands, the matrices a and b.
void addMatrices(LaunchSpec &spec, const View &a, const View &b, bool kn) {
  unsigned rank = b.rank();
  spec.config.rank("align_b", alignmentOf(b, kn ? rank - 1 : rank - 2))
      .rank("rank", rank);
  spec.operands = {a, b};
}

/// How floating-point elements are multiplied.
Form formOf(const Lowering &lowering, ElementType element) {
  bool half = isHalf(element);
  return {half ? Operand::half : Operand::single,
          half                  ? Math::tensor
          : lowering.usesTf32() ? Math::tf32
                                : Math::fma,
          storageType(element).str(), ir::bitWidth(element) / 8};
}

/// Whether tensor cores, or the tiles of f32, know operands and results.
bool hasForm(const Lowering &lowering, ElementType in, ElementType out) {
  // Tensor cores know bf16 from sm_80 on.
  return (isHalf(in) || in == ElementType::F32) &&
         (isHalf(out) || out == ElementType::F32) &&
         (in != ElementType::BF16 || lowering.lowestArch() >= 80);
}

Sizes sizesOf(const View &a, const View &c) {
  unsigned rank = c.rank();
  return {c.shape[rank - 2], c.shape[rank - 1], a.shape[rank - 1],
          ir::numElements(ir::ShapeRef(c.shape).drop_back(2))};
}

/// The launch of gemm.cuh for two matrices, with the form of sm_90a.
std::optional<LaunchSpec> matrixProduct(const Lowering &lowering,
                                        const Form &form, const View &a,
                                        const View &b, const View &c, bool kn,
                                        const Epilogue &epilogue) {
  Sizes sizes = sizesOf(a, c);
  std::optional<LaunchSpec> spec =
      tiledGemm(lowering, form, sizes, kn, alignmentOf(a, a.rank() - 1),
                c.element, epilogue);
  if (!spec)
    return std::nullopt;
  addMatrices(*spec, a, b, kn);
  if (auto hopper = hopperForm(lowering, form, a, b, c, kn, sizes, epilogue))
    spec->variants.push_back(std::move(*hopper));
  return spec;
}

} // namespace

std::optional<LaunchSpec> tensorProduct(const Lowering &lowering, const View &a,
                                        const View &b, const View &c,
                                        const Epilogue &epilogue) {
  unsigned rank = c.rank(), column = rank - 1, row = rank - 2;
  bool kn = b.strides[column].isConstant(1), nk = b.strides[row].isConstant(1);
  if (a.element != b.element || !hasForm(lowering, a.element, c.element) ||
      !a.strides[column].isConstant(1) || !c.strides[column].isConstant(1) ||
      (!kn && !nk))
    return std::nullopt;
  return matrixProduct(lowering, formOf(lowering, a.element), a, b, c, kn,
                       epilogue);
}

std::optional<LaunchSpec> tensorCodes(const Lowering &lowering, const View &a,
                                      const View &c, const Epilogue &epilogue) {
  unsigned column = c.rank() - 1;
  if (!hasForm(lowering, a.element, c.element) || a.rank() != c.rank() ||
      !a.strides[column].isConstant(1) || !c.strides[column].isConstant(1))
    return std::nullopt;
  Form form = formOf(lowering, a.element);
  form.gathers = true;
  std::optional<LaunchSpec> spec =
      tiledGemm(lowering, form, sizesOf(a, c), /*kn=*/false,
                alignmentOf(a, column), c.element, epilogue);
  if (spec)
    spec->config.rank("rank", c.rank());
  return spec;
}

std::optional<LaunchSpec> byteProduct(const Lowering &lowering, Bytes kind,
                                      const View &a, const View &b,
                                      const View &c, const Epilogue &epilogue) {
  static constexpr llvm::StringLiteral names[] = {"int8_t", "tn::u8_by_s8",
                                                  "tn::e4m3"};
  Form form{Operand::byte, Math::tensor, names[unsigned(kind)].str(), 1};
  return matrixProduct(lowering, form, a, b, c, /*kn=*/false, epilogue);
}

std::optional<LaunchSpec> tensorConv(const Lowering &lowering, const View &x,
                                     const View &w, const View &y,
                                     const ir::ConvAttrs &attrs,
                                     const Epilogue &epilogue) {
  auto filters = ir::constantShape(w.shape);
  if (attrs.groups != 1 || x.element != w.element || !filters ||
      !hasForm(lowering, x.element, y.element))
    return std::nullopt;
  int64_t depth = 1, width = 16 / (ir::bitWidth(x.element) / 8);
  for (int64_t size : llvm::ArrayRef(*filters).drop_front())
    depth *= size;
  if (depth == 0 || depth > INT32_MAX / 4)
    return std::nullopt;
  bool chunks = filters->back() % width == 0 && attrs.dilations.back() == 1;
  Sizes sizes{w.shape[0], ir::numElements(ir::ShapeRef(y.shape).drop_front(2)),
              Dim(depth), y.shape[0]};
  View rows = *mergeDims(w, 1, w.rank());
  Form form = formOf(lowering, x.element);
  form.gathers = true;
  std::optional<LaunchSpec> spec =
      tiledGemm(lowering, form, sizes, !chunks, alignmentOf(rows, 1), y.element,
                epilogue);
  if (!spec)
    return std::nullopt;
  spec->kernel = "conv_gemm";
  spec->operands = {x, w};
  return spec;
}

} // namespace tenon::codegen
