//===- window.h - positions of a window -----------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What convolutions and pools share: positions in up to three spatial
/// dimensions, and where a window's elements lie. Cfg has `spatial` and the
/// arrays kernel, strides, dilations and pad_low.
///
//===----------------------------------------------------------------------===//
#ifndef TENON_KERNELS_COMMON_WINDOW_H
#define TENON_KERNELS_COMMON_WINDOW_H

#include "kernels/common/strided.h"

namespace tn {
inline namespace TN_FORM {

/// A position in up to 3 spatial dimensions, and a walk over it in row-major
/// order.
template <int Spatial> struct Position {
  int64_t at[Spatial];

  TN_FN void set(int64_t index, const int64_t *shape) {
    for (int d = Spatial - 1; d >= 0; --d) {
      at[d] = index % shape[d];
      index /= shape[d];
    }
  }
  TN_FN void next(const int64_t *shape) {
    for (int d = Spatial - 1; d >= 0; --d) {
      if (++at[d] < shape[d] || d == 0)
        return;
      at[d] = 0;
    }
  }
};

template <class Cfg> TN_FN constexpr int64_t kernel_size() {
  int64_t n = 1;
  for (int d = 0; d < Cfg::spatial; ++d)
    n *= Cfg::kernel[d];
  return n;
}

/// The offset into a plane of x that kernel element `t` meets at position `p`;
/// false where that is padding.
template <class Cfg>
TN_FN bool meets(const tn_view &x, const Position<Cfg::spatial> &p,
                 const Position<Cfg::spatial> &t, int64_t &offset) {
  offset = 0;
  for (int d = 0; d < Cfg::spatial; ++d) {
    int64_t i = p.at[d] * Cfg::strides[d] + t.at[d] * Cfg::dilations[d] -
                Cfg::pad_low[d];
    if (i < 0 || i >= x.shape[2 + d])
      return false;
    offset += i * x.stride[2 + d];
  }
  return true;
}

} // namespace TN_FORM
} // namespace tn

#endif // TENON_KERNELS_COMMON_WINDOW_H
