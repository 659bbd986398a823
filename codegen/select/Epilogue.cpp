//===- Epilogue.cpp - epilogues of contractions --------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/select/Epilogue.h"
#include "llvm/ADT/STLExtras.h"

namespace tenon::codegen {

using ir::ElementType;
using kernel::Access;

namespace {

/// The kernels' limit on operands of an epilogue (kernels/cpu/epilogue.h).
constexpr unsigned maxOperands = 8;

} // namespace

Access accessOf(const View &view) {
  Dim row = view.strides[view.rank() - 2], column = view.strides.back();
  bool sameRow = llvm::all_of(llvm::ArrayRef(view.strides).drop_back(),
                              [](Dim stride) { return stride.isConstant(0); });
  if (column.isConstant(1))
    return sameRow ? Access::Row : Access::Full;
  if (!column.isConstant(0))
    return Access::Any;
  return row.isConstant(0) ? Access::Scalar : Access::Column;
}

Epilogue makeEpilogue(const Lowering &lowering, const ir::Op &op,
                      llvm::ArrayRef<View> extras, ir::ShapeRef shape) {
  Epilogue epilogue;
  if (!op.region()) {
    epilogue.functor = identity(op.result()->element());
    return epilogue;
  }
  llvm::SmallVector<ir::ConstantRef> literals{nullptr};
  for (const View &extra : extras) {
    literals.push_back(literalOf(lowering, extra));
    if (literals.back())
      continue;
    View view = lowering.broadcast(extra, shape);
    if (isContiguous(view))
      epilogue.overlays.push_back(epilogue.operands.size());
    epilogue.operands.push_back(view);
    epilogue.elements.push_back(view.element);
  }
  epilogue.functor = bindLiterals(functorOf(*op.region()), literals);
  for (const auto &[i, view] : llvm::enumerate(epilogue.operands))
    epilogue.functor.arguments[i + 1].access = accessOf(view);
  return epilogue;
}

bool canFuse(const Lowering &lowering, const Epilogue &epilogue,
             ElementType element, unsigned more) {
  if (epilogue.operands.size() + more > maxOperands ||
      unsupportedElement(epilogue.functor))
    return false;
  // One element at a time, of any type.
  if (lowering.isCuda())
    return true;
  if (element == ElementType::F32 && !isVectorizable(epilogue.functor))
    return false;
  if (epilogue.functor.elementOf(epilogue.functor.results[0]) != element)
    return false;
  return llvm::all_of(epilogue.elements, [&](ElementType operand) {
    return operand == element || operand == ElementType::Bool;
  });
}

} // namespace tenon::codegen
