//===- lanes.cuh - elementwise ops on a few neighbouring elements ---------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// `tn::lanes<T, N>`: N elements of one row that a thread handles together, so
/// that it moves 16 bytes at a time. Every function of scalar_ops.h works on
/// lanes, element by element, mixed with scalars.
///
/// `EpilogueLanes<N>` in place of EpilogueArgs makes the loads of epilogue.cuh
/// give lanes: those of columns col ... col + N - 1, of which the first `valid`
/// lie within the result; the others are not read and hold anything. A load is
/// a vector load where address and `valid` allow.
///
//===----------------------------------------------------------------------===//
#ifndef TENON_KERNELS_CUDA_LANES_CUH
#define TENON_KERNELS_CUDA_LANES_CUH

#include "kernels/cuda/copy.cuh"
#include "kernels/cuda/epilogue.cuh"

namespace tn {
inline namespace TN_FORM {

template <class T, int N> struct lanes {
  T x[N];
};

/// How many lanes a type has; 0 for scalars.
template <class A> inline constexpr int lane_count = 0;
template <class T, int N> inline constexpr int lane_count<lanes<T, N>> = N;

template <class... A> inline constexpr int lane_count_of = 0;
template <class A, class... Rest>
inline constexpr int lane_count_of<A, Rest...> =
    lane_count<A> ? lane_count<A> : lane_count_of<Rest...>;

template <class... A>
concept some_lanes = lane_count_of<A...> != 0;

template <class A> TN_FN A lane_of(const A &a, int) { return a; }
template <class T, int N> TN_FN T lane_of(const lanes<T, N> &a, int i) {
  return a.x[i];
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// Whether N elements of T at p may be moved as one vector or several.
template <class T, int N> TN_FN bool is_aligned(const T *p) {
  constexpr uint64_t bytes = N * sizeof(T) < 16 ? N * sizeof(T) : 16;
  return (uint64_t(p) & (bytes - 1)) == 0;
}

/// The first `valid` of N neighbouring elements; the others are 0.
template <int N, class T> TN_FN lanes<T, N> load_lanes(const T *p, int valid) {
  union {
    Words4 wide[(N * sizeof(T) + 15) / 16];
    Words2 half;
    uint32_t word;
    lanes<T, N> v;
  } u = {};
  if (valid >= N && is_aligned<T, N>(p)) {
    if constexpr (N * sizeof(T) % 16 == 0) {
      TN_UNROLL
      for (int i = 0; i < int(N * sizeof(T) / 16); ++i)
        u.wide[i] = ((const Words4 *)p)[i];
      return u.v;
    } else if constexpr (N * sizeof(T) == 8) {
      u.half = *(const Words2 *)p;
      return u.v;
    } else if constexpr (N * sizeof(T) == 4) {
      u.word = *(const uint32_t *)p;
      return u.v;
    }
  }
  TN_UNROLL
  for (int i = 0; i < N; ++i)
    if (i < valid)
      u.v.x[i] = p[i];
  return u.v;
}

/// Stores the first `valid` lanes.
template <int N, class T>
TN_FN void store_lanes(T *p, const lanes<T, N> &v, int valid) {
  union {
    lanes<T, N> v;
    Words4 wide[(N * sizeof(T) + 15) / 16];
  } u = {v};
  if constexpr (N * sizeof(T) % 16 == 0)
    if (valid >= N && is_aligned<T, N>(p)) {
      TN_UNROLL
      for (int i = 0; i < int(N * sizeof(T) / 16); ++i)
        store_global16((Words4 *)p + i, u.wide[i]);
      return;
    }
  TN_UNROLL
  for (int i = 0; i < N; ++i)
    if (i < valid)
      p[i] = v.x[i];
}

//===----------------------------------------------------------------------===//
// Epilogues
//===----------------------------------------------------------------------===//

template <int N> struct EpilogueLanes : EpilogueArgs {
  int valid;
};

template <class T, int N>
TN_FN lanes<T, N> load_row(const EpilogueLanes<N> &e, int i, int64_t,
                           int64_t col) {
  return load_lanes<N>((const T *)e.operand[i].data + col, e.valid);
}
template <class T, int N>
TN_FN T load_col(const EpilogueLanes<N> &e, int i, int64_t row, int64_t col) {
  const EpilogueArgs &args = e;
  return load_col<T>(args, i, row, col);
}
template <class T, int N>
TN_FN T load_scalar(const EpilogueLanes<N> &e, int i, int64_t row,
                    int64_t col) {
  const EpilogueArgs &args = e;
  return load_scalar<T>(args, i, row, col);
}
template <class T, int N>
TN_FN lanes<T, N> load_full(const EpilogueLanes<N> &e, int i, int64_t row,
                            int64_t col) {
  const EpilogueOperand &o = e.operand[i];
  return load_lanes<N>((const T *)o.data + row * o.row + col, e.valid);
}
template <class T, int N>
TN_FN lanes<T, N> load_any(const EpilogueLanes<N> &e, int i, int64_t row,
                           int64_t col) {
  const EpilogueOperand &o = e.operand[i];
  const T *p = (const T *)o.data + row * o.row + col * o.column;
  if (o.column == 1)
    return load_lanes<N>(p, e.valid);
  lanes<T, N> v = {};
  TN_UNROLL
  for (int j = 0; j < N; ++j)
    if (j < e.valid)
      v.x[j] = p[j * o.column];
  return v;
}

} // namespace TN_FORM
} // namespace tn

//===----------------------------------------------------------------------===//
// The elementwise ops
//===----------------------------------------------------------------------===//

inline namespace TN_FORM {

#define TN_LIFT(NAME)                                                          \
  template <class... A>                                                        \
    requires tn::some_lanes<A...>                                              \
  TN_FN auto NAME(const A &...a) {                                             \
    constexpr int n = tn::lane_count_of<A...>;                                 \
    tn::lanes<decltype(NAME(tn::lane_of(a, 0)...)), n> r;                      \
    TN_UNROLL                                                                  \
    for (int i = 0; i < n; ++i)                                                \
      r.x[i] = NAME(tn::lane_of(a, i)...);                                     \
    return r;                                                                  \
  }

// clang-format off
TN_LIFT(tn_add) TN_LIFT(tn_sub) TN_LIFT(tn_mul) TN_LIFT(tn_div)
TN_LIFT(tn_fmod) TN_LIFT(tn_mod) TN_LIFT(tn_pow) TN_LIFT(tn_min)
TN_LIFT(tn_max) TN_LIFT(tn_clip) TN_LIFT(tn_neg) TN_LIFT(tn_abs)
TN_LIFT(tn_sign) TN_LIFT(tn_sqrt) TN_LIFT(tn_rsqrt) TN_LIFT(tn_reciprocal)
TN_LIFT(tn_exp) TN_LIFT(tn_log) TN_LIFT(tn_erf) TN_LIFT(tn_sin)
TN_LIFT(tn_cos) TN_LIFT(tn_tan) TN_LIFT(tn_asin) TN_LIFT(tn_acos)
TN_LIFT(tn_atan) TN_LIFT(tn_sinh) TN_LIFT(tn_cosh) TN_LIFT(tn_tanh)
TN_LIFT(tn_asinh) TN_LIFT(tn_acosh) TN_LIFT(tn_atanh) TN_LIFT(tn_floor)
TN_LIFT(tn_ceil) TN_LIFT(tn_round) TN_LIFT(tn_sigmoid) TN_LIFT(tn_relu)
TN_LIFT(tn_leaky_relu) TN_LIFT(tn_prelu) TN_LIFT(tn_elu) TN_LIFT(tn_selu)
TN_LIFT(tn_celu) TN_LIFT(tn_thresholded_relu) TN_LIFT(tn_gelu_erf)
TN_LIFT(tn_gelu_tanh) TN_LIFT(tn_quick_gelu) TN_LIFT(tn_hard_sigmoid)
TN_LIFT(tn_hard_swish) TN_LIFT(tn_swish) TN_LIFT(tn_softplus) TN_LIFT(tn_mish)
TN_LIFT(tn_softsign) TN_LIFT(tn_shrink) TN_LIFT(tn_is_nan) TN_LIFT(tn_is_inf)
TN_LIFT(tn_equal) TN_LIFT(tn_less) TN_LIFT(tn_less_equal) TN_LIFT(tn_greater)
TN_LIFT(tn_greater_equal) TN_LIFT(tn_and) TN_LIFT(tn_or) TN_LIFT(tn_xor)
TN_LIFT(tn_not) TN_LIFT(tn_bitwise_and) TN_LIFT(tn_bitwise_or)
TN_LIFT(tn_bitwise_xor) TN_LIFT(tn_bitwise_not) TN_LIFT(tn_shift_left)
TN_LIFT(tn_shift_right) TN_LIFT(tn_where) TN_LIFT(tn_to_bool)
// clang-format on
#undef TN_LIFT

                                                                    template <
                                                                        class
                                                                        To,
                                                                        class
                                                                        From,
                                                                        int N>
                                                                    TN_FN
    tn::lanes<To, N> tn_cast(const tn::lanes<From, N> &a) {
  tn::lanes<To, N> r;
  TN_UNROLL
  for (int i = 0; i < N; ++i)
    if constexpr (tn::same_type<To, From>)
      r.x[i] = a.x[i];
    else
      r.x[i] = tn_cast<To>(a.x[i]);
  return r;
}

/// A result of an epilogue as it is stored.
template <class To, class From> TN_FN auto tn_cast_to(const From &x) {
  if constexpr (tn::same_type<To, From>)
    return x;
  else
    return tn_cast<To>(x);
}

} // namespace TN_FORM

#endif // TENON_KERNELS_CUDA_LANES_CUH
