//===- reduce.h - reductions over axes ------------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
///   entry   tn::reduce<Cfg>(args)
///             y = the reduction of x over a set of axes
///   Cfg     using T                         element type of x and y
///           static constexpr int rank       rank of x and y
///           static constexpr uint32_t axes  bit d is set if dimension d is
///                                           reduced; none copies (or
///                                           squares...)
///           static constexpr tn::Reduce op  sum, mean, max, min, prod, l1, l2,
///                                           sum_square, log_sum, log_sum_exp
///   views   x, y; y has size 1 where x is reduced
///   params  none
///   scratch none
///
/// Floats are summed and multiplied in f64 and rounded once, in an order that
/// depends on shapes alone; integers in 64 bits, and wrap on the way back; a
/// mean of integers truncates. max and min give NaN if there is one. Of
/// nothing: sum, l1, l2, sum_square 0; prod 1; max the lowest and min the
/// highest value; mean NaN (integers 0); log_sum and log_sum_exp -inf. log,
/// square root and exp of integers are taken in f64 and truncated.
///
///   entry   tn::arg_reduce<Cfg>(args)
///             y = the index along `axis` of the greatest or least element of x
///   Cfg     using T                         element type of x
///           static constexpr int rank, axis
///           static constexpr bool largest, select_last
///   views   x, y (i64; size 1 along axis)
///   params  none
///   scratch none
///
/// Of equal elements the first, or with select_last the last. NaN beats every
/// number. Of nothing: a fault (fault.h).
///
/// Threads take ranges of elements of y.
///
//===----------------------------------------------------------------------===//
#ifndef TENON_KERNELS_COMMON_REDUCE_H
#define TENON_KERNELS_COMMON_REDUCE_H

#include "kernels/common/fault.h"
#include "kernels/common/scalar_ops.h"
#include "kernels/common/strided.h"

namespace tn {
inline namespace TN_FORM {

enum class Reduce {
  sum,
  mean,
  max,
  min,
  prod,
  l1,
  l2,
  sum_square,
  log_sum,
  log_sum_exp
};

template <class T> struct AccumulatorOf {
  using type = int64_t;
};
template <> struct AccumulatorOf<float> {
  using type = double;
};
template <> struct AccumulatorOf<double> {
  using type = double;
};
template <> struct AccumulatorOf<uint64_t> {
  using type = uint64_t;
};

/// One reduction: start, step and finish of an accumulator of type A.
template <Reduce Op, class T> struct Reducer {
  static constexpr bool extreme = Op == Reduce::max || Op == Reduce::min;
  using A = typename AccumulatorOf<T>::type;

  static TN_FN A start() {
    if constexpr (Op == Reduce::max)
      return A(tn_lowest<T>());
    else if constexpr (Op == Reduce::min)
      return A(tn_highest<T>());
    else
      return A(Op == Reduce::prod ? 1 : 0);
  }

  /// What an element adds.
  static TN_FN A lift(T x, double shift) {
    A a = A(x);
    if constexpr (Op == Reduce::l1)
      return tn_abs(a);
    else if constexpr (Op == Reduce::l2 || Op == Reduce::sum_square)
      return tn_mul(a, a);
    else if constexpr (Op == Reduce::log_sum_exp)
      return A(tn_exp(double(x) - shift));
    else
      return a;
  }

  static TN_FN A join(A a, A b) {
    if constexpr (Op == Reduce::max)
      return tn_max(a, b);
    else if constexpr (Op == Reduce::min)
      return tn_min(a, b);
    else if constexpr (Op == Reduce::prod)
      return tn_mul(a, b);
    else
      return tn_add(a, b);
  }

  static TN_FN T finish(A a, int64_t n, double shift) {
    if constexpr (Op == Reduce::mean)
      return T(tn_div(a, A(n)));
    else if constexpr (Op == Reduce::l2)
      return tn_cast<T>(tn_sqrt(double(a)));
    else if constexpr (Op == Reduce::log_sum)
      return tn_cast<T>(tn_log(double(a)));
    else if constexpr (Op == Reduce::log_sum_exp)
      return tn_cast<T>(tn_log(double(a)) + shift);
    else
      return T(a);
  }
};

/// log_sum_exp of integers needs a fraction on the way.
template <class T> struct WideReducer : Reducer<Reduce::log_sum_exp, T> {
  using A = double;
  static TN_FN A start() { return 0; }
  static TN_FN A lift(T x, double shift) { return tn_exp(double(x) - shift); }
  static TN_FN A join(A a, A b) { return a + b; }
  static TN_FN T finish(A a, int64_t, double shift) {
    return tn_cast<T>(tn_log(a) + shift);
  }
};

/// The elements that one element of y comes from, as a space of x alone: eight
/// partial results along its innermost dimension, so that additions need not
/// wait for each other.
template <class R, class T>
TN_FN typename R::A accumulate(const T *x, const Space<1> &s, double shift) {
  using A = typename R::A;
  int inner = s.rank - 1;
  int64_t n = s.shape[inner], step = s.stride[0][inner];
  A part[8];
  for (A &p : part)
    p = R::start();
  for (int64_t r = 0, rows = n == 0 ? 0 : s.count(inner); r < rows; ++r) {
    int64_t offset[1], j = 0;
    s.locate(r, inner, offset);
    const T *row = x + offset[0];
    for (; j + 8 <= n; j += 8)
      for (int64_t l = 0; l < 8; ++l)
        part[l] = R::join(part[l], R::lift(row[(j + l) * step], shift));
    for (; j < n; ++j)
      part[0] = R::join(part[0], R::lift(row[j * step], shift));
  }
  for (int64_t l = 1; l < 8; ++l)
    part[0] = R::join(part[0], part[l]);
  return part[0];
}

template <class Cfg> void reduce(const tn_args *args) {
  using T = typename Cfg::T;
  constexpr bool log_sum_exp = Cfg::op == Reduce::log_sum_exp;
  const tn_view &x = args->views[0], &y = args->views[1];
  Space<2> kept;
  Space<1> reduced;
  for (int d = 0; d < Cfg::rank; ++d) {
    if (Cfg::axes >> d & 1)
      reduced.push(x.shape[d], {x.stride[d]});
    else
      kept.push(x.shape[d], {x.stride[d], y.stride[d]});
  }
  kept.finish();
  reduced.finish();
  int64_t n = reduced.count(reduced.rank);
  Range mine = share(args, kept.count(kept.rank));
  for (int64_t e = mine.begin; e < mine.end; e += mine.step) {
    int64_t offset[2];
    kept.locate(e, kept.rank, offset);
    const T *in = (const T *)x.data + offset[0];
    T &out = ((T *)y.data)[offset[1]];
    if constexpr (log_sum_exp) {
      using Max = Reducer<Reduce::max, T>;
      double shift = double(accumulate<Max>(in, reduced, 0));
      // An infinite shift would only make NaN of it; NaN comes through anyway.
      if (!(tn_abs(shift) < __builtin_inf()) || n == 0)
        shift = 0;
      using R = WideReducer<T>;
      out = R::finish(accumulate<R>(in, reduced, shift), n, shift);
    } else {
      using R = Reducer<Cfg::op, T>;
      out = R::finish(accumulate<R>(in, reduced, 0), n, 0);
    }
  }
}

template <class Cfg> void arg_reduce(const tn_args *args) {
  using T = typename Cfg::T;
  const tn_view &x = args->views[0], &y = args->views[1];
  Space<2> kept;
  for (int d = 0; d < Cfg::rank; ++d)
    if (d != Cfg::axis)
      kept.push(x.shape[d], {x.stride[d], y.stride[d]});
  kept.finish();
  int64_t n = x.shape[Cfg::axis], step = x.stride[Cfg::axis];
  auto better = [](T a, T b) {
    if (a != a || b != b)
      return a != a && b == b;
    return Cfg::largest ? a > b : a < b;
  };
  Range mine = share(args, kept.count(kept.rank));
  if (n == 0 && mine.begin < mine.end)
    return report(args, {TN_FAULT_EMPTY, 0, Cfg::axis, 0, 0, 0, 0});
  for (int64_t e = mine.begin; e < mine.end; e += mine.step) {
    int64_t offset[2], best = 0;
    kept.locate(e, kept.rank, offset);
    const T *in = (const T *)x.data + offset[0];
    for (int64_t j = 1; j < n; ++j) {
      T a = in[j * step], b = in[best * step];
      if (better(a, b) || (Cfg::select_last && !better(b, a)))
        best = j;
    }
    ((int64_t *)y.data)[offset[1]] = best;
  }
}

} // namespace TN_FORM
} // namespace tn

#endif // TENON_KERNELS_COMMON_REDUCE_H
