//===- Resize.cpp - importers of Resize and Upsample ----------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontend/Emitter.h"
#include "frontend/NodeView.h"
#include "frontend/OnnxOps.h"
#include "frontend/importers/Interpolate.h"
#include "llvm/ADT/Sequence.h"
#include <cmath>

using namespace llvm;
using namespace tenon::ir;

/// \file
/// Interpolation is separable: one axis after another, each a sum of gathered
/// slices times weights. Coordinates are computed in f64, in the graph, so that
/// sizes may be symbols; where they are known, all of it folds.

namespace tenon::frontend {

namespace {

enum class Coordinates {
  HalfPixel,
  HalfPixelSymmetric,
  PytorchHalfPixel,
  AlignCorners,
  Asymmetric,
  CropAndResize,
};

constexpr std::pair<StringLiteral, Coordinates> coordinateNames[] = {
    {"half_pixel", Coordinates::HalfPixel},
    {"half_pixel_symmetric", Coordinates::HalfPixelSymmetric},
    {"pytorch_half_pixel", Coordinates::PytorchHalfPixel},
    {"align_corners", Coordinates::AlignCorners},
    {"asymmetric", Coordinates::Asymmetric},
    {"tf_crop_and_resize", Coordinates::CropAndResize},
};

constexpr std::pair<StringLiteral, NearestRounding> roundingNames[] = {
    {"round_prefer_floor", NearestRounding::PreferFloor},
    {"round_prefer_ceil", NearestRounding::PreferCeil},
    {"floor", NearestRounding::Floor},
    {"ceil", NearestRounding::Ceil},
};

/// Reads a string attribute that is one of \p names.
template <class E, size_t N>
E choiceAttr(NodeView &node, StringRef attribute, StringRef byDefault,
             const std::pair<StringLiteral, E> (&names)[N]) {
  StringRef given = node.strAttr(attribute, byDefault);
  std::string known;
  for (const auto &[name, value] : names) {
    if (given == name)
      return value;
    known += (known.empty() ? "" : ", ") + name.str();
  }
  node.fail("attribute '{0}' is '{1}'; expected one of {2}", attribute, given,
            known);
  return names[0].second;
}

/// One axis that is resized.
struct Axis {
  int64_t axis;
  Dim in, out;
  /// out / in: as given (a number), or from the sizes (an f64 scalar).
  std::optional<double> number;
  Value *scale = nullptr;
  std::optional<double> roiStart, roiEnd;
};

class ResizeImporter {
public:
  ResizeImporter(NodeView &node, Emitter &emit, Value *x)
      : node(node), emit(emit), x(x) {}
  /// Upsample's: only `mode`, and everything else as it was then.
  Value *runUpsample(Value *scales, ArrayRef<float> known);
  Value *runResize();

private:
  void readAttributes();
  bool readAxes();
  bool scaleBy(ArrayRef<double> scales);
  bool resizeTo(ArrayRef<Dim> sizes, StringRef policy);
  bool readRoi(Value *roi);
  Value *coordinates(const Axis &axis);
  Value *alongAxis(Value *value, const Axis &axis);
  Value *run();
  Value *f64(double value) { return emit.scalar(ElementType::F64, value); }
  Value *f64(Dim value) {
    return emit.cast(emit.dimScalar(value), ElementType::F64);
  }

  NodeView &node;
  Emitter &emit;
  Value *x;
  Coordinates mapping = Coordinates::HalfPixel;
  Interpolation form;
  double extrapolation = 0;
  std::vector<Axis> axes;
};

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

/// floor(size * scale), where that is an expression.
std::optional<Dim> scaledSize(Dim size, double scale) {
  if (std::optional<int64_t> known = size.constant())
    return Dim(int64_t(std::floor(double(*known) * scale)));
  for (int64_t divisor = 1; divisor <= 64; ++divisor)
    if (double times = scale * double(divisor); times == std::floor(times))
      return Dim::floorDiv(size * Dim(int64_t(times)), Dim(divisor));
  return std::nullopt;
}

bool ResizeImporter::scaleBy(ArrayRef<double> scales) {
  for (auto [axis, scale] : llvm::zip(axes, scales)) {
    if (!(scale > 0) || scale > 1e6) {
      node.fail("'scales' holds {0}", scale);
      return false;
    }
    std::optional<Dim> size = scaledSize(axis.in, scale);
    if (!size) {
      node.fail("axis {0} has the size {1}, which must be known when compiling "
                "to be scaled by {2}",
                axis.axis, axis.in, scale);
      return false;
    }
    axis.out = *size;
    axis.number = scale;
    axis.scale = f64(scale);
  }
  return !emit.failed();
}

bool ResizeImporter::resizeTo(ArrayRef<Dim> sizes, StringRef policy) {
  for (auto [axis, size] : llvm::zip(axes, sizes))
    axis.out = size;
  if (policy != "stretch") {
    // One scale for all, so that nothing is larger (smaller) than asked for.
    bool smallest = policy == "not_larger";
    double scale = smallest ? HUGE_VAL : 0;
    for (const Axis &axis : axes) {
      if (!axis.in.constant() || !axis.out.constant() ||
          axis.in.isConstant(0)) {
        node.fail("with 'keep_aspect_ratio_policy', sizes must be known when "
                  "compiling");
        return false;
      }
      double own = double(*axis.out.constant()) / double(*axis.in.constant());
      scale = smallest ? std::min(scale, own) : std::max(scale, own);
    }
    for (Axis &axis : axes) {
      axis.out =
          Dim(int64_t(std::floor(scale * double(*axis.in.constant()) + 0.5)));
      axis.number = scale;
      axis.scale = f64(scale);
    }
    return !emit.failed();
  }
  for (Axis &axis : axes) {
    if (axis.in == axis.out) {
      axis.number = 1;
      axis.scale = f64(1.0);
    } else if (axis.in.constant() && axis.out.constant() &&
               *axis.in.constant() > 0) {
      axis.number = double(*axis.out.constant()) / double(*axis.in.constant());
      axis.scale = f64(*axis.number);
    } else {
      axis.scale = emit.div(f64(axis.out), f64(axis.in));
    }
  }
  return !emit.failed();
}

//===----------------------------------------------------------------------===//
// Coordinates
//===----------------------------------------------------------------------===//

/// For each index of the result, where it is in the input: f64[out].
Value *ResizeImporter::coordinates(const Axis &axis) {
  Value *y = emit.cast(emit.iota(axis.out, 1, 0), ElementType::F64);
  Value *width = emit.mul(axis.scale, f64(axis.in));
  Value *isOne = emit.op(OpKind::Equal, {width, f64(1.0)});
  Value *last = f64(axis.in - Dim(1));
  auto halfPixel = [&] {
    return emit.addScalar(emit.div(emit.addScalar(y, 0.5), axis.scale), -0.5);
  };
  switch (mapping) {
  case Coordinates::HalfPixel:
    return halfPixel();
  case Coordinates::HalfPixelSymmetric: {
    Value *adjustment = emit.div(f64(axis.out), width);
    Value *offset = emit.mul(emit.mulScalar(f64(axis.in), 0.5),
                             emit.sub(f64(1.0), adjustment));
    return emit.add(offset, halfPixel());
  }
  case Coordinates::PytorchHalfPixel:
    return emit.where(isOne, f64(-0.5), halfPixel());
  case Coordinates::AlignCorners:
    return emit.where(isOne, f64(0.0),
                      emit.div(emit.mul(y, last), emit.addScalar(width, -1)));
  case Coordinates::Asymmetric:
    return emit.div(y, axis.scale);
  case Coordinates::CropAndResize: {
    double start = *axis.roiStart, length = *axis.roiEnd - start;
    Value *spread =
        emit.where(isOne, emit.mulScalar(last, length / 2),
                   emit.div(emit.mul(emit.mulScalar(y, length), last),
                            emit.addScalar(width, -1)));
    return emit.add(spread, emit.mulScalar(last, start));
  }
  }
  llvm_unreachable("all mappings are handled");
}

Value *ResizeImporter::alongAxis(Value *value, const Axis &axis) {
  Value *at = coordinates(axis);
  Interpolation own = form;
  if (form.antialias) {
    if (!axis.number)
      return node.fail("with 'antialias', the sizes of axis {0} must be known "
                       "when compiling",
                       axis.axis);
    own.shrink = std::min(1.0, *axis.number);
  }
  Value *result = interpolate(emit, value, axis.axis, at, own);
  if (mapping != Coordinates::CropAndResize || emit.failed())
    return result;
  Value *outside = emit.op(
      OpKind::Or, {emit.op(OpKind::Less, {at, f64(0.0)}),
                   emit.op(OpKind::Greater, {at, f64(axis.in - Dim(1))})});
  Shape shape(result->rank(), Dim(1));
  shape[axis.axis] = axis.out;
  return emit.where(emit.reshape(outside, shape),
                    emit.scalar(result->element(), extrapolation), result);
}

Value *ResizeImporter::run() {
  Value *result = x;
  bool computes = form.mode != Interpolation::Mode::Nearest;
  ElementType type = x->element();
  if (computes && !emit.failed() && type != ElementType::F64)
    result = emit.cast(result, ElementType::F32);
  for (const Axis &axis : axes) {
    bool isIdentity = axis.number == 1.0 && axis.in == axis.out &&
                      mapping != Coordinates::CropAndResize;
    if (!isIdentity)
      result = alongAxis(result, axis);
    if (emit.failed())
      return nullptr;
  }
  if (computes && isInteger(type))
    result = emit.op(OpKind::Round, {result});
  return emit.cast(result, type);
}

//===----------------------------------------------------------------------===//
// Attributes and inputs
//===----------------------------------------------------------------------===//

void ResizeImporter::readAttributes() {
  StringRef mode = node.strAttr("mode", "nearest");
  if (mode == "linear")
    form.mode = Interpolation::Mode::Linear;
  else if (mode == "cubic")
    form.mode = Interpolation::Mode::Cubic;
  else if (mode != "nearest")
    node.fail("attribute 'mode' is '{0}'; expected nearest, linear or cubic",
              mode);
  if (node.version() < 11) {
    // What the definition had before it could be said.
    mapping = Coordinates::Asymmetric;
    form.rounding = NearestRounding::Floor;
    return;
  }
  mapping = choiceAttr(node, "coordinate_transformation_mode", "half_pixel",
                       coordinateNames);
  form.rounding =
      choiceAttr(node, "nearest_mode", "round_prefer_floor", roundingNames);
  form.cubicA = node.floatAttr("cubic_coeff_a", -0.75f);
  form.excludeOutside = node.flagAttr("exclude_outside", false);
  extrapolation = node.floatAttr("extrapolation_value", 0);
  if (node.version() >= 18)
    form.antialias = node.flagAttr("antialias", false) &&
                     form.mode != Interpolation::Mode::Nearest;
}

bool ResizeImporter::readAxes() {
  auto given = node.version() >= 18 ? node.findInts("axes") : std::nullopt;
  auto list =
      given.value_or(llvm::to_vector<4>(llvm::seq<int64_t>(0, x->rank())));
  for (int64_t number : list) {
    int64_t axis = node.checkedAxis(number, x->rank());
    if (emit.failed())
      return false;
    axes.push_back({axis, x->shape()[axis], Dim(0), {}, nullptr, {}, {}});
  }
  return true;
}

/// The numbers of a list of floats that must be known.
std::optional<std::vector<double>> knownNumbers(NodeView &node, Value *list,
                                                size_t count, StringRef what) {
  Op *def = list->def(OpKind::Const);
  if (!def) {
    node.fail("'{0}' depends on data; it must be known when compiling", what);
    return std::nullopt;
  }
  const Constant &constant = *def->attrs<ConstAttrs>().value;
  if (constant.numElements() != count) {
    node.fail("'{0}' has {1} elements; expected {2}", what,
              constant.numElements(), count);
    return std::nullopt;
  }
  std::vector<double> numbers;
  for (size_t i = 0; i < count; ++i)
    numbers.push_back(constant.floatAt(i));
  return numbers;
}

/// Starts of all axes, then ends, as parts of the input's size.
bool ResizeImporter::readRoi(Value *roi) {
  if (!roi) {
    node.fail("'coordinate_transformation_mode' is tf_crop_and_resize, which "
              "needs the input 'roi'");
    return false;
  }
  auto numbers = knownNumbers(node, roi, 2 * axes.size(), "roi");
  if (!numbers)
    return false;
  for (auto [i, axis] : llvm::enumerate(axes)) {
    axis.roiStart = (*numbers)[i];
    axis.roiEnd = (*numbers)[i + axes.size()];
  }
  return true;
}

bool isGiven(Value *list) {
  return list && !numElements(list->shape()).isConstant(0);
}

Value *ResizeImporter::runResize() {
  readAttributes();
  bool isOld = node.version() < 11;
  Value *roi = isOld ? nullptr : node.input(1);
  Value *scales = node.input(isOld ? 1 : 2),
        *sizes = isOld ? nullptr : node.input(3);
  StringRef policy = node.version() >= 18
                         ? node.strAttr("keep_aspect_ratio_policy", "stretch")
                         : "stretch";
  if (policy != "stretch" && policy != "not_larger" && policy != "not_smaller")
    return node.fail("attribute 'keep_aspect_ratio_policy' is '{0}'; expected "
                     "stretch, not_larger or not_smaller",
                     policy);
  if (!readAxes())
    return nullptr;
  if (mapping == Coordinates::CropAndResize && !readRoi(roi))
    return nullptr;
  if (isGiven(scales) == isGiven(sizes))
    return node.fail("it needs one of 'scales' and 'sizes'");
  if (isGiven(scales)) {
    auto numbers = knownNumbers(node, scales, axes.size(), "scales");
    return numbers && scaleBy(*numbers) ? run() : nullptr;
  }
  Dims wanted = emit.sizes(sizes, "sizes");
  if (emit.failed())
    return nullptr;
  if (wanted.size() != axes.size())
    return node.fail("'sizes' has {0} elements; expected {1}", wanted.size(),
                     axes.size());
  return resizeTo(wanted, policy) ? run() : nullptr;
}

Value *ResizeImporter::runUpsample(Value *scales, ArrayRef<float> known) {
  readAttributes();
  if (!readAxes())
    return nullptr;
  std::vector<double> numbers(known.begin(), known.end());
  if (scales) {
    auto given = knownNumbers(node, scales, axes.size(), "scales");
    if (!given)
      return nullptr;
    numbers = *given;
  }
  if (numbers.size() != axes.size())
    return node.fail("'scales' has {0} elements; expected {1}", numbers.size(),
                     axes.size());
  return scaleBy(numbers) ? run() : nullptr;
}

} // namespace

Value *importResize(NodeView &node, Emitter &emit) {
  return ResizeImporter(node, emit, node.input(0)).runResize();
}

Value *importUpsample7(NodeView &node, Emitter &emit) {
  auto scales = node.findFloats("scales");
  if (!scales)
    return node.fail("required attribute 'scales' is missing");
  return ResizeImporter(node, emit, node.input(0))
      .runUpsample(nullptr, *scales);
}

Value *importUpsample(NodeView &node, Emitter &emit) {
  return ResizeImporter(node, emit, node.input(0))
      .runUpsample(node.input(1), {});
}

} // namespace tenon::frontend
