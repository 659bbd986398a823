//===- epilogue.h - what a matmul does to its sums before storing them ----===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// An epilogue is a struct with one function, built of nested tn_<op> calls:
///
///   struct Epilogue {  // gelu(acc + bias)
///     template <class V>
///     static V apply(V acc, const tn::EpilogueArgs &e, int64_t row,
///                    int64_t col) {
///       return tn_gelu_erf(tn_add(acc, tn::load_row<V>(e, 0, row, col)));
///     }
///   };
///
/// V is `tn::vf`, or the element type in kernels that work on scalars. `row`
/// and `col` are only good for handing on to the loads. It is called once for
/// every element of the result, with the finished sum, and may not keep state.
/// Lanes beyond the last column hold anything: what it makes of them is
/// dropped.
///
/// The element types of the operands are `Cfg::Operands`, a tn::types<...> of
/// `float` and `tn_bool` (in kernels on scalars: of the element type and
/// `tn_bool`). Operand i of the epilogue is a view with the result's rank that
/// broadcasts to it with zero strides:
///
///   load_row<V>(e, i, ...)     varies along columns only, column stride 1: a
///                              bias [N]
///   load_col<V>(e, i, ...)     varies along rows (and batches) only: [M, 1]
///   load_scalar<V>(e, i, ...)  the same everywhere in a batch
///   load_full<V>(e, i, ...)    varies along both, column stride 1: a residual
///   load_any<V>(e, i, ...)     whatever its strides turn out to be at run time
///   param<V>(e, i)             the i-th launch parameter as a number
///
/// An operand of bool (`tn_bool` in memory) is loaded with the same functions
/// and V = tn::mask_type<V>, which is what tn_where wants.
///
//===----------------------------------------------------------------------===//
#ifndef TENON_KERNELS_CPU_EPILOGUE_H
#define TENON_KERNELS_CPU_EPILOGUE_H

#include "kernels/common/epilogue_operand.h"
#include "kernels/common/strided.h"
#include "kernels/cpu/vec_ops.h"

namespace tn {
inline namespace TN_FORM {

struct EpilogueArgs {
  EpilogueOperand operand[max_epilogue];
  const int64_t *params;
  /// How many lanes, from the first, lie within the result.
  int64_t lanes;
};

/// The type of a bool operand where elements have type V.
template <class V> struct MaskType {
  using type = tn_bool;
};
template <> struct MaskType<vf> {
  using type = vm;
};
template <class V> using mask_type = typename MaskType<V>::type;

/// The first n elements at p + offset, elements `stride` apart; a scalar V
/// takes the one at p + offset.
template <class V>
TN_FN V load_lanes(const char *p, int64_t offset, int64_t stride, int64_t n) {
  if constexpr (same_type<V, vf>) {
    const float *f = (const float *)p + offset;
    if (stride == 1)
      return n >= vf::width ? load(f) : load_n(f, n);
    return stride == 0 ? vf(*f) : load_strided(f, stride, n);
  } else if constexpr (same_type<V, vm>) {
    const uint8_t *b = (const uint8_t *)p + offset;
    if (stride == 1)
      return n >= vf::width ? load_mask(b) : load_mask_n(b, n);
    return stride == 0 ? mask_of(*b) : load_mask_strided(b, stride, n);
  } else {
    return ((const V *)p)[offset];
  }
}

template <class V>
TN_FN V load_row(const EpilogueArgs &e, int i, int64_t, int64_t col) {
  return load_lanes<V>(e.operand[i].data, col, 1, e.lanes);
}

template <class V>
TN_FN V load_col(const EpilogueArgs &e, int i, int64_t row, int64_t) {
  const EpilogueOperand &o = e.operand[i];
  return load_lanes<V>(o.data, row * o.row, 0, e.lanes);
}

template <class V>
TN_FN V load_scalar(const EpilogueArgs &e, int i, int64_t, int64_t) {
  return load_lanes<V>(e.operand[i].data, 0, 0, e.lanes);
}

template <class V>
TN_FN V load_full(const EpilogueArgs &e, int i, int64_t row, int64_t col) {
  const EpilogueOperand &o = e.operand[i];
  return load_lanes<V>(o.data, row * o.row + col, 1, e.lanes);
}

template <class V>
TN_FN V load_any(const EpilogueArgs &e, int i, int64_t row, int64_t col) {
  const EpilogueOperand &o = e.operand[i];
  return load_lanes<V>(o.data, row * o.row + col * o.column, o.column, e.lanes);
}

template <class V> TN_FN V param(const EpilogueArgs &e, int i) {
  if constexpr (same_type<V, vf>)
    return vf(float(e.params[i]));
  else
    return tn_cast<V>(e.params[i]);
}

/// Fills the epilogue's operands for one outer index of a space whose last
/// dimension is the rows and whose operands from `first` on are the epilogue's.
/// `rank` is that of the views.
template <class Operands, int Count>
TN_FN void set_operands(EpilogueArgs &e, const tn_view *views,
                        const Space<Count> &space, int first,
                        const int64_t (&offset)[Count], int rank) {
  for (int i = 0; i < Operands::count; ++i) {
    int o = first + i;
    e.operand[i] = {views[i].data + offset[o] * Operands::size[i],
                    space.stride[o][space.rank - 1], views[i].stride[rank - 1]};
  }
}

/// C[rows, columns] = epilogue(sums), where C's first element is element
/// (row, col) of the result and has contiguous columns.
template <class Epilogue>
TN_FN void finish_tile(const float *sums, int64_t sums_stride, float *c,
                       int64_t ldc, int64_t rows, int64_t columns, int64_t row,
                       int64_t col, EpilogueArgs &e) {
  for (int64_t i = 0; i < rows; ++i) {
    const float *s = sums + i * sums_stride;
    int64_t j = 0;
    e.lanes = vf::width;
    for (; j + vf::width <= columns; j += vf::width)
      store(c + i * ldc + j,
            Epilogue::template apply<vf>(load(s + j), e, row + i, col + j));
    if (j == columns)
      continue;
    e.lanes = columns - j;
    store_n(c + i * ldc + j,
            Epilogue::template apply<vf>(load_n(s + j, columns - j), e, row + i,
                                         col + j),
            columns - j);
  }
}

} // namespace TN_FORM
} // namespace tn

#endif // TENON_KERNELS_CPU_EPILOGUE_H
