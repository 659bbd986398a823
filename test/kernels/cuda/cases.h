//===- cases.h - one launch of each kernel, with its reference ------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Each case makes its operands, writes a unit, compiles it, launches it and
/// compares the result with a double-precision reference. It returns nothing
/// where all is right, else what is wrong, so that tests of planted faults can
/// use the same cases.
///
//===----------------------------------------------------------------------===//
#ifndef TENON_TEST_KERNELS_CUDA_CASES_H
#define TENON_TEST_KERNELS_CUDA_CASES_H

#include "tensor.h"

namespace test {

/// A tile tuning, as in tunings.def.
struct GemmTuning {
  const char *name, *math, *element;
  int bm, bn, kBytes, wm, wn, stages, arch;
  std::string text() const;
};
const std::vector<GemmTuning> &gemmTunings();
const GemmTuning &gemmTuning(const std::string &name);

/// A tuning of gemm_sm90.cuh.
struct BulkTuning {
  const char *name;
  int bn, stages;
};
const std::vector<BulkTuning> &bulkTunings();

struct GemmCase {
  GemmTuning tuning;
  /// Not null: the kernel of sm_90a with this tuning.
  const BulkTuning *bulk = nullptr;
  const Element *in = &f16, *out = &f16;
  bool nk = false, stream = false;
  /// Blocks of the grid if `stream`.
  int blocks = 0;
  int64_t batch = 1, m = 1, n = 1, k = 1;
  /// Elements between the end of a row and the next one's begin.
  int64_t gapA = 0, gapB = 0, gapC = 0;
  /// B is one matrix for all batches.
  bool sharedB = false;
  /// relu(x + bias[n]) + residual[m, n]; else nothing.
  bool epilogue = false;
  /// Times that the launch is repeated on the same scratch.
  int repeat = 1;
};
/// The unit's text; alignment follows from the operands.
std::string gemmSource(const GemmCase &c);
std::string runGemm(const GemmCase &c, const Headers &h = kernelHeaders());

struct ConvCase {
  GemmTuning tuning;
  const Element *type = &f16;
  int64_t images = 1, channels = 1, filters = 1, height = 1, width = 1,
          kernelHeight = 1, kernelWidth = 1, stride = 1, pad = 0, dilation = 1;
  /// Blocks that share k; 0: one for each tile.
  int blocks = 0;
  int64_t outHeight() const;
  int64_t outWidth() const;
};
/// relu(conv(x, w) + bias[filter]) + residual
std::string convSource(const ConvCase &c);
std::string runConv(const ConvCase &c, const Headers &h = kernelHeaders());

struct QuantiseCase {
  const Element *in = &f16;
  bool fp8 = false, perWarp = true;
  bool known = true; ///< whether the unit knows n
  int64_t rows = 1, n = 1, gap = 0;
};
std::string quantiseSource(const QuantiseCase &c);
std::string runQuantise(const QuantiseCase &c,
                        const Headers &h = kernelHeaders());

struct AttentionTuning {
  const char *name, *element;
  int maxD, bm, bn, arch;
  bool isHalf() const { return element[0] == 'h'; }
  int threads() const { return isHalf() ? bm * 2 : 128; }
};
const std::vector<AttentionTuning> &attentionTunings();
const AttentionTuning &attentionTuning(const std::string &name);

struct AttentionCase {
  AttentionCase() = default;
  /// Of the tuning's own element type.
  explicit AttentionCase(const AttentionTuning &t)
      : tuning(&t), type(t.isHalf() ? &f16 : &f32) {}

  /// Null: the split-KV kernel, with `rows` and `split`.
  const AttentionTuning *tuning = nullptr;
  int rows = 4, split = 64, arch = 80;
  const Element *type = &f16;
  int64_t batch = 1, queries = 1, keys = 1, heads = 1, kvHeads = 1, d = 64,
          dv = 64;
  /// Elements between heads' rows, to make addresses odd.
  int64_t gap = 0;
  double softcap = 0;
  int64_t left = -1, right = -1; ///< -1: no bound
  std::string align = "bottom_right";
  int64_t offset = 0; ///< if align is param
  bool alibi = false;
  std::string mask = "none", maskedRow = "zero";
  /// Of the mask: elements f32 or those of q; the same row for all queries.
  bool maskIsF32 = true, maskRowShared = false;
  /// Rows of the mask that hide every key, every so many rows; 0: none.
  int hideEvery = 0;
};
std::string attentionSource(const AttentionCase &c);
std::string runAttention(const AttentionCase &c,
                         const Headers &h = kernelHeaders());

struct GemvTuning {
  const char *name;
  int warps, kSplit, columns;
};
const std::vector<GemvTuning> &gemvTunings();
const GemvTuning &gemvTuning(const std::string &name);

struct GemvCase {
  GemvTuning tuning;
  /// Not null: gemm_codes.cuh with this tuning, k shared by so many blocks if
  /// that is not 0.
  const GemmTuning *tile = nullptr;
  int blocks = 0;
  const Element *type = &f16;
  bool singleRows = false; ///< A is f32, whatever B is
  int rows = 1, arch = 75;
  int64_t m = 1, n = 1, k = 1, gap = 0;
  bool epilogue = false;
  /// What rows go through; B has two halves of columns, which are multiplied.
  std::string norm = "none";
  bool affine = true; ///< the norm has gamma, and beta
  bool pair = false;
  /// Weights of so many bits in blocks of so many; 0: a plain matrix.
  int bits = 4, block = 0;
  std::string zeros = "packed"; ///< or none, real
};
std::string gemvSource(const GemvCase &c);
std::string runGemv(const GemvCase &c, const Headers &h = kernelHeaders());

/// Queries, keys and values of one product: the first two are rotated, the last
/// two go to strided places.
struct RotaryCase {
  const Element *from = &f32, *to = &f32;
  int64_t batch = 2, positions = 3, heads = 4, keyHeads = 2, d = 16, half = 8;
  bool interleaved = false;
  int blocks = 2;
};
std::string runRotary(const RotaryCase &c, const Headers &h = kernelHeaders());

} // namespace test

#endif // TENON_TEST_KERNELS_CUDA_CASES_H
