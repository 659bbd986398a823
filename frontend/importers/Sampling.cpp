//===- Sampling.cpp - importers of ops that sample images -----------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontend/Emitter.h"
#include "frontend/NodeView.h"
#include "frontend/OnnxOps.h"
#include "frontend/importers/Interpolate.h"
#include "frontend/importers/Window.h"
#include "llvm/ADT/Sequence.h"

using namespace llvm;
using namespace tenon::ir;

/// \file
/// Images lie as rows, one for each place, of all channels: a sample is a sum
/// of gathered rows times weights. Coordinates are computed in f64.

namespace tenon::frontend {

namespace {

enum class Outside { Zeros, Border, Reflection };

/// One element along one axis that samples come from, for each of them.
struct AxisTap {
  Value *index;  ///< i64, within the axis
  Value *weight; ///< f64; null: 1
  Value *inside; ///< bool: whether it counts; null: it does
};
using AxisTaps = SmallVector<AxisTap, 4>;

Value *f64(Emitter &emit, Dim value) {
  return emit.cast(emit.dimScalar(value), ElementType::F64);
}

/// 0 <= index < size, of f64s.
Value *isInside(Emitter &emit, Value *index, Dim size) {
  Value *low =
      emit.op(OpKind::GreaterEqual, {index, emit.scalar(ElementType::F64, 0)});
  Value *high = emit.op(OpKind::Less, {index, f64(emit, size)});
  return emit.op(OpKind::And, {low, high});
}

/// Images [N, C, spatial...] as rows [N * places, C].
Value *rowsOf(Emitter &emit, Value *x) {
  if (emit.failed())
    return nullptr;
  ShapeRef s = x->shape();
  auto perm = llvm::to_vector(llvm::seq<int64_t>(0, x->rank()));
  perm.erase(perm.begin() + 1);
  perm.push_back(1);
  return emit.reshape(emit.transpose(x, perm),
                      {s[0] * numElements(s.drop_front(2)), s[1]});
}

/// Samples of \p rows: for each of the coordinates' shape, the sum over all
/// combinations of the axes' taps, or the largest of their products; behind
/// that shape, the channels. \p base (i64): the first row of each one's image.
Value *sampleRows(Emitter &emit, Value *rows, Value *base,
                  ArrayRef<AxisTaps> axes, ShapeRef sizes,
                  OpKind combine = OpKind::Add) {
  SmallVector<size_t, 4> chosen(axes.size(), 0);
  Value *result = nullptr;
  while (!emit.failed()) {
    Value *place = nullptr, *weight = nullptr, *inside = nullptr;
    for (auto [axis, number] : llvm::enumerate(chosen)) {
      const AxisTap &tap = axes[axis][number];
      place = place ? emit.add(emit.mul(place, emit.dimScalar(sizes[axis])),
                               tap.index)
                    : tap.index;
      if (tap.weight)
        weight = weight ? emit.mul(weight, tap.weight) : tap.weight;
      if (tap.inside)
        inside =
            inside ? emit.op(OpKind::And, {inside, tap.inside}) : tap.inside;
    }
    Value *part = emit.gather(rows, emit.add(place, base), 0);
    if (emit.failed())
      return nullptr;
    Shape column(part->shape().drop_back());
    column.push_back(Dim(1));
    if (weight)
      part = emit.mul(part,
                      emit.reshape(emit.cast(weight, rows->element()), column));
    if (inside)
      part = emit.where(emit.reshape(inside, column), part,
                        emit.scalar(rows->element(), 0));
    result = result ? emit.op(combine, {result, part}) : part;
    // The next combination.
    size_t axis = 0;
    while (axis < chosen.size() && ++chosen[axis] == axes[axis].size())
      chosen[axis++] = 0;
    if (axis == chosen.size())
      return result;
  }
  return nullptr;
}

//===----------------------------------------------------------------------===//
// GridSample
//===----------------------------------------------------------------------===//

struct GridForm {
  Interpolation interpolation;
  Outside outside = Outside::Zeros;
  bool alignCorners = false;
};

/// Reflected at the borders, as often as it takes, until within them.
Value *reflected(Emitter &emit, Value *x, Value *low, Value *high) {
  Value *width = emit.sub(high, low);
  Value *distance = emit.op(OpKind::Abs, {emit.sub(x, low)});
  Value *times = emit.op(OpKind::Floor, {emit.div(distance, width)});
  Value *rest = emit.sub(distance, emit.mul(times, width));
  Value *isOdd =
      emit.op(OpKind::Equal,
              {emit.op(OpKind::Mod, {times, emit.scalar(ElementType::F64, 2)}),
               emit.scalar(ElementType::F64, 1)});
  return emit.where(isOdd, emit.sub(high, rest), emit.add(low, rest));
}

/// The taps along one axis of \p size for normalised coordinates in -1 .. 1.
AxisTaps gridTaps(Emitter &emit, Value *normal, Dim size,
                  const GridForm &form) {
  Value *n = emit.addScalar(emit.cast(normal, ElementType::F64), 1);
  Value *length = f64(emit, size), *last = f64(emit, size - Dim(1));
  Value *low = emit.scalar(ElementType::F64, form.alignCorners ? 0 : -0.5);
  Value *high = form.alignCorners ? last : emit.addScalar(length, -0.5);
  Value *at =
      form.alignCorners
          ? emit.mul(emit.mulScalar(n, 0.5), last)
          : emit.mulScalar(emit.addScalar(emit.mul(n, length), -1), 0.5);
  // The coordinate is what f32 can say of it.
  at = emit.cast(emit.cast(at, ElementType::F32), ElementType::F64);
  if (form.interpolation.mode == Interpolation::Mode::Nearest)
    at = emit.op(OpKind::Round, {at});
  Value *beyond = emit.op(OpKind::Or, {emit.op(OpKind::Less, {at, low}),
                                       emit.op(OpKind::Greater, {at, high})});
  if (form.outside == Outside::Border) {
    Value *clamped =
        emit.op(OpKind::Max, {at, emit.scalar(ElementType::F64, 0)});
    clamped = emit.op(OpKind::Min, {clamped, last});
    at = emit.where(beyond, clamped, at);
  } else if (form.outside == Outside::Reflection) {
    at = emit.where(beyond, reflected(emit, at, low, high), at);
  }
  AxisTaps taps;
  for (const Tap &tap : tapsAt(emit, at, size, form.interpolation)) {
    Value *index = form.outside == Outside::Reflection
                       ? reflected(emit, tap.index, low, high)
                       : tap.index;
    taps.push_back({clampedElement(emit, index, size), tap.weight,
                    form.outside == Outside::Zeros ? isInside(emit, index, size)
                                                   : nullptr});
  }
  return taps;
}

void readGridForm(NodeView &node, GridForm &form) {
  StringRef mode =
      node.strAttr("mode", node.version() < 20 ? "bilinear" : "linear");
  StringRef outside = node.strAttr("padding_mode", "zeros");
  form.alignCorners = node.flagAttr("align_corners", false);
  form.interpolation.rounding = NearestRounding::HalfToEven;
  if (mode == "bilinear" || mode == "linear")
    form.interpolation.mode = Interpolation::Mode::Linear;
  else if (mode == "bicubic" || mode == "cubic")
    form.interpolation.mode = Interpolation::Mode::Cubic;
  else if (mode != "nearest")
    node.fail("attribute 'mode' is '{0}'; expected nearest, linear or cubic",
              mode);
  if (outside == "border")
    form.outside = Outside::Border;
  else if (outside == "reflection")
    form.outside = Outside::Reflection;
  else if (outside != "zeros")
    node.fail("attribute 'padding_mode' is '{0}'; expected zeros, border or "
              "reflection",
              outside);
}

} // namespace

Value *importGridSample(NodeView &node, Emitter &emit) {
  Value *x = node.input(0), *grid = node.input(1);
  GridForm form;
  readGridForm(node, form);
  unsigned n = x->rank() < 3 ? 0 : x->rank() - 2;
  if (n == 0 || grid->rank() != n + 2 || !grid->shape().back().isConstant(n))
    return node.fail("its input is {0} and its grid {1}; expected [N, C, "
                     "spatial...] and [N, places..., {2}]",
                     x->type, grid->type, n);
  if (emit.failed())
    return nullptr;
  Shape places(grid->shape().drop_back());
  std::vector<AxisTaps> axes;
  ShapeRef sizes = x->shape().drop_front(2);
  for (unsigned i = 0; i < n; ++i) // The grid has the last axis first.
    axes.push_back(gridTaps(emit,
                            emit.element(grid, int64_t(n) + 1, Dim(n - 1 - i)),
                            sizes[i], form));
  Value *base = emit.mul(emit.iota(places[0], places.size(), 0),
                         emit.dimScalar(numElements(sizes)));
  Value *y = sampleRows(emit, rowsOf(emit, x), base, axes, sizes);
  if (emit.failed())
    return nullptr;
  auto perm = llvm::to_vector(llvm::seq<int64_t>(0, y->rank() - 1));
  perm.insert(perm.begin() + 1, int64_t(y->rank()) - 1);
  return emit.transpose(y, perm);
}

//===----------------------------------------------------------------------===//
// RoiAlign
//===----------------------------------------------------------------------===//

namespace {

/// One axis of the regions: where samples are, f64[regions, out * ratio].
Value *roiCoordinates(Emitter &emit, Value *low, Value *high, bool halfPixel,
                      int64_t out, int64_t ratio) {
  Value *size = emit.sub(high, low);
  if (!halfPixel)
    size = emit.op(OpKind::Max, {size, emit.scalar(ElementType::F64, 1)});
  // Sample i is at (i + 0.5) / (out * ratio) of the size.
  Value *i = emit.cast(emit.iota(Dim(out * ratio), 2, 1), ElementType::F64);
  Value *part =
      emit.mulScalar(emit.addScalar(i, 0.5), 1.0 / double(out * ratio));
  return emit.add(low, emit.mul(size, part));
}

/// Linear, the elements at the ends repeated for one more; 0 beyond that.
AxisTaps roiTaps(Emitter &emit, Value *at, Dim size) {
  Value *near =
      emit.op(OpKind::GreaterEqual, {at, emit.scalar(ElementType::F64, -1)});
  Value *inside = emit.op(
      OpKind::And, {near, emit.op(OpKind::LessEqual, {at, f64(emit, size)})});
  Value *clamped =
      emit.op(OpKind::Min,
              {emit.op(OpKind::Max, {at, emit.scalar(ElementType::F64, 0)}),
               f64(emit, size - Dim(1))});
  Value *low = emit.op(OpKind::Floor, {clamped}),
        *rest = emit.sub(clamped, low);
  Value *other = emit.sub(emit.scalar(ElementType::F64, 1), rest);
  return {{clampedElement(emit, low, size), other, inside},
          {clampedElement(emit, emit.addScalar(low, 1), size), rest, inside}};
}

} // namespace

Value *importRoiAlign(NodeView &node, Emitter &emit) {
  Value *x = node.input(0), *rois = node.input(1), *batches = node.input(2);
  StringRef mode = node.strAttr("mode", "avg");
  int64_t height = node.intAttr("output_height", 1),
          width = node.intAttr("output_width", 1),
          ratio = node.intAttr("sampling_ratio", 0);
  double scale = node.floatAttr("spatial_scale", 1.0f);
  StringRef mapping =
      node.version() < 16
          ? "output_half_pixel"
          : node.strAttr("coordinate_transformation_mode", "half_pixel");
  if (mode != "avg" && mode != "max")
    node.fail("attribute 'mode' is '{0}'; expected avg or max", mode);
  if (mapping != "half_pixel" && mapping != "output_half_pixel")
    node.fail("attribute 'coordinate_transformation_mode' is '{0}'; expected "
              "half_pixel or output_half_pixel",
              mapping);
  if (ratio < 1)
    node.fail("attribute 'sampling_ratio' is {0}: a number of samples that "
              "depends on the region is not supported; expected 1 or more",
              ratio);
  if (x->rank() != 4 || rois->rank() != 2 || !rois->shape()[1].isConstant(4) ||
      batches->rank() != 1 || height < 1 || width < 1)
    node.fail("its inputs are {0}, {1} and {2}; expected [N, C, H, W], "
              "[regions, 4] and [regions]",
              x->type, rois->type, batches->type);
  if (emit.failed())
    return nullptr;
  bool halfPixel = mapping == "half_pixel";
  Dim regions = rois->shape()[0];
  auto side = [&](int64_t i) {
    Value *part =
        emit.cast(emit.slice(rois, 1, Dim(i), Dim(1)), ElementType::F64);
    return emit.addScalar(emit.mulScalar(part, scale), halfPixel ? -0.5 : 0);
  };
  // [regions, rows of samples, columns of samples]
  Value *down =
      roiCoordinates(emit, side(1), side(3), halfPixel, height, ratio);
  Value *across =
      roiCoordinates(emit, side(0), side(2), halfPixel, width, ratio);
  Dim rows = Dim(height * ratio), columns = Dim(width * ratio);
  Shape all = {regions, rows, columns};
  down = emit.broadcast(emit.reshape(down, {regions, rows, Dim(1)}), all);
  across =
      emit.broadcast(emit.reshape(across, {regions, Dim(1), columns}), all);
  ShapeRef sizes = x->shape().drop_front(2);
  std::vector<AxisTaps> axes = {roiTaps(emit, down, sizes[0]),
                                roiTaps(emit, across, sizes[1])};
  Value *base = emit.mul(emit.reshape(emit.cast(batches, ElementType::I64),
                                      {regions, Dim(1), Dim(1)}),
                         emit.dimScalar(numElements(sizes)));
  Value *samples = sampleRows(emit, rowsOf(emit, x), base, axes, sizes,
                              mode == "max" ? OpKind::Max : OpKind::Add);
  Value *split = emit.reshape(samples, {regions, Dim(height), Dim(ratio),
                                        Dim(width), Dim(ratio), x->shape()[1]});
  Value *y = emit.reduce(mode == "max" ? OpKind::ReduceMax : OpKind::ReduceMean,
                         split, {2, 4}, false);
  return emit.transpose(y, {0, 3, 1, 2});
}

//===----------------------------------------------------------------------===//
// DeformConv
//===----------------------------------------------------------------------===//

namespace {

/// Sizes of a deformable convolution of two spatial dimensions.
struct Deformed {
  Window window;
  int64_t groups, offsetGroups;
  Dim batch, channels, places[2]; ///< of the result
  int64_t taps() const { return window.kernel[0] * window.kernel[1]; }
};

/// Where each tap of each place of the result samples along \p axis: f64[batch
/// * offset groups, taps, rows, columns].
Value *deformedCoordinates(Emitter &emit, Value *offset, const Deformed &d,
                           unsigned axis) {
  Dim images = d.batch * Dim(d.offsetGroups);
  Value *own = emit.element(emit.reshape(offset, {images, Dim(d.taps()), Dim(2),
                                                  d.places[0], d.places[1]}),
                            2, Dim(axis));
  Value *place = emit.mulScalar(emit.iota(d.places[axis], 4, 2 + axis),
                                double(d.window.strides[axis]));
  Value *tap = emit.iota(Dim(d.taps()), 4, 1);
  Value *width = emit.scalar(ElementType::I64, double(d.window.kernel[1]));
  tap = emit.op(axis == 0 ? OpKind::Div : OpKind::Mod, {tap, width});
  Value *start = emit.addScalar(
      emit.add(place, emit.mulScalar(tap, double(d.window.dilations[axis]))),
      -double(d.window.padLow[axis]));
  return emit.add(emit.cast(start, ElementType::F64),
                  emit.cast(own, ElementType::F64));
}

bool readDeformed(NodeView &node, Emitter &emit, Deformed &d) {
  Value *x = node.input(0), *w = node.input(1), *offset = node.input(2);
  if (x->rank() != 4 || w->rank() != 4 || offset->rank() != 4) {
    node.fail("its inputs are {0}, {1} and {2}; expected rank 4: two spatial "
              "dimensions",
              x->type, w->type, offset->type);
    return false;
  }
  Ints kernel = kernelOf(node, w);
  d.groups = node.intAttr("group", 1);
  d.offsetGroups = node.intAttr("offset_group", 1);
  if (d.groups < 1 || d.offsetGroups < 1)
    node.fail("attributes 'group' and 'offset_group' are {0} and {1}", d.groups,
              d.offsetGroups);
  if (emit.failed())
    return false;
  std::optional<Window> slide = window(node, emit, x, kernel);
  if (!slide)
    return false;
  d.window = *slide;
  d.batch = x->shape()[0];
  d.channels = x->shape()[1];
  d.places[0] = offset->shape()[2];
  d.places[1] = offset->shape()[3];
  return true;
}

} // namespace

Value *importDeformConv(NodeView &node, Emitter &emit) {
  Value *x = node.input(0), *w = node.input(1), *offset = node.input(2),
        *bias = node.input(3), *mask = node.input(4);
  Deformed d;
  if (!readDeformed(node, emit, d))
    return nullptr;
  auto own = Dim::divideExactly(d.channels, Dim(d.offsetGroups));
  auto inGroup = Dim::divideExactly(d.channels, Dim(d.groups));
  auto outGroup = Dim::divideExactly(w->shape()[0], Dim(d.groups));
  if (!own || !inGroup || !outGroup)
    return node.fail("its channels do not divide into its groups");
  Dim images = d.batch * Dim(d.offsetGroups), taps(d.taps()),
      places = d.places[0] * d.places[1];
  ShapeRef sizes = x->shape().drop_front(2);
  Interpolation linear;
  linear.mode = Interpolation::Mode::Linear;
  std::vector<AxisTaps> axes(2);
  for (unsigned axis : {0u, 1u}) {
    Value *at = deformedCoordinates(emit, offset, d, axis);
    for (const Tap &tap : tapsAt(emit, at, sizes[axis], linear))
      axes[axis].push_back({clampedElement(emit, tap.index, sizes[axis]),
                            tap.weight,
                            isInside(emit, tap.index, sizes[axis])});
  }
  Value *rows =
      rowsOf(emit, emit.reshape(x, {images, *own, sizes[0], sizes[1]}));
  Value *base =
      emit.mul(emit.iota(images, 4, 0), emit.dimScalar(numElements(sizes)));
  // [images, taps, rows, columns, channels]
  Value *samples = sampleRows(emit, rows, base, axes, sizes);
  if (mask)
    samples = emit.mul(samples, emit.reshape(mask, {images, taps, d.places[0],
                                                    d.places[1], Dim(1)}));
  Value *split =
      emit.reshape(samples, {d.batch, Dim(d.offsetGroups), taps, places, *own});
  Value *columns =
      emit.reshape(emit.transpose(split, {0, 1, 4, 2, 3}),
                   {d.batch, Dim(d.groups), *inGroup * taps, places});
  Value *weights = emit.reshape(w, {Dim(d.groups), *outGroup, *inGroup * taps});
  Value *y = emit.reshape(emit.matmul(weights, columns),
                          {d.batch, w->shape()[0], d.places[0], d.places[1]});
  return addChannelBias(node, emit, y, bias);
}

} // namespace tenon::frontend
