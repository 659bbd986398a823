//===- mma.cuh - tensor-core products by element type ---------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// c[16, 8] += a[16, K] b[K, 8] by one warp, K being 32 bytes of the element
/// type, whatever that is: 8 of tf32, 16 of f16 and bf16, 32 of int8 and fp8.
/// Lane l holds, in 32-bit words of consecutive k, with g = l / 4, t = l % 4:
///
///   a[0], a[1]   rows g and g + 8, word t of the first 16 bytes of k
///   a[2], a[3]   the same of the second 16 bytes
///   b[0], b[1]   column g, word t of the first and the second 16 bytes
///   c[0..3]      (g, 2t), (g, 2t + 1), (g + 8, 2t), (g + 8, 2t + 1)
///
///   Mma<tn_f16>, Mma<tn_bf16>   f32 sums; exact products. bf16 from sm_80
///   Mma<tf32>                   f32 operands rounded to 10 bits of mantissa by
///                               the caller (to_tf32); from sm_80
///   Mma<int8_t>                 s32 sums; from sm_75
///   Mma<u8_by_s8>               the same of u8 (A) by s8 (B)
///   Mma<e4m3>                   f32 sums; from sm_89
///
//===----------------------------------------------------------------------===//
#ifndef TENON_KERNELS_CUDA_MMA_CUH
#define TENON_KERNELS_CUDA_MMA_CUH

#include "kernels/common/half.h"

namespace tn {
inline namespace TN_FORM {

/// Element types that exist only as operands of tensor cores.
struct tf32 {};
struct e4m3 {
  uint8_t bits;
};
/// A byte of A without a sign, of B with one.
struct u8_by_s8 {
  uint8_t bits;
};

TN_FN uint32_t bits_of(float x) { return __float_as_uint(x); }
TN_FN float float_of(uint32_t x) { return __uint_as_float(x); }

/// x to the nearest number with 10 bits of mantissa, as mma wants it.
TN_FN uint32_t to_tf32(float x) {
#if __CUDA_ARCH__ >= 800
  uint32_t r;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(x));
  return r;
#else
  return bits_of(x);
#endif
}

/// Two numbers, the lower half first, each rounded to nearest even.
template <class T> TN_FN uint32_t pack2(float low, float high);
template <> TN_FN uint32_t pack2<tn_f16>(float low, float high) {
#if __CUDA_ARCH__ >= 800
  uint32_t r;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
  return r;
#else
  uint16_t a, b;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(a) : "f"(low));
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(b) : "f"(high));
  return a | uint32_t(b) << 16;
#endif
}
template <> TN_FN uint32_t pack2<tn_bf16>(float low, float high) {
#if __CUDA_ARCH__ >= 800
  uint32_t r;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
  return r;
#else
  return tn_round_to<tn_bf16>(low).bits |
         uint32_t(tn_round_to<tn_bf16>(high).bits) << 16;
#endif
}

/// The two numbers of a word.
template <class T> TN_FN void unpack2(uint32_t word, float &low, float &high);
template <> TN_FN void unpack2<tn_f16>(uint32_t word, float &low, float &high) {
  asm("{.reg .b16 a, b;\n\tmov.b32 {a, b}, %2;\n\t"
      "cvt.f32.f16 %0, a;\n\tcvt.f32.f16 %1, b;}"
      : "=f"(low), "=f"(high)
      : "r"(word));
}
template <>
TN_FN void unpack2<tn_bf16>(uint32_t word, float &low, float &high) {
  low = float_of(word << 16);
  high = float_of(word & 0xffff0000u);
}

template <class T> struct Mma;

/// The text of one mma with operands %0.. as given by the two macros below.
#define TN_MMA4(SHAPE, TYPES, C)                                               \
  asm volatile("mma.sync.aligned." SHAPE ".row.col." TYPES                     \
               " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "               \
               "{%0, %1, %2, %3};"                                             \
               : "+" C(c[0]), "+" C(c[1]), "+" C(c[2]), "+" C(c[3])            \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]),        \
                 "r"(b[1]))
#define TN_MMA2(SHAPE, TYPES, C, A0, A1, B0)                                   \
  asm volatile("mma.sync.aligned." SHAPE ".row.col." TYPES                     \
               " {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"          \
               : "+" C(c[0]), "+" C(c[1]), "+" C(c[2]), "+" C(c[3])            \
               : "r"(A0), "r"(A1), "r"(B0))

template <> struct Mma<tn_f16> {
  using Sum = float;
  static TN_FN void run(float (&c)[4], const uint32_t (&a)[4],
                        const uint32_t (&b)[2]) {
#if __CUDA_ARCH__ >= 800
    TN_MMA4("m16n8k16", "f32.f16.f16.f32", "f");
#else
    TN_MMA2("m16n8k8", "f32.f16.f16.f32", "f", a[0], a[1], b[0]);
    TN_MMA2("m16n8k8", "f32.f16.f16.f32", "f", a[2], a[3], b[1]);
#endif
  }
};

/// Products of bytes; TYPES as mma.sync has them. Below sm_80 it is m8n8k16:
/// rows g (c[0], c[1]) and rows g + 8 (c[2], c[3]) on their own.
#if __CUDA_ARCH__ >= 800
#define TN_MMA_BYTES(TYPES) TN_MMA4("m16n8k32", TYPES, "r")
#else
#define TN_MMA_BYTES(TYPES)                                                    \
  for (int half = 0; half < 2; ++half)                                         \
    for (int step = 0; step < 2; ++step)                                       \
  asm volatile("mma.sync.aligned.m8n8k16.row.col." TYPES                       \
               " {%0, %1}, {%2}, {%3}, {%0, %1};"                              \
               : "+r"(c[half * 2]), "+r"(c[half * 2 + 1])                      \
               : "r"(a[step * 2 + half]), "r"(b[step]))
#endif

template <> struct Mma<int8_t> {
  using Sum = int32_t;
  static TN_FN void run(int32_t (&c)[4], const uint32_t (&a)[4],
                        const uint32_t (&b)[2]) {
    TN_MMA_BYTES("s32.s8.s8.s32");
  }
};

template <> struct Mma<u8_by_s8> {
  using Sum = int32_t;
  static TN_FN void run(int32_t (&c)[4], const uint32_t (&a)[4],
                        const uint32_t (&b)[2]) {
    TN_MMA_BYTES("s32.u8.s8.s32");
  }
};
#undef TN_MMA_BYTES

#if __CUDA_ARCH__ >= 800
template <> struct Mma<tn_bf16> {
  using Sum = float;
  static TN_FN void run(float (&c)[4], const uint32_t (&a)[4],
                        const uint32_t (&b)[2]) {
    TN_MMA4("m16n8k16", "f32.bf16.bf16.f32", "f");
  }
};

template <> struct Mma<tf32> {
  using Sum = float;
  static TN_FN void run(float (&c)[4], const uint32_t (&a)[4],
                        const uint32_t (&b)[2]) {
    TN_MMA4("m16n8k8", "f32.tf32.tf32.f32", "f");
  }
};
#endif

#if __CUDA_ARCH__ >= 890
template <> struct Mma<e4m3> {
  using Sum = float;
  static TN_FN void run(float (&c)[4], const uint32_t (&a)[4],
                        const uint32_t (&b)[2]) {
    TN_MMA4("m16n8k32", "f32.e4m3.e4m3.f32", "f");
  }
};
#endif

#undef TN_MMA4
#undef TN_MMA2

} // namespace TN_FORM
} // namespace tn

#endif // TENON_KERNELS_CUDA_MMA_CUH
