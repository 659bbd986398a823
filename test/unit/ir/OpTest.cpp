//===- OpTest.cpp - tests of ops, blocks, modules and the verifier -------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ir/Builder.h"
#include "ir/text/Text.h"
#include "ir/verify/Verify.h"
#include "llvm/ADT/STLExtras.h"
#include "gtest/gtest.h"

using namespace tenon::ir;

namespace {

TensorType f32(ShapeRef shape) {
  return {ElementType::F32, Shape(shape.begin(), shape.end())};
}

std::string str(const Module &module) {
  std::string text;
  llvm::raw_string_ostream os(text);
  print(module, os);
  return text;
}

std::string problem(const Module &module) {
  return llvm::toString(verify(module));
}

/// @main(%x: f32[n, 4]) -> (y), y = relu(x + x).
class SmallModule : public testing::Test {
protected:
  void SetUp() override {
    module.declare("n", {1, INT64_MAX});
    module.funcs.push_back(std::make_unique<Func>("main"));
    x = block().addArgument(f32({Dim::symbol("n"), 4}), "x");
    func().inputs.push_back({"x"});
    Builder b(&block());
    b.loc = Location("/add");
    sum = b.buildAdd({x, x});
    b.loc = Location("/relu");
    y = b.buildRelu({sum});
    b.buildReturn({y});
    func().outputs.push_back({"y"});
  }
  Func &func() { return module.entry(); }
  Block &block() { return func().body; }

  Module module;
  Value *x, *sum, *y;
};

TEST_F(SmallModule, VerifiesAndPrints) {
  EXPECT_EQ(problem(module), "");
  EXPECT_EQ(str(module), "dims { n: 1... }\n"
                         "\n"
                         "func @main(%x: f32[n, 4]) -> (y: f32[n, 4]) {\n"
                         "  %0 = add %x, %x : f32[n, 4] loc(\"/add\")\n"
                         "  %1 = relu %0 : f32[n, 4] loc(\"/relu\")\n"
                         "  return %1 loc(\"/relu\")\n"
                         "}\n");
}

TEST_F(SmallModule, TracksUses) {
  EXPECT_EQ(x->uses().size(), 2u);
  EXPECT_TRUE(sum->hasOneUse());
  sum->replaceAllUsesWith(x);
  EXPECT_EQ(x->uses().size(), 3u);
  EXPECT_FALSE(sum->def()->hasUses());
  sum->def()->erase();
  EXPECT_EQ(x->uses().size(), 1u);
  EXPECT_EQ(y->def()->operand(0), x);
  EXPECT_EQ(problem(module), "");
}

TEST_F(SmallModule, OrderSurvivesInsertionsAndMoves) {
  Op *relu = y->def();
  std::vector<Op *> ops;
  for (int i = 0; i < 300; ++i)
    ops.push_back(Builder::before(relu).buildNeg({x})->def());
  for (size_t i = 1; i < ops.size(); ++i)
    EXPECT_TRUE(ops[i - 1]->isBefore(ops[i]));
  EXPECT_TRUE(ops.back()->isBefore(relu));
  ops.back()->moveBefore(ops.front());
  EXPECT_TRUE(ops.back()->isBefore(ops.front()));
  EXPECT_EQ(ops.back()->next(), ops.front());
  EXPECT_EQ(problem(module), "");
}

TEST_F(SmallModule, CloneIsEqualAndApart) {
  std::unique_ptr<Module> copy = module.clone();
  EXPECT_EQ(str(*copy), str(module));
  EXPECT_EQ(problem(*copy), "");
  copy->entry().body.front().loc = Location("other");
  EXPECT_EQ(sum->def()->loc.name(), "/add");
}

TEST_F(SmallModule, SubstitutesSymbols) {
  module.substituteSymbol("n", 8);
  EXPECT_EQ(y->type, f32({8, 4}));
  EXPECT_TRUE(module.symbols.empty());
  EXPECT_EQ(problem(module), "");
}

TEST_F(SmallModule, FreshSymbolsAreNew) {
  EXPECT_EQ(module.freshSymbol("n").symbolName(), "n_1");
  EXPECT_EQ(module.freshSymbol("n").symbolName(), "n_2");
  EXPECT_EQ(module.freshSymbol("m").symbolName(), "m");
  EXPECT_EQ(module.symbols.size(), 4u);
}

TEST_F(SmallModule, TearsDownInAnyOrder) {
  Builder b = Builder::before(&block().back());
  Value *value = x;
  for (int i = 0; i < 20000; ++i)
    value = b.buildAdd({x, value});
  EXPECT_EQ(problem(module), "");
}

//===----------------------------------------------------------------------===//
// The verifier finds each fault
//===----------------------------------------------------------------------===//

TEST_F(SmallModule, WrongType) {
  y->type.element = ElementType::F64;
  EXPECT_EQ(problem(module), "@main: node '/relu' (relu): result #0 is "
                             "f64[n, 4], expected f32[n, 4]");
}

TEST_F(SmallModule, UseBeforeDefinition) {
  y->def()->moveBefore(sum->def());
  EXPECT_NE(problem(module).find("operand 'x' is defined after its use"),
            std::string::npos);
}

TEST_F(SmallModule, UndeclaredSymbol) {
  module.symbols.clear();
  EXPECT_NE(problem(module).find("dimension 'n' is not declared"),
            std::string::npos);
}

TEST_F(SmallModule, MissingTerminator) {
  block().back().erase();
  EXPECT_NE(problem(module).find("does not end in 'return'"),
            std::string::npos);
}

TEST_F(SmallModule, WrongPorts) {
  func().outputs.clear();
  EXPECT_NE(problem(module).find("0 output names for 1 returned values"),
            std::string::npos);
  func().outputs.push_back({"y"});
  func().inputs.push_back({"x"});
  EXPECT_NE(problem(module).find("2 input names for 1 arguments"),
            std::string::npos);
}

TEST_F(SmallModule, ForeignOperand) {
  Module other;
  other.funcs.push_back(std::make_unique<Func>("f"));
  Value *foreign = other.entry().body.addArgument(f32({4}));
  y->def()->setOperand(0, foreign);
  EXPECT_NE(problem(module).find("operand 'x' is from outside its block"),
            std::string::npos);
  y->def()->setOperand(0, sum);
}

TEST_F(SmallModule, RegionsAreScalarAndClosed) {
  Builder b = Builder::before(&block().back());
  auto region = std::make_unique<Block>();
  Value *s = region->addArgument(f32({}));
  Builder inner(region.get());
  Value *neg = inner.buildNeg({s});
  inner.buildYield({neg});
  llvm::Expected<Op *> map = b.create(
      OpKind::Map, {x}, std::make_unique<NoAttrs>(), std::move(region));
  ASSERT_TRUE(bool(map));
  EXPECT_EQ(problem(module), "");
  neg->def()->setOperand(0, x);
  EXPECT_NE(problem(module).find("operand 'x' is from outside its block"),
            std::string::npos);
  neg->def()->setOperand(0, s);
  ReduceAttrs attrs;
  Builder::before(neg->def()).buildReduceSum({s}, attrs);
  EXPECT_NE(problem(module).find("may not be in a region"), std::string::npos);
}

TEST_F(SmallModule, BuilderRefusesHostileSizes) {
  Builder b = Builder::before(&block().back());
  ShapeAttrs attrs;
  attrs.shape = {Dim(INT64_MAX) * Dim::symbol("n") * Dim(4), 4};
  llvm::Expected<Op *> op = b.create(
      OpKind::Broadcast, {x}, std::make_unique<ShapeAttrs>(std::move(attrs)));
  ASSERT_FALSE(bool(op));
  llvm::consumeError(op.takeError());
}

TEST_F(SmallModule, BuilderChecksOperandCounts) {
  Builder b = Builder::before(&block().back());
  EXPECT_EQ(llvm::toString(b.create(OpKind::Add, {x}).takeError()),
            "expected 2 operands, found 1");
  EXPECT_EQ(llvm::toString(b.create(OpKind::Add, {x, nullptr}).takeError()),
            "operand 'b' is required and was left out");
}

//===----------------------------------------------------------------------===//
// The table of ops
//===----------------------------------------------------------------------===//

TEST(OpDef, EveryOpHasADefinition) {
  for (unsigned i = 0; i < numOpKinds; ++i) {
    const OpDef &def = opDef(OpKind(i));
    EXPECT_EQ(parseMnemonic(def.mnemonic), OpKind(i));
    EXPECT_EQ(def.makeAttrs()->id(), def.attrsId);
    EXPECT_EQ(def.eval == nullptr, def.is(Terminator));
    EXPECT_FALSE(def.doc.empty());
  }
}

TEST(OpDef, NamesOperands) {
  EXPECT_EQ(operandName(OpKind::MatMul, 0), "a");
  EXPECT_EQ(operandName(OpKind::MatMul, 3), "extras #1");
  ASSERT_EQ(operandSpecs(OpKind::LayerNorm).size(), 3u);
  EXPECT_TRUE(operandSpecs(OpKind::LayerNorm)[1].optional);
  EXPECT_EQ(resultSpecs(OpKind::TopK).size(), 2u);
}

TEST(Attrs, EqualityAndHashSeeEveryMember) {
  AttentionAttrs a, b;
  EXPECT_TRUE(equal(a, b));
  EXPECT_EQ(hashAttrs(a), hashAttrs(b));
  b.maskedRow = MaskedRow::Uniform;
  EXPECT_FALSE(equal(a, b));
  EXPECT_NE(hashAttrs(a), hashAttrs(b));
  b = a;
  b.queryOffset = Dim::symbol("past");
  EXPECT_FALSE(equal(a, b));
  ConstAttrs c, d;
  c.value = Constant::ints({1, 1});
  d.value = Constant::splat(ElementType::I64, {2}, 1);
  EXPECT_TRUE(equal(c, d));
  EXPECT_EQ(hashAttrs(c), hashAttrs(d));
  EXPECT_FALSE(equal(c, NoAttrs()));
}

} // namespace
