//===- Windows.cpp - convolutions and pools ------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/emit/CppText.h"
#include "codegen/select/Epilogue.h"
#include "codegen/select/Loop.h"
#include "codegen/select/Tensor.h"
#include "ir/support/Diag.h"

namespace tenon::codegen {

using ir::ElementType;
using ir::OpKind;

namespace {

/// The kernels have loops over so many spatial dimensions.
llvm::Error checkSpatial(const ir::Value *x) {
  if (x->rank() >= 3 && x->rank() <= 5)
    return llvm::Error::success();
  return userError("{0} spatial dimensions; 1 to 3 are supported",
                   x->rank() - 2);
}

/// To a convolution's epilogue spatial dimensions are one: contiguous, or
/// broadcast together.
bool isColumn(const View &view) {
  std::optional<View> merged = mergeDims(view, 2, view.rank());
  return merged &&
         (merged->strides[2].isConstant(0) || merged->strides[2].isConstant(1));
}

/// The views of the epilogue's operands in the result's shape; those with
/// spatial dimensions that a kernel can't step over are copied.
std::vector<View> convExtras(Lowering &lowering, const ir::Op &op) {
  std::vector<View> extras;
  for (const ir::Value *extra : op.operands().drop_front(2)) {
    View view = lowering.view(extra);
    View whole = lowering.broadcast(view, op.result()->shape());
    bool literal = literalOf(lowering, view) != nullptr;
    extras.push_back(literal || isColumn(whole)
                         ? view
                         : lowering.fit(op, whole, Strides::Contiguous));
  }
  return extras;
}

struct ConvSizes {
  int64_t channels, filters;
  llvm::SmallVector<int64_t> kernel;
};

llvm::Expected<ConvSizes> convSizes(const ir::Op &op) {
  std::optional<int64_t> channels = op.operand(0)->shape()[1].constant();
  auto weights = ir::constantShape(op.operand(1)->shape());
  if (!channels || !weights)
    return userError("the channels of 'x' and the sizes of 'w' must be known "
                     "when compiling; name them with --dim");
  ConvSizes sizes{*channels, (*weights)[0], {}};
  sizes.kernel.assign(weights->begin() + 2, weights->end());
  return sizes;
}

void launchConv(Lowering &lowering, const ir::Op &op, const ConvSizes &sizes,
                const Epilogue &epilogue, const View &y) {
  const auto &attrs = op.attrs<ir::ConvAttrs>();
  ElementType element = op.operand(0)->element();
  bool depthwise =
      attrs.groups == sizes.channels && attrs.groups == sizes.filters;
  bool direct = element != ElementType::F32 || depthwise;
  View x = lowering.view(op.operand(0)),
       w = lowering.operand(op, op.operand(1), Strides::Contiguous);
  std::optional<LaunchSpec> tiled;
  if (lowering.isCuda())
    tiled = tensorConv(lowering, x, w, y, attrs, epilogue);
  LaunchSpec spec;
  if (tiled) {
    spec = std::move(*tiled);
  } else {
    spec.kernel = lowering.isCuda() ? "conv"
                  : direct          ? "conv_direct"
                                    : "conv_f32";
    spec.config.types("Operands", epilogue.elements);
    if (lowering.isCuda())
      spec.config.type("A", x.element)
          .type("B", w.element)
          .type("C", y.element)
          .type("Sum", epilogue.functor.arguments[0].element);
    else if (direct)
      spec.config.type("T", element);
    spec.operands = {x, w};
  }
  spec.config.rank("spatial", sizes.kernel.size())
      .integer("groups", attrs.groups)
      .integer("channels", sizes.channels)
      .integer("filters", sizes.filters)
      .array("kernel", sizes.kernel)
      .array("strides", attrs.strides)
      .array("dilations", attrs.dilations)
      .array("pad_low", attrs.padLow);
  llvm::append_range(spec.operands, epilogue.operands);
  spec.functors.push_back(epilogue.functor);
  spec.results = {y};
  Dim window = ir::numElements(ir::ShapeRef(op.operand(1)->shape()));
  std::optional<Dim> perFilter =
      Dim::divideExactly(window, Dim(std::max<int64_t>(1, sizes.filters)));
  spec.flops = ir::numElements(y.shape) * perFilter.value_or(Dim(0)) * Dim(2);
  lowering.launch(op, std::move(spec));
}

llvm::Error selectConv(Lowering &lowering, const ir::Op &op) {
  const ir::Value *x = op.operand(0), *y = op.result();
  if (llvm::Error error = checkSpatial(x))
    return error;
  if (cppType(x->element()).empty())
    return unsupportedType(op, x->element(), "f32, f64 and the integers");
  llvm::Expected<ConvSizes> sizes = convSizes(op);
  if (!sizes)
    return sizes.takeError();
  std::vector<View> extras = convExtras(lowering, op);
  Epilogue epilogue = makeEpilogue(lowering, op, extras, y->shape());
  for (const auto &[i, view] : llvm::enumerate(epilogue.operands))
    epilogue.functor.arguments[i + 1].access =
        accessOf(*mergeDims(view, 2, view.rank()));
  epilogue.overlays.clear(); // conv reads rows that others write
  if (epilogue.isIdentity() || canFuse(lowering, epilogue, x->element())) {
    launchConv(lowering, op, *sizes, epilogue,
               lowering.result(y, Strides::Contiguous));
    return llvm::Error::success();
  }
  View sums = lowering.temporary(x->element(), y->shape());
  Epilogue none;
  none.functor = identity(x->element());
  launchConv(lowering, op, *sizes, none, sums);
  std::vector<View> operands{sums};
  llvm::append_range(operands, extras);
  return launchLoop(lowering, op, functorOf(*op.region()), operands,
                    {lowering.result(y, Strides::Any)});
}

void addWindow(Config &config, const ir::PoolAttrs &attrs) {
  config.rank("spatial", attrs.kernel.size())
      .array("kernel", attrs.kernel)
      .array("strides", attrs.strides)
      .array("dilations", attrs.dilations)
      .array("pad_low", attrs.padLow)
      .array("pad_high", attrs.padHigh);
}

llvm::Error selectPool(Lowering &lowering, const ir::Op &op) {
  const auto &attrs = op.attrs<ir::PoolAttrs>();
  const ir::Value *x = op.operand(0);
  bool isMax = op.kind() == OpKind::MaxPool;
  if (llvm::Error error = checkSpatial(x))
    return error;
  bool fits = isMax ? !cppType(x->element()).empty()
                    : x->element() == ElementType::F32 ||
                          x->element() == ElementType::F64;
  if (!fits)
    return unsupportedType(op, x->element(),
                           isMax ? "f64, f32 and the integers" : "f32 and f64");
  LaunchSpec spec;
  spec.kernel = isMax ? "max_pool" : "average_pool";
  spec.config.type("T", x->element());
  addWindow(spec.config, attrs);
  spec.operands = {lowering.view(x)};
  spec.results = {lowering.result(op.result(), Strides::Any)};
  if (isMax) {
    bool indices = op.numResults() > 1 && !op.result(1)->uses().empty();
    spec.config.flag("has_indices", indices)
        .flag("column_major", attrs.columnMajor);
    if (indices)
      spec.results.push_back(lowering.result(op.result(1), Strides::Any));
  } else {
    spec.config.flag("count_include_pad", attrs.countIncludePad);
  }
  lowering.launch(op, std::move(spec));
  return llvm::Error::success();
}

} // namespace

void addWindows(SelectTable &table) {
  table[unsigned(OpKind::Conv)] = selectConv;
  table[unsigned(OpKind::MaxPool)] = selectPool;
  table[unsigned(OpKind::AveragePool)] = selectPool;
}

} // namespace tenon::codegen
