//===- FuseByteProducts.cpp - sums of products of bytes, as f32 -----------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

///
/// \file
/// The law, for a of u8, zero a number of u8, and B a constant of i8:
///
///   cast<f32>(matmul(cast<i32>(a) - cast<i32>(zero), cast<i32>(B)))
///     ->  matmul(cast<f32>(a) - cast<f32>(zero), cast<f32>(B))
///
/// What MatMulInteger's exporters write between a product and its scale. Both
/// sides are the same sums, which are whole numbers, rounded to f32 once; the
/// product of f32 takes up an epilogue, and there are kernels for it that read
/// the bytes (cpu/gemm_bytes.h, and tensor cores). The zero point may be
/// missing.
///
/// Not matched: so many rows of B that sums of 32 bits could wrap, zero points
/// of B and those for each row of a, B of u8, sums that have other uses.

#include "passes/Pass.h"
#include "passes/precision/Half.h"

using namespace tenon;
using namespace tenon::ir;

namespace {

constexpr llvm::StringLiteral passName = "fuse-byte-products";
/// 255 * 128 * 2^15 < 2^31, whatever the zero point.
constexpr int64_t mostRows = (1 << 15) - 1;

/// What is cast to i32, if it is of \p element.
Value *widened(Value *value, ElementType element) {
  Op *cast = value->def(OpKind::Cast);
  if (!cast || value->element() != ElementType::I32 ||
      cast->operand(0)->element() != element)
    return nullptr;
  return cast->operand(0);
}

struct FuseByteProducts final : passes::FuncPass {
  /// The parts of a product; zero may be null.
  struct Parts {
    Op *product = nullptr;
    Value *a = nullptr, *zero = nullptr, *b = nullptr;
  };

  llvm::Expected<bool> runOnFunc(Module &module, Func &func,
                                 passes::PassContext &context) override {
    Rewriter rewriter(module, func);
    llvm::SmallVector<Op *, 64> casts;
    for (Op &op : func.body)
      if (op.kind() == OpKind::Cast &&
          op.result()->element() == ElementType::F32 &&
          op.operand(0)->element() == ElementType::I32 &&
          op.operand(0)->def(OpKind::MatMul))
        casts.push_back(&op);
    bool changed = false;
    for (Op *cast : casts) {
      Parts parts;
      if (auto reason = notFusable(*cast, parts)) {
        context.missed(passName, cast->loc, *reason);
        continue;
      }
      if (!context.allow(passName, *cast))
        continue;
      context.applied(passName, Rewriter::mergedLocation({parts.product, cast}),
                      {parts.product, cast});
      rewrite(*cast, parts, rewriter);
      changed = true;
    }
    return changed;
  }

  static std::optional<std::string> notFusable(Op &cast, Parts &parts) {
    parts.product = cast.operand(0)->def();
    if (!cast.operand(0)->hasOneUse() || parts.product->region())
      return "the sums of " + describe(*parts.product) + " have other uses";
    Value *left = parts.product->operand(0);
    if (Op *sub = left->def(OpKind::Sub)) {
      left = sub->operand(0);
      parts.zero = widened(sub->operand(1), ElementType::U8);
      if (!parts.zero || !numElements(parts.zero->shape()).isConstant(1) ||
          parts.zero->rank() > left->rank())
        return "the first operand's zero point is not one number of u8";
    }
    parts.a = widened(left, ElementType::U8);
    if (!parts.a)
      return "the first operand is not of u8";
    parts.b = widened(parts.product->operand(1), ElementType::I8);
    if (!parts.b || !parts.b->def(OpKind::Const) || parts.b->rank() != 2)
      return "the second operand is not a constant matrix of i8";
    if (*parts.b->shape()[0].constant() > mostRows)
      return "the second operand has so many rows that sums could wrap";
    return std::nullopt;
  }

  static void rewrite(Op &cast, const Parts &parts, Rewriter &rewriter) {
    Builder builder = rewriter.before(cast);
    builder.loc = Rewriter::mergedLocation({parts.product, &cast});
    auto single = [&](Value *value) {
      return passes::castTo(builder, value, ElementType::F32);
    };
    Value *a = single(parts.a);
    if (parts.zero)
      a = builder.buildSub({a, single(parts.zero)});
    rewriter.replace(cast.result(),
                     builder.buildMatMul({a, single(parts.b)}, MatMulAttrs()));
  }
};

} // namespace

std::unique_ptr<passes::Pass> passes::createFuseByteProducts() {
  return std::make_unique<FuseByteProducts>();
}
