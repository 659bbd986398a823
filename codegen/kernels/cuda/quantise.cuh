//===- quantise.cuh - rows as codes of 8 bits with a scale each -----------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// codes[r, :] = round(x[r, :] / scales[r]), scales[r] = max |x[r, :]| / top:
/// what a product in 8 bits multiplies.
///
///   entry   tn::quantise_rows<Cfg>(args)
///
///   Cfg     using X          element type of x
///           using Y          int8_t (top 127) or, from sm_89 on, tn::e4m3
///           (448) rank, N          of x; N the length of a row or tn::dynamic
///           static constexpr int axes = 1
///           static constexpr bool row_per_warp
///   views   x, any strides; codes, rows contiguous at multiples of 16 bytes
///   and
///           filled up with 0 to one; scales f32, of rank `rank`, rows of one
///   grid    any; teams step over the rows
///
/// Ties round to even. A row of zeros has scale 0; one with a NaN has scale
/// NaN, so that what is made of it is NaN as without codes; one with an
/// infinity scale infinity.
///
//===----------------------------------------------------------------------===//
#ifndef TENON_KERNELS_CUDA_QUANTISE_CUH
#define TENON_KERNELS_CUDA_QUANTISE_CUH

#include "kernels/cuda/mma.cuh"
#include "kernels/cuda/row_team.cuh"

namespace tn {
inline namespace TN_FORM {

/// The greater; a NaN stays.
struct GreaterOrNaN {
  template <class T> TN_FN T operator()(T a, T b) const {
    return b > a || b != b ? b : a;
  }
};

/// How numbers become codes: the greatest, and four of them in a word.
template <class T> struct Codes;
template <> struct Codes<int8_t> {
  static constexpr float top = 127;
  static TN_FN uint32_t pack(const float *x) {
    uint32_t word = 0;
    TN_UNROLL
    for (int i = 0; i < 4; ++i) {
      int code = __float2int_rn(x[i]);
      code = code > 127 ? 127 : code < -127 ? -127 : code;
      word |= uint32_t(code & 255) << (8 * i);
    }
    return word;
  }
};
#if __CUDA_ARCH__ >= 890
template <> struct Codes<e4m3> {
  static constexpr float top = 448;
  static TN_FN uint32_t pack(const float *x) {
    uint16_t low, high;
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;"
        : "=h"(low)
        : "f"(x[1]), "f"(x[0]));
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;"
        : "=h"(high)
        : "f"(x[3]), "f"(x[2]));
    return low | uint32_t(high) << 16;
  }
};
#endif

template <class Cfg, int Width>
TN_FN void quantise_row(const tn_args *args, int64_t r, int64_t n) {
  using X = typename Cfg::X;
  using C = Codes<typename Cfg::Y>;
  using Walk = RowWalk<Cfg, 4>;
  using Team = RowTeam<Cfg>;
  constexpr int inner = Cfg::rank - 1;
  const tn_view *v = args->views;
  const X *x = row_of<Cfg, const X>(v[0], v[0].shape, r);
  auto *codes = (uint32_t *)row_of<Cfg, char>(v[1], v[0].shape, r);
  int64_t step = v[0].stride[inner];

  // Four neighbours at a time; beyond the end they count as 0.
  float kept[Walk::slots], max = 0;
  auto fetch = [&](float *to, int64_t j) {
    if constexpr (Width == 4) {
      load_piece<X, 4>(x, j, step, to);
    } else {
      TN_UNROLL
      for (int k = 0; k < 4; ++k)
        to[k] = j + k < n ? tn_cast<float>(x[(j + k) * step]) : 0.0f;
    }
  };
  Walk::each(n, [&](int slot, int64_t j) {
    fetch(kept + slot, j);
    TN_UNROLL
    for (int k = 0; k < 4; ++k)
      max = GreaterOrNaN()(max, fabsf(kept[slot + k]));
  });
  max = Team::reduce(max, GreaterOrNaN());
  // Finite, so that zeros beside the smallest numbers stay zeros.
  float inverse = max > 0 ? fminf(C::top / max, 0x1p127f) : 0.0f;
  Walk::each(n, [&](int slot, int64_t j) {
    if constexpr (!Walk::held)
      fetch(kept, j);
    float scaled[4];
    TN_UNROLL
    for (int k = 0; k < 4; ++k)
      scaled[k] = kept[slot + k] * inverse;
    codes[j / 4] = C::pack(scaled);
  });
  int64_t words = (n + 3) / 4, all = (n + 15) / 16 * 4;
  if (words + Team::rank() < all)
    codes[words + Team::rank()] = 0;
  if (Team::rank() == 0)
    *row_of<Cfg, float>(v[2], v[0].shape, r) = max / C::top;
}

template <class Cfg> TN_FN void quantise_rows(const tn_args *args) {
  const tn_view *v = args->views;
  int64_t n = row_length<Cfg>(v[0]);
  bool wide = n % 4 == 0 && has_pieces<typename Cfg::X, 4>(v[0], Cfg::rank);
  Range mine = RowTeam<Cfg>::rows(extent(v[0], 0, Cfg::rank - 1));
  for (int64_t r = mine.begin; r < mine.end; r += mine.step) {
    if (wide)
      quantise_row<Cfg, 4>(args, r, n);
    else
      quantise_row<Cfg, 1>(args, r, n);
  }
}

} // namespace TN_FORM
} // namespace tn

#endif // TENON_KERNELS_CUDA_QUANTISE_CUH
