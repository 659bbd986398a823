//===- conv_gemm.cuh - convolution as a matrix product --------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What conv.cuh computes, of one group, as gemm.cuh's product of the filters
/// w[m, (c, t..)] and a matrix that nobody makes: x[c, p * stride + t *
/// dilation
/// - pad_low] for column p and row (c, t..) is gathered as a stage is filled.
///
///   entry   tn::conv_gemm<Cfg, Epilogue>(args)
///
///   Cfg     In, Out, Operands, Tiling, math, align_a, stream   as in gemm.cuh
///           spatial, channels, filters, kernel, strides, dilations, pad_low
///                                                              as in conv.cuh
///           b   Layout::nk if 16 bytes of the innermost dimension of the
///           kernel
///               lie together in x (its size is a multiple of them, no
///               dilation), which one access then moves where the address
///               allows; Layout::kn if neighbouring positions should
///   views   x; w, contiguous; epilogue operands, of y's rank; y, contiguous
///   grid    as gemm.cuh's: M filters, N positions, K (c, t..), batches images
///   block, shared, scratch   as gemm.cuh's
///
/// To the epilogue a row is a filter and a column a position.
///
//===----------------------------------------------------------------------===//
#ifndef TENON_KERNELS_CUDA_CONV_GEMM_CUH
#define TENON_KERNELS_CUDA_CONV_GEMM_CUH

#include "kernels/common/window.h"
#include "kernels/cuda/gemm.cuh"

namespace tn {
inline namespace TN_FORM {

/// Fills stages: of A by copies, of B from x.
template <class Cfg> struct ConvSource {
  using S = GemmShape<Cfg>;
  using T = typename Cfg::In;
  static constexpr int spatial = Cfg::spatial, width = 16 / sizeof(T);
  static constexpr int volume = int(kernel_size<Cfg>()),
                       depth = int(Cfg::channels) * volume;
  /// Positions of a thread in a tile: one where columns are neighbours, else
  /// those of its chunks.
  static constexpr int chunks = S::BTile::chunks,
                       places = S::is_kn ? 1 : S::BN * chunks / S::threads;
  static_assert(S::is_kn ? S::threads % S::BN == 0
                         : S::BN * chunks % S::threads == 0);

  const tn_view &x, &y;
  const T *image;
  int row;
  /// Where in x the kernel's first element is at these positions; far outside
  /// where there is none.
  int origin[places][spatial];

  TN_FN ConvSource(const tn_view &x, const tn_view &y, int64_t n)
      : x(x), y(y), image((const T *)x.data + n * x.stride[0]) {}

  /// This thread's column number i of a tile.
  static TN_FN int column_of(int i) {
    return S::is_kn ? int(threadIdx.x) % S::BN
                    : (int(threadIdx.x) + i * S::threads) / chunks;
  }

  TN_FN void place(const GemmArgs &g, int tile_row, int column) {
    row = tile_row;
    TN_UNROLL
    for (int i = 0; i < places; ++i) {
      int at = column + column_of(i);
      Position<spatial> p;
      p.set(at, y.shape + 2);
      TN_UNROLL
      for (int d = 0; d < spatial; ++d)
        origin[i][d] = at < g.n
                           ? int(p.at[d] * Cfg::strides[d] - Cfg::pad_low[d])
                           : -(1 << 30);
    }
  }

  /// The element that row k of the matrix has at a position; null if it is
  /// padding. `more` receives how many follow it in the innermost dimension.
  TN_FN const T *find(const int (&at)[spatial], int k, int &more) const {
    if (k >= depth)
      return nullptr;
    int c = k / volume, t = k - c * volume;
    int64_t offset = c * x.stride[1];
    TN_UNROLL
    for (int d = spatial - 1; d >= 0; --d) {
      int size = int(Cfg::kernel[d]), rest = t / size;
      int i = at[d] + (t - rest * size) * int(Cfg::dilations[d]);
      t = rest;
      if (i < 0 || i >= x.shape[2 + d])
        return nullptr;
      if (d == spatial - 1)
        more = int(x.shape[2 + d]) - 1 - i;
      offset += i * x.stride[2 + d];
    }
    return image + offset;
  }

  /// Neighbouring threads have neighbouring positions.
  TN_FN void gather_words(int k, uint32_t to) const {
    constexpr int step = S::threads / S::BN, count = S::BK / step;
    int n = column_of(0), first = threadIdx.x / S::BN;
    T held[count];
    TN_UNROLL
    for (int i = 0; i < count; ++i) {
      int more = 0;
      const T *p = find(origin[0], k + first + i * step, more);
      held[i] = p ? *p : T();
    }
    TN_UNROLL
    for (int i = 0; i < count; ++i)
      store_shared(to + S::BTile::at(first + i * step, n / width) +
                       n % width * int(sizeof(T)),
                   held[i]);
  }

  /// Neighbouring threads have neighbouring chunks of k.
  TN_FN void gather_chunks(int k, uint32_t to) const {
    bool together = x.stride[1 + spatial] == 1;
    TN_UNROLL
    for (int i = 0; i < places; ++i) {
      int chunk = (int(threadIdx.x) + i * S::threads) % chunks;
      int first = k + chunk * width, more = 0;
      union {
        Words4 words;
        T x[width];
      } u = {};
      const T *p = find(origin[i], first, more);
      if (p && together && more >= width - 1 && uint64_t(p) % 16 == 0) {
        u.words = *(const Words4 *)p;
      } else {
        TN_UNROLL
        for (int j = 0; j < width; ++j)
          if (const T *one = find(origin[i], first + j, more))
            u.x[j] = *one;
      }
      store_shared16(to + S::BTile::at(column_of(i), chunk), u.words);
    }
  }

  TN_FN void fetch(const GemmArgs &g, int block, uint32_t shared,
                   int slot) const {
    uint32_t to = shared + slot * S::stage_bytes;
    int k = block * S::BK;
    Source a = {g.a + (row * g.lda + k) * S::size, g.lda * S::size, g.m - row,
                (g.k - k) * S::size};
    copy_tile<typename S::ATile, S::threads, Cfg::align_a>(to, a, threadIdx.x);
    if constexpr (S::is_kn)
      gather_words(k, to + S::ATile::bytes);
    else
      gather_chunks(k, to + S::ATile::bytes);
  }
};

template <class Cfg, class Epilogue = Identity>
TN_FN void conv_gemm(const tn_args *args) {
  using S = GemmShape<Cfg>;
  using Operands = typename Cfg::Operands;
  constexpr int spatial = Cfg::spatial, last = 2 + Operands::count;
  static_assert(Cfg::threads == S::threads);
  const tn_view *v = args->views, &y = v[last];
  GemmArgs g;
  g.m = int(Cfg::filters);
  g.n = int(extent(y, 2, 2 + spatial));
  g.k = ConvSource<Cfg>::depth;
  g.a = v[1].data;
  g.lda = g.k;
  g.ldc = y.stride[1];
  EpilogueArgs e;
  e.params = args->params;
  for (int64_t n = blockIdx.z; n < y.shape[0]; n += gridDim.z) {
    TN_UNROLL
    for (int i = 0; i < Operands::count; ++i) {
      const tn_view &o = v[2 + i];
      e.operand[i] = {o.data + n * o.stride[0] * Operands::size[i], o.stride[1],
                      o.stride[1 + spatial]};
    }
    g.c = y.data + n * y.stride[0] * int64_t(sizeof(typename Cfg::Out));
    ConvSource<Cfg> source(v[0], y, n);
    gemm_batch<Cfg, Epilogue>(g, e, source, args, n);
  }
}

} // namespace TN_FORM
} // namespace tn

#endif // TENON_KERNELS_CUDA_CONV_GEMM_CUH
