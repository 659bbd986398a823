//===- gemm.cuh - matrix product on tensor cores --------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// C[..., M, N] = epilogue(A[..., M, K] * B[..., K, N]), with sums in f32 (of
/// int8: in s32).
///
///   entry   tn::gemm_mma<Cfg, Epilogue>(args)
///
///   Cfg     using In            tn_f16, tn_bf16, float, int8_t, tn::u8_by_s8
///                               or tn::e4m3
///           using Out           tn_f16, tn_bf16, float or int32_t
///           using Operands      tn::types<...> of the epilogue's operands
///           using Tiling        tn::GemmTiling<...>, one of gemm_tunings.def
///           static constexpr Math math      gemm_tile.cuh; tensor but for
///           float static constexpr Layout b       kn: N contiguous; nk: K
///           contiguous
///                                           (int8 and fp8: nk only)
///           static constexpr int align_a, align_b
///                                   a power of two, 1 to 16 and no less than
///                                   the element, that divides the address of
///                                   every row of A (of B: every k, or every
///                                   column). 16 is the fast case
///           static constexpr bool stream    shares k among blocks, see below
///           static constexpr int rank       of A, B, C; at least 2
///           static constexpr int threads    GemmShape<Cfg>::threads
///
///   views   0              A    last dimension contiguous
///           1              B    as Layout says; for nk it is still seen as
///                               [..., K, N], with strides (1, ldb)
///           2, 3, ...           epilogue operands
///           last           C    last dimension contiguous
///   params  what the epilogue reads
///   grid    x   ceil(M / BM) * ceil(N / BN); with `stream` any number of
///   blocks
///           y   1
///           z   min(product of the leading dimensions, 65535)
///   block   GemmShape<Cfg>::threads
///   shared  GemmShape<Cfg>::shared_bytes
///   scratch none; with `stream` and more blocks than tiles, or fewer,
///           gemm_scratch_bytes(...), and a launch counter for each tile
///
/// Leading dimensions of A, B and C are equal, broadcast ones of A and B have
/// stride 0. M, N, K may be any numbers; K = 0 gives epilogue(0). C may overlap
/// neither A nor B; it may be the same memory as a load_full operand with the
/// same strides. A vector access happens only where an address allows it.
///
/// `stream`: the k blocks of all tiles, one after another, are cut into equal
/// shares, one for each block of the grid, so that a few tiles with much k fill
/// the device. With a multiple of the tiles that is split-K. Sums of a tile
/// that several blocks share go through scratch; the last of them to finish
/// adds them up in order of k. So the result does not depend on the order in
/// which blocks run, and nobody waits for anybody.
///
//===----------------------------------------------------------------------===//
#ifndef TENON_KERNELS_CUDA_GEMM_CUH
#define TENON_KERNELS_CUDA_GEMM_CUH

#include "kernels/cuda/gemm_tile.cuh"
#include "kernels/cuda/lanes.cuh"

namespace tn {
inline namespace TN_FORM {

/// Applies the epilogue to a warp's Rows x Columns sums, of which the first is
/// element (row, column) of C, and stores them. They go, 16 rows at a time,
/// through `slab`, shared memory of the warp's own with a pitch of Columns + 8
/// words, so that rows of C and of the epilogue's operands move in 16-byte
/// pieces.
template <class Out, class Epilogue, int Rows, int Columns, class Sums>
TN_FN void finish_warp(const GemmArgs &g, const EpilogueArgs &args, int row,
                       int column, const Sums &sums, uint32_t slab) {
  using Sum = typename Sums::Sum;
  constexpr int width = 16 / sizeof(Out), across = Columns / width;
  // A row of more than 32 pieces takes several turns.
  constexpr int lanes_across = across < 32 ? across : 32;
  constexpr int rows = 32 / lanes_across, turns = across / lanes_across;
  static_assert(32 % lanes_across == 0 && across % lanes_across == 0);
  constexpr int pitch = Columns + 8;
  EpilogueLanes<width> e;
  static_cast<EpilogueArgs &>(e) = args;
  TN_UNROLL
  for (int s = 0; s < Rows / 16; ++s) {
    __syncwarp();
    sums.put(s, slab);
    __syncwarp();
    // One at a time: the sums leave few registers for an epilogue.
    TN_PRAGMA(unroll 1)
    for (int turn = 0; turn < 16 / rows * turns; ++turn) {
      // Rows whose words lie in different banks are read together.
      int line = lane_id() / lanes_across;
      if (width == 4 && lanes_across == 4)
        line = (line & 4) | (line & 1) << 1 | (line >> 1 & 1);
      int r = turn / turns * rows + line;
      int x = (turn % turns * lanes_across + lane_id() % lanes_across) * width;
      union {
        Words4 words[width / 4];
        lanes<Sum, width> v;
      } u;
      // Of eight lanes, four read one half first and four the other.
      bool swap = width == 8 && (lane_id() >> (lanes_across == 2 ? 0 : 2) & 1);
      TN_UNROLL
      for (int i = 0; i < width / 4; ++i) {
        int piece = swap ? i ^ 1 : i;
        u.words[i] = load_shared16(slab + (r * pitch + x + piece * 4) * 4);
      }
      if (swap) {
        Words4 w = u.words[0];
        u.words[0] = u.words[width / 4 - 1];
        u.words[width / 4 - 1] = w;
      }
      int at = row + s * 16 + r, c = column + x;
      e.valid = g.n - c;
      if (at < g.m && e.valid > 0)
        store_lanes((Out *)g.c + at * g.ldc + c,
                    tn_cast_to<Out>(Epilogue::apply(u.v, e, at, c)), e.valid);
    }
  }
}

/// The same for all warps of a block with the tile at (row, column).
template <class Cfg, class Epilogue>
TN_FN void finish_tile(const GemmArgs &g, const EpilogueArgs &e, int row,
                       int column, const sums_of<Cfg> &sums) {
  using S = GemmShape<Cfg>;
  uint32_t slab = shared_address(shared_memory()) + warp_id() * S::slab_bytes;
  finish_warp<typename Cfg::Out, Epilogue, S::WM, S::WN>(
      g, e, row + S::warp_row(), column + S::warp_column(), sums, slab);
}

/// The tile with number `index`: tiles are numbered down strips of 8 tile rows,
/// so that blocks that run together share rows of A and columns of B.
TN_FN Place tile_place(int index, int down, int across) {
  constexpr int strip = 8;
  int first = index / (strip * across) * strip;
  int height = down - first < strip ? down - first : strip;
  int rest = index - first * across;
  return {first + rest % height, rest / height};
}

/// A block leaves at most two incomplete tiles.
TN_BOTH constexpr int64_t gemm_scratch_bytes(int64_t batches, int64_t blocks,
                                             int64_t tile_elements) {
  return batches * blocks * 2 * tile_elements * 4;
}

/// How k blocks are shared among the blocks of a grid.
struct StreamShare {
  int64_t total;
  int depth, blocks;

  TN_FN int64_t begin(int64_t block) const { return total * block / blocks; }
  /// The block whose share holds unit `unit`.
  TN_FN int owner(int64_t unit) const {
    int b = int(unit * blocks / total);
    while (begin(b + 1) <= unit)
      ++b;
    while (begin(b) > unit)
      --b;
    return b;
  }
};

/// The partial sums of block `block` for a tile; slot 1 where the tile is not
/// the first of the block's share.
template <class Cfg>
TN_FN float *partial_sums(char *partials, int64_t block, int slot) {
  using S = GemmShape<Cfg>;
  return (float *)partials + (block * 2 + slot) * (S::BM * S::BN) +
         threadIdx.x * 4;
}

/// Leaves this block's sums of a tile in scratch; true for the last block of
/// the tile, which has then all of them.
template <class Cfg>
TN_FN bool join_tile(const StreamShare &share, int64_t tile, char *partials,
                     uint32_t *counter, sums_of<Cfg> &sums) {
  using S = GemmShape<Cfg>;
  constexpr int step = S::threads * 4;
  int64_t first = tile * share.depth, last = first + share.depth - 1;
  int from = share.owner(first), to = share.owner(last);
  float *mine =
      partial_sums<Cfg>(partials, blockIdx.x, share.begin(blockIdx.x) < first);
  TN_UNROLL
  for (int i = 0; i < sums.count / 4; ++i) {
    Words4 w;
    TN_UNROLL
    for (int x = 0; x < 4; ++x)
      w.x[x] = __builtin_bit_cast(uint32_t, sums.at(i * 4 + x));
    *(Words4 *)(mine + i * step) = w;
  }
  if (!is_last_block(counter, to - from + 1))
    return false;
  sums.clear();
  for (int b = from; b <= to; ++b) {
    const float *p = partial_sums<Cfg>(partials, b, share.begin(b) < first);
    TN_UNROLL
    for (int i = 0; i < sums.count / 4; ++i) {
      Words4 w = *(const Words4 *)(p + i * step);
      TN_UNROLL
      for (int x = 0; x < 4; ++x)
        sums.at(i * 4 + x) +=
            __builtin_bit_cast(typename sums_of<Cfg>::Sum, w.x[x]);
    }
  }
  return true;
}

/// This block's part of one product, of tiles that `source` has. `partials` and
/// `counters` are those of the product's batch.
template <class Cfg, class Epilogue, class From>
TN_FN void gemm_block(const GemmArgs &g, EpilogueArgs &e, From &source,
                      char *partials, uint32_t *counters) {
  using S = GemmShape<Cfg>;
  int down = (g.m + S::BM - 1) / S::BM, across = (g.n + S::BN - 1) / S::BN;
  int depth = (g.k + S::BK - 1) / S::BK;
  sums_of<Cfg> sums;
  if constexpr (!Cfg::stream) {
    Place tile = tile_place(blockIdx.x, down, across);
    sum_tile<Cfg>(g, source, tile.row * S::BM, tile.chunk * S::BN, 0, depth,
                  sums);
    finish_tile<Cfg, Epilogue>(g, e, tile.row * S::BM, tile.chunk * S::BN,
                               sums);
  } else {
    // A product over nothing still has an epilogue: one empty k block.
    depth = depth > 0 ? depth : 1;
    // No more blocks than there are k blocks, so that no share is empty.
    int64_t total = int64_t(down) * across * depth;
    StreamShare share = {total, depth, int(min_of(gridDim.x, total))};
    if (blockIdx.x >= share.blocks)
      return;
    int64_t unit = share.begin(blockIdx.x), end = share.begin(blockIdx.x + 1);
    while (unit < end) {
      int64_t index = unit / depth;
      int begin = int(unit - index * depth);
      int stop = int(end - unit < depth - begin ? begin + (end - unit) : depth);
      Place tile = tile_place(int(index), down, across);
      int row = tile.row * S::BM, column = tile.chunk * S::BN;
      sum_tile<Cfg>(g, source, row, column, begin, stop, sums);
      bool whole = begin == 0 && stop == depth;
      if (whole ||
          join_tile<Cfg>(share, index, partials, counters + index, sums))
        finish_tile<Cfg, Epilogue>(g, e, row, column, sums);
      // The next tile's copies overwrite the slabs.
      __syncthreads();
      unit += stop - begin;
    }
  }
}

/// The same of batch number `batch` of a launch.
template <class Cfg, class Epilogue, class From>
TN_FN void gemm_batch(const GemmArgs &g, EpilogueArgs &e, From &source,
                      const tn_args *args, int64_t batch) {
  using S = GemmShape<Cfg>;
  int64_t tiles = ceil_div(g.m, S::BM) * ceil_div(g.n, S::BN);
  int64_t partial_bytes = int64_t(gridDim.x) * 2 * S::BM * S::BN * 4;
  gemm_block<Cfg, Epilogue>(g, e, source, args->scratch + batch * partial_bytes,
                            launch_counters(args) + batch * tiles);
  // The next batch's copies overwrite the slabs.
  __syncthreads();
}

template <class Cfg, class Epilogue = Identity>
TN_FN void gemm_mma(const tn_args *args) {
  using S = GemmShape<Cfg>;
  constexpr int rank = Cfg::rank, operands = Cfg::Operands::count;
  static_assert(Cfg::threads == S::threads);
  const tn_view *v = args->views;
  const tn_view &a = v[0], &b = v[1], &c = v[2 + operands];
  GemmArgs g;
  g.m = int(c.shape[rank - 2]);
  g.n = int(c.shape[rank - 1]);
  g.k = int(a.shape[rank - 1]);
  g.lda = a.stride[rank - 2];
  g.ldb = b.stride[Cfg::b == Layout::kn ? rank - 2 : rank - 1];
  g.ldc = c.stride[rank - 2];
  int64_t batches = extent(c, 0, rank - 2);
  for (int64_t batch = blockIdx.z; batch < batches; batch += gridDim.z) {
    tn_view of_a = {nullptr, c.shape, a.stride},
            of_b = {nullptr, c.shape, b.stride};
    g.a = a.data + row_offset(of_a, rank - 2, batch) * S::size;
    g.b = b.data + row_offset(of_b, rank - 2, batch) * S::size;
    g.c = c.data +
          row_offset(c, rank - 2, batch) * int64_t(sizeof(typename Cfg::Out));
    EpilogueArgs e;
    set_operands<typename Cfg::Operands>(e, args, 2, c.shape, rank, batch);
    MatrixSource<Cfg> source;
    gemm_batch<Cfg, Epilogue>(g, e, source, args, batch);
  }
}

} // namespace TN_FORM
} // namespace tn

#endif // TENON_KERNELS_CUDA_GEMM_CUH
