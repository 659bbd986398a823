//===- OpTest.h - helps to test ops one by one ---------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_TEST_UNIT_OPS_OPTEST_H
#define TENON_TEST_UNIT_OPS_OPTEST_H

#include "ir/Builder.h"
#include "gtest/gtest.h"

namespace tenon::ir {

/// Makes ops on arguments of given types and tells what inference says.
class OpTest : public testing::Test {
protected:
  OpTest() : builder(&func.body) { builder.func = &func; }

  Value *argument(ElementType element, Shape shape) {
    return func.body.addArgument({element, std::move(shape)});
  }
  Value *f32(Shape shape) {
    return argument(ElementType::F32, std::move(shape));
  }

  /// The result types as text, separated by `; `, or `error: message`.
  template <class A>
  std::string infer(OpKind kind, llvm::ArrayRef<Value *> operands, A attrs) {
    llvm::Expected<Op *> op =
        builder.create(kind, operands, std::make_unique<A>(std::move(attrs)));
    if (!op)
      return "error: " + llvm::toString(op.takeError());
    std::string text;
    llvm::raw_string_ostream os(text);
    llvm::interleave((*op)->results(), os, [&](Value *v) { os << v->type; },
                     "; ");
    return text;
  }
  std::string infer(OpKind kind, llvm::ArrayRef<Value *> operands) {
    return infer(kind, operands, NoAttrs());
  }

  /// Equalities that are left to be checked when running, as `a == b; ...`.
  std::string constraints() const {
    std::string text;
    llvm::raw_string_ostream os(text);
    llvm::interleave(func.constraints, os,
                     [&](const DimConstraint &c) {
                       os << c.a << " == " << c.b;
                     },
                     "; ");
    return text;
  }

  Func func{"f"};
  Builder builder;
  Dim n = Dim::symbol("n"), m = Dim::symbol("m");
};

} // namespace tenon::ir

#endif // TENON_TEST_UNIT_OPS_OPTEST_H
