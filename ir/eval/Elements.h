//===- Elements.h - single elements of tensors ---------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_IR_EVAL_ELEMENTS_H
#define TENON_IR_EVAL_ELEMENTS_H

#include "ir/OpKind.h"
#include "ir/eval/Tensor.h"
#include "llvm/Support/Error.h"

namespace tenon::ir {

/// Calls \p f with a value of the type that arithmetic on \p element is done
/// in: double, int64_t, or uint64_t (also for bool).
template <class F> decltype(auto) withArithmeticType(ElementType element, F f) {
  switch (category(element)) {
  case TypeCategory::Float:
    return f(double());
  case TypeCategory::Signed:
    return f(int64_t());
  case TypeCategory::Unsigned:
  case TypeCategory::Bool:
    break;
  }
  return f(uint64_t());
}

/// Copies \p count elements, bit for bit; both tensors have one element type.
void copyElements(Tensor &to, uint64_t i, const Tensor &from, uint64_t j,
                  uint64_t count = 1);

/// into[i] = kind(into[i], with[j]) for a binary op whose result has its
/// operands' type; both tensors have that type.
void combineElement(OpKind kind, Tensor &into, uint64_t i, const Tensor &with,
                    uint64_t j);

/// A float as an integer, as ONNX Runtime converts it on x86. Truncates towards
/// zero. NaN and what doesn't fit give INT64_MIN for i64 and INT32_MIN for i32;
/// narrower types get the low bits of the conversion to i32, u32 of the one to
/// i64; u64 also takes what lies between 2^63 and 2^64, and gives 0 above.
int64_t floatToInteger(double x, ElementType to);

/// The value of \p dim under \p env, or an error that names the expression.
llvm::Expected<int64_t> evaluateDim(Dim dim, const DimEnv &env);

/// An index that may count from the end, as one in [0, extent). \p position,
/// \p indices and \p axis are for the message: "index 7 at [0, 3] of operand
/// 'indices' is out of range for dimension 0 of operand 'x', which has 5".
llvm::Expected<int64_t> resolveIndex(int64_t index, int64_t extent,
                                     const Tensor &indices, uint64_t position,
                                     int64_t axis);

} // namespace tenon::ir

#endif // TENON_IR_EVAL_ELEMENTS_H
