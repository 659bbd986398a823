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
/// missing. If a is of i8, a + 128 and zero + 128 take their places.
///
/// Not matched: so many rows of B that sums of 32 bits could wrap, zero points
/// for each row of a, sums that have other uses; matrices of u8 or with zero
/// points, except those that pack-codes made one of i8 from.

#include "passes/Pass.h"
#include "passes/analysis/ByteProducts.h"
#include "passes/precision/Half.h"
#include "llvm/ADT/DenseMap.h"

using namespace tenon;
using namespace tenon::ir;

namespace {

constexpr llvm::StringLiteral passName = "fuse-byte-products";

/// What is cast to i32, if it is of \p element.
Value *widened(Value *value, ElementType element) {
  Op *cast = value->def(OpKind::Cast);
  if (!cast || value->element() != ElementType::I32 ||
      cast->operand(0)->element() != element)
    return nullptr;
  return cast->operand(0);
}

struct FuseByteProducts final : passes::FuncPass {
  struct Parts {
    Op *product = nullptr;
    passes::ByteRows rows;
    Value *b = nullptr;
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
    shiftedValues.clear();
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
    auto rows = passes::byteRows(parts.product->operand(0));
    if (!rows)
      return "the first operand is not of bytes minus one zero point of their "
             "type";
    parts.rows = *rows;
    parts.b = widened(parts.product->operand(1), ElementType::I8);
    if (!parts.b || !parts.b->def(OpKind::Const) || parts.b->rank() != 2)
      return "the second operand is not a constant matrix of i8";
    if (*parts.b->shape()[0].constant() > passes::mostByteRows)
      return "the second operand has so many rows that sums could wrap";
    return std::nullopt;
  }

  /// \p value, of i8, plus 128 in u8: once for all products.
  Value *shifted(Builder &builder, Value *value) {
    Value *&known = shiftedValues[value];
    if (!known) {
      Value *wide = passes::castTo(builder, value, ElementType::I32);
      Value *half = builder.constant(Constant::scalar(ElementType::I32, 128));
      known = passes::castTo(builder, builder.buildAdd({wide, half}),
                             ElementType::U8);
    }
    return known;
  }

  /// The same differences in u8; zero is of u8, or null.
  passes::ByteRows unsignedRows(Builder &builder, passes::ByteRows rows) {
    if (rows.zero)
      rows.zero = rows.zero->def()->operand(0);
    if (rows.a->element() == ElementType::I8) {
      rows.a = shifted(builder, rows.a);
      if (rows.zero)
        rows.zero = shifted(builder, rows.zero);
      rows.number += 128;
    }
    if (!rows.zero && rows.number != 0)
      rows.zero =
          builder.constant(Constant::scalar(ElementType::U8, rows.number));
    return rows;
  }

  void rewrite(Op &cast, const Parts &parts, Rewriter &rewriter) {
    Builder builder = rewriter.before(cast);
    builder.loc = Rewriter::mergedLocation({parts.product, &cast});
    auto single = [&](Value *value) {
      return passes::castTo(builder, value, ElementType::F32);
    };
    passes::ByteRows rows = unsignedRows(builder, parts.rows);
    Value *a = single(rows.a);
    if (rows.zero)
      a = builder.buildSub({a, single(rows.zero)});
    rewriter.replace(cast.result(),
                     builder.buildMatMul({a, single(parts.b)}, MatMulAttrs()));
  }

  llvm::DenseMap<const Value *, Value *> shiftedValues;
};

} // namespace

std::unique_ptr<passes::Pass> passes::createFuseByteProducts() {
  return std::make_unique<FuseByteProducts>();
}
