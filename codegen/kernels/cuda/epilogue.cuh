//===- epilogue.cuh - what a contraction does to its sums -----------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// As kernels/cpu/epilogue.h, one element at a time:
///
///   struct Epilogue {  // cast(gelu_erf(x0 + cast(x1)))
///     template <class V, class A>
///     static TN_FN auto apply(V x0, const A &e, int64_t row, int64_t col) {
///       return tn_cast<tn_f16>(
///           tn_gelu_erf(tn_add(x0, tn_cast<float>(
///                          tn::load_row<tn_f16>(e, 0, row, col)))));
///     }
///   };
///
/// V is the type of the sums (float for f32, f16 and bf16 operands). It returns
/// an element of the result's type, which need not be V. A is EpilogueArgs, or
/// what makes loads give several elements (lanes.cuh), with V to match. The
/// operands' element types are `Cfg::Operands`; a load names the type that lies
/// in memory.
///
///   load_row      varies along columns only, column stride 1: a bias [N]
///   load_col      varies along rows (and batches) only: [M, 1]
///   load_scalar   the same everywhere in a batch
///   load_full     varies along both, column stride 1: a residual
///   load_any      whatever its strides turn out to be at run time
///
//===----------------------------------------------------------------------===//
#ifndef TENON_KERNELS_CUDA_EPILOGUE_CUH
#define TENON_KERNELS_CUDA_EPILOGUE_CUH

#include "kernels/common/epilogue_operand.h"
#include "kernels/common/strided.h"
#include "kernels/cuda/common.cuh"

namespace tn {
inline namespace TN_FORM {

struct EpilogueArgs {
  EpilogueOperand operand[max_epilogue];
  const int64_t *params;
};

template <class T>
TN_FN T load_row(const EpilogueArgs &e, int i, int64_t, int64_t col) {
  return ((const T *)e.operand[i].data)[col];
}
template <class T>
TN_FN T load_col(const EpilogueArgs &e, int i, int64_t row, int64_t) {
  return ((const T *)e.operand[i].data)[row * e.operand[i].row];
}
template <class T>
TN_FN T load_scalar(const EpilogueArgs &e, int i, int64_t, int64_t) {
  return *(const T *)e.operand[i].data;
}
template <class T>
TN_FN T load_full(const EpilogueArgs &e, int i, int64_t row, int64_t col) {
  return ((const T *)e.operand[i].data)[row * e.operand[i].row + col];
}
template <class T>
TN_FN T load_any(const EpilogueArgs &e, int i, int64_t row, int64_t col) {
  const EpilogueOperand &o = e.operand[i];
  return ((const T *)o.data)[row * o.row + col * o.column];
}

/// Points the epilogue's operands, views[first] and on, all of rank `rank`, to
/// batch number `batch` of a result of `shape`.
template <class Operands>
TN_FN void set_operands(EpilogueArgs &e, const tn_args *args, int first,
                        const int64_t *shape, int rank, int64_t batch) {
  e.params = args->params;
  TN_UNROLL
  for (int i = 0; i < Operands::count; ++i) {
    const tn_view &v = args->views[first + i];
    tn_view outer = {nullptr, shape, v.stride};
    e.operand[i] = {v.data +
                        row_offset(outer, rank - 2, batch) * Operands::size[i],
                    v.stride[rank - 2], v.stride[rank - 1]};
  }
}

} // namespace TN_FORM
} // namespace tn

#endif // TENON_KERNELS_CUDA_EPILOGUE_CUH
