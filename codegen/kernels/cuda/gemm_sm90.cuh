//===- gemm_sm90.cuh - matrix product by wgmma and bulk copies ------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// C[..., M, N] = epilogue(A[..., M, K] * B[..., K, N]) of f16 and bf16 with
/// sums in f32, for sm_90a alone. One warp of a block does nothing but start
/// bulk copies of tiles into a ring of stages; two groups of four warps
/// multiply what has arrived, each 64 rows of the tile. mbarriers say when a
/// stage is full and when it is empty.
///
///   entry   tn::gemm_sm90<Cfg, Epilogue>(args, map_a, map_b), by TN_UNIT_MAPS
///
///   Cfg     In, Out, Operands, b, rank   as in gemm.cuh; In tn_f16, tn_bf16,
///                            int8_t, tn::u8_by_s8 or tn::e4m3 (these: b nk)
///           using Tiling     tn::BulkTiling<BN, Stages>: tiles of 128 x BN, BN
///                            64, 128 or 256
///           static constexpr bool shared_a, shared_b   one A (B) for all
///                                                      batches
///           static constexpr int threads = 384
///
///   views, params, epilogue, shapes   as in gemm.cuh
///   maps    3-dimensional tensor maps with the 128-byte swizzle, no
///           interleave, filled with 0; BK elements are 128 bytes:
///           A       {K, M, batches}, box {BK, 128, 1}
///           B, nk   {K, N, batches}, box {BK, BN, 1}
///           B, kn   {N, K, batches}, box {64, 64, 1}
///           addresses and strides must be multiples of 16 bytes; leading
///           dimensions of one even step
///   grid    x ceil(M / 128) * ceil(N / BN), y 1, z min(batches, 65535)
///   block   384
///   shared  BulkShape<Cfg>::shared_bytes
///   scratch none
///
/// M, N and K may be any numbers that the maps allow, so at least 1.
///
//===----------------------------------------------------------------------===//
#ifndef TENON_KERNELS_CUDA_GEMM_SM90_CUH
#define TENON_KERNELS_CUDA_GEMM_SM90_CUH

#include "kernels/cuda/bulk.cuh"
#include "kernels/cuda/gemm.cuh"

namespace tn {
inline namespace TN_FORM {

template <int BN_, int Stages> struct BulkTiling {
  static constexpr int BM = 128, BN = BN_, stages = Stages;
};

template <class Cfg> struct BulkShape : Cfg::Tiling {
  using T = typename Cfg::Tiling;
  using T::BM, T::BN, T::stages;
  static constexpr int BK = 128 / sizeof(typename Cfg::In);
  static constexpr int consumers = 256, threads = 384;
  /// One wgmma's columns, and how many make a tile's.
  static constexpr int wide = BN < 128 ? BN : 128, parts = BN / wide;
  static constexpr int a_bytes = BM * 128, b_bytes = BN * 128,
                       stage_bytes = a_bytes + b_bytes;
  static constexpr int slab_bytes = 16 * (BN + 8) * 4;
  /// Stages, of which slabs take the place; then two barriers for each stage.
  static constexpr int barriers_at =
      int(max_of(stages * stage_bytes, 8 * slab_bytes));
  static constexpr int shared_bytes = barriers_at + stages * 16;
};

/// A warp's 16 x BN sums.
template <class Cfg> struct BulkSums {
  using S = BulkShape<Cfg>;
  static constexpr bool kn = Cfg::b == Layout::kn;
  using Product = Wgmma<typename Cfg::In, S::wide, kn>;
  using Sum = typename Product::Sum;
  Sum sum[S::parts][S::wide / 8][4];

  /// Adds the product of a stage, or begins with it; `a` is the group's 64
  /// rows.
  TN_FN void multiply(uint32_t a, uint32_t b, bool more) {
    TN_UNROLL
    for (int k = 0; k < 128 / 32; ++k)
      TN_UNROLL
    for (int p = 0; p < S::parts; ++p) {
      // kn: boxes of 64 columns, 64 rows of k each, one after another.
      uint32_t at = kn ? b + p * (S::wide / 64) * 8192 + k * 16 * 128
                       : b + p * S::wide * 128 + k * 32;
      Product::run(sum[p], describe_tile(a + k * 32, 16, 1024),
                   describe_tile(at, kn ? 8192 : 16, 1024), k > 0 || more);
    }
  }

  TN_FN void put(int, uint32_t to) const {
    int row = fragment_row(lane_id()), column = fragment_column(lane_id());
    TN_UNROLL
    for (int j = 0; j < S::BN / 8; ++j) {
      const Sum(&s)[4] = sum[j / (S::wide / 8)][j % (S::wide / 8)];
      uint32_t at = to + (row * (S::BN + 8) + j * 8 + column) * 4;
      store_shared8(at, __builtin_bit_cast(uint32_t, s[0]),
                    __builtin_bit_cast(uint32_t, s[1]));
      store_shared8(at + 8 * (S::BN + 8) * 4,
                    __builtin_bit_cast(uint32_t, s[2]),
                    __builtin_bit_cast(uint32_t, s[3]));
    }
  }
};

/// The ring of stages, and where a thread is in it.
template <class Cfg> struct StageRing {
  using S = BulkShape<Cfg>;
  uint32_t shared;
  int stage = 0, parity = 0;

  TN_FN uint32_t full() const { return shared + S::barriers_at + stage * 16; }
  TN_FN uint32_t empty() const { return full() + 8; }
  TN_FN uint32_t a() const { return shared + stage * S::stage_bytes; }
  TN_FN uint32_t b() const { return a() + S::a_bytes; }
  TN_FN void advance() {
    if (++stage == S::stages) {
      stage = 0;
      parity ^= 1;
    }
  }
};

/// Starts the copies of all k blocks of a tile; one thread.
template <class Cfg>
TN_FN void produce(StageRing<Cfg> &ring, const TensorMap *map_a,
                   const TensorMap *map_b, int row, int column, int batch,
                   int depth) {
  using S = BulkShape<Cfg>;
  for (int block = 0; block < depth; ++block, ring.advance()) {
    // An untouched barrier's preceding phase counts as over.
    wait_barrier(ring.empty(), ring.parity ^ 1);
    arrive_expecting(ring.full(), S::stage_bytes);
    int k = block * S::BK;
    copy_box(ring.a(), map_a, k, row, Cfg::shared_a ? 0 : batch, ring.full());
    int z = Cfg::shared_b ? 0 : batch;
    if constexpr (Cfg::b == Layout::nk)
      copy_box(ring.b(), map_b, k, column, z, ring.full());
    else
      TN_UNROLL
    for (int part = 0; part < S::BN / 64; ++part)
      copy_box(ring.b() + part * 8192, map_b, column + part * 64, k, z,
               ring.full());
  }
}

/// Multiplies all k blocks; the warps of group `group`.
template <class Cfg>
TN_FN void consume(StageRing<Cfg> &ring, int group, int depth,
                   BulkSums<Cfg> &sums) {
  using S = BulkShape<Cfg>;
  uint32_t last_empty = 0;
  // At least once: sums that might also come from elsewhere would have to be
  // moved while products are under way.
  int block = 0;
  do {
    wait_barrier(ring.full(), ring.parity);
    fence_products();
    sums.multiply(ring.a() + group * 64 * 128, ring.b(), block > 0);
    commit_products();
    // The products before these are finished, so their stage is empty.
    wait_products<1>();
    if (block > 0 && lane_id() == 0)
      arrive(last_empty);
    last_empty = ring.empty();
    ring.advance();
  } while (++block < depth);
  wait_products<0>();
  if (lane_id() == 0)
    arrive(last_empty);
}

template <class Cfg, class Epilogue = Identity>
TN_FN void gemm_sm90(const tn_args *args, const TensorMap *map_a,
                     const TensorMap *map_b) {
  using S = BulkShape<Cfg>;
  constexpr int rank = Cfg::rank, operands = Cfg::Operands::count;
  static_assert(Cfg::threads == S::threads);
  const tn_view c = args->views[2 + operands];
  GemmArgs g = {};
  g.m = int(c.shape[rank - 2]);
  g.n = int(c.shape[rank - 1]);
  g.k = int(args->views[0].shape[rank - 1]);
  g.ldc = c.stride[rank - 2];
  int depth = (g.k + S::BK - 1) / S::BK;
  int down = (g.m + S::BM - 1) / S::BM, across = (g.n + S::BN - 1) / S::BN;
  Place tile = tile_place(blockIdx.x, down, across);
  int row = tile.row * S::BM, column = tile.chunk * S::BN;
  int64_t batches = extent(c, 0, rank - 2);

  StageRing<Cfg> ring = {shared_address(shared_memory())};
  if (threadIdx.x == 0) {
    for (int s = 0; s < S::stages; ++s) {
      init_barrier(ring.shared + S::barriers_at + s * 16, 1);
      init_barrier(ring.shared + S::barriers_at + s * 16 + 8,
                   S::consumers / 32);
    }
    fence_barriers();
  }
  __syncthreads();
  int group = threadIdx.x / 128;
  if (group == 2) {
    release_registers<40>();
    for (int64_t batch = blockIdx.z; batch < batches; batch += gridDim.z) {
      if (threadIdx.x == S::consumers)
        produce<Cfg>(ring, map_a, map_b, row, column, int(batch), depth);
      // Slabs are where stages are: the next batch waits for the epilogue.
      __syncthreads();
    }
    return;
  }
  take_registers<232>();
  for (int64_t batch = blockIdx.z; batch < batches; batch += gridDim.z) {
    BulkSums<Cfg> sums;
    consume<Cfg>(ring, group, depth, sums);
    sync_group(1, S::consumers);
    EpilogueArgs e;
    set_operands<typename Cfg::Operands>(e, args, 2, c.shape, rank, batch);
    g.c = c.data +
          row_offset(c, rank - 2, batch) * int64_t(sizeof(typename Cfg::Out));
    finish_warp<typename Cfg::Out, Epilogue, 16, S::BN>(
        g, e, row + warp_id() * 16, column, sums,
        ring.shared + warp_id() * S::slab_bytes);
    __syncthreads();
  }
}

/// The entry point of a unit with two tensor maps; on other architectures there
/// is nothing in it.
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define TN_UNIT_MAPS(NUMBER, ...)                                              \
  extern "C" __global__ void __launch_bounds__(Cfg##NUMBER::threads, 1)        \
      tn_unit_##NUMBER(                                                        \
          const __grid_constant__ tn::launch_of<Cfg##NUMBER> launch,           \
          const __grid_constant__ tn::TensorMap map_a,                         \
          const __grid_constant__ tn::TensorMap map_b) {                       \
    tn_view views[Cfg##NUMBER::num_views];                                     \
    tn::unpack_views<Cfg##NUMBER>(views, launch);                              \
    tn_args args = {views,   launch.params,   launch.scratch,                  \
                    nullptr, launch.counters, 0,                               \
                    1,       launch.fault};                                    \
    __VA_ARGS__(&args, &map_a, &map_b);                                        \
  }
#else
#define TN_UNIT_MAPS(NUMBER, ...)                                              \
  extern "C" __global__ void tn_unit_##NUMBER() {}
#endif

} // namespace TN_FORM
} // namespace tn

#endif // TENON_KERNELS_CUDA_GEMM_SM90_CUH
