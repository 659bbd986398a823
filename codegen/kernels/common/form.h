//===- form.h - names that keep the CPU forms of a kernel apart -----------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// One artifact may hold the same unit compiled for several CPU forms. Inline
/// functions of these headers would then be merged by the linker, and a plain
/// x86-64 CPU could meet AVX-512 code. Everything in the kernel headers
/// therefore lives in an inline namespace named after the form, `TN_FORM`.
///
/// Kernel headers include neither <cmath> nor <algorithm> for the same reason;
/// mathematical functions are the compiler's builtins.
///
//===----------------------------------------------------------------------===//
#ifndef TENON_KERNELS_COMMON_FORM_H
#define TENON_KERNELS_COMMON_FORM_H

#include <stdint.h>

#if defined(__CUDACC__)
#define TN_FORM tn_cuda
#define TN_FN __device__ __forceinline__
#else
#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) &&  \
    defined(__AVX512VL__)
#define TN_AVX512 1
#if defined(__AMX_TILE__) && defined(__AMX_BF16__)
#define TN_AMX_TILES 1
#define TN_FORM tn_avx512_amx
#elif defined(__AVX512VNNI__)
#define TN_FORM tn_avx512_vnni
#else
#define TN_FORM tn_avx512
#endif
#elif defined(__AVX2__) && defined(__FMA__)
#define TN_AVX2 1
#define TN_FORM tn_avx2
#else
#define TN_GENERIC 1
#define TN_FORM tn_generic
#endif
/// The qualifier of every small kernel function.
#define TN_FN inline __attribute__((always_inline))
#endif

/// Full unrolling of a loop whose trip count is a template argument.
#define TN_PRAGMA(x) _Pragma(#x)
#if defined(__CUDACC__)
#define TN_UNROLL TN_PRAGMA(unroll)
#elif defined(__clang__)
#define TN_UNROLL TN_PRAGMA(clang loop unroll(full))
#else
#define TN_UNROLL TN_PRAGMA(GCC unroll 32)
#endif

namespace tn {
inline namespace TN_FORM {

/// A size or stride in a kernel's Cfg that is known only at run time.
inline constexpr int64_t dynamic = -1;

TN_FN constexpr int64_t min_of(int64_t a, int64_t b) { return a < b ? a : b; }
TN_FN constexpr int64_t max_of(int64_t a, int64_t b) { return a > b ? a : b; }
TN_FN constexpr int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}
TN_FN constexpr int64_t round_up(int64_t a, int64_t b) {
  return ceil_div(a, b) * b;
}

} // namespace TN_FORM
} // namespace tn

#endif // TENON_KERNELS_COMMON_FORM_H
