//===- data_movement.h - pad, ranges, scans, selections, rotary -----------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What moves elements and is not a copy between views. (Slices,
/// concatenations, tiles, transposes and reversals are: tn::loop with views of
/// their pieces.) Views may have any strides; T is any element type; there is
/// no scratch.
///
///   entry   tn::pad<Cfg>(args)
///   Cfg     using T; static constexpr int rank; static constexpr bool
///   has_value
///           static constexpr tn::Pad mode       constant, reflect, edge, wrap
///   views   x, value? (a scalar; 0 if there is none), y
///   params  low[0], high[0], low[1], high[1], ...: elements added around each
///           dimension; negative ones are taken away first. reflect goes back
///           and forth as often as it takes. Modes other than constant give 0
///           where nothing is left to repeat
///
///   entry   tn::trilu<Cfg>(args)
///             y[.., r, c] = (upper ? c - r >= k : c - r <= k) ? x[..] : 0
///   Cfg     using T; static constexpr int rank; static constexpr bool upper
///   views   x, y
///   params  k
///
///   entry   tn::range<Cfg>(args)       y[i] = start + i * delta, in T
///   Cfg     using T
///   views   start, delta (scalars), y [n]
///
///   entry   tn::one_hot<Cfg>(args)
///             y[.., d, ..] = off_on[indices[..] == d], with d at `axis`
///   Cfg     using T, Index (any number; truncated)
///           static constexpr int rank, axis   rank of y; axis within y
///   views   indices (rank - 1), off_on [2], y; a negative index counts from
///   the
///           end, one out of range is nowhere on
///
///   entry   tn::cum_sum<Cfg>(args)
///   Cfg     using T; static constexpr int rank, axis
///           static constexpr bool product, exclusive, reverse
///   views   x, y      a sum or a product; of f32 in f64. Threads take lines
///
///   entry   tn::greedy_keep<Cfg>(args)
///             y[.., j] = candidates[.., j] and no i < j has y[.., i] and
///             drops[.., i, j]
///   Cfg     static constexpr int rank   of candidates
///   views   drops (rank + 1), candidates, y, all bool. Threads take lines
///
///   entry   tn::count_non_zero<Cfg>(args), then tn::non_zero<Cfg>(args)
///   Cfg     using T; static constexpr int rank
///   views   count_non_zero: x, count (an i64 scalar)
///           non_zero: x, y (i64 [rank, count]), in row-major order of x; for
///           rank 0 only the count matters. The first thread does it all
///
///   entry   tn::top_k<Cfg>(args)
///   Cfg     using T; static constexpr int rank, axis
///           static constexpr bool largest
///   views   x, values, indices (i64, values' shape); k is their size along
///   axis; more than x has is a fault (fault.h)
///           Best first; of equal elements the one with the lower index first;
///           NaN is above every number. Threads take lines
///
///   entry   tn::rotary<Cfg>(args)     x[B, S, H, D], cos and sin [B, S, half]
///             (y1, y2) = (x1 cos - x2 sin, x1 sin + x2 cos)
///   Cfg     using T (float or double)
///           static constexpr int64_t rotary_dim, half = rotary_dim / 2
///           static constexpr bool interleaved   pairs are (2 i, 2 i + 1), else
///                                               (i, i + half)
///   views   x, cos, sin, y; elements from rotary_dim on are copied. y may be x
///
/// Threads take ranges of elements of y where nothing else is said.
///
//===----------------------------------------------------------------------===//
#ifndef TENON_KERNELS_COMMON_DATA_MOVEMENT_H
#define TENON_KERNELS_COMMON_DATA_MOVEMENT_H

#include "kernels/common/fault.h"
#include "kernels/common/scalar_ops.h"
#include "kernels/common/strided.h"

namespace tn {
inline namespace TN_FORM {

enum class Pad { constant, reflect, edge, wrap };

/// The place in a dimension of `size` elements that position i of its padded
/// form shows; -1 for the padding value.
template <Pad Mode>
TN_FN int64_t padded_source(int64_t i, int64_t size, int64_t low,
                            int64_t high) {
  int64_t crop = max_of(0, -low), kept = size - crop - max_of(0, -high);
  int64_t at = i - max_of(0, low);
  if (at >= 0 && at < kept)
    return crop + at;
  if (Mode == Pad::constant || kept <= 0)
    return -1;
  if (Mode == Pad::edge)
    return crop + (at < 0 ? 0 : kept - 1);
  if (Mode == Pad::wrap)
    return crop + (at % kept + kept) % kept;
  if (kept == 1)
    return crop;
  int64_t period = 2 * (kept - 1);
  at = (at % period + period) % period;
  return crop + min_of(at, period - at);
}

template <class Cfg> void pad(const tn_args *args) {
  using T = typename Cfg::T;
  const tn_view &x = args->views[0], &y = args->views[1 + Cfg::has_value];
  T value = Cfg::has_value ? *(const T *)args->views[1].data : T(0);
  Range mine = share(args, extent(y, 0, Cfg::rank), 64);
  for (int64_t e = mine.begin; e < mine.end; e += mine.step) {
    int64_t in = 0, out = 0, rest = e;
    bool inside = true;
    for (int d = Cfg::rank - 1; d >= 0; --d) {
      int64_t q = rest / y.shape[d], i = rest - q * y.shape[d];
      int64_t s = padded_source<Cfg::mode>(i, x.shape[d], args->params[2 * d],
                                           args->params[2 * d + 1]);
      inside = inside && s >= 0;
      in += s * x.stride[d];
      out += i * y.stride[d];
      rest = q;
    }
    ((T *)y.data)[out] = inside ? ((const T *)x.data)[in] : value;
  }
}

template <class Cfg> void trilu(const tn_args *args) {
  using T = typename Cfg::T;
  constexpr int rank = Cfg::rank;
  const tn_view &x = args->views[0], &y = args->views[1];
  int64_t columns = y.shape[rank - 1], k = args->params[0];
  tn_view from = {nullptr, y.shape, x.stride};
  Range mine = share(args, extent(y, 0, rank - 1));
  for (int64_t r = mine.begin; r < mine.end; r += mine.step) {
    const T *in = (const T *)x.data + row_offset(from, rank - 1, r);
    T *out = (T *)y.data + row_offset(y, rank - 1, r);
    int64_t row = r % y.shape[rank - 2];
    for (int64_t c = 0; c < columns; ++c) {
      bool keep = Cfg::upper ? c - row >= k : c - row <= k;
      out[c * y.stride[rank - 1]] = keep ? in[c * x.stride[rank - 1]] : T(0);
    }
  }
}

template <class Cfg> void range(const tn_args *args) {
  using T = typename Cfg::T;
  const tn_view &y = args->views[2];
  T start = *(const T *)args->views[0].data;
  T delta = *(const T *)args->views[1].data;
  Range mine = share(args, y.shape[0], 64);
  for (int64_t i = mine.begin; i < mine.end; i += mine.step)
    ((T *)y.data)[i * y.stride[0]] = tn_add(start, tn_mul(T(i), delta));
}

template <class Cfg> void one_hot(const tn_args *args) {
  using T = typename Cfg::T;
  using Index = typename Cfg::Index;
  constexpr int rank = Cfg::rank, axis = Cfg::axis;
  const tn_view &indices = args->views[0], &choice = args->views[1];
  const tn_view &y = args->views[2];
  T off = *(const T *)choice.data;
  T on = ((const T *)choice.data)[choice.stride[0]];
  int64_t depth = y.shape[axis];
  Range mine = share(args, extent(y, 0, rank), 64);
  for (int64_t e = mine.begin; e < mine.end; e += mine.step) {
    int64_t in = 0, out = 0, place = 0, rest = e;
    for (int d = rank - 1; d >= 0; --d) {
      int64_t q = rest / y.shape[d], i = rest - q * y.shape[d];
      out += i * y.stride[d];
      if (d == axis)
        place = i;
      else
        in += i * indices.stride[d < axis ? d : d - 1];
      rest = q;
    }
    int64_t index = tn_cast<int64_t>(((const Index *)indices.data)[in]);
    ((T *)y.data)[out] =
        (index < 0 ? index + depth : index) == place ? on : off;
  }
}

/// Two operands along `axis`, and the space of the lines in that direction.
template <int Operands>
TN_FN Space<Operands> lines_along(const tn_view *const (&views)[Operands],
                                  int rank, int axis) {
  Space<Operands> s;
  for (int d = 0; d < rank; ++d) {
    if (d == axis)
      continue;
    int64_t step[Operands];
    for (int o = 0; o < Operands; ++o)
      step[o] = views[o]->stride[d];
    s.push(views[0]->shape[d], step);
  }
  s.finish();
  return s;
}

template <class T> struct SumOf {
  using type = T;
};
template <> struct SumOf<float> {
  using type = double;
};

template <class Cfg> void cum_sum(const tn_args *args) {
  using T = typename Cfg::T;
  using Sum = typename SumOf<T>::type;
  const tn_view &x = args->views[0], &y = args->views[1];
  Space<2> lines = lines_along<2>({&x, &y}, Cfg::rank, Cfg::axis);
  int64_t n = x.shape[Cfg::axis];
  Range mine = share(args, lines.count(lines.rank));
  for (int64_t l = mine.begin; l < mine.end; l += mine.step) {
    int64_t offset[2];
    lines.locate(l, lines.rank, offset);
    Sum sum = Cfg::product;
    for (int64_t i = 0; i < n; ++i) {
      int64_t j = Cfg::reverse ? n - 1 - i : i;
      T value = ((const T *)x.data)[offset[0] + j * x.stride[Cfg::axis]];
      Sum next;
      if constexpr (Cfg::product)
        next = tn_mul(sum, Sum(value));
      else
        next = tn_add(sum, Sum(value));
      ((T *)y.data)[offset[1] + j * y.stride[Cfg::axis]] =
          T(Cfg::exclusive ? sum : next);
      sum = next;
    }
  }
}

template <class Cfg> void greedy_keep(const tn_args *args) {
  constexpr int axis = Cfg::rank - 1;
  const tn_view &drops = args->views[0], &candidates = args->views[1];
  const tn_view &y = args->views[2];
  Space<3> lines = lines_along<3>({&y, &candidates, &drops}, Cfg::rank, axis);
  int64_t n = y.shape[axis];
  Range mine = share(args, lines.count(lines.rank));
  for (int64_t l = mine.begin; l < mine.end; l += mine.step) {
    int64_t offset[3];
    lines.locate(l, lines.rank, offset);
    tn_bool *kept = (tn_bool *)y.data + offset[0];
    const tn_bool *from = (const tn_bool *)candidates.data + offset[1];
    const tn_bool *drop = (const tn_bool *)drops.data + offset[2];
    for (int64_t j = 0; j < n; ++j) {
      bool keep = from[j * candidates.stride[axis]] != 0;
      for (int64_t i = 0; i < j && keep; ++i)
        keep = !(kept[i * y.stride[axis]] &&
                 drop[i * drops.stride[axis] + j * drops.stride[axis + 1]]);
      kept[j * y.stride[axis]] = keep;
    }
  }
}

template <class Cfg> void count_non_zero(const tn_args *args) {
  using T = typename Cfg::T;
  if (!is_first_thread(args))
    return;
  const tn_view &x = args->views[0];
  int64_t n = extent(x, 0, Cfg::rank), count = 0;
  for (int64_t e = 0; e < n; ++e)
    count += ((const T *)x.data)[row_offset(x, Cfg::rank, e)] != T(0);
  *(int64_t *)args->views[1].data = count;
}

template <class Cfg> void non_zero(const tn_args *args) {
  using T = typename Cfg::T;
  if (!is_first_thread(args) || Cfg::rank == 0)
    return;
  const tn_view &x = args->views[0], &y = args->views[1];
  int64_t n = extent(x, 0, Cfg::rank), found = 0;
  for (int64_t e = 0; e < n && found < y.shape[1]; ++e) {
    if (((const T *)x.data)[row_offset(x, Cfg::rank, e)] == T(0))
      continue;
    int64_t rest = e;
    for (int d = Cfg::rank - 1; d >= 0; --d) {
      int64_t q = rest / x.shape[d];
      ((int64_t *)y.data)[d * y.stride[0] + found * y.stride[1]] =
          rest - q * x.shape[d];
      rest = q;
    }
    ++found;
  }
}

/// The best k of a line, kept in the result itself: a heap whose root is the
/// worst of them.
template <class T, bool Largest> struct BestOf {
  T *values;
  int64_t *indices;
  int64_t value_step, index_step;

  TN_FN T &value(int64_t i) const { return values[i * value_step]; }
  TN_FN int64_t &index(int64_t i) const { return indices[i * index_step]; }

  /// Whether element (a, i) stands before (b, j).
  static TN_FN bool before(T a, int64_t i, T b, int64_t j) {
    bool above = b == b && (a != a || a > b);
    bool below = a == a && (b != b || b > a);
    return Largest ? above || (!below && i < j) : below || (!above && i < j);
  }

  TN_FN void put(int64_t at, T v, int64_t i) const {
    value(at) = v;
    index(at) = i;
  }

  /// Puts (v, i) at the root of a heap of n and lets it sink.
  TN_FN void sink(T v, int64_t i, int64_t from, int64_t n) const {
    int64_t at = from;
    for (int64_t child; (child = 2 * at + 1) < n; at = child) {
      if (child + 1 < n && before(value(child), index(child), value(child + 1),
                                  index(child + 1)))
        ++child;
      if (before(value(child), index(child), v, i))
        break;
      put(at, value(child), index(child));
    }
    put(at, v, i);
  }

  TN_FN void run(const T *x, int64_t step, int64_t n, int64_t k) const {
    for (int64_t i = 0; i < k; ++i)
      put(i, x[i * step], i);
    for (int64_t i = k / 2 - 1; i >= 0; --i)
      sink(value(i), index(i), i, k);
    for (int64_t i = k; i < n && k > 0; ++i)
      if (before(x[i * step], i, value(0), index(0)))
        sink(x[i * step], i, 0, k);
    for (int64_t left = k - 1; left > 0; --left) {
      T v = value(left);
      int64_t i = index(left);
      put(left, value(0), index(0));
      sink(v, i, 0, left);
    }
  }
};

template <class Cfg> void top_k(const tn_args *args) {
  using T = typename Cfg::T;
  const tn_view &x = args->views[0], &values = args->views[1];
  const tn_view &indices = args->views[2];
  Space<3> lines =
      lines_along<3>({&x, &values, &indices}, Cfg::rank, Cfg::axis);
  int64_t n = x.shape[Cfg::axis], k = values.shape[Cfg::axis];
  if (k > n)
    return report(args, {TN_FAULT_SIZE, 1, Cfg::axis, 0, 0, k, n});
  Range mine = share(args, lines.count(lines.rank));
  for (int64_t l = mine.begin; l < mine.end; l += mine.step) {
    int64_t offset[3];
    lines.locate(l, lines.rank, offset);
    BestOf<T, Cfg::largest> best = {
        (T *)values.data + offset[1], (int64_t *)indices.data + offset[2],
        values.stride[Cfg::axis], indices.stride[Cfg::axis]};
    best.run((const T *)x.data + offset[0], x.stride[Cfg::axis], n, k);
  }
}

/// Rotates the two halves of a contiguous head. `out` may be `in`: the results
/// are made apart, so that compilers may use vectors.
template <int64_t Half, class T>
TN_FN void rotate_halves(const T *in, const T *cos, const T *sin, T *out) {
  T first[Half > 0 ? Half : 1], second[Half > 0 ? Half : 1];
  for (int64_t i = 0; i < Half; ++i) {
    first[i] = in[i] * cos[i] - in[Half + i] * sin[i];
    second[i] = in[i] * sin[i] + in[Half + i] * cos[i];
  }
  for (int64_t i = 0; i < Half; ++i) {
    out[i] = first[i];
    out[Half + i] = second[i];
  }
}

template <class Cfg> void rotary(const tn_args *args) {
  using T = typename Cfg::T;
  const tn_view &x = args->views[0], &c = args->views[1], &s = args->views[2];
  const tn_view &y = args->views[3];
  int64_t rows = extent(x, 0, 3), depth = x.shape[3];
  int64_t x_step = x.stride[3], y_step = y.stride[3];
  bool contiguous = !Cfg::interleaved && x_step == 1 && y_step == 1 &&
                    c.stride[2] == 1 && s.stride[2] == 1;
  tn_view to = {nullptr, x.shape, y.stride};
  Range mine = share(args, rows);
  for (int64_t r = mine.begin; r < mine.end; r += mine.step) {
    const T *in = (const T *)x.data + row_offset(x, 3, r);
    T *out = (T *)y.data + row_offset(to, 3, r);
    int64_t position = r / x.shape[2];
    int64_t b = position / x.shape[1], p = position - b * x.shape[1];
    const T *cos = (const T *)c.data + b * c.stride[0] + p * c.stride[1];
    const T *sin = (const T *)s.data + b * s.stride[0] + p * s.stride[1];
    if (contiguous)
      rotate_halves<Cfg::half>(in, cos, sin, out);
    for (int64_t i = 0; i < Cfg::half && !contiguous; ++i) {
      int64_t first = Cfg::interleaved ? 2 * i : i;
      int64_t second = Cfg::interleaved ? 2 * i + 1 : i + Cfg::half;
      T x1 = in[first * x_step], x2 = in[second * x_step];
      T cosine = cos[i * c.stride[2]], sine = sin[i * s.stride[2]];
      out[first * y_step] = x1 * cosine - x2 * sine;
      out[second * y_step] = x1 * sine + x2 * cosine;
    }
    for (int64_t i = Cfg::rotary_dim; i < depth; ++i)
      out[i * y_step] = in[i * x_step];
  }
}

} // namespace TN_FORM
} // namespace tn

#endif // TENON_KERNELS_COMMON_DATA_MOVEMENT_H
