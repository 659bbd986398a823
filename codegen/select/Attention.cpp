//===- Attention.cpp - attention and rotary embedding --------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/select/Tensor.h"
#include "ir/support/Diag.h"
#include "llvm/ADT/STLExtras.h"

namespace tenon::codegen {

using ir::ElementType;

namespace {

/// Up to so many queries the split-KV form keeps more threads busy.
constexpr int64_t decodeQueries = 8;

llvm::StringRef maskedRowName(ir::MaskedRow row) {
  switch (row) {
  case ir::MaskedRow::Zero:
    return "tn::MaskedRow::zero";
  case ir::MaskedRow::Uniform:
    return "tn::MaskedRow::uniform";
  case ir::MaskedRow::Nan:
    return "tn::MaskedRow::nan";
  }
  llvm_unreachable("all masked rows are covered");
}

/// Which keys a query sees, as the kernel's Cfg says it.
struct Visibility {
  int64_t left = -1, right = -1; ///< -1: no bound
  llvm::StringRef align = "tn::Align::top_left";
  std::vector<Dim> params;

  Visibility(const ir::AttentionAttrs &attrs, Dim queries, Dim keys) {
    left = attrs.windowLeft;
    right = attrs.windowRight;
    if (attrs.causality == ir::Causality::Causal)
      right = 0;
    bool bounded = left >= 0 || right >= 0;
    if (!bounded || attrs.queryOffset.isConstant(0))
      return;
    if (attrs.queryOffset == keys - queries) {
      align = "tn::Align::bottom_right";
      return;
    }
    align = "tn::Align::param";
    params.push_back(attrs.queryOffset);
  }
};

void addBound(Config &config, llvm::StringRef name, int64_t bound) {
  config.raw("int64_t", name,
             bound < 0 ? "tn::dynamic" : std::to_string(bound));
}

/// Few queries, many, or whatever the run brings.
llvm::StringRef kernelFor(Dim queries) {
  std::optional<int64_t> number = queries.constant();
  if (!number)
    return "attention_any_f32";
  return *number <= decodeQueries ? "attention_decode_f32" : "attention_f32";
}

/// The forms for few queries and for many, as the sizes of a run want them.
void launchOnGpu(Lowering &lowering, const ir::Op &op, LaunchSpec spec,
                 bool hasMask, int64_t d, int64_t dv) {
  Dim rest = 1;
  if (std::optional<DecodeAttention> decode =
          decodeAttention(lowering, spec, hasMask, d, dv)) {
    rest = decode->many;
    Lowering::When when(lowering, decode->few);
    lowering.launch(op, std::move(decode->spec));
  }
  Lowering::When when(lowering, rest);
  if (!useFlashAttention(lowering, spec, hasMask, d, dv)) {
    static constexpr llvm::StringLiteral names[] = {"Q", "K", "V", "MaskType"};
    for (const auto &[i, view] : llvm::enumerate(spec.operands))
      spec.config.type(names[i], view.element);
    spec.config.type("O", spec.results[0].element);
  }
  lowering.launch(op, std::move(spec));
}

llvm::Error selectAttention(Lowering &lowering, const ir::Op &op) {
  const auto &attrs = op.attrs<ir::AttentionAttrs>();
  const ir::Value *q = op.operand(0), *k = op.operand(1), *v = op.operand(2),
                  *mask = op.operand(3);
  if (q->element() != ElementType::F32)
    return unsupportedType(op, q->element(), "f32");
  Dim batch = q->shape()[0], queries = q->shape()[1], heads = q->shape()[2],
      keys = k->shape()[1];
  std::optional<int64_t> d = q->shape()[3].constant(),
                         dv = v->shape()[3].constant();
  if (!d || !dv)
    return userError("the size of a head must be known when compiling; name "
                     "it with --dim");
  Visibility seen(attrs, queries, keys);
  LaunchSpec spec;
  spec.operands = {lowering.operand(op, q, Strides::InnerContiguous),
                   lowering.operand(op, k, Strides::InnerContiguous),
                   lowering.operand(op, v, Strides::InnerContiguous)};
  llvm::StringRef maskKind = "tn::Mask::none";
  if (mask) {
    if (mask->element() != ElementType::F32 &&
        mask->element() != ElementType::Bool)
      return unsupportedType(op, mask->element(), "f32 and bool masks");
    maskKind = mask->element() == ElementType::Bool ? "tn::Mask::boolean"
                                                    : "tn::Mask::additive";
    spec.operands.push_back(
        lowering.broadcast(lowering.view(mask), {batch, heads, queries, keys}));
  }
  spec.config.integer("D", *d).integer("Dv", *dv).number("scale", attrs.scale);
  spec.config.number("softcap", attrs.softcap)
      .raw("tn::Mask", "mask", maskKind)
      .raw("tn::Align", "align", seen.align);
  addBound(spec.config, "left", seen.left);
  addBound(spec.config, "right", seen.right);
  spec.config.flag("alibi", false)
      .raw("tn::MaskedRow", "masked_row", maskedRowName(attrs.maskedRow));
  if (lowering.partProducts() == 1)
    spec.config.rank("products", 1);
  spec.params = seen.params;
  spec.kernel = kernelFor(queries);
  if (lowering.isCuda()) {
    spec.kernel = "attention";
    spec.items = batch * heads * queries;
    spec.grain = Grain::Warp;
  } else if (spec.kernel != "attention_f32") {
    spec.scratchBytes = batch * heads * Dim::min(queries, decodeQueries) *
                        Dim::ceilDiv(keys, 256) * Dim(4 * (*dv + 2));
  }
  spec.flops = batch * heads * queries * keys * Dim(2 * (*d + *dv));
  spec.results = {lowering.result(op.result(), Strides::InnerContiguous)};
  if (lowering.isCuda())
    launchOnGpu(lowering, op, std::move(spec), mask, *d, *dv);
  else
    lowering.launch(op, std::move(spec));
  return llvm::Error::success();
}

} // namespace

void addAttention(SelectTable &table) {
  table[unsigned(ir::OpKind::Attention)] = selectAttention;
}

} // namespace tenon::codegen
