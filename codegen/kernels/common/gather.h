//===- gather.h - gather and scatter --------------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Elements chosen by indices that are known at run time. Everywhere below, T
/// is the element type, Index is int32_t or int64_t, views may have any
/// strides, and there is no scratch. A negative index counts from the end. One
/// out of range is a fault (fault.h): its element is left out, so that nothing
/// outside the operands is touched and the first of several faults is known.
///
///   entry   tn::gather<Cfg>(args)
///             y[o.., i.., n..] = data[o.., indices[i..], n..]
///   Cfg     using T, Index
///           static constexpr int data_rank, axis, indices_rank
///           the result has rank data_rank - 1 + indices_rank
///   views   data, indices, y
///           Rows y[o.., i.., :] that are contiguous on both sides are copied
///           whole (an embedding). Threads take ranges of rows.
///
///   entry   tn::gather_elements<Cfg>(args)
///             y[.., i, ..] = data[.., indices[.., i, ..], ..]   along `axis`
///   Cfg     using T, Index
///           static constexpr int rank, axis
///   views   data, indices, y; indices and y have the same shape
///           Threads take ranges of elements.
///
///   entry   tn::gather_nd<Cfg>(args)
///             y[b.., i.., n..] = data[b.., indices[b.., i.., :].., n..]
///   Cfg     using T, Index
///           static constexpr int data_rank, indices_rank, batch_dims
///           static constexpr int depth    the size of indices' last dimension
///   views   data, indices, y, of rank indices_rank - 1 + data_rank -
///   batch_dims
///           - depth. Threads take ranges of elements.
///
///   entry   tn::scatter_elements<Cfg>(args)
///             y = data; y[.., indices[.., i, ..], ..] (op)= updates[.., i, ..]
///           tn::scatter_nd<Cfg>(args)
///             y = data; y[indices[i.., :].., n..] (op)= updates[i.., n..]
///   Cfg     using T, Index
///           static constexpr tn::Reduction reduction   none, add, mul, min,
///           max scatter_elements: static constexpr int rank, axis scatter_nd:
///           static constexpr int data_rank, indices_rank, depth
///   views   data, indices, updates, y; y may be the same memory as data
///           Threads copy data to y together (on a device a launch before this
///           one has done so). After a barrier each line of updates that can
///           meet the same elements is one thread's, which applies them in
///           order, so that equal indices give the last update (none) or a sum
///           in one order.
///
//===----------------------------------------------------------------------===//
#ifndef TENON_KERNELS_COMMON_GATHER_H
#define TENON_KERNELS_COMMON_GATHER_H

#include "kernels/common/fault.h"
#include "kernels/common/scalar_ops.h"
#include "kernels/common/strided.h"

namespace tn {
inline namespace TN_FORM {

enum class Reduction { none, add, mul, min, max };

/// The element-wise offset of position `index` (row-major over `shape`) by
/// strides; dimensions [from, to).
TN_FN int64_t offset_of(const int64_t *shape, const int64_t *stride, int from,
                        int to, int64_t index) {
  int64_t offset = 0;
  for (int d = to - 1; d >= from; --d) {
    int64_t q = index / shape[d];
    offset += (index - q * shape[d]) * stride[d];
    index = q;
  }
  return offset;
}

/// Copies the elements of a space of two operands: out (0) from in (1).
template <class T>
TN_FN void copy_space(const Space<2> &s, T *out, const T *in) {
  int inner = s.rank - 1;
  // Of nothing there may be no address either.
  int64_t n = s.shape[inner], rows = n ? s.count(inner) : 0;
  int64_t out_step = s.stride[0][inner], in_step = s.stride[1][inner];
  for (int64_t r = 0; r < rows; ++r) {
    int64_t offset[2];
    s.locate(r, inner, offset);
    T *o = out + offset[0];
    const T *i = in + offset[1];
    if (out_step == 1 && in_step == 1) {
      __builtin_memcpy(o, i, uint64_t(n) * sizeof(T));
      continue;
    }
    for (int64_t j = 0; j < n; ++j)
      o[j * out_step] = i[j * in_step];
  }
}

/// The space of `dims` dimensions that `out` has from `out_from` on and `in`
/// from `in_from` on; sizes are out's.
TN_FN Space<2> slice_space(const tn_view &out, int out_from, const tn_view &in,
                           int in_from, int dims) {
  Space<2> s;
  for (int d = 0; d < dims; ++d)
    s.push(out.shape[out_from + d],
           {out.stride[out_from + d], in.stride[in_from + d]});
  s.finish();
  return s;
}

template <class Cfg> void gather(const tn_args *args) {
  using T = typename Cfg::T;
  using Index = typename Cfg::Index;
  constexpr int axis = Cfg::axis, rank = Cfg::data_rank;
  constexpr int indices_rank = Cfg::indices_rank;
  const tn_view &data = args->views[0], &indices = args->views[1];
  const tn_view &y = args->views[2];
  Space<2> row =
      slice_space(y, axis + indices_rank, data, axis + 1, rank - axis - 1);
  int64_t chosen = extent(indices, 0, indices_rank), size = data.shape[axis];
  Range mine = share(args, extent(y, 0, axis) * chosen);
  for (int64_t r = mine.begin; r < mine.end; r += mine.step) {
    int64_t outer = r / chosen, i = r - outer * chosen;
    int64_t at = ((const Index *)indices.data)[offset_of(
        indices.shape, indices.stride, 0, indices_rank, i)];
    if (!take_index(args, at, size, 1, axis, i))
      continue;
    T *out =
        (T *)y.data + offset_of(y.shape, y.stride, 0, axis + indices_rank, r);
    const T *in = (const T *)data.data +
                  offset_of(y.shape, data.stride, 0, axis, outer) +
                  at * data.stride[axis];
    copy_space(row, out, in);
  }
}

/// Whether indices are nowhere larger than `data`, but along `axis`; if not,
/// that is a fault.
TN_FN bool check_fit(const tn_args *args, const tn_view &data,
                     const tn_view &indices, int rank, int axis) {
  for (int d = 0; d < rank; ++d) {
    if (d == axis || indices.shape[d] <= data.shape[d])
      continue;
    report(args, {TN_FAULT_SIZE, 1, d, 0, 0, indices.shape[d], data.shape[d]});
    return false;
  }
  return true;
}

template <class Cfg> void gather_elements(const tn_args *args) {
  using T = typename Cfg::T;
  using Index = typename Cfg::Index;
  constexpr int rank = Cfg::rank, axis = Cfg::axis;
  const tn_view &data = args->views[0], &indices = args->views[1];
  const tn_view &y = args->views[2];
  int64_t size = data.shape[axis];
  if (!check_fit(args, data, indices, rank, axis))
    return;
  Range mine = share(args, extent(y, 0, rank));
  for (int64_t e = mine.begin; e < mine.end; e += mine.step) {
    int64_t in = 0, out = 0, where = 0, rest = e;
    for (int d = rank - 1; d >= 0; --d) {
      int64_t q = rest / y.shape[d], i = rest - q * y.shape[d];
      out += i * y.stride[d];
      where += i * indices.stride[d];
      in += d == axis ? 0 : i * data.stride[d];
      rest = q;
    }
    int64_t at = ((const Index *)indices.data)[where];
    if (take_index(args, at, size, 1, axis, e))
      ((T *)y.data)[out] = ((const T *)data.data)[in + at * data.stride[axis]];
  }
}

/// The offset into `data` of what index vector number `number`, at `vector`,
/// names: `depth` dimensions from `from` on. False if an index is out of range.
template <class Index>
TN_FN bool locate_nd(const tn_args *args, const tn_view &data, int from,
                     int depth, const Index *vector, int64_t step,
                     int64_t number, int64_t &offset) {
  offset = 0;
  for (int d = 0; d < depth; ++d) {
    int64_t at = vector[d * step];
    if (!take_index(args, at, data.shape[from + d], 1, from + d,
                    number * depth + d))
      return false;
    offset += at * data.stride[from + d];
  }
  return true;
}

template <class Cfg> void gather_nd(const tn_args *args) {
  using T = typename Cfg::T;
  using Index = typename Cfg::Index;
  constexpr int outer = Cfg::indices_rank - 1, batch = Cfg::batch_dims;
  constexpr int inner = Cfg::data_rank - batch - Cfg::depth;
  const tn_view &data = args->views[0], &indices = args->views[1];
  const tn_view &y = args->views[2];
  int64_t row = extent(y, outer, outer + inner);
  Range mine = share(args, extent(y, 0, outer) * row);
  for (int64_t e = mine.begin; e < mine.end; e += mine.step) {
    int64_t o = e / row, within = e - o * row;
    // The batch dimensions are the first of the outer ones.
    int64_t tail = extent(y, batch, outer), b = o / tail;
    const Index *vector = (const Index *)indices.data +
                          offset_of(indices.shape, indices.stride, 0, outer, o);
    int64_t place;
    if (!locate_nd(args, data, batch, Cfg::depth, vector, indices.stride[outer],
                   o, place))
      continue;
    int64_t in =
        offset_of(data.shape, data.stride, 0, batch, b) +
        offset_of(y.shape + outer, data.stride + Cfg::data_rank - inner, 0,
                  inner, within);
    ((T *)y.data)[offset_of(y.shape, y.stride, 0, outer + inner, e)] =
        ((const T *)data.data)[in + place];
  }
}

/// Copies all of data to y, each thread its share, and waits; what is there
/// already stays.
template <class T>
TN_FN void copy_shared(const tn_args *args, const tn_view &data,
                       const tn_view &y, int rank) {
  if constexpr (!on_device) {
    if (data.data == y.data)
      return;
    Range mine = share(args, extent(y, 0, rank), 64);
    for (int64_t e = mine.begin; e < mine.end; e += mine.step)
      ((T *)y.data)[offset_of(y.shape, y.stride, 0, rank, e)] =
          ((const T *)data.data)[offset_of(y.shape, data.stride, 0, rank, e)];
    args->barrier(args);
  }
}

template <Reduction R, class T> TN_FN void combine(T &target, T update) {
  if constexpr (R == Reduction::none)
    target = update;
  else if constexpr (R == Reduction::add)
    target = tn_add(target, update);
  else if constexpr (R == Reduction::mul)
    target = tn_mul(target, update);
  else if constexpr (R == Reduction::min)
    target = tn_min(target, update);
  else
    target = tn_max(target, update);
}

template <class Cfg> void scatter_elements(const tn_args *args) {
  using T = typename Cfg::T;
  using Index = typename Cfg::Index;
  constexpr int rank = Cfg::rank, axis = Cfg::axis;
  const tn_view &indices = args->views[1], &updates = args->views[2];
  const tn_view &y = args->views[3];
  copy_shared<T>(args, args->views[0], y, rank);
  int64_t n = indices.shape[axis], size = y.shape[axis], lines = 1;
  for (int d = 0; d < rank; ++d)
    lines *= d == axis ? 1 : indices.shape[d];
  if (!check_fit(args, y, indices, rank, axis))
    return;
  Range mine = share(args, lines);
  for (int64_t l = mine.begin; l < mine.end; l += mine.step) {
    int64_t out = 0, where = 0, in = 0, rest = l;
    // The number of the line's first index, and how far apart the others are.
    int64_t number = 0, apart = 0;
    for (int64_t d = rank - 1, inside = 1; d >= 0;
         inside *= indices.shape[d--]) {
      if (d == axis) {
        apart = inside;
        continue;
      }
      int64_t q = rest / indices.shape[d], i = rest - q * indices.shape[d];
      where += i * indices.stride[d];
      in += i * updates.stride[d];
      out += i * y.stride[d];
      number += i * inside;
      rest = q;
    }
    for (int64_t j = 0; j < n; ++j) {
      int64_t at =
          ((const Index *)indices.data)[where + j * indices.stride[axis]];
      if (take_index(args, at, size, 1, axis, number + j * apart))
        combine<Cfg::reduction>(
            ((T *)y.data)[out + at * y.stride[axis]],
            ((const T *)updates.data)[in + j * updates.stride[axis]]);
    }
  }
}

template <class Cfg> void scatter_nd(const tn_args *args) {
  using T = typename Cfg::T;
  using Index = typename Cfg::Index;
  constexpr int outer = Cfg::indices_rank - 1, depth = Cfg::depth;
  constexpr int inner = Cfg::data_rank - depth;
  const tn_view &indices = args->views[1], &updates = args->views[2];
  const tn_view &y = args->views[3];
  copy_shared<T>(args, args->views[0], y, Cfg::data_rank);
  int64_t n = extent(indices, 0, outer);
  Range mine = share(args, extent(y, depth, Cfg::data_rank));
  for (int64_t e = mine.begin; e < mine.end; e += mine.step) {
    int64_t to = offset_of(y.shape + depth, y.stride + depth, 0, inner, e);
    int64_t from =
        offset_of(y.shape + depth, updates.stride + outer, 0, inner, e);
    for (int64_t o = 0; o < n; ++o) {
      const Index *vector =
          (const Index *)indices.data +
          offset_of(indices.shape, indices.stride, 0, outer, o);
      int64_t place;
      if (!locate_nd(args, y, 0, depth, vector, indices.stride[outer], o,
                     place))
        continue;
      int64_t in = offset_of(updates.shape, updates.stride, 0, outer, o);
      combine<Cfg::reduction>(((T *)y.data)[place + to],
                              ((const T *)updates.data)[in + from]);
    }
  }
}

} // namespace TN_FORM
} // namespace tn

#endif // TENON_KERNELS_COMMON_GATHER_H
