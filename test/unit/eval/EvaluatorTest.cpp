//===- EvaluatorTest.cpp - running whole functions -----------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ir/eval/Evaluator.h"
#include "ir/Builder.h"
#include "ir/eval/Loops.h"
#include "gtest/gtest.h"

using namespace tenon::ir;

namespace {

Tensor iota(ElementType element, llvm::ArrayRef<int64_t> shape) {
  return Tensor::fromConstant(
      *Constant::generated(Constant::Form::Iota, element, shape, 0));
}

class EvaluatorTest : public testing::Test {
protected:
  EvaluatorTest() : builder(&func.body) { builder.func = &func; }

  Value *input(llvm::StringRef name, Shape shape) {
    func.inputs.push_back({name.str()});
    return func.body.addArgument({ElementType::F32, std::move(shape)}, name);
  }
  void finish(llvm::ArrayRef<Value *> results) {
    builder.buildReturn(results);
    for (size_t i = 0; i != results.size(); ++i)
      func.outputs.push_back({"y" + std::to_string(i)});
  }
  /// The results' shapes as text, or the error.
  std::string run(llvm::ArrayRef<Tensor> inputs) {
    llvm::Expected<std::vector<Tensor>> results = evaluate(func, inputs);
    if (!results)
      return llvm::toString(results.takeError());
    std::string text;
    for (const Tensor &tensor : *results)
      text += extentsText(tensor.shape);
    return text;
  }

  Func func{"f"};
  Builder builder;
  Dim n = Dim::symbol("n"), m = Dim::symbol("m");
};

TEST_F(EvaluatorTest, BindsSymbolsAndChecksInputs) {
  Value *x = input("x", {n, 2}), *y = input("y", {n, 2});
  finish({builder.buildAdd({x, y})});
  EXPECT_EQ(run({iota(ElementType::F32, {3, 2}), iota(ElementType::F32, {3, 2})}),
            "[3, 2]");
  EXPECT_EQ(run({iota(ElementType::F32, {3, 2})}), "'f' takes 2 inputs, found 1");
  EXPECT_EQ(run({iota(ElementType::F32, {3, 2}), iota(ElementType::F32, {4, 2})}),
            "input 'y': dimension 0 ('n') is 4, but other inputs make it 3");
  EXPECT_EQ(run({iota(ElementType::F32, {3, 1}), iota(ElementType::F32, {3, 2})}),
            "input 'x': dimension 1 is 1, expected 2");
  EXPECT_EQ(run({iota(ElementType::I32, {3, 2}), iota(ElementType::F32, {3, 2})}),
            "input 'x': expected f32[n, 2], found i32[3, 2]");
  EXPECT_EQ(run({iota(ElementType::F32, {3}), iota(ElementType::F32, {3, 2})}),
            "input 'x': expected f32[n, 2], found f32[3]");
}

TEST_F(EvaluatorTest, SolvesExpressions) {
  Value *x = input("x", {n + m}), *y = input("y", {n * Dim(2) + 1});
  finish({x, y});
  EXPECT_EQ(run({iota(ElementType::F32, {7}), iota(ElementType::F32, {5})}),
            "[7][5]");
  EXPECT_EQ(run({iota(ElementType::F32, {7}), iota(ElementType::F32, {4})}),
            "input 'x': no value of the symbols in 'm + n' gives dimension 0, "
            "which is 7");
}

TEST_F(EvaluatorTest, ChecksConstraintsAndSaysWhere) {
  Value *x = input("x", {n, 3}), *y = input("y", {m, 2});
  builder.loc = Location("/enc/MatMul");
  finish({builder.buildMatMul({builder.buildTranspose(
                                   {x}, [] {
                                     TransposeAttrs attrs;
                                     attrs.perm = {1, 0};
                                     return attrs;
                                   }()),
                               y})});
  ASSERT_EQ(func.constraints.size(), 1u);
  EXPECT_EQ(run({iota(ElementType::F32, {4, 3}), iota(ElementType::F32, {4, 2})}),
            "[3, 2]");
  std::string message =
      run({iota(ElementType::F32, {4, 3}), iota(ElementType::F32, {5, 2})});
  EXPECT_NE(message.find("/enc/MatMul"), std::string::npos) << message;
  EXPECT_NE(message.find("'n' is 4, 'm' is 5"), std::string::npos) << message;
}

TEST_F(EvaluatorTest, BroadcastsThatDoNotFitAreErrors) {
  Value *x = input("x", {n}), *y = input("y", {m});
  builder.loc = Location("/Add");
  finish({builder.buildAdd({x, y})});
  EXPECT_EQ(run({iota(ElementType::F32, {3}), iota(ElementType::F32, {1})}),
            "[3]");
  std::string message =
      run({iota(ElementType::F32, {3}), iota(ElementType::F32, {2})});
  EXPECT_NE(message.find("/Add"), std::string::npos) << message;
}

TEST_F(EvaluatorTest, ResultsMayBeInputsConstantsAndTheSame) {
  Value *x = input("x", {n});
  Value *c = builder.scalar(ElementType::F32, 2);
  finish({x, c, x, builder.buildMul({x, c})});
  EXPECT_EQ(run({iota(ElementType::F32, {3})}), "[3][][3][3]");
}

TEST_F(EvaluatorTest, ObserverSeesEveryOp) {
  Value *x = input("x", {n});
  finish({builder.buildRelu({builder.buildNeg({x})})});
  std::vector<OpKind> seen;
  auto observe = [&](const Op &op, llvm::ArrayRef<Tensor> results) {
    seen.push_back(op.kind());
    EXPECT_EQ(results.size(), 1u);
  };
  llvm::Expected<std::vector<Tensor>> results =
      evaluate(func, {iota(ElementType::F32, {3})}, observe);
  ASSERT_TRUE(bool(results));
  EXPECT_EQ(seen, (std::vector<OpKind>{OpKind::Neg, OpKind::Relu}));
}

TEST_F(EvaluatorTest, HugeTensorsAreRefused) {
  Value *x = input("x", {n});
  ShapeAttrs shape;
  shape.shape = {Dim(int64_t(1) << 40), n};
  finish({builder.buildBroadcast({x}, shape)});
  std::string message = run({iota(ElementType::F32, {3})});
  EXPECT_NE(message.find("too large"), std::string::npos) << message;
}

} // namespace
