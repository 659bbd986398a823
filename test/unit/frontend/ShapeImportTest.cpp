//===- ShapeImportTest.cpp - sizes followed by value ---------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestModel.h"

using namespace tenon::test;

namespace {

TestModel model(int64_t opset = 17) {
  TestModel m(opset);
  m.input("x", Float, {"batch", "seq", "64"});
  m.output("y");
  return m;
}

TEST(InputSizes, NamesExpressionsAndGaps) {
  TestModel m;
  m.input("ids", Int64, {"batch", "sequence"});
  m.input("mask", Int64, {"batch", "past + sequence"});
  m.input("past", Float, {"batch", "2", "past", "8"});
  m.input("other", Float, {"", "a + b", "batch-size", "17x"});
  for (const char *name : {"ids", "mask", "past", "other"})
    m.output(name);
  std::string text = m.text();
  expectParts(text, {"i64[batch, past + sequence]", "f32[batch, 2, past, 8]",
                     "f32[other_0, \"a + b\", \"batch-size\", "});
}

TEST(InputSizes, OptionsFixAndBound) {
  TestModel m = model();
  m.node("Neg", {"x"}, {"y"});
  ASSERT_FALSE(tenon::frontend::parseDimOption("batch=2", m.options));
  ASSERT_FALSE(tenon::frontend::parseDimOption("seq=1..512", m.options));
  expectParts(m.text(), {"seq: 1..512", "f32[2, seq, 64]"});

  TestModel unknown = model();
  unknown.node("Neg", {"x"}, {"y"});
  ASSERT_FALSE(tenon::frontend::parseDimOption("beat=2", unknown.options));
  expectParts(unknown.text(), {"no input has a size named 'beat'", "'batch'"});
  for (const char *bad : {"seq", "=3", "seq=", "seq=x", "seq=5..2", "seq=-1"})
    EXPECT_TRUE(llvm::errorToBool(
        tenon::frontend::parseDimOption(bad, unknown.options)))
        << bad;
}

/// "?" says nothing of a size, twice as little as once.
TEST(InputSizes, TakesNoQuestionMarkForAName) {
  TestModel m;
  m.input("x", Float, {"?", "?", "n"});
  m.node("Neg", {"x"}, {"y"});
  m.output("y");
  expectParts(m.text(), {"f32[x_0, x_1, n]"});
}

TEST(InputSizes, MakeInputsConstants) {
  auto text = [](std::vector<const char *> values) {
    TestModel m;
    m.input("x", Float, {"n"});
    m.input("rate", Int64, {});
    m.input("gain", Float, {"1", "n"});
    m.node("Cast", {"rate"}, {"r"}).add_attribute()->set_name("to");
    auto &to = *m.graph().mutable_node(0)->mutable_attribute(0);
    to.set_type(onnx::AttributeProto::INT);
    to.set_i(Float);
    m.node("Mul", {"x", "r"}, {"z"});
    m.node("Mul", {"z", "gain"}, {"y"});
    m.output("y");
    for (const char *value : values)
      if (llvm::Error error =
              tenon::frontend::parseValueOption(value, m.options))
        return llvm::toString(std::move(error));
    return m.text();
  };
  expectParts(text({"rate=16000"}),
              {"@main(%x: f32[n], %gain: f32[1, n])", "16000"});
  expectParts(text({"gain=0.5"}), {"graph input 'gain'", "--dim"});
  expectParts(text({"rate=fast"}), {"graph input 'rate'", "'fast'", "i64"});
  expectParts(text({"rate=0.5"}), {"graph input 'rate'", "'0.5'", "i64"});
  expectParts(text({"late=3"}), {"--set: the model has no input 'late'"});
  expectParts(text({"rate=3", "rate=4"}), {"input 'rate' is given twice"});
  expectParts(text({"rate="}), {"'rate=' is no value; expected INPUT=NUMBER"});
}

TEST(InputSizes, RefusesWhatIsNoTensor) {
  TestModel sequence;
  auto *input = sequence.graph().add_input();
  input->set_name("s");
  input->mutable_type()->mutable_sequence_type();
  expectParts(sequence.text(), {"graph input 's'", "sequence"});
  TestModel none;
  none.graph().add_input()->set_name("n");
  expectParts(none.text(), {"graph input 'n'", "no type"});
  TestModel huge;
  huge.input("h", Float, {"4294967296", "4294967296"});
  expectParts(huge.text(), {"graph input 'h'", "overflows"});
}

/// Shape -> Gather -> Unsqueeze -> Concat -> Reshape, as exporters write it.
TEST(Shapes, ChainsDisappear) {
  TestModel m = model();
  m.node("Shape", {"x"}, {"s"});
  m.ints("zero", {0});
  m.ints("one", {1});
  m.tensor("i1", Int64, {}).add_int64_data(1);
  m.ints("tail", {4, -1});
  m.ints("axes", {0});
  m.node("Slice", {"s", "zero", "one"}, {"b"});
  m.node("Gather", {"s", "i1"}, {"n0"});
  m.node("Unsqueeze", {"n0", "axes"}, {"n"});
  set(m.node("Concat", {"b", "n", "tail"}, {"shape"}), "axis", 0);
  m.node("Reshape", {"x", "shape"}, {"y"});
  expectParts(m.text(), {"f32[batch, seq, 4, 16]"});
}

TEST(Shapes, ReshapeRules) {
  auto reshape = [](std::vector<int64_t> target, int64_t allowZero = 0) {
    TestModel m;
    m.input("x", Float, {"2", "0", "6"});
    m.output("y");
    m.ints("shape", target);
    set(m.node("Reshape", {"x", "shape"}, {"y"}), "allowzero", allowZero);
    return m.text();
  };
  expectParts(reshape({0, 0, 2, 3}), {"f32[2, 0, 2, 3]"});
  expectParts(reshape({0, -1, 3}, 0), {"f32[2, 0, 3]"});
  expectParts(reshape({0, 4}, 1), {"f32[0, 4]"});
  expectParts(reshape({-1, -1}), {"'the_Reshape' (Reshape)", "-1"});
  expectParts(reshape({5, 5}), {"error: ", "the_Reshape"});
}

TEST(Shapes, SizesFromDataAreBound) {
  TestModel m = model();
  m.input("n", Int64, {"2"});
  m.node("Expand", {"y0", "n"}, {"y"});
  m.floats("y0", {1, 1}, {3});
  expectParts(m.text(), {"bind_dims"});
}

TEST(Slice, ClampsAsOnnxDoes) {
  auto slice = [](int64_t start, int64_t end, int64_t step) {
    TestModel m = model();
    m.ints("starts", {start});
    m.ints("ends", {end});
    m.ints("axes", {1});
    m.ints("steps", {step});
    m.node("Slice", {"x", "starts", "ends", "axes", "steps"}, {"y"});
    return m.text();
  };
  expectParts(slice(1, INT64_MAX, 1), {"sizes", "seq"});
  expectParts(slice(INT64_MAX, INT64_MIN, -1),
              {"steps = [1, -1, 1]", "f32[batch, seq, 64]"});
  expectParts(slice(0, INT64_MAX, 2), {"floordiv(seq + 1, 2)"});
  expectParts(slice(0, 1, 0), {"error: ", "step of 0"});
}

/// Bounds from data are clamped by the model and bound: start, then size.
TEST(Slice, BoundsFromData) {
  for (int64_t step : {1, 2, -1, -3}) {
    TestModel m = model();
    m.input("start", Int64, {"1"});
    m.input("end", Int64, {"1"});
    m.ints("axes", {1});
    m.ints("steps", {step});
    m.node("Slice", {"x", "start", "end", "axes", "steps"}, {"y"});
    expectParts(m.text(), {"bind_dims", "f32[batch, \"the_Slice.size0\", 64]",
                           "steps = [1, " + std::to_string(step) + ", 1]"});
  }
}

/// Where data give as many axes as there are sizes of 1, those are the axes.
TEST(Squeeze, AxesFromDataMayBeForced) {
  auto squeeze = [](const std::string &count) {
    TestModel m;
    m.input("x", Float, {"3", "1", "2", "1"});
    m.input("axes", Int64, {count});
    m.node("Squeeze", {"x", "axes"}, {"y"});
    m.output("y");
    return m.text();
  };
  expectParts(squeeze("2"), {"reshape", "f32[3, 2]"});
  expectParts(squeeze("1"),
              {"'the_Squeeze' (Squeeze)", "'axes'", "depends on data"});
}

TEST(CumSum, SelectsAxisFromData) {
  TestModel m;
  m.input("x", Float, {"n", "4"});
  m.input("axis", Int32, {});
  m.node("CumSum", {"x", "axis"}, {"y"});
  m.output("y");
  expectParts(m.text(), {"axis = 0", "axis = 1", "where", "-> (y: f32[n, 4])"});
}

/// Position tables cut to a length end the lengths that a model can do.
TEST(Slice, TablesBoundLengths) {
  TestModel m;
  m.input("x", Int64, {"batch", "seq"});
  m.floats("table", {4, 2}, std::vector<float>(8, 0.5f));
  m.ints("zero", {0});
  m.ints("one", {1});
  m.ints("two", {2});
  m.node("Shape", {"x"}, {"s"});
  m.node("Slice", {"s", "one", "two"}, {"n"});
  m.node("Slice", {"table", "zero", "n", "zero"}, {"y"});
  m.output("y");
  expectParts(m.text(), {"seq: 0..4", "f32[seq, 2]"});
}

TEST(Range, CountsSymbolically) {
  TestModel m = model();
  m.tensor("start", Int64, {}).add_int64_data(0);
  m.tensor("i", Int64, {}).add_int64_data(1);
  m.node("Shape", {"x"}, {"s"});
  m.node("Gather", {"s", "i"}, {"n"});
  m.node("Range", {"start", "n", "i"}, {"y"});
  expectParts(m.text(), {"range", "count = seq", "i64[seq]"});

  TestModel huge = model();
  for (auto [name, value] : {std::pair<const char *, int64_t>{"a", 0},
                             {"b", int64_t(1) << 62},
                             {"c", 1}})
    huge.tensor(name, Int64, {}).add_int64_data(value);
  huge.node("Range", {"a", "b", "c"}, {"y"});
  expectParts(huge.text(), {"'the_Range' (Range)", "too large"});
}

TEST(Opsets, SoftmaxFlattensBefore13) {
  TestModel old = model(11);
  old.node("Softmax", {"x"}, {"y"});
  expectParts(old.text(), {"f32[batch, 64 * seq]"});
  TestModel now = model(13);
  now.node("Softmax", {"x"}, {"y"});
  expectParts(now.text(), {"axis = 2"});
}

TEST(Opsets, ReduceAxesMoved) {
  TestModel attribute = model(17);
  setInts(attribute.node("ReduceMean", {"x"}, {"y"}), "axes", {-1});
  expectParts(attribute.text(), {"axes = [2]"});
  TestModel input = model(18);
  setInts(input.node("ReduceMean", {"x"}, {"y"}), "axes", {-1});
  expectParts(input.text(), {"'axes' is not one of ReduceMean at opset 18"});
  TestModel noop = model(18);
  set(noop.node("ReduceSum", {"x"}, {"y"}), "noop_with_empty_axes", 1);
  expectParts(noop.text(), {"axes = []"});
}

TEST(Attention, TakesHeadsAndCaches) {
  TestModel m(23);
  m.input("x", Float, {"batch", "seq", "64"});
  m.input("past", Float, {"batch", "4", "past", "16"});
  auto &node =
      m.node("Attention", {"x", "x", "x", "", "past", "past"}, {"y", "k", "v"});
  set(node, "q_num_heads", 4);
  set(node, "kv_num_heads", 4);
  set(node, "is_causal", 1);
  for (const char *name : {"y", "k", "v"})
    m.output(name);
  expectParts(m.text(),
              {"attention", "scale = 0.25", "causality = causal",
               "query_offset = past", "masked_row = zero",
               "f32[batch, 4, past + seq, 16]", "f32[batch, seq, 64]"});
}

TEST(Einsum, ContractsToMatmul) {
  TestModel m;
  m.input("a", Float, {"b", "n", "8"});
  m.input("c", Float, {"b", "m", "8"});
  set(m.node("Einsum", {"a", "c"}, {"y"}), "equation",
      std::string("bnd, bmd -> bnm"));
  m.output("y");
  expectParts(m.text(), {"matmul", "f32[b, n, m]"});
  TestModel bad;
  bad.input("a", Float, {"2"});
  set(bad.node("Einsum", {"a"}, {"y"}), "equation", std::string("i->j"));
  bad.output("y");
  expectParts(bad.text(), {"'the_Einsum' (Einsum)", "'j'"});
}

TEST(Opsets, InitializersListedAsInputs) {
  for (int64_t version : {3, 7}) {
    TestModel m(13);
    m.proto.set_ir_version(version);
    m.input("x", Float, {"2"});
    m.input("w", Float, {"2"});
    m.floats("w", {2}, {1, 2});
    m.node("Add", {"x", "w"}, {"y"});
    m.output("y");
    expectParts(m.text(), {"const", "(%x: f32[2])"});
    EXPECT_EQ(m.warnings.size(), version >= 4 ? 1u : 0u);
  }
}

} // namespace
