//===- ConvTranspose.cpp - importers of transposed and other windows ------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontend/Emitter.h"
#include "frontend/NodeView.h"
#include "frontend/OnnxOps.h"
#include "frontend/importers/Window.h"
#include "llvm/ADT/Sequence.h"

using namespace llvm;
using namespace tenon::ir;

namespace tenon::frontend {

namespace {

//===----------------------------------------------------------------------===//
// Transposed convolution
//===----------------------------------------------------------------------===//

/// What is left out of the full result in front and behind; negative amounts
/// add zeros.
struct Trim {
  Dims low, high;
};

/// [C, M / groups, kernel...] of a transposed convolution as the weights [M, C
/// / groups, kernel...] of a plain one: the kernel backwards.
Value *mirroredWeights(Emitter &emit, Value *w, int64_t groups) {
  ShapeRef s = w->shape();
  std::optional<Dim> inputs = Dim::divideExactly(s[0], Dim(groups));
  if (!inputs)
    return emit.fail("its {0} input channels do not divide into {1} groups",
                     s[0], groups);
  Shape kernel(s.drop_front(2)), split = {Dim(groups), *inputs, s[1]};
  split.append(kernel);
  auto perm = llvm::to_vector(llvm::seq<int64_t>(0, split.size()));
  std::swap(perm[1], perm[2]);
  Shape merged = {Dim(groups) * s[1], *inputs};
  merged.append(kernel);
  Value *swapped =
      emit.reshape(emit.transpose(emit.reshape(w, split), perm), merged);
  SliceAttrs flip;
  for (auto [i, size] : llvm::enumerate(merged)) {
    flip.starts.push_back(i < 2 ? Dim(0) : size - Dim(1));
    flip.sizes.push_back(size);
    flip.steps.push_back(i < 2 ? 1 : -1);
  }
  return emit.op(OpKind::Slice, {swapped}, flip);
}

/// A convolution of x with zeros between its elements and around it. The full
/// result has (in - 1) * stride + (kernel - 1) * dilation + 1 elements.
Value *transposedConv(Emitter &emit, Value *x, Value *w, const Window &window,
                      const Trim &trim, int64_t groups) {
  if (emit.failed())
    return nullptr;
  size_t n = window.kernel.size();
  // Zeros behind each element: [.., size, 1, ..] padded to [.., size, stride].
  Shape split(x->shape().take_front(2)), spread(split);
  PadAttrs zeros, around;
  zeros.low.assign(2, Dim(0));
  zeros.high.assign(2, Dim(0));
  around.low.assign(2, Dim(0));
  around.high.assign(2, Dim(0));
  for (size_t i = 0; i < n; ++i) {
    Dim size = x->shape()[i + 2];
    split.append({size, Dim(1)});
    spread.push_back(size * Dim(window.strides[i]));
    zeros.low.append({Dim(0), Dim(0)});
    zeros.high.append({Dim(0), Dim(window.strides[i] - 1)});
    Dim reach((window.kernel[i] - 1) * window.dilations[i]);
    around.low.push_back(reach - trim.low[i]);
    around.high.push_back(reach - trim.high[i] - Dim(window.strides[i] - 1));
  }
  Value *spaced = x;
  if (llvm::any_of(window.strides, [](int64_t s) { return s != 1; }))
    spaced = emit.reshape(emit.op(OpKind::Pad, {emit.reshape(x, split)}, zeros),
                          spread);
  ConvAttrs attrs;
  attrs.strides.assign(n, 1);
  attrs.dilations = window.dilations;
  attrs.padLow.assign(n, 0);
  attrs.padHigh.assign(n, 0);
  attrs.groups = groups;
  return emit.op(OpKind::Conv,
                 {emit.op(OpKind::Pad, {spaced}, around),
                  mirroredWeights(emit, w, groups)},
                 attrs);
}

Dim fullSize(Dim in, const Window &w, size_t i) {
  return (in - Dim(1)) * Dim(w.strides[i]) +
         Dim((w.kernel[i] - 1) * w.dilations[i] + 1);
}

/// What an output size or auto_pad leave out, the odd element in front unless
/// SAME_UPPER puts it behind. What is missing is added behind.
Trim trimTo(NodeView &node, Emitter &emit, ArrayRef<Dim> full,
            ArrayRef<Dim> wanted, bool oddLast) {
  Trim trim;
  for (auto [have, want] : llvm::zip(full, wanted)) {
    std::optional<int64_t> total = (have - want).constant();
    if (!total) {
      node.fail("its output size {0} must differ from {1} by a known number",
                want, have);
      return trim;
    }
    int64_t positive = std::max<int64_t>(*total, 0);
    int64_t low = oddLast ? positive / 2 : positive - positive / 2;
    trim.low.push_back(Dim(low));
    trim.high.push_back(Dim(*total - low));
  }
  return trim;
}

} // namespace

Value *importConvTranspose(NodeView &node, Emitter &emit) {
  Value *x = node.input(0), *w = node.input(1), *bias = node.input(2);
  if (w->rank() != x->rank() || x->rank() < 3)
    return node.fail("its input is {0} and its weights are {1}; expected "
                     "[N, C, spatial...] and [C, M / group, kernel...]",
                     x->type, w->type);
  size_t n = x->rank() - 2;
  Window window;
  window.kernel = kernelOf(node, w);
  if (emit.failed())
    return nullptr;
  if (spatialInts(node, "kernel_shape", n, 1, 1) != window.kernel &&
      node.hasAttr("kernel_shape"))
    node.fail("attribute 'kernel_shape' differs from the shape of the weights");
  window.strides = spatialInts(node, "strides", n, 1, 1);
  window.dilations = spatialInts(node, "dilations", n, 1, 1);
  Ints extra = spatialInts(node, "output_padding", n, 0, 0);
  Ints pads = spatialInts(node, "pads", 2 * n, 0, 0);
  StringRef autoPad = node.strAttr("auto_pad", "NOTSET");
  auto given = node.findInts("output_shape");
  int64_t groups = node.intAttr("group", 1);
  bool same = autoPad == "SAME_UPPER" || autoPad == "SAME_LOWER";
  if (!same && autoPad != "NOTSET" && autoPad != "VALID")
    node.fail("attribute 'auto_pad' is '{0}'; expected NOTSET, SAME_UPPER, "
              "SAME_LOWER or VALID",
              autoPad);
  if (groups < 1 || (given && given->size() != n))
    node.fail("its attributes 'group' or 'output_shape' do not fit {0}",
              x->type);
  if (emit.failed())
    return nullptr;
  Dims full, wanted;
  for (size_t i = 0; i < n; ++i) {
    Dim size = x->shape()[i + 2];
    full.push_back(fullSize(size, window, i) + Dim(extra[i]));
    wanted.push_back(given ? Dim((*given)[i]) : size * Dim(window.strides[i]));
  }
  Trim trim;
  if (given || same) {
    trim = trimTo(node, emit, full, wanted, autoPad == "SAME_UPPER");
  } else {
    for (size_t i = 0; i < n; ++i) {
      trim.low.push_back(Dim(pads[i]));
      trim.high.push_back(Dim(pads[i + n]));
    }
  }
  for (auto [high, more] : llvm::zip(trim.high, extra))
    high = high - Dim(more);
  Value *y = transposedConv(emit, x, w, window, trim, groups);
  return addChannelBias(node, emit, y, bias);
}

/// Adds up overlapping blocks: a transposed convolution of one channel for each
/// place of a block, whose weights are 1 there and 0 elsewhere.
Value *importCol2Im(NodeView &node, Emitter &emit) {
  Value *x = node.input(0);
  Dims image = emit.sizes(node.input(1), "image_shape");
  SmallVector<int64_t, 4> block =
      emit.constantInts(node.input(2), "block_shape");
  size_t n = block.size();
  if (emit.failed())
    return nullptr;
  if (x->rank() != 3 || n == 0 || image.size() != n)
    return node.fail(
        "its input is {0}; expected [N, C * block, L] and sizes of "
        "one length",
        x->type);
  Window window;
  window.kernel.assign(block.begin(), block.end());
  window.strides = spatialInts(node, "strides", n, 1, 1);
  window.dilations = spatialInts(node, "dilations", n, 1, 1);
  Ints pads = spatialInts(node, "pads", 2 * n, 0, 0);
  int64_t places = 1;
  for (int64_t size : block)
    if (size < 1 || size > 1024 || (places *= size) > 4096)
      return node.fail("'block_shape' is too large or not positive");
  std::optional<Dim> channels = Dim::divideExactly(x->shape()[1], Dim(places));
  if (!channels || emit.failed())
    return node.fail("its {0} channels do not divide into blocks of {1}",
                     x->shape()[1], places);
  Shape columns = {x->shape()[0] * *channels, Dim(places)};
  Shape result = {x->shape()[0], *channels};
  SmallVector<int64_t, 4> weightShape = {places, 1};
  weightShape.append(block);
  Trim trim;
  for (size_t i = 0; i < n; ++i) {
    int64_t reach = (block[i] - 1) * window.dilations[i] + 1;
    Dim count = Dim::floorDiv(image[i] + Dim(pads[i] + pads[i + n] - reach),
                              Dim(window.strides[i])) +
                Dim(1);
    columns.push_back(count);
    result.push_back(image[i]);
    trim.low.push_back(Dim(pads[i]));
    trim.high.push_back(fullSize(count, window, i) - Dim(pads[i]) - image[i]);
  }
  std::vector<double> identity(places * places, 0.0);
  for (int64_t i = 0; i < places; ++i)
    identity[i * places + i] = 1;
  Value *w = emit.table(x->element(), weightShape, identity);
  Value *y = transposedConv(emit, emit.reshape(x, columns), w, window, trim, 1);
  return emit.reshape(y, result);
}

//===----------------------------------------------------------------------===//
// LpPool, LRN
//===----------------------------------------------------------------------===//

namespace {

/// |x|^p and its inverse.
Value *power(Emitter &emit, Value *x, int64_t p) {
  Value *size = emit.op(OpKind::Abs, {x});
  if (p == 1 || emit.failed())
    return size;
  return p == 2 ? emit.mul(x, x)
                : emit.op(OpKind::Pow,
                          {size, emit.scalar(x->element(), double(p))});
}

Value *root(Emitter &emit, Value *x, int64_t p) {
  if (p == 1 || emit.failed())
    return x;
  return p == 2 ? emit.op(OpKind::Sqrt, {x})
                : emit.op(OpKind::Pow,
                          {x, emit.scalar(x->element(), 1.0 / double(p))});
}

int64_t exponentOf(NodeView &node) {
  int64_t p = node.intAttr("p", 2);
  if (p < 1)
    node.fail("attribute 'p' is {0}", p);
  return p;
}

/// With ceil_mode the last window may reach beyond the padding: as much more of
/// it as that takes.
void padToCeil(NodeView &node, PoolAttrs &attrs, ShapeRef spatial) {
  attrs.ceilMode = false;
  for (size_t i = 0; i < spatial.size(); ++i) {
    std::optional<int64_t> size = spatial[i].constant();
    int64_t stride = attrs.strides[i];
    if (!size || *size > INT32_MAX) {
      node.fail(
          "attribute 'ceil_mode' needs a known size; spatial dimension {0} "
          "is {1}",
          i, spatial[i]);
      return;
    }
    int64_t reach = (attrs.kernel[i] - 1) * attrs.dilations[i] + 1;
    int64_t room = *size + attrs.padLow[i] + attrs.padHigh[i] - reach;
    int64_t steps = std::max<int64_t>((room + stride - 1) / stride, 0);
    // A window must start within the input or the padding in front.
    if (steps * stride >= *size + attrs.padLow[i])
      --steps;
    attrs.padHigh[i] += std::max<int64_t>(steps * stride - room, 0);
  }
}

} // namespace

/// (sum of |x|^p)^(1/p) of each window: the mean, padding included, times the
/// window's size.
Value *importLpPool(NodeView &node, Emitter &emit) {
  Value *x = node.input(0);
  int64_t p = exponentOf(node);
  std::optional<PoolAttrs> attrs = poolAttrs(node, emit, x);
  if (!attrs)
    return nullptr;
  if (attrs->ceilMode)
    padToCeil(node, *attrs, x->shape().drop_front(2));
  attrs->countIncludePad = true;
  double count = 1;
  for (int64_t size : attrs->kernel)
    count *= double(size);
  Value *mean = emit.op(OpKind::AveragePool, {power(emit, x, p)}, *attrs);
  return root(emit, emit.mulScalar(mean, count), p);
}

Value *importGlobalLpPool(NodeView &node, Emitter &emit) {
  Value *x = node.input(0);
  int64_t p = exponentOf(node);
  if (x->rank() < 3)
    return node.fail("its input is {0}; expected [N, C, spatial...]", x->type);
  Value *sum = emit.reduce(OpKind::ReduceSum, power(emit, x, p),
                           llvm::to_vector(llvm::seq<int64_t>(2, x->rank())),
                           /*keepdims=*/true);
  return root(emit, sum, p);
}

/// x / (bias + alpha / size * sum of squares of the channels around)^beta
Value *importLrn(NodeView &node, Emitter &emit) {
  Value *x = node.input(0);
  int64_t size = node.requireInt("size");
  double alpha = node.floatAttr("alpha", 1e-4f),
         beta = node.floatAttr("beta", 0.75f),
         bias = node.floatAttr("bias", 1.0f);
  if (emit.failed())
    return nullptr;
  if (x->rank() < 2 || size < 1 || size > 1024)
    return node.fail("its input is {0} and 'size' is {1}; expected [N, C, ...] "
                     "and 1 to 1024",
                     x->type, size);
  PadAttrs around;
  around.low.assign(x->rank(), Dim(0));
  around.high.assign(x->rank(), Dim(0));
  around.low[1] = Dim((size - 1) / 2);
  around.high[1] = Dim(size / 2);
  Value *squares = emit.op(OpKind::Pad, {emit.mul(x, x)}, around);
  Value *sum = nullptr;
  for (int64_t i = 0; i < size; ++i) {
    Value *shifted = emit.slice(squares, 1, Dim(i), x->shape()[1]);
    sum = sum ? emit.add(sum, shifted) : shifted;
  }
  Value *base = emit.addScalar(emit.mulScalar(sum, alpha / double(size)), bias);
  if (emit.failed())
    return nullptr;
  return emit.div(
      x, emit.op(OpKind::Pow, {base, emit.scalar(x->element(), beta)}));
}

} // namespace tenon::frontend
