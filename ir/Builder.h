//===- Builder.h - making ops --------------------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_IR_BUILDER_H
#define TENON_IR_BUILDER_H

#include "ir/OpDef.h"
#include "llvm/Support/Error.h"

namespace tenon::ir {

/// Inserts ops at a point and infers their result types.
///
/// Builder functions for every op are generated from Ops.def:
/// \code
///   Value *sum = b.buildAdd({x, y});                     // NoAttrs
///   Value *n = b.buildLayerNorm({x, gamma, beta}, attrs);
/// \endcode
/// They return the first result (null for ops without results) and assert that
/// inference succeeds: for code that built its operands itself. Where a user's
/// file decides, use `create`, which returns the error.
class Builder {
public:
  /// Inserts at the end of \p block.
  explicit Builder(Block *block) : block(block) {}
  /// Inserts before \p op.
  static Builder before(Op *op);
  static Builder after(Op *op);

  /// The location given to ops made from now on.
  Location loc;
  /// Where runtime-checked equalities go; asserts when null and one is needed.
  Func *func = nullptr;

  /// \p region is the body of a map or an epilogue.
  llvm::Expected<Op *> create(OpKind kind, llvm::ArrayRef<Value *> operands,
                              std::unique_ptr<Attrs> attrs,
                              std::unique_ptr<Block> region = nullptr);
  /// As `create` with default attributes.
  llvm::Expected<Op *> create(OpKind kind, llvm::ArrayRef<Value *> operands);
  /// A copy of \p op with other operands (region cloned).
  llvm::Expected<Op *> clone(const Op &op, llvm::ArrayRef<Value *> operands);

  Value *constant(ConstantRef value);
  Value *scalar(ElementType element, double value) {
    return constant(Constant::scalar(element, value));
  }
  Value *ints(llvm::ArrayRef<int64_t> values) {
    return constant(Constant::ints(values));
  }

#define TN_OP(Name, mnemonic, operands, results, Attributes, ...)              \
  Value *build##Name(llvm::ArrayRef<Value *> values,                           \
                     Attributes attrs = Attributes()) {                        \
    return build(OpKind::Name, values,                                         \
                 std::make_unique<Attributes>(std::move(attrs)));              \
  }
#include "ir/ops/Ops.def"

private:
  Value *build(OpKind kind, llvm::ArrayRef<Value *> operands,
               std::unique_ptr<Attrs> attrs);
  Block *block;
  Op *point = nullptr;
};

} // namespace tenon::ir

#endif // TENON_IR_BUILDER_H
