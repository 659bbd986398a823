//===- Conv.cpp - importers of convolution and pooling -------------------===//
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

Ints spatialInts(NodeView &node, StringRef name, size_t count,
                 int64_t byDefault, int64_t least) {
  auto given = node.findInts(name);
  if (!given)
    return Ints(count, byDefault);
  if (given->size() != count)
    node.fail("attribute '{0}' has {1} entries; expected {2}", name,
              given->size(), count);
  for (int64_t value : *given)
    if (value < least || value > INT32_MAX)
      node.fail("attribute '{0}' holds {1}", name, value);
  given->resize(count, byDefault);
  return *given;
}

namespace {

/// auto_pad = SAME_*: as much padding as makes ceil(size / stride) outputs, the
/// odd element after (before) the data.
void padSame(NodeView &node, Window &w, ShapeRef spatial, bool oddFirst) {
  for (size_t i = 0; i < spatial.size(); ++i) {
    int64_t extent = (w.kernel[i] - 1) * w.dilations[i] + 1;
    int64_t stride = w.strides[i];
    std::optional<int64_t> size = spatial[i].constant();
    if (!size && stride != 1) {
      node.fail("attribute 'auto_pad' with a stride of {0} needs a known size; "
                "spatial dimension {1} is {2}",
                stride, i, spatial[i]);
      return;
    }
    if (size.value_or(0) > INT64_MAX / 4) {
      node.fail("spatial dimension {0} is {1}, which is too large", i, *size);
      return;
    }
    int64_t total =
        size ? ((*size + stride - 1) / stride - 1) * stride + extent - *size
             : extent - 1;
    total = std::max<int64_t>(total, 0);
    w.padLow[i] = oddFirst ? total - total / 2 : total / 2;
    w.padHigh[i] = total - w.padLow[i];
  }
}

} // namespace

std::optional<Window> window(NodeView &node, Emitter &emit, Value *x,
                             Ints kernel) {
  if (x->rank() < 3) {
    node.fail("its input is {0}; expected [N, C, spatial...]", x->type);
    return std::nullopt;
  }
  ShapeRef spatial = x->shape().drop_front(2);
  size_t n = spatial.size();
  if (kernel.empty() && !node.hasAttr("kernel_shape"))
    node.fail("required attribute 'kernel_shape' is missing");
  Window w;
  w.kernel = spatialInts(node, "kernel_shape", n, 1, 1);
  if (!kernel.empty() && !node.hasAttr("kernel_shape"))
    w.kernel = kernel;
  if (!kernel.empty() && w.kernel != kernel)
    node.fail("attribute 'kernel_shape' differs from the shape of the weights");
  w.strides = spatialInts(node, "strides", n, 1, 1);
  w.dilations = spatialInts(node, "dilations", n, 1, 1);
  StringRef autoPad = node.strAttr("auto_pad", "NOTSET");
  Ints pads = spatialInts(node, "pads", 2 * n, 0, 0);
  w.padLow.assign(pads.begin(), pads.begin() + n);
  w.padHigh.assign(pads.begin() + n, pads.end());
  // What follows divides by strides.
  if (emit.failed())
    return std::nullopt;
  if (autoPad == "SAME_UPPER" || autoPad == "SAME_LOWER") {
    padSame(node, w, spatial, autoPad == "SAME_LOWER");
  } else if (autoPad == "VALID") {
    w.padLow.assign(n, 0);
    w.padHigh.assign(n, 0);
  } else if (autoPad != "NOTSET") {
    node.fail("attribute 'auto_pad' is '{0}'; expected NOTSET, SAME_UPPER, "
              "SAME_LOWER or VALID",
              autoPad);
  }
  if (emit.failed())
    return std::nullopt;
  return w;
}

std::optional<PoolAttrs> poolAttrs(NodeView &node, Emitter &emit, Value *x) {
  std::optional<Window> slide = window(node, emit, x, {});
  if (!slide)
    return std::nullopt;
  PoolAttrs attrs = slideAttrs<PoolAttrs>(*slide);
  attrs.kernel = slide->kernel;
  attrs.ceilMode = node.flagAttr("ceil_mode", false);
  return attrs;
}

namespace {

Value *globalPool(NodeView &node, Emitter &emit, OpKind kind) {
  Value *x = node.input(0);
  if (x->rank() < 3)
    return node.fail("its input is {0}; expected [N, C, spatial...]", x->type);
  return emit.reduce(kind, x, llvm::to_vector(llvm::seq<int64_t>(2, x->rank())),
                     /*keepdims=*/true);
}

} // namespace

Ints kernelOf(NodeView &node, Value *w) {
  Ints kernel;
  for (Dim size : w->shape().drop_front(2)) {
    if (!size.constant() || *size.constant() < 1) {
      node.fail("its weights are {0}; the kernel's size must be known",
                w->type);
      return {};
    }
    kernel.push_back(*size.constant());
  }
  return kernel;
}

Value *convolution(NodeView &node, Emitter &emit, Value *x, Value *w) {
  if (emit.failed())
    return nullptr;
  if (w->rank() != x->rank() || x->rank() < 3)
    return node.fail("its input is {0} and its weights are {1}; expected "
                     "[N, C, spatial...] and [M, C / group, kernel...]",
                     x->type, w->type);
  Ints kernel = kernelOf(node, w);
  if (emit.failed())
    return nullptr;
  std::optional<Window> slide = window(node, emit, x, kernel);
  if (!slide)
    return nullptr;
  ConvAttrs attrs = slideAttrs<ConvAttrs>(*slide);
  attrs.groups = node.intAttr("group", 1);
  if (attrs.groups < 1)
    return node.fail("attribute 'group' is {0}", attrs.groups);
  return emit.op(OpKind::Conv, {x, w}, attrs);
}

Value *addChannelBias(NodeView &node, Emitter &emit, Value *y, Value *bias) {
  if (!bias || emit.failed())
    return y;
  if (bias->rank() != 1 || bias->shape()[0] != y->shape()[1])
    return node.fail("operand 'B' is {0}; expected one element for each of the "
                     "{1} output channels",
                     bias->type, y->shape()[1]);
  Shape perChannel(y->rank(), Dim(1));
  perChannel[1] = bias->shape()[0];
  return emit.add(y, emit.reshape(bias, perChannel));
}

Value *importConv(NodeView &node, Emitter &emit) {
  Value *x = node.input(0), *w = node.input(1), *bias = node.input(2);
  return addChannelBias(node, emit, convolution(node, emit, x, w), bias);
}

Value *importMaxPool(NodeView &node, Emitter &emit) {
  Value *x = node.input(0);
  std::optional<PoolAttrs> attrs = poolAttrs(node, emit, x);
  if (!attrs)
    return nullptr;
  attrs->columnMajor = node.flagAttr("storage_order", false);
  Op *op =
      emit.create(OpKind::MaxPool, {x}, std::make_unique<PoolAttrs>(*attrs));
  if (!op)
    return nullptr;
  if (node.wantsOutput(1))
    node.setOutput(1, op->result(1));
  return op->result(0);
}

Value *importAveragePool(NodeView &node, Emitter &emit) {
  Value *x = node.input(0);
  std::optional<PoolAttrs> attrs = poolAttrs(node, emit, x);
  if (!attrs)
    return nullptr;
  attrs->countIncludePad = node.flagAttr("count_include_pad", false);
  return emit.op(OpKind::AveragePool, {x}, *attrs);
}

Value *importGlobalAveragePool(NodeView &node, Emitter &emit) {
  return globalPool(node, emit, OpKind::ReduceMean);
}

Value *importGlobalMaxPool(NodeView &node, Emitter &emit) {
  return globalPool(node, emit, OpKind::ReduceMax);
}

} // namespace tenon::frontend
