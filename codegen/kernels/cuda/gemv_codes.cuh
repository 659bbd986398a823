//===- gemv_codes.cuh - a few rows times a matrix of 2, 4 or 8 bits -------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// gemv.cuh with B[k, n] = (q[n, k] - zero[n, k / block]) * scale[n, k /
/// block], where the codes q stay packed up to the register: the layout of
/// com.microsoft MatMulNBits. Bound by reading q.
///
///   entry   tn::gemv_codes<Cfg, Epilogue>(args)
///
///   Cfg     that of gemv.cuh, and
///           using Scale         element type of the scales: tn_f16, tn_bf16 or
///                               float
///           using Zero          of the zero points: uint8_t, packed, or float
///           static constexpr int bits     of a code: 2, 4 or 8
///           static constexpr int64_t block   a multiple of 16
///           static constexpr bool zeros   whether there are zero points;
///                                         without them each is
///           static constexpr float zero
///
///   views   0   A       last dimension contiguous
///           1   q       u8 [N, ceil(K / block), block * bits / 8], contiguous,
///                       8-byte aligned; the lowest bits of a byte are the
///                       first k. What lies beyond K in the last block is not
///                       used
///           2   scales  [N, ceil(K / block)], contiguous
///           3   zeros   (if zeros) contiguous; float [N, ceil(K / block)], or
///                       u8 [N, ceil(ceil(K / block) / 2)], two to a byte, the
///                       lower half first
///           ...         gamma and so on, as in gemv.cuh; with `pair` q, scales
///                       and zeros are those of 2 N columns
///
/// A is not rounded and weights are exact in f32; sums in f32. Any number of
/// rows is right: many read q again, `rows` at a time. gemm_codes.cuh is for
/// those.
///
//===----------------------------------------------------------------------===//
#ifndef TENON_KERNELS_CUDA_GEMV_CODES_CUH
#define TENON_KERNELS_CUDA_GEMV_CODES_CUH

#include "kernels/cuda/gemv.cuh"

namespace tn {
inline namespace TN_FORM {

/// The packed weights, scales and zero points of one matrix, which is read in
/// pieces of Width codes, 4 or 8.
template <class Cfg, int Width = 8> struct CodesMatrix {
  using Scale = typename Cfg::Scale;
  using Zero = typename Cfg::Zero;
  static constexpr int bits = Cfg::bits, width = Width, words = 4;
  using Piece = type_at<bits / 4 + (Width == 8),
                        types<uint8_t, uint16_t, uint32_t, uint64_t>>;
  static_assert(Cfg::block % 16 == 0 && sizeof(Piece) * 8 == bits * Width);

  const uint8_t *q;
  const Scale *scales;
  const Zero *zeros;
  int blocks; ///< along k

  TN_FN Piece fetch(int column, int at) const {
    return *(const Piece *)(q + (int64_t(column) * blocks * Cfg::block + at) *
                                    bits / 8);
  }

  TN_FN float scale_of(int column, int block) const {
    return to_float(scales[int64_t(column) * blocks + block]);
  }
  TN_FN float zero_of(int column, int block) const {
    if constexpr (!Cfg::zeros) {
      return Cfg::zero;
    } else if constexpr (sizeof(Zero) == 1) {
      uint8_t two = zeros[int64_t(column) * ((blocks + 1) / 2) + block / 2];
      return float(block % 2 ? two >> 4 : two & 15);
    } else {
      return zeros[int64_t(column) * blocks + block];
    }
  }

  static TN_FN void widen(Piece word, float scale, float zero,
                          float (&w)[width]) {
    TN_UNROLL
    for (int i = 0; i < width; ++i)
      w[i] = (float(uint32_t(word >> (bits * i)) & ((1u << bits) - 1)) - zero) *
             scale;
  }
  /// The weights of a column from k = at on.
  TN_FN void widen(Piece word, int column, int at, float (&w)[width]) const {
    int block = at / int(Cfg::block);
    widen(word, scale_of(column, block), zero_of(column, block), w);
  }
};

/// The matrix of views 1, 2 and, if there are zero points, 3.
template <class Cfg, int Width>
TN_FN CodesMatrix<Cfg, Width> codes_matrix(const tn_args *args, int k) {
  using M = CodesMatrix<Cfg, Width>;
  const tn_view *v = args->views;
  return {(const uint8_t *)v[1].data, (const typename M::Scale *)v[2].data,
          (const typename M::Zero *)v[2 + Cfg::zeros].data,
          int(ceil_div(k, Cfg::block))};
}

template <class Cfg, class Epilogue = Identity>
TN_FN void gemv_codes(const tn_args *args) {
  using M = CodesMatrix<Cfg>;
  gemv_batches<Cfg, Epilogue, M>(args, 2 + Cfg::zeros,
                                 [&](const tn_view &, int64_t, int k) {
                                   return codes_matrix<Cfg, M::width>(args, k);
                                 });
}

} // namespace TN_FORM
} // namespace tn

#endif // TENON_KERNELS_CUDA_GEMV_CODES_CUH
