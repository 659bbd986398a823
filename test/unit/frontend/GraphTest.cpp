//===- GraphTest.cpp - importing graphs, functions and branches ----------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestModel.h"

using namespace tenon::test;

namespace {

/// x: f32[2, 3] and y made by whatever the test adds.
TestModel model(int64_t opset = 17) {
  TestModel m(opset);
  m.input("x", Float, {"2", "3"});
  m.output("y");
  return m;
}

TEST(Graph, ImportsPlainOps) {
  TestModel m = model();
  m.node("Add", {"x", "x"}, {"t"});
  m.node("LeakyRelu", {"t"}, {"y"});
  expectParts(m.text(), {"add", "leaky_relu", "alpha = 0.0099", "f32[2, 3]"});
}

TEST(Graph, SortsShuffledNodes) {
  TestModel m = model();
  m.node("Neg", {"t"}, {"y"});
  m.node("Abs", {"x"}, {"t"});
  std::string text = m.text();
  EXPECT_LT(text.find("abs"), text.find("neg")) << text;
}

TEST(Graph, RefusesCycles) {
  TestModel m = model();
  m.node("Add", {"x", "b"}, {"a"}).set_name("first");
  m.node("Neg", {"a"}, {"b"}).set_name("second");
  m.node("Abs", {"b"}, {"y"});
  expectParts(m.text(),
              {"error: ", "cycle", "'first' (Add)", "'second' (Neg)"});
}

TEST(Graph, RefusesUndefinedAndDoubleNames) {
  TestModel undefined = model();
  undefined.node("Add", {"x", "ghost"}, {"y"});
  expectParts(undefined.text(), {"'the_Add' (Add)", "'ghost'", "not defined"});

  TestModel twice = model();
  twice.node("Neg", {"x"}, {"y"});
  twice.node("Abs", {"x"}, {"y"});
  expectParts(twice.text(), {"'y' is defined twice", "the_Neg", "the_Abs"});

  TestModel overInput = model();
  overInput.node("Neg", {"x"}, {"x"});
  expectParts(overInput.text(), {"'x' is defined twice", "graph input"});

  TestModel noOutput = model();
  expectParts(noOutput.text(), {"graph output 'y' is not defined"});
}

TEST(Graph, OutputsMayBeInputsAndInitializers) {
  TestModel m;
  m.input("x", Float, {"2"});
  m.floats("w", {2}, {1, 2});
  m.output("x");
  m.output("w");
  expectParts(m.text(), {"-> (x: f32[2], w: f32[2])", "return %x, %w"});
}

TEST(Graph, ListsAllUnsupportedOps) {
  TestModel m = model();
  m.node("Frobnicate", {"x"}, {"a"});
  m.node("Gelu", {"a"}, {"b"});
  m.node("Blorp", {"b"}, {"y"}).set_domain("com.example");
  m.node("Frobnicate", {"x"}, {"c"}).set_name("other");
  expectParts(m.text(), {"4 nodes", "Frobnicate", "'the_Frobnicate', 'other'",
                         "exists from opset 20",
                         "imports no operator set of domain "
                         "'com.example'"});
}

TEST(Graph, ChecksVersions) {
  expectParts(model(999).text(), {"opset 999", "7 to 28"});
  expectParts(model(3).text(), {"opset 3"});
  TestModel ir = model();
  ir.proto.set_ir_version(999);
  expectParts(ir.text(), {"IR version 999"});
  TestModel newer = model();
  newer.proto.set_ir_version(15);
  newer.node("Neg", {"x"}, {"y"});
  expectParts(newer.text(), {"neg"});
  ASSERT_EQ(newer.warnings.size(), 1u);
  expectParts(newer.warnings[0], {"IR version 15 is newer"});
  TestModel none;
  none.proto.clear_opset_import();
  expectParts(none.text(), {"opset_import"});
}

TEST(Graph, ChecksArity) {
  TestModel few = model();
  few.node("MatMul", {"x"}, {"y"});
  expectParts(few.text(),
              {"'the_MatMul' (MatMul)", "input 1 ('B') is missing"});
  TestModel omitted = model();
  omitted.node("Add", {"", "x"}, {"y"});
  expectParts(omitted.text(), {"input 0 ('A') is missing"});
  TestModel many = model();
  many.node("Relu", {"x", "x"}, {"y"});
  expectParts(many.text(), {"has 2 inputs; expected at most 1"});
  TestModel outputs = model();
  outputs.node("Relu", {"x"}, {"y", "z"});
  expectParts(outputs.text(), {"has 2 outputs; expected at most 1"});
}

TEST(Attributes, NothingIsIgnored) {
  TestModel unread = model();
  set(unread.node("Softmax", {"x"}, {"y"}), "axes", 1);
  expectParts(unread.text(), {"'the_Softmax' (Softmax)", "'axes'"});

  TestModel type = model();
  set(type.node("Softmax", {"x"}, {"y"}), "axis", std::string("1"));
  expectParts(type.text(), {"'axis'", "string", "expected int"});

  TestModel field = model();
  auto &a = attribute(field.node("Softmax", {"x"}, {"y"}), "axis",
                      onnx::AttributeProto::INT);
  a.add_floats(1.0f);
  expectParts(field.text(), {"'axis'", "declared as int but holds floats"});

  TestModel twice = model();
  auto &node = twice.node("Softmax", {"x"}, {"y"});
  set(node, "axis", 0);
  set(node, "axis", 1);
  expectParts(twice.text(), {"'axis' is given twice"});

  TestModel missing = model();
  missing.node("Cast", {"x"}, {"y"});
  expectParts(missing.text(), {"'to'", "missing"});

  TestModel range = model();
  set(range.node("Softmax", {"x"}, {"y"}), "axis", 7);
  expectParts(range.text(), {"axis 7 is out of range; expected -2 to 1"});
}

TEST(Attributes, UnusedInputsAreErrors) {
  // Only the constant mode has a value, but others may name one.
  TestModel m = model(23);
  m.floats("scale", {3}, {1, 1, 1});
  m.floats("past", {1, 1, 1, 1}, {0});
  auto &node = m.node("Attention", {"x", "x", "x", "", "past"}, {"y"});
  set(node, "q_num_heads", 1);
  expectParts(m.text(), {"error: ", "the_Attention"});
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

onnx::FunctionProto &function(TestModel &m, const std::string &name) {
  auto *f = m.proto.add_functions();
  f->set_domain("my");
  f->set_name(name);
  f->add_input("a");
  f->add_output("r");
  auto *set = f->add_opset_import();
  set->set_version(17);
  set = f->add_opset_import();
  set->set_domain("my");
  set->set_version(1);
  return *f;
}

TEST(Functions, AreInlinedWithTheirAttributes) {
  TestModel m = model();
  m.import("my", 1);
  auto &f = function(m, "Top");
  f.add_attribute("which");
  auto &softmax = TestModel::fill(*f.add_node(), "Softmax", {"a"}, {"t"});
  auto &axis = attribute(softmax, "axis", onnx::AttributeProto::INT);
  axis.set_ref_attr_name("which");
  TestModel::fill(*f.add_node(), "Neg", {"t"}, {"r"});
  for (int64_t i = 0; i < 2; ++i) {
    auto &call = m.node("Top", {i ? "t" : "x"}, {i ? "y" : "t"});
    call.set_domain("my");
    set(call, "which", i);
  }
  expectParts(m.text(), {"softmax", "axis = 0", "axis = 1", "neg"});
}

TEST(Functions, RefusesRecursion) {
  TestModel m = model();
  m.import("my", 1);
  auto &a = function(m, "A");
  TestModel::fill(*a.add_node(), "B", {"a"}, {"r"}).set_domain("my");
  auto &b = function(m, "B");
  TestModel::fill(*b.add_node(), "A", {"a"}, {"r"}).set_domain("my");
  m.node("A", {"x"}, {"y"}).set_domain("my");
  expectParts(m.text(), {"recursion", "'A'", "'B'"});
}

TEST(Functions, ChecksCallsAndBodies) {
  TestModel inputs = model();
  inputs.import("my", 1);
  auto &f = function(inputs, "Top");
  TestModel::fill(*f.add_node(), "Neg", {"a"}, {"r"});
  inputs.node("Top", {"x", "x"}, {"y"}).set_domain("my");
  expectParts(inputs.text(), {"'the_Top' (Top)", "has 2 inputs", "takes 1"});

  TestModel unknown = model();
  unknown.import("my", 1);
  TestModel::fill(*function(unknown, "Top").add_node(), "Blorp", {"a"}, {"r"});
  unknown.node("Top", {"x"}, {"y"}).set_domain("my");
  expectParts(unknown.text(), {"Blorp", "in function 'Top'"});

  TestModel ghost = model();
  ghost.import("my", 1);
  TestModel::fill(*function(ghost, "Top").add_node(), "Neg", {"ghost"}, {"r"});
  ghost.node("Top", {"x"}, {"y"}).set_domain("my");
  expectParts(ghost.text(), {"in function 'Top'", "'ghost'"});

  TestModel attr = model();
  attr.import("my", 1);
  TestModel::fill(*function(attr, "Top").add_node(), "Neg", {"a"}, {"r"});
  auto &call = attr.node("Top", {"x"}, {"y"});
  call.set_domain("my");
  set(call, "surprise", 1);
  expectParts(attr.text(), {"'surprise'"});
}

/// Doubling at each level would make 2^60 nodes.
TEST(Functions, BoundsWhatInliningMakes) {
  TestModel m = model();
  m.import("my", 1);
  for (int i = 0; i < 60; ++i) {
    auto &f = function(m, "F" + std::to_string(i));
    std::string next = i == 59 ? "Neg" : "F" + std::to_string(i + 1);
    for (int j = 0; j < 2; ++j) {
      auto &node = TestModel::fill(*f.add_node(), next, {j ? "t" : "a"},
                                   {j ? "r" : "t"});
      node.set_domain(i == 59 ? "" : "my");
    }
  }
  m.node("F0", {"x"}, {"y"}).set_domain("my");
  expectParts(m.text(), {"more than 300000 nodes"});
}

//===----------------------------------------------------------------------===//
// If
//===----------------------------------------------------------------------===//

onnx::NodeProto &branch(TestModel &m, const std::string &condition,
                        const std::string &thenOp, const std::string &elseOp) {
  auto &node = m.node("If", {condition}, {"y"});
  for (bool taken : {true, false}) {
    auto &a = attribute(node, taken ? "then_branch" : "else_branch",
                        onnx::AttributeProto::GRAPH);
    a.mutable_g()->set_name("branch");
    TestModel::fill(*a.mutable_g()->add_node(), taken ? thenOp : elseOp, {"x"},
                    {"r"});
    a.mutable_g()->add_output()->set_name("r");
  }
  return node;
}

TEST(If, FollowsConstantConditions) {
  TestModel m = model();
  m.tensor("c", Bool, {}).add_int32_data(0);
  // What is not taken may hold anything.
  branch(m, "c", "Unheard", "Neg");
  expectParts(m.text(), {"neg"});
}

TEST(If, SelectsOnData) {
  TestModel m = model();
  m.input("c", Bool, {});
  branch(m, "c", "Abs", "Neg");
  expectParts(m.text(), {"abs", "neg", "where"});
}

/// The sizes that differ are bound when running; others stay as they are.
TEST(If, SelectsSizesOnData) {
  TestModel m;
  m.input("x", Float, {"n", "3", "3"});
  m.input("c", Bool, {});
  auto &node = branch(m, "c", "Transpose", "Neg");
  setInts(*node.mutable_attribute(0)->mutable_g()->mutable_node(0), "perm",
          {1, 0, 2});
  m.output("y");
  expectParts(m.text(),
              {"bind_dims", "concat", "slice",
               "-> (y: f32[\"the_If.shape0\", \"the_If.shape1\", 3])"});
}

TEST(If, RefusesRanksOnData) {
  TestModel m;
  m.input("x", Int64, {"2", "3"});
  m.input("c", Bool, {});
  branch(m, "c", "Size", "Neg");
  m.output("y");
  expectParts(m.text(), {"'the_If' (If)", "i64 and i64[2, 3]",
                         "one element type and rank"});
}

TEST(If, ChecksItsParts) {
  TestModel type = model();
  branch(type, "x", "Abs", "Neg");
  expectParts(type.text(), {"'the_If' (If)", "expected one bool"});

  TestModel missing = model();
  missing.input("c", Bool, {});
  branch(missing, "c", "Abs", "Neg").mutable_attribute()->RemoveLast();
  expectParts(missing.text(), {"'else_branch' is missing"});

  TestModel ghost = model();
  ghost.input("c", Bool, {});
  branch(ghost, "c", "Abs", "Neg")
      .mutable_attribute(0)
      ->mutable_g()
      ->mutable_node(0)
      ->set_input(0, "ghost");
  expectParts(ghost.text(), {"'the_If' (If)", "subgraph", "'ghost'"});
}

} // namespace
