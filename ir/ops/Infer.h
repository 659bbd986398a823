//===- Infer.h - what inference functions share --------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_IR_OPS_INFER_H
#define TENON_IR_OPS_INFER_H

/// \file
/// Checks and messages for ir/ops/<Family>.cpp. Operand arity has been checked
/// before inference runs. Everything about sizes has three outcomes: provably
/// right, provably wrong (an error that shows both values), or undecided, which
/// becomes a constraint that is checked when a call's shapes are bound.

#include "ir/OpDef.h"
#include "ir/support/Diag.h"
#include <string>

namespace tenon::ir {

/// Text for messages: `n + 1`, `[2, n]`, `f32[2, n]`.
std::string text(Dim dim);
std::string text(ShapeRef shape);
std::string text(const TensorType &type);

/// Whether \p a and \p b differ for all values of their symbols.
bool provablyDifferent(Dim a, Dim b);
/// Whether \p dim is not 1 whatever its symbols are.
bool provablyNotOne(Dim dim);
/// Whether one of \p a and \p b is a multiple of the other by a constant other
/// than 1 (`6 * n` and `4 * n` are, too): equal only where both are 0.
bool differByFactor(Dim a, Dim b);
/// Of two equal dimensions the one that says more: a constant, else \p a.
Dim moreSpecific(Dim a, Dim b);

/// Element types that arithmetic is defined on: floats and integers of 8 bits
/// and more, but for the 8-bit floats. The others are for storage, casts and
/// quantisation only.
bool isArithmetic(ElementType type);
inline bool isArithmeticFloat(ElementType type) {
  return isArithmetic(type) && isFloat(type);
}
inline bool isArithmeticInteger(ElementType type) {
  return isArithmetic(type) && isInteger(type);
}

/// Adds the constraint a == b unless the two are the same expression.
void constrain(InferContext &context, Dim a, Dim b);

/// Adds the constraint that \p dim is 1 or \p size.
void constrainOneOr(InferContext &context, Dim dim, Dim size);

/// Dimension \p a of operand number \p i and \p b of \p j must agree. Gives the
/// more specific one, adding a constraint when undecided; the error is
/// "<what> differ: 768 in operand 'a', 64 in operand 'b'".
llvm::Expected<Dim> unify(const OpView &op, InferContext &context,
                          llvm::StringRef what, unsigned i, Dim a, unsigned j,
                          Dim b);
/// Dimension \p dim of operand number \p i must be \p expected: "<what> of
/// operand 'gamma' is 64, expected 768".
llvm::Error requireDim(const OpView &op, InferContext &context,
                       llvm::StringRef what, unsigned i, Dim dim, Dim expected);
/// Operand number \p i must have exactly the shape \p expected.
llvm::Error requireShape(const OpView &op, InferContext &context, unsigned i,
                         ShapeRef expected);

/// The NumPy broadcast of two dimensions; nullopt when they provably don't fit.
std::optional<Dim> broadcastDims(InferContext &context, Dim a, Dim b);
/// The NumPy broadcast of all operands that are there.
llvm::Expected<Shape> broadcastOperands(const OpView &op,
                                        InferContext &context);
/// Operand number \p i must broadcast to exactly \p target, which \p what names
/// in the message ("the result").
llvm::Error requireBroadcastsTo(const OpView &op, InferContext &context,
                                unsigned i, ShapeRef target,
                                llvm::StringRef what);

/// 0 <= axis < rank; \p of says what has that rank ("operand 'x'").
llvm::Error checkAxis(llvm::StringRef attribute, int64_t axis, unsigned rank,
                      llvm::StringRef of);
/// As above for an attribute `axis` and operand number \p i.
llvm::Error checkAxis(const OpView &op, int64_t axis, unsigned i = 0);
/// Operand number \p i has a rank in [low, high].
llvm::Error checkRank(const OpView &op, unsigned i, unsigned low,
                      unsigned high = ~0u);
/// Operand number \p i has an element type that \p accepts; \p wanted
/// describes those: "a float type".
llvm::Error checkElement(const OpView &op, unsigned i,
                         bool (*accepts)(ElementType), llvm::StringRef wanted);
llvm::Error checkSameElement(const OpView &op, unsigned i, unsigned j);
/// An attribute has one entry for each of \p rank dimensions.
llvm::Error checkLength(llvm::StringRef attribute, size_t length, size_t rank);
/// A size is not provably negative, nor too large an expression.
llvm::Error checkSize(llvm::StringRef what, Dim size);

/// "operand 'x'".
std::string operandText(const OpView &op, unsigned i);

} // namespace tenon::ir

#endif // TENON_IR_OPS_INFER_H
