//===- SessionTest.cpp - binding, running, data-dependent sizes ---------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/runtime/TestPlans.h"

#include <gtest/gtest.h>
#include <thread>

using namespace tenon;
using namespace tenon::rt;
using namespace tenon::test;

namespace {

class Affine : public testing::Test {
protected:
  Affine() : model(affinePlan(), {1, 2, 3, 4}) {}

  std::unique_ptr<Session> session(unsigned threads) {
    auto made = Session::create(*model.model, threads);
    EXPECT_TRUE(made.ok()) << made.message();
    return std::move(*made);
  }

  /// Runs on x = 0, 1, 2, ... and checks y = 2 * (x + w).
  static void check(Session &session, int64_t batch) {
    std::vector<float> x(size_t(batch) * 4);
    for (size_t i = 0; i < x.size(); ++i)
      x[i] = float(i);
    int64_t shape[] = {batch, 4};
    Status status = session.setInput("x", DType::F32, shape, x.data());
    ASSERT_TRUE(status.ok()) << status.message();
    status = session.run();
    ASSERT_TRUE(status.ok()) << status.message();
    const OutputValue &y = session.output(0);
    ASSERT_EQ(y.shape.size(), 2u);
    EXPECT_EQ(y.shape[0], batch);
    const float *data = static_cast<const float *>(y.data);
    for (size_t i = 0; i < x.size(); ++i)
      ASSERT_EQ(data[i], 2 * (float(i) + float(i % 4 + 1))) << i;
  }

  TestModel model;
};

TEST_F(Affine, GivesTheSameForAnyShapeAndNumberOfThreads) {
  for (unsigned threads : {1u, 2u, 3u, 7u}) {
    auto one = session(threads);
    for (int64_t batch : {1, 5, 1000, 3, 3})
      check(*one, batch);
    EXPECT_EQ(one->peakBytes(), 3 * 48);
    EXPECT_EQ(one->flops(), 3 * 16);
  }
}

TEST_F(Affine, ManySessionsAtTheSameTime) {
  std::vector<std::thread> callers;
  for (int i = 0; i < 3; ++i)
    callers.emplace_back([&, i] {
      auto mine = session(2);
      for (int k = 0; k < 50; ++k)
        check(*mine, 10 + i * 7 + k % 3);
    });
  for (std::thread &caller : callers)
    caller.join();
}

TEST_F(Affine, WritesToTheCallersMemory) {
  auto one = session(2);
  std::vector<float> mine(12);
  ASSERT_TRUE(one->setOutput(0, mine.data(), 48).ok());
  check(*one, 3);
  EXPECT_EQ(one->output(0).data, mine.data());
  EXPECT_EQ(mine[0], 2);
  float x[16] = {};
  int64_t shape[] = {4, 4};
  ASSERT_TRUE(one->setInput("x", DType::F32, shape, x).ok());
  EXPECT_EQ(one->run().message(),
            "output 'y': needs 64 bytes, its memory has 48");
  ASSERT_TRUE(one->setOutput(0, nullptr, 0).ok());
  check(*one, 4);
}

TEST_F(Affine, ExplainsWhatIsWrongWithInputs) {
  auto one = session(1);
  float x[8] = {};
  auto message = [&](const char *name, DType dtype, std::vector<int64_t> shape,
                     const void *data) {
    return one->setInput(name, dtype, shape, data).message();
  };
  EXPECT_EQ(one->run().message(),
            "input 'x' is not set; expected f32[batch, 4]");
  EXPECT_EQ(message("z", DType::F32, {1, 4}, x),
            "no input 'z'; the model's inputs are 'x'");
  EXPECT_EQ(message("x", DType::I64, {1, 4}, x),
            "input 'x': found i64[1, 4], expected f32[batch, 4]");
  EXPECT_EQ(message("x", DType::F32, {4}, x),
            "input 'x': found f32[4], expected f32[batch, 4]");
  EXPECT_EQ(message("x", DType::F32, {1, 5}, x),
            "input 'x': dimension 1 is 5, expected 4 in f32[batch, 4]");
  EXPECT_EQ(message("x", DType::F32, {1, 4}, nullptr),
            "input 'x': its data are null");
  EXPECT_EQ(message("x", DType::F32, {-1, 4}, x),
            "input 'x': size of f32[-1, 4] is out of range");
  EXPECT_EQ(message("x", DType::F32, {1001, 4}, x), "");
  EXPECT_EQ(one->run().message(), "input 'x': dimension 0 is 1001, outside the "
                                  "range 1..1000 of 'batch'");
  EXPECT_EQ(message("x", DType::F32, {0, 4}, nullptr), "");
  EXPECT_EQ(
      one->run().message(),
      "input 'x': dimension 0 is 0, outside the range 1..1000 of 'batch'");
  check(*one, 2); // errors leave the session usable
}

TEST(Session, BindsSizesFromData) {
  TestModel model(selectPlan());
  for (unsigned threads : {1u, 4u}) {
    auto session = std::move(*Session::create(*model.model, threads));
    for (std::vector<float> x :
         {std::vector<float>{1, -2, 3}, {-1, -1}, {5, 6, 7, 8}, {}, {9}}) {
      int64_t shape[] = {int64_t(x.size())};
      ASSERT_TRUE(session->setInput(0, DType::F32, shape, x.data()).ok());
      Status status = session->run();
      ASSERT_TRUE(status.ok()) << status.message();
      std::vector<float> expected;
      for (float value : x)
        if (value > 0)
          expected.push_back(value);
      const OutputValue &y = session->output(0);
      ASSERT_EQ(y.shape[0], int64_t(expected.size()));
      const float *data = static_cast<const float *>(y.data);
      EXPECT_EQ(std::vector<float>(data, data + expected.size()), expected);
      const int64_t *sizes =
          static_cast<const int64_t *>(session->output(1).data);
      EXPECT_EQ(sizes[0], shape[0]);
      EXPECT_EQ(sizes[1], y.shape[0]);
    }
    EXPECT_FALSE(session->peakBytes().has_value());
  }
}

TEST(Session, EndsARunWithFaultyData) {
  TestModel model(checkedPlan());
  for (unsigned threads : {1u, 2u, 3u, 8u}) {
    auto session = std::move(*Session::create(*model.model, threads));
    std::vector<float> x(4 * 101), y(x.size(), 7), z(x.size(), 7);
    int64_t shape[] = {101, 4};
    ASSERT_TRUE(session->setInput(0, DType::F32, shape, x.data()).ok());
    ASSERT_TRUE(session->setOutput(0, y.data(), y.size() * 4).ok());
    ASSERT_TRUE(session->setOutput(1, z.data(), z.size() * 4).ok());
    for (int repeat = 0; repeat < 20; ++repeat) {
      // Two faults, perhaps found by two threads: the first is told, and what
      // comes after that launch does not run.
      x[50] = -3, x[399] = -4;
      std::fill(z.begin(), z.end(), 7.0f);
      EXPECT_EQ(session->run().message(),
                "node '/node' (kernel): index -3 at [12, 2] is out of range: "
                "axis 1 has 9 entries (-9..8)");
      EXPECT_EQ(z, std::vector<float>(z.size(), 7));
      // A fault in the last launch; the message is not of the run before.
      x[50] = 3, x[399] = 4;
      EXPECT_EQ(session->run().message(),
                "node '/node' (kernel): -3 at [50] of operand 0 is out of "
                "range: expected 0..9");
      // And none.
      x[50] = x[399] = 0;
      Status status = session->run();
      EXPECT_TRUE(status.ok()) << status.message();
      EXPECT_EQ(y, x);
    }
  }
}

TEST(Session, ChecksTheRangeOfSizesFromData) {
  TestModel model(selectPlan());
  auto session = std::move(*Session::create(*model.model, 2));
  std::vector<float> x(101, 1.0f);
  int64_t shape[] = {101};
  ASSERT_TRUE(session->setInput(0, DType::F32, shape, x.data()).ok());
  EXPECT_EQ(session->run().message(),
            "/node: a size computed from the data is "
            "101, outside the range 0..100 of 'found'");
  int64_t fewer[] = {100};
  ASSERT_TRUE(session->setInput(0, DType::F32, fewer, x.data()).ok());
  EXPECT_TRUE(session->run().ok());
}

/// A plan with inputs a: f32[n] and b: f32[n + m], m from c: f32[m], whose
/// output is a copy of a window of b.
std::vector<uint8_t> viewPlan(int64_t offset) {
  PlanKit kit;
  ExprId n = kit.symbolValue(kit.symbol("n", 0, INT64_MAX));
  ExprId m = kit.symbolValue(kit.symbol("m", 0, INT64_MAX));
  ExprId sum = kit.apply(ExprOp::Add, n, m);
  uint32_t a = kit.buffer(BufferKind::Input, 0, kit.times(n, 4));
  uint32_t b = kit.buffer(BufferKind::Input, 1, kit.times(sum, 4));
  uint32_t c = kit.buffer(BufferKind::Input, 2, kit.times(m, 4));
  kit.input("a", DType::F32, {n}, a);
  kit.input("b", DType::F32, {sum}, b);
  kit.input("c", DType::F32, {m}, c);
  // The last m elements, backwards.
  ExprId first = kit.apply(ExprOp::Add, sum, kit.constant(offset));
  ExprId shape[] = {m}, strides[] = {kit.constant(-1)};
  kit.views.push_back(
      {b, DType::F32, 1, 0, first, kit.run(shape), kit.run(strides)});
  kit.output("y", DType::F32, {m}, 0);
  kit.checks.push_back({n, kit.constant(2), kit.string("node '/check'")});
  kit.header.numUnits = 5;
  return kit.finish();
}

/// z is the formulas' sizes: n in 2 * n, m in n * m + 3, k in n + m - 2 * k.
TestModel formulaModel() {
  PlanKit kit;
  uint32_t nSymbol = kit.symbol("n", 1, 10), mSymbol = kit.symbol("m", 0, 99),
           kSymbol = kit.symbol("k", 0, 99);
  ExprId n = kit.symbolValue(nSymbol), m = kit.symbolValue(mSymbol),
         k = kit.symbolValue(kSymbol);
  ExprId a = kit.times(n, 2);
  ExprId b =
      kit.apply(ExprOp::Add, kit.apply(ExprOp::Mul, n, m), kit.constant(3));
  ExprId c =
      kit.apply(ExprOp::Sub, kit.apply(ExprOp::Add, n, m), kit.times(k, 2));
  uint32_t buffers[3];
  for (uint32_t i = 0; i < 3; ++i)
    buffers[i] = kit.buffer(BufferKind::Input, i, kit.constant(0));
  // In the wrong order.
  kit.input("c", DType::U8, {c}, buffers[0]);
  kit.input("b", DType::U8, {b}, buffers[1]);
  kit.input("a", DType::U8, {a}, buffers[2]);
  uint32_t z = kit.buffer(BufferKind::Output, 0, kit.constant(24));
  uint32_t zView = kit.view(z, DType::I64, {kit.constant(3)});
  kit.output("z", DType::I64, {kit.constant(3)}, zView);
  kit.launch(LaunchKind::WriteExprs, rt::none, {zView}, {n, m, k});
  kit.segments.push_back({0, 1, kit.constant(0), 0});
  kit.header.numUnits = 5;
  return TestModel(kit.finish());
}

TEST(Session, SolvesFormulasForSizes) {
  TestModel model = formulaModel();
  auto session = std::move(*Session::create(*model.model, 1));
  uint8_t data[100] = {};
  auto run = [&](int64_t a, int64_t b, int64_t c) {
    int64_t sizes[] = {c, b, a};
    for (size_t i = 0; i < 3; ++i)
      EXPECT_TRUE(session->setInput(i, DType::U8, {&sizes[i], 1}, data).ok());
    return session->run().message();
  };
  EXPECT_EQ(run(4, 13, 1), "");
  const int64_t *z = static_cast<const int64_t *>(session->output(0).data);
  EXPECT_EQ(std::vector<int64_t>(z, z + 3), (std::vector<int64_t>{2, 5, 3}));
  EXPECT_EQ(run(5, 13, 1),
            "input 'a': dimension 0 is 5, expected n * 2 for a whole 'n'");
  EXPECT_EQ(run(0, 13, 1), "input 'a': dimension 0 is 0 = n * 2: 'n' is 0, "
                           "outside the range 1..10 of 'n'");
  EXPECT_EQ(run(4, 1, 1), "input 'b': dimension 0 is 1 = (n * m) + 3: 'm' is "
                          "-1, outside the range 0..99 of 'm'");
  EXPECT_EQ(run(4, 14, 1), "input 'b': dimension 0 is 14, expected (n * m) + 3 "
                           "for a whole 'm'");
  EXPECT_EQ(run(2, 4, 2), "");
  EXPECT_EQ(std::vector<int64_t>(z, z + 3), (std::vector<int64_t>{1, 1, 0}));
}

TEST(Session, RefusesFormulasThatDoNotTellASize) {
  PlanKit kit;
  ExprId n = kit.symbolValue(kit.symbol("n", 0, INT64_MAX));
  uint32_t buffer = kit.buffer(BufferKind::Input, 0, kit.constant(0));
  kit.input("x", DType::U8, {kit.apply(ExprOp::Mul, n, n)}, buffer);
  std::vector<uint8_t> plan = kit.finish();
  std::vector<uint64_t> words((plan.size() + 7) / 8);
  std::memcpy(words.data(), plan.data(), plan.size());
  EXPECT_EQ(rt::Plan::load(
                {reinterpret_cast<const uint8_t *>(words.data()), plan.size()})
                .message(),
            "damaged plan: symbol 0: is never given a value");
}

TEST(Session, CopiesStridedOutputsAndChecksEquations) {
  TestModel model(viewPlan(-1));
  auto session = std::move(*Session::create(*model.model, 1));
  float a[3] = {}, b[5] = {1, 2, 3, 4, 5}, c[3] = {};
  auto set = [&](int64_t n, int64_t m, int64_t sum) {
    EXPECT_TRUE(session->setInput("a", DType::F32, {{n}}, a).ok());
    EXPECT_TRUE(session->setInput("c", DType::F32, {{m}}, c).ok());
    EXPECT_TRUE(session->setInput("b", DType::F32, {{sum}}, b).ok());
    return session->run().message();
  };
  EXPECT_EQ(set(2, 3, 5), "");
  const float *y = static_cast<const float *>(session->output(0).data);
  EXPECT_EQ(std::vector<float>(y, y + 3), (std::vector<float>{5, 4, 3}));
  EXPECT_EQ(set(2, 0, 2), "");
  EXPECT_EQ(session->output(0).bytes, 0u);
  EXPECT_EQ(set(2, 2, 5), "input 'b': dimension 0 is 5, expected n + m = 4");
  EXPECT_EQ(set(3, 2, 5), "node '/check': sizes differ: n is 3, 2 is 2 "
                          "(n = 3, m = 2)");
}

TEST(Session, RefusesViewsOutsideTheirBuffers) {
  TestModel model(viewPlan(0));
  auto session = std::move(*Session::create(*model.model, 1));
  float b[5] = {};
  ASSERT_TRUE(session->setInput("a", DType::F32, {{2}}, b).ok());
  ASSERT_TRUE(session->setInput("b", DType::F32, {{5}}, b).ok());
  ASSERT_TRUE(session->setInput("c", DType::F32, {{3}}, b).ok());
  EXPECT_EQ(session->run().message(),
            "the model cannot be run with n = 2, m = 3: it looks at elements "
            "that tensors of these sizes do not have");
}

TEST(Session, ReportsSizesThatOverflow) {
  PlanKit kit;
  ExprId n = kit.symbolValue(kit.symbol("n", 0, INT64_MAX));
  ExprId square = kit.apply(ExprOp::Mul, n, n);
  uint32_t a = kit.buffer(BufferKind::Input, 0, kit.constant(0));
  kit.input("a", DType::Bool, {n, kit.constant(0)}, a);
  kit.checks.push_back({square, square, kit.string("")});
  TestModel model((kit.header.numUnits = 5, kit.finish()));
  auto session = std::move(*Session::create(*model.model, 1));
  int64_t shape[] = {int64_t(1) << 40, 0};
  ASSERT_TRUE(session->setInput("a", DType::Bool, shape, nullptr).ok());
  EXPECT_EQ(session->run().message(),
            "size n * n cannot be computed from 1099511627776 and "
            "1099511627776 (n = 1099511627776)");
}

TEST(Session, ProfilesEachLaunchOnEachThread) {
  TestModel model(affinePlan(), {1, 2, 3, 4});
  auto session = std::move(*Session::create(*model.model, 2));
  session->enableProfile();
  float x[8] = {};
  ASSERT_TRUE(session->setInput("x", DType::F32, {{2, 4}}, x).ok());
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(session->run().ok());
    ASSERT_EQ(session->profile().size(), 4u);
    EXPECT_EQ(session->profile()[3].launch, 1u);
    EXPECT_LE(session->profile()[1].end, session->profile()[2].end);
  }
}

TEST(Team, RunsAndSynchronisesEveryThread) {
  struct Work {
    Team *team;
    std::atomic<int> count{0};
    std::atomic<bool> early{false};
  };
  for (unsigned threads : {1u, 2u, 5u}) {
    auto team = std::move(*Team::create(threads));
    Work work{team.get()};
    for (int round = 1; round <= 200; ++round) {
      team->run(
          [](void *context, unsigned) {
            Work &work = *static_cast<Work *>(context);
            int size = int(work.team->size());
            int before = work.count.load() / (2 * size) * (2 * size);
            work.count.fetch_add(1);
            work.team->barrier();
            if (work.count.load() < before + size)
              work.early = true;
            work.team->barrier();
            work.count.fetch_add(1);
          },
          &work);
      ASSERT_EQ(work.count.load(), round * 2 * int(threads));
    }
    EXPECT_FALSE(work.early.load());
  }
}

class Append : public testing::Test {
protected:
  Append() : model(appendPlan(), {}) {
    auto made = Session::create(*model.model, 2);
    EXPECT_TRUE(made.ok()) << made.message();
    session = std::move(*made);
  }

  /// Appends `n` rows of `value`.
  Status append(int64_t n, float value) {
    x.assign(size_t(n) * 4, value);
    int64_t shape[] = {n, 4};
    Status status = session->setInput("x", DType::F32, shape, x.data());
    return status.ok() ? session->run() : status;
  }

  /// What there is, a number for each row.
  std::vector<float> rows() {
    const OutputValue &present = session->output(0);
    std::vector<float> out;
    for (int64_t r = 0; r < present.shape[0]; ++r)
      out.push_back(static_cast<const float *>(present.data)[r * 4 + 3]);
    return out;
  }

  TestModel model;
  std::unique_ptr<Session> session;
  std::vector<float> x;
};

TEST_F(Append, KeepsWhatIsThere) {
  EXPECT_EQ(session->capacity(), 8);
  ASSERT_TRUE(append(3, 1).ok());
  ASSERT_TRUE(append(2, 5).ok());
  EXPECT_EQ(rows(), (std::vector<float>{2, 2, 2, 10, 10}));
  EXPECT_EQ(session->length(), 5);
  ASSERT_TRUE(append(0, 0).ok());
  EXPECT_EQ(session->length(), 5);
  session->reset();
  ASSERT_TRUE(append(1, 4).ok());
  EXPECT_EQ(rows(), std::vector<float>{8});
}

TEST_F(Append, RefusesMoreThanThereIsRoomFor) {
  ASSERT_TRUE(append(6, 1).ok());
  Status status = append(3, 1);
  EXPECT_NE(status.message().find("the context is full"), std::string::npos)
      << status.message();
  EXPECT_NE(status.message().find("9 long"), std::string::npos);
  EXPECT_EQ(session->length(), 6);
  EXPECT_TRUE(append(2, 1).ok());
  EXPECT_EQ(session->length(), 8);
}

TEST_F(Append, TakesAStateFromTheCaller) {
  std::vector<float> past = {1, 1, 1, 7, 1, 1, 1, 9};
  int64_t shape[] = {2, 4};
  ASSERT_TRUE(session->setInput("past", DType::F32, shape, past.data()).ok());
  ASSERT_TRUE(append(1, 3).ok());
  EXPECT_EQ(rows(), (std::vector<float>{7, 9, 6}));
}

TEST_F(Append, CopiesStatesOnlyWhereWanted) {
  session->copyStates(false);
  ASSERT_TRUE(append(2, 3).ok());
  EXPECT_EQ(session->output(0).data, nullptr);
  EXPECT_EQ(session->output(0).shape[0], 2);
}

} // namespace
