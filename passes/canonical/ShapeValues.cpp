//===- ShapeValues.cpp - integer tensors known by value ----------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ir/ShapeValues.h"
#include "passes/Pass.h"
#include "llvm/ADT/STLExtras.h"

using namespace tenon;
using namespace tenon::ir;
using namespace tenon::passes;

namespace {

/// Replaces small integer and bool tensors that are known by value with `const`
/// or `dims`. What computed them (Shape, Gather, Concat, Mul ...) is then dead.
class ShapeValuesPass final : public FuncPass {
public:
  llvm::Expected<bool> runOnFunc(Module &module, Func &func,
                                 PassContext &context) override {
    ir::ShapeValues values;
    bool changed = false;
    for (Op &op : llvm::make_early_inc_range(func.body)) {
      if (!isCandidate(op))
        continue;
      std::optional<llvm::SmallVector<Dim, 4>> dims =
          values.valuesOf(op.result());
      if (!dims || !context.allow("shape-values", op))
        continue;
      context.simplified("a tensor known by value", op.loc);
      op.result()->replaceAllUsesWith(build(op, *dims));
      changed = true;
    }
    return changed;
  }

private:
  static bool isCandidate(Op &op) {
    if (op.numResults() != 1 || !op.hasUses() || op.kind() == OpKind::Const ||
        op.kind() == OpKind::Dims || op.result()->rank() > 1)
      return false;
    ElementType element = op.result()->element();
    return isInteger(element) || element == ElementType::Bool;
  }

  static Value *build(Op &op, llvm::ArrayRef<Dim> dims) {
    Builder builder = Builder::before(&op);
    builder.loc = op.loc;
    const TensorType &type = op.result()->type;
    llvm::SmallVector<int64_t, 4> numbers;
    for (Dim dim : dims)
      if (std::optional<int64_t> number = dim.constant())
        numbers.push_back(*number);
    Value *value;
    if (numbers.size() == dims.size()) {
      llvm::SmallVector<int64_t, 1> shape;
      if (type.rank())
        shape.push_back(numbers.size());
      Tensor tensor(type.element, shape);
      for (auto [i, number] : llvm::enumerate(numbers))
        tensor.setInt(i, number);
      return builder.constant(
          type.isScalar()
              ? Constant::splatBytes(type.element, shape, tensor.bytes)
              : Constant::copy(type.element, shape, tensor.bytes));
    }
    DimsAttrs attrs;
    attrs.values.assign(dims.begin(), dims.end());
    attrs.scalar = type.isScalar();
    value = builder.buildDims({}, attrs);
    if (type.element != ElementType::I64) {
      CastAttrs cast;
      cast.to = type.element;
      value = builder.buildCast({value}, cast);
    }
    return value;
  }
};

} // namespace

std::unique_ptr<Pass> passes::createShapeValues() {
  return std::make_unique<ShapeValuesPass>();
}
