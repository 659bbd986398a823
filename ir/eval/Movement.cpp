//===- Movement.cpp - reference semantics of ops that move elements ------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ir/OpDef.h"
#include "ir/eval/Elements.h"
#include "ir/eval/Loops.h"
#include "ir/support/Diag.h"

using namespace llvm;

namespace tenon::ir {

namespace {

/// A strided window of a tensor: element `base + sum of index * strides`.
struct Window {
  int64_t base = 0;
  Extents strides;
};

/// to[window index] = from[window index] for each index of \p shape.
void copyWindow(Tensor &to, const Window &toWindow, const Tensor &from,
                const Window &fromWindow, ArrayRef<int64_t> shape) {
  forEachOffset<2>(shape, {toWindow.strides, fromWindow.strides},
                   [&](const std::array<int64_t, 2> &at) {
                     copyElements(to, toWindow.base + at[0], from,
                                  fromWindow.base + at[1]);
                   });
}

Window whole(const Tensor &tensor) {
  return {0, rowMajorStrides(tensor.shape)};
}

Expected<Extents> evaluateDims(ArrayRef<Dim> dims, const DimEnv &env) {
  Extents values;
  for (Dim dim : dims) {
    Expected<int64_t> value = evaluateDim(dim, env);
    if (!value)
      return value.takeError();
    values.push_back(*value);
  }
  return values;
}

} // namespace

Error evalReshape(EvalContext &context) {
  const Tensor &x = context.in(0);
  if (x.numElements() != context.out().numElements())
    return userError("cannot reshape {0} to {1}: {2} elements are not {3}",
                     extentsText(x.shape), extentsText(context.out().shape),
                     x.numElements(), context.out().numElements());
  context.out().bytes = x.bytes;
  return Error::success();
}

Error evalBitCast(EvalContext &context) {
  context.out().bytes = context.in(0).bytes;
  return Error::success();
}

Error evalTranspose(EvalContext &context) {
  const Tensor &x = context.in(0);
  Extents strides = rowMajorStrides(x.shape);
  Window from;
  for (int64_t axis : context.attrs<TransposeAttrs>().perm)
    from.strides.push_back(strides[axis]);
  copyWindow(context.out(), whole(context.out()), x, from, context.out().shape);
  return Error::success();
}

Error evalBroadcast(EvalContext &context) {
  const Tensor &x = context.in(0);
  std::optional<Extents> shape = broadcastExtents(x.shape, context.out().shape);
  if (!shape || *shape != context.out().shape)
    return userError("operand 'x' of shape {0} does not broadcast to {1}",
                     extentsText(x.shape), extentsText(context.out().shape));
  context.out() = broadcastTo(x, *shape);
  return Error::success();
}

Error evalSlice(EvalContext &context) {
  const auto &attrs = context.attrs<SliceAttrs>();
  const Tensor &x = context.in(0);
  Tensor &y = context.out();
  Expected<Extents> starts = evaluateDims(attrs.starts, context.env);
  if (!starts)
    return starts.takeError();
  Window from = whole(x);
  for (unsigned i = 0; i < x.rank(); ++i) {
    int64_t start = (*starts)[i], extent = x.shape[i];
    // In 128 bits: steps of nearly 2^63 are legal when they are not taken.
    __int128 last = start + __int128(y.shape[i] - 1) * attrs.steps[i];
    bool outside = start < 0 || start >= extent || last < 0 || last >= extent;
    if (y.shape[i] > 0 && outside)
      return userError("a slice of {0} elements from {1} with step {2} leaves "
                       "dimension {3} of operand 'x', which has {4}",
                       y.shape[i], start, attrs.steps[i], i, extent);
    from.base += y.shape[i] > 0 ? start * from.strides[i] : 0;
    from.strides[i] *= y.shape[i] > 1 ? attrs.steps[i] : 1;
  }
  copyWindow(y, whole(y), x, from, y.shape);
  return Error::success();
}

Error evalConcat(EvalContext &context) {
  int64_t axis = context.attrs<AxisAttrs>().axis;
  Tensor &y = context.out();
  Window to = whole(y);
  int64_t position = 0;
  for (auto [k, x] : enumerate(context.operands)) {
    Extents expected = y.shape;
    expected[axis] = x->shape[axis];
    position += expected[axis];
    if (expected != x->shape || position > y.shape[axis])
      return userError("operand '{0}' of shape {1} does not fit the result of "
                       "shape {2}",
                       operandName(OpKind::Concat, k), extentsText(x->shape),
                       extentsText(y.shape));
    copyWindow(y, to, *x, whole(*x), x->shape);
    to.base += x->shape[axis] * to.strides[axis];
  }
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Pad
//===----------------------------------------------------------------------===//

namespace {

/// How one dimension is padded: first cropped where amounts are negative, then
/// extended from what is left.
struct PaddedDim {
  int64_t cropLow, padLow, kept;

  PaddedDim(int64_t extent, int64_t low, int64_t high)
      : cropLow(cropped(extent, low)), padLow(std::max<int64_t>(low, 0)),
        kept(extent - cropLow - cropped(extent, high)) {}

  /// How much a negative \p amount takes away: not more than there is.
  static int64_t cropped(int64_t extent, int64_t amount) {
    return amount < 0 ? -std::max(amount, -extent) : 0;
  }

  /// The position in x that position \p i of the result shows; -1 where it
  /// shows the padding value.
  int64_t source(int64_t i, PadMode mode) const {
    int64_t at = i - padLow;
    if (at >= 0 && at < kept)
      return cropLow + at;
    switch (mode) {
    case PadMode::Constant:
      return -1;
    case PadMode::Edge:
      return cropLow + (at < 0 ? 0 : kept - 1);
    case PadMode::Wrap:
      return cropLow + (at % kept + kept) % kept;
    case PadMode::Reflect:
      break;
    }
    // Reflects at both ends, as often as it takes; the ends don't repeat.
    if (kept == 1)
      return cropLow;
    int64_t period = 2 * (kept - 1);
    at = (at % period + period) % period;
    return cropLow + std::min(at, period - at);
  }
};

} // namespace

Error evalPad(EvalContext &context) {
  const auto &attrs = context.attrs<PadAttrs>();
  const Tensor &x = context.in(0);
  Tensor &y = context.out();
  Expected<Extents> low = evaluateDims(attrs.low, context.env);
  if (!low)
    return low.takeError();
  Expected<Extents> high = evaluateDims(attrs.high, context.env);
  if (!high)
    return high.takeError();
  SmallVector<PaddedDim, 4> dims;
  for (unsigned d = 0; d < x.rank(); ++d) {
    dims.emplace_back(x.shape[d], (*low)[d], (*high)[d]);
    if (dims[d].kept <= 0 && y.shape[d] > 0 && attrs.mode != PadMode::Constant)
      return userError("nothing is left of dimension {0} of operand 'x', which "
                       "only mode 'constant' can pad",
                       d);
  }
  Tensor zero(x.element, {});
  const Tensor *value =
      context.operands.size() > 1 ? context.operands[1] : nullptr;
  Extents strides = rowMajorStrides(x.shape);
  uint64_t i = 0;
  forEachIndex(y.shape, [&](ArrayRef<int64_t> index) {
    int64_t offset = 0;
    bool inside = true;
    for (unsigned d = 0; d < y.rank(); ++d) {
      int64_t source = dims[d].source(index[d], attrs.mode);
      inside &= source >= 0;
      offset += source * strides[d];
    }
    if (inside)
      copyElements(y, i++, x, offset);
    else
      copyElements(y, i++, value ? *value : zero, 0);
  });
  return Error::success();
}

Error evalTrilu(EvalContext &context) {
  const auto &attrs = context.attrs<TriluAttrs>();
  Expected<int64_t> k = evaluateDim(attrs.k, context.env);
  if (!k)
    return k.takeError();
  const Tensor &x = context.in(0);
  unsigned rank = x.rank();
  Tensor zero(x.element, {});
  uint64_t i = 0;
  forEachIndex(x.shape, [&](ArrayRef<int64_t> index) {
    int64_t diagonal = index[rank - 1] - index[rank - 2];
    bool keep = attrs.upper ? diagonal >= *k : diagonal <= *k;
    copyElements(context.out(), i, keep ? x : zero, keep ? i : 0);
    ++i;
  });
  return Error::success();
}

} // namespace tenon::ir
