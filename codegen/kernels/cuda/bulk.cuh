//===- bulk.cuh - mbarriers, bulk tensor copies and wgmma of sm_90a -------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Wrappers of what only sm_90a has. Shared tiles have rows of 128 bytes and
/// the 128-byte swizzle that bulk copies make and wgmma reads: 16-byte piece p
/// of row r lies at piece p ^ (r % 8). Tiles begin at multiples of 1024 bytes.
///
//===----------------------------------------------------------------------===//
#ifndef TENON_KERNELS_CUDA_BULK_CUH
#define TENON_KERNELS_CUDA_BULK_CUH

#include "kernels/cuda/copy.cuh"
#include "kernels/cuda/mma.cuh"

namespace tn {
inline namespace TN_FORM {

/// A CUtensorMap, made by the driver; a kernel parameter of its own.
struct __align__(64) TensorMap {
  char opaque[128];
};

//===----------------------------------------------------------------------===//
// mbarriers: 8 bytes of shared memory each
//===----------------------------------------------------------------------===//

TN_FN void init_barrier(uint32_t barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier),
               "r"(arrivals)
               : "memory");
}
/// Makes initialised barriers known to the asynchronous proxy.
TN_FN void fence_barriers() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
TN_FN void arrive(uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier)
               : "memory");
}
/// Arrives, and lets the phase also wait for `bytes` bytes of bulk copies.
TN_FN void arrive_expecting(uint32_t barrier, int bytes) {
  asm volatile(
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier),
      "r"(bytes)
      : "memory");
}
/// Waits for the end of the phase of this parity.
TN_FN void wait_barrier(uint32_t barrier, int parity) {
  uint32_t done = 0;
  while (!done)
    asm volatile("{.reg .pred p;\n\t"
                 "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n\t"
                 "selp.u32 %0, 1, 0, p;}"
                 : "=r"(done)
                 : "r"(barrier), "r"(parity)
                 : "memory");
}

/// A barrier of `threads` threads of the block; barrier 0 is __syncthreads'.
TN_FN void sync_group(int number, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(number), "r"(threads) : "memory");
}

//===----------------------------------------------------------------------===//
// Bulk tensor copies
//===----------------------------------------------------------------------===//

/// Starts the copy of the box at (x, y, z), x along rows, into shared memory;
/// its bytes count towards `barrier`. What lies beyond the tensor becomes 0.
TN_FN void copy_box(uint32_t to, const TensorMap *map, int x, int y, int z,
                    uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.tile"
      ".mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];" ::"r"(to),
      "l"(map), "r"(x), "r"(y), "r"(z), "r"(barrier)
      : "memory");
}

//===----------------------------------------------------------------------===//
// wgmma
//===----------------------------------------------------------------------===//

/// Describes a tile with rows of 128 swizzled bytes. `stride`: bytes between
/// groups of 8 rows; `leading`: for a tile whose rows are k (transposed), bytes
/// between its columns' groups of 64 elements.
TN_FN uint64_t describe_tile(uint32_t at, int leading, int stride) {
  return uint64_t((at & 0x3ffff) >> 4) | uint64_t(leading >> 4) << 16 |
         uint64_t(stride >> 4) << 32 | uint64_t(1) << 62;
}

TN_FN void fence_products() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
TN_FN void commit_products() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
/// Waits until at most Groups groups of products are under way.
template <int Groups> TN_FN void wait_products() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Groups) : "memory");
}

/// Eight operands of an asm statement, in registers of kind R: the sums of two
/// 8-column tiles.
#define TN_SUMS8(R, J)                                                         \
  "+" R(c[J][0]), "+" R(c[J][1]), "+" R(c[J][2]), "+" R(c[J][3]),              \
      "+" R(c[J + 1][0]), "+" R(c[J + 1][1]), "+" R(c[J + 1][2]),              \
      "+" R(c[J + 1][3])
#define TN_SUMS32(R, J)                                                        \
  TN_SUMS8(R, J), TN_SUMS8(R, J + 2), TN_SUMS8(R, J + 4), TN_SUMS8(R, J + 6)
#define TN_NAMES32_0                                                           \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "     \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, "     \
  "%30, %31"
#define TN_NAMES32_1                                                           \
  ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, "   \
  "%46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, "     \
  "%60, %61, %62, %63"

/// c[64, N] (+)= a[64, K] b[K, N] with 32 bytes of K, by the four warps of a
/// group; warp w has rows 16 w ..., laid out as the sums of mma.m16n8. With
/// Transposed, which 16-bit elements know, b's rows are k.
template <class T, int N, bool Transposed> struct Wgmma;

#define TN_WGMMA(T, SUM, FORM, REST, N, NAMES, A, B, MORE, ...)                \
  template <bool Transposed> struct Wgmma<T, N, Transposed> {                  \
    static_assert(sizeof(T) == 2 || !Transposed);                              \
    using Sum = SUM;                                                           \
    static TN_FN void run(SUM (&c)[N / 8][4], uint64_t a, uint64_t b,          \
                          int accumulate) {                                    \
      asm volatile("{.reg .pred p;\n\tsetp.ne.b32 p, " MORE ", 0;\n\t"         \
                   "wgmma.mma_async.sync.aligned.m64n" #N FORM " {" NAMES      \
                   "}, " A ", " B ", p" REST ";}"                              \
                   : __VA_ARGS__                                               \
                   : "l"(a), "l"(b), "r"(accumulate), "n"(int(Transposed)));   \
    }                                                                          \
  };
#define TN_WGMMA_SIZES(T, SUM, R, FORM, REST64, REST128)                       \
  TN_WGMMA(T, SUM, FORM, REST64, 64, TN_NAMES32_0, "%32", "%33", "%34",        \
           TN_SUMS32(R, 0))                                                    \
  TN_WGMMA(T, SUM, FORM, REST128, 128, TN_NAMES32_0 TN_NAMES32_1, "%64",       \
           "%65", "%66", TN_SUMS32(R, 0), TN_SUMS32(R, 8))
TN_WGMMA_SIZES(tn_f16, float, "f", "k16.f32.f16.f16", ", 1, 1, 0, %35",
               ", 1, 1, 0, %67")
TN_WGMMA_SIZES(tn_bf16, float, "f", "k16.f32.bf16.bf16", ", 1, 1, 0, %35",
               ", 1, 1, 0, %67")
TN_WGMMA_SIZES(e4m3, float, "f", "k32.f32.e4m3.e4m3", ", 1, 1", ", 1, 1")
TN_WGMMA_SIZES(int8_t, int32_t, "r", "k32.s32.s8.s8", "", "")
TN_WGMMA_SIZES(u8_by_s8, int32_t, "r", "k32.s32.u8.s8", "", "")
#undef TN_WGMMA_SIZES
#undef TN_WGMMA
#undef TN_NAMES32_0
#undef TN_NAMES32_1
#undef TN_SUMS32
#undef TN_SUMS8

/// Gives registers back to the block's pool, or takes some: all warps of a
/// group of four call it.
template <int Registers> TN_FN void release_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Registers));
}
template <int Registers> TN_FN void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Registers));
}

} // namespace TN_FORM
} // namespace tn

#endif // TENON_KERNELS_CUDA_BULK_CUH
