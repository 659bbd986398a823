//===- Builder.cpp - making ops ------------------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ir/Builder.h"
#include "ir/support/Diag.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace tenon::ir {

namespace {

/// Keeps the equalities that \p context asks for, each once.
Error keepConstraints(Func *func, const InferContext &context,
                      const Location &loc) {
  for (auto [a, b] : context.constraints) {
    auto same = [a = a, b = b](const DimConstraint &c) {
      return (c.a == a && c.b == b) || (c.a == b && c.b == a);
    };
    if (!func)
      return userError(
          "{0} and {1} must be equal, which cannot be checked here", a, b);
    if (a != b && none_of(func->constraints, same))
      func->constraints.push_back({a, b, loc});
  }
  return Error::success();
}

} // namespace

Builder Builder::before(Op *op) {
  Builder builder(op->block());
  builder.point = op;
  builder.loc = op->loc;
  return builder;
}

Builder Builder::after(Op *op) {
  Builder builder(op->block());
  builder.point = op->next();
  builder.loc = op->loc;
  return builder;
}

Expected<Op *> Builder::create(OpKind kind, ArrayRef<Value *> operands,
                               std::unique_ptr<Attrs> attrs,
                               std::unique_ptr<Block> region) {
  SmallVector<const TensorType *, 4> types;
  for (Value *value : operands)
    types.push_back(value ? &value->type : nullptr);
  InferContext context;
  if (Error error = infer({kind, types, *attrs, region.get()}, context))
    return error;
  if (Error error = keepConstraints(func, context, loc))
    return error;
  Op *op =
      block->insert(kind, std::move(attrs), operands, context.results, point);
  op->loc = loc;
  op->setRegion(std::move(region));
  return op;
}

Expected<Op *> Builder::create(OpKind kind, ArrayRef<Value *> operands) {
  return create(kind, operands, opDef(kind).makeAttrs());
}

Expected<Op *> Builder::clone(const Op &op, ArrayRef<Value *> operands) {
  std::unique_ptr<Block> region;
  if (op.region()) {
    region = std::make_unique<Block>();
    ValueMap map;
    cloneBlock(*op.region(), *region, map);
  }
  Expected<Op *> copy =
      create(op.kind(), operands, op.rawAttrs().clone(), std::move(region));
  if (!copy)
    return copy;
  (*copy)->loc = op.loc;
  for (unsigned i = 0; i < op.numResults(); ++i)
    (*copy)->result(i)->name = op.result(i)->name;
  return copy;
}

Value *Builder::constant(ConstantRef value) {
  ConstAttrs attrs;
  attrs.value = std::move(value);
  return buildConst({}, std::move(attrs));
}

Value *Builder::build(OpKind kind, ArrayRef<Value *> operands,
                      std::unique_ptr<Attrs> attrs) {
  Expected<Op *> op = create(kind, operands, std::move(attrs));
  if (!op)
    report_fatal_error(
        withPrefix(op.takeError(), "building " + opDef(kind).mnemonic + ": "));
  return (*op)->numResults() ? (*op)->result() : nullptr;
}

} // namespace tenon::ir
