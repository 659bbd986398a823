//===- loop.cuh - elementwise work on n-dimensional views
//----------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// y[i] = Body(x0[i], x1[i], ...) over all i, as kernels/cpu/loop.h.
///
///   entry   tn::loop<Cfg, Body>(args)
///
///   Cfg     static constexpr int rank      rank of all views; 0 to 8
///           using Inputs = tn::types<...>  element types of the operands
///           using Results = tn::types<...> of the results; at least one
///           (vector, params and index are the CPU's)
///   Body    static TN_FN auto apply(auto x0, ...): elements as they lie in
///           memory; returns the one result or tn::results(r0, r1, ...)
///   views   operands in order, then results, all of the first result's shape
///   grid    any; threads step over it
///
/// A result may be the same memory as an operand with the same strides. Where
/// the last dimension is a multiple of 4 and every view has stride 0 or 1 in it
/// and is aligned, a thread takes four neighbours with one access of each view;
/// else one element at a time, neighbours by neighbouring threads.
///
///   entry   tn::write_dims<Cfg>(args)      y[i] = params[i]
///   views   y, i64, contiguous
///
//===----------------------------------------------------------------------===//
#ifndef TENON_KERNELS_CUDA_LOOP_CUH
#define TENON_KERNELS_CUDA_LOOP_CUH

#include "kernels/common/loop_body.h"
#include "kernels/common/strided.h"
#include "kernels/cuda/common.cuh"

namespace tn {
inline namespace TN_FORM {

/// Four elements that one access moves, where they are not too wide for one.
template <class T> struct __align__(sizeof(T) < 4 ? 4 * sizeof(T) : 16) Quad {
  T x[4];
};

template <class Cfg, class Body> struct LoopRun {
  using Inputs = typename Cfg::Inputs;
  using Outputs = typename Cfg::Results;
  static constexpr int rank = Cfg::rank, inner = rank - 1;
  static constexpr int inputs = Inputs::count, outputs = Outputs::count;
  static constexpr int count = inputs + outputs;

  static TN_FN constexpr int64_t size_of(int o) {
    return o < inputs ? Inputs::size[o] : Outputs::size[o - inputs];
  }

  /// Offsets, in elements, of position `e` of the space whose last dimension is
  /// counted in pieces of `Width`.
  template <int Width>
  static TN_FN void locate(const tn_view *v, int64_t e,
                           int64_t (&offset)[count]) {
    TN_UNROLL
    for (int o = 0; o < count; ++o)
      offset[o] = 0;
    TN_UNROLL
    for (int d = inner; d >= 0; --d) {
      int64_t size = v[inputs].shape[d], i = e;
      if (d == inner)
        size /= Width;
      if (d > 0) {
        e = e / size;
        i -= e * size;
      }
      if (d == inner)
        i *= Width;
      TN_UNROLL
      for (int o = 0; o < count; ++o)
        offset[o] += i * v[o].stride[d];
    }
  }

  /// Whether four elements along the last dimension can be moved at once.
  static TN_FN bool has_quads(const tn_view *v) {
    if constexpr (rank == 0)
      return false;
    else {
      bool fit = v[inputs].shape[inner] % 4 == 0;
      TN_UNROLL
      for (int o = 0; o < count; ++o) {
        int64_t step = v[o].stride[inner];
        if (step == 0 && o < inputs)
          continue;
        int64_t bytes = size_of(o) < 4 ? 4 * size_of(o) : 16;
        bool even = step == 1 && uint64_t(v[o].data) % bytes == 0;
        TN_UNROLL
        for (int d = 0; d < inner; ++d)
          even = even && v[o].stride[d] * size_of(o) % bytes == 0;
        fit = fit && even;
      }
      return fit;
    }
  }

  template <int I> using Input = type_at<I, Inputs>;
  template <int I>
  static TN_FN const Input<I> *in(const tn_view *v,
                                  const int64_t (&offset)[count]) {
    return (const Input<I> *)v[I].data + offset[I];
  }
  template <int I>
  static TN_FN Quad<Input<I>> fetch(const tn_view *v,
                                    const int64_t (&offset)[count]) {
    const Input<I> *p = in<I>(v, offset);
    if (v[I].stride[inner] == 1)
      return *(const Quad<Input<I>> *)p;
    return {{*p, *p, *p, *p}};
  }

  template <int I, class V>
  static TN_FN void put(const tn_view *v, const int64_t (&offset)[count], V x) {
    using T = type_at<I, Outputs>;
    ((T *)v[inputs + I].data)[offset[inputs + I]] = x;
  }
  template <int I, class... R>
  static TN_FN void put(const tn_view *v, const int64_t (&offset)[count],
                        const Results<R...> &x) {
    put<I>(v, offset, x.first);
    if constexpr (sizeof...(R) > 1)
      put<I + 1>(v, offset, x.rest);
  }

  template <int I, class V>
  static TN_FN void put4(const tn_view *v, const int64_t (&offset)[count],
                         const V (&x)[4]) {
    using T = type_at<I, Outputs>;
    T *to = (T *)v[inputs + I].data + offset[inputs + I];
    *(Quad<T> *)to = {{T(x[0]), T(x[1]), T(x[2]), T(x[3])}};
  }
  template <int I, class... R>
  static TN_FN void put4(const tn_view *v, const int64_t (&offset)[count],
                         const Results<R...> (&x)[4]) {
    put4<I>(v, offset, {x[0].first, x[1].first, x[2].first, x[3].first});
    if constexpr (sizeof...(R) > 1)
      put4<I + 1>(v, offset, {x[0].rest, x[1].rest, x[2].rest, x[3].rest});
  }

  template <int... I>
  static TN_FN void one(const tn_view *v, int64_t e, Indices<I...>) {
    int64_t offset[count];
    locate<1>(v, e, offset);
    put<0>(v, offset, Body::apply(*in<I>(v, offset)...));
  }

  /// A body's four calls on quads that are already there.
  template <class... Q>
  static TN_FN void apply4(const tn_view *v, const int64_t (&offset)[count],
                           const Q &...q) {
    using R = decltype(Body::apply(q.x[0]...));
    R r[4] = {Body::apply(q.x[0]...), Body::apply(q.x[1]...),
              Body::apply(q.x[2]...), Body::apply(q.x[3]...)};
    put4<0>(v, offset, r);
  }
  template <int... I>
  static TN_FN void four(const tn_view *v, int64_t e, Indices<I...>) {
    int64_t offset[count];
    locate<4>(v, e, offset);
    apply4(v, offset, fetch<I>(v, offset)...);
  }
};

template <class Cfg, class Body> TN_FN void loop(const tn_args *args) {
  using Run = LoopRun<Cfg, Body>;
  static_assert(Cfg::rank <= max_rank);
  const tn_view *v = args->views;
  int64_t n = 1;
  TN_UNROLL
  for (int d = 0; d < Cfg::rank; ++d)
    n *= v[Run::inputs].shape[d];
  if (Run::has_quads(v)) {
    Range mine = share(args, n / 4);
    for (int64_t e = mine.begin; e < mine.end; e += mine.step)
      Run::four(v, e, make_indices<Run::inputs>());
    return;
  }
  Range mine = share(args, n);
  for (int64_t e = mine.begin; e < mine.end; e += mine.step)
    Run::one(v, e, make_indices<Run::inputs>());
}

template <class Cfg> TN_FN void write_dims(const tn_args *args) {
  Range mine = share(args, Cfg::num_params);
  TN_UNROLL
  for (int64_t i = 0; i < Cfg::num_params; ++i)
    if (i % mine.step == mine.begin)
      ((int64_t *)args->views[0].data)[i] = args->params[i];
}

} // namespace TN_FORM
} // namespace tn

#endif // TENON_KERNELS_CUDA_LOOP_CUH
