//===- loop.h - elementwise work on n-dimensional views -------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// y[i] = Body(x0[i], x1[i], ...) over all i: every elementwise, broadcast,
/// transpose, copy and cast cluster, with one or several results.
///
///   entry   tn::loop<Cfg, Body>(args)
///
///   Cfg     static constexpr int rank      rank of all views; 0 to 8
///           using Inputs = tn::types<...>  element types of the operands
///           using Results = tn::types<...> of the results; at least one
///           static constexpr bool vector   whether Body is called with
///           vectors:
///                                          say true when every value in the
///                                          body, operands and results
///                                          included, is f32 or bool (tn_bool),
///                                          but for results that are casts of
///                                          f32 to u8
///           static constexpr int params    how many launch parameters are
///                                          handed to Body; 0 if none
///           static constexpr bool index    whether Body wants the index
///                                          (needs vector = false)
///
///   Body    a struct with
///             template <class... V> static auto apply(V... x)
///           or named operands, each of its own type: an operand arrives as its
///           element type, or with `vector` as tn::vf (f32) and tn::vm (bool).
///           After the operands come `params` values of type int64_t, in front
///           of them, with `index`, a `const int64_t *index` with `rank`
///           entries. Constants in the body are scalars of the exact element
///           type: tn_mul(x, 0.5f). It returns the one result's value, or
///           tn::results(r0, r1, ...). It has no state.
///
///   views   operands in order, then results. Operands have the results' rank
///           and broadcast with zero strides; only the shape of the first
///           result is read.
///   params  int64_t values for Body
///   scratch none
///
/// Any strides; any size, 0 included. A result may be the same memory as an
/// operand with the same strides (in place), and may not overlap one otherwise.
/// Dimensions are merged at run time. The innermost dimension runs in vectors
/// when `vector` is true, at full speed where strides are 0 or 1, else gathered
/// lane by lane. An element's value does not depend on where it lies.
/// Threads take ranges of elements.
///
//===----------------------------------------------------------------------===//
#ifndef TENON_KERNELS_CPU_LOOP_H
#define TENON_KERNELS_CPU_LOOP_H

#include "kernels/common/loop_body.h"
#include "kernels/common/strided.h"
#include "kernels/cpu/epilogue.h"
#include "kernels/cpu/vec_bytes.h"

namespace tn {
inline namespace TN_FORM {

/// The vector that carries elements of type T.
template <class T> struct VectorOf;
template <> struct VectorOf<float> {
  using type = vf;
};
template <> struct VectorOf<tn_bool> {
  using type = vm;
};

/// Stores the first n lanes at p[offset], p[offset + stride], ...; a scalar
/// goes to p[offset].
template <class T, class V>
TN_FN void store_lanes(char *p, int64_t offset, int64_t stride, int64_t n,
                       V x) {
  if constexpr (same_type<V, vf>) {
    float *f = (float *)p + offset;
    if (stride == 1)
      return n >= vf::width ? store(f, x) : store_n(f, x, n);
    store_strided(f, stride, x, n);
  } else if constexpr (same_type<V, vm>) {
    uint8_t *b = (uint8_t *)p + offset;
    if (stride == 1)
      return n >= vf::width ? store_mask(b, x) : store_mask_n(b, x, n);
    store_mask_strided(b, stride, x, n);
  } else if constexpr (same_type<V, vu8>) {
    uint8_t *b = (uint8_t *)p + offset;
    if (stride == 1)
      return n >= vf::width ? store_u8(b, x) : store_u8_n(b, x, n);
    uint8_t lanes[vf::width];
    store_u8(lanes, x);
    for (int64_t i = 0; i < n; ++i)
      b[i * stride] = lanes[i];
  } else {
    ((T *)p)[offset] = x;
  }
}

/// A stretch of `n` elements along the innermost dimension.
template <class Cfg, class Body> struct LoopRun {
  using Inputs = typename Cfg::Inputs;
  using Results_ = typename Cfg::Results;
  static constexpr int inputs = Inputs::count, outputs = Results_::count;
  static constexpr int count = inputs + outputs;

  char *base[count];
  int64_t stride[count];
  const int64_t *params;
  const int64_t *index;

  template <int I, class V> TN_FN void put(int64_t j, int64_t n, V x) const {
    constexpr int o = inputs + I;
    store_lanes<type_at<I, Results_>>(base[o], j * stride[o], stride[o], n, x);
  }
  template <int I, class... R>
  TN_FN void put(int64_t j, int64_t n, const Results<R...> &x) const {
    put<I>(j, n, x.first);
    if constexpr (sizeof...(R) > 1)
      put<I + 1>(j, n, x.rest);
  }

  /// Elements j .. j + n - 1: n lanes, or one scalar.
  template <int... I, int... P>
  TN_FN void step(int64_t j, int64_t n, Indices<I...>, Indices<P...>) const {
    if constexpr (Cfg::vector)
      put<0>(
          j, n,
          Body::apply(load_lanes<typename VectorOf<type_at<I, Inputs>>::type>(
                          base[I], j * stride[I], stride[I], n)...,
                      params[P]...));
    else if constexpr (Cfg::index)
      put<0>(j, n,
             Body::apply(
                 index, ((const type_at<I, Inputs> *)base[I])[j * stride[I]]...,
                 params[P]...));
    else
      put<0>(
          j, n,
          Body::apply(((const type_at<I, Inputs> *)base[I])[j * stride[I]]...,
                      params[P]...));
  }
  TN_FN void step(int64_t j, int64_t n) const {
    step(j, n, make_indices<inputs>(), make_indices<Cfg::params>());
  }

  TN_FN void run(int64_t n) const {
    if constexpr (Cfg::vector) {
      int64_t j = 0;
      for (; j + vf::width <= n; j += vf::width)
        step(j, vf::width);
      if (j < n)
        step(j, n - j);
    } else {
      for (int64_t j = 0; j < n; ++j)
        step(j, 1);
    }
  }
};

/// The elements [range) of the space, in stretches of the innermost dimension.
template <class Cfg, class Body, int Count>
TN_FN void loop_range(const tn_args *args, const Space<Count> &s, Range range) {
  using Run = LoopRun<Cfg, Body>;
  Run run;
  run.params = args->params;
  int inner = s.rank - 1;
  for (int o = 0; o < Count; ++o)
    run.stride[o] = s.stride[o][inner];
  for (int64_t i = range.begin; i < range.end;) {
    int64_t row = i / s.shape[inner], j = i - row * s.shape[inner];
    int64_t n = min_of(s.shape[inner] - j, range.end - i);
    int64_t offset[Count];
    s.locate(row, inner, offset);
    for (int o = 0; o < Count; ++o) {
      int64_t size = o < Run::inputs ? Run::Inputs::size[o]
                                     : Run::Results_::size[o - Run::inputs];
      run.base[o] =
          args->views[o].data + (offset[o] + j * run.stride[o]) * size;
    }
    run.run(n);
    i += n;
  }
}

/// As `loop_range` for bodies that want the index: dimensions stay as they are.
template <class Cfg, class Body>
TN_FN void loop_indexed(const tn_args *args, Range range) {
  using Run = LoopRun<Cfg, Body>;
  Run run;
  const int64_t *shape = args->views[Run::inputs].shape;
  int64_t index[max_rank] = {};
  run.params = args->params;
  run.index = index;
  for (int64_t i = range.begin; i < range.end; ++i) {
    int64_t rest = i;
    for (int d = Cfg::rank - 1; d >= 0; --d) {
      index[d] = rest % shape[d];
      rest /= shape[d];
    }
    for (int o = 0; o < Run::count; ++o) {
      int64_t size = o < Run::inputs ? Run::Inputs::size[o]
                                     : Run::Results_::size[o - Run::inputs];
      int64_t offset = 0;
      for (int d = 0; d < Cfg::rank; ++d)
        offset += index[d] * args->views[o].stride[d];
      run.base[o] = args->views[o].data + offset * size;
      run.stride[o] = 0;
    }
    run.step(0, 1);
  }
}

template <class Cfg, class Body> void loop(const tn_args *args) {
  constexpr int count = LoopRun<Cfg, Body>::count;
  static_assert(Cfg::rank <= max_rank);
  static_assert(!(Cfg::vector && Cfg::index));
  const int64_t *shape = args->views[Cfg::Inputs::count].shape;
  int which[count];
  for (int o = 0; o < count; ++o)
    which[o] = o;
  Space<count> s = space_of<count>(args->views, which, shape, Cfg::rank);
  Range mine = share(args, s.count(s.rank), 64);
  if constexpr (Cfg::index)
    loop_indexed<Cfg, Body>(args, mine);
  else
    loop_range<Cfg, Body>(args, s, mine);
}

} // namespace TN_FORM
} // namespace tn

#endif // TENON_KERNELS_CPU_LOOP_H
