//===- TestPlans.cpp - hand-made plans and units ------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/runtime/TestPlans.h"

#include <cstdlib>
#include <cstring>

namespace tenon::test {
namespace {

using rt::BufferKind;
using rt::LaunchKind;

struct Range {
  int64_t begin, end;
};

/// The thread's share of `count`.
Range share(const tn_args *args, int64_t count) {
  return {count * args->thread / args->threads,
          count * (args->thread + 1) / args->threads};
}

float *at(const tn_view &view, int64_t index) {
  return reinterpret_cast<float *>(view.data) + index;
}

/// views[2][r, c] = views[0][r, c] + views[1][c]
void addRow(const tn_args *args) {
  const tn_view *v = args->views;
  Range rows = share(args, v[0].shape[0]);
  for (int64_t r = rows.begin; r < rows.end; ++r)
    for (int64_t c = 0; c < v[0].shape[1]; ++c)
      *at(v[2], r * v[2].stride[0] + c) =
          *at(v[0], r * v[0].stride[0] + c) + *at(v[1], c);
}

/// views[1] = params[0] * views[0]. Reads rows that other threads wrote, so a
/// missing barrier shows.
void scale(const tn_args *args) {
  const tn_view *v = args->views;
  Range rows = share(args, v[0].shape[0]);
  for (int64_t i = rows.begin; i < rows.end; ++i) {
    int64_t r = v[0].shape[0] - 1 - i;
    for (int64_t c = 0; c < v[0].shape[1]; ++c)
      *at(v[1], r * v[1].stride[0] + c) =
          float(args->params[0]) * *at(v[0], r * v[0].stride[0] + c);
  }
}

/// views[1][0] = how many of views[0] are positive; in two phases.
void countPositive(const tn_args *args) {
  const tn_view *v = args->views;
  int64_t *partial = reinterpret_cast<int64_t *>(args->scratch);
  Range range = share(args, v[0].shape[0]);
  int64_t count = 0;
  for (int64_t i = range.begin; i < range.end; ++i)
    count += *at(v[0], i) > 0;
  partial[args->thread] = count;
  args->barrier(args);
  if (args->thread == 0) {
    int64_t total = 0;
    for (int32_t t = 0; t < args->threads; ++t)
      total += partial[t];
    std::memcpy(v[1].data, &total, sizeof(total));
  }
}

void selectPositive(const tn_args *args) {
  if (args->thread != 0)
    return;
  const tn_view *v = args->views;
  int64_t next = 0;
  for (int64_t i = 0; i < v[0].shape[0]; ++i)
    if (*at(v[0], i) > 0)
      *at(v[1], next++) = *at(v[0], i);
}

/// Negative elements of views[0] are faults: indices, if views[0] is a matrix,
/// and lengths if not. views[1] = views[0] otherwise.
void refuseNegative(const tn_args *args) {
  const tn_view *v = args->views;
  Range range = share(args, v[0].shape[0] * v[0].stride[0]);
  for (int64_t i = range.begin; i < range.end; ++i) {
    if (*at(v[0], i) < 0) {
      int32_t kind = v[0].stride[0] > 1 ? TN_FAULT_INDEX : TN_FAULT_LENGTH;
      *args->fault = {kind, 0, 1, 0, i, int64_t(*at(v[0], i)), 9};
      return;
    }
    *at(v[1], i) = *at(v[0], i);
  }
}

constexpr tn_unit units[] = {addRow, scale, countPositive, selectPositive,
                             refuseNegative};
constexpr tn_form form = {"test", 0, 5, units};

} // namespace

const tn_form &testForm() { return form; }

std::vector<uint8_t> affinePlan() {
  PlanKit kit;
  ExprId batch = kit.symbolValue(kit.symbol("batch", 1, 1000));
  ExprId four = kit.constant(4), bytes = kit.times(batch, 16);
  std::vector<ExprId> shape = {batch, four};
  uint32_t x = kit.buffer(BufferKind::Input, 0, bytes);
  uint32_t w = kit.buffer(BufferKind::Weight, 0, kit.constant(16));
  uint32_t sum = kit.buffer(BufferKind::Arena, kit.constant(0), bytes);
  uint32_t y = kit.buffer(BufferKind::Output, 0, bytes);
  uint32_t xView = kit.view(x, DType::F32, shape);
  uint32_t wView = kit.view(w, DType::F32, {four});
  uint32_t sumView = kit.view(sum, DType::F32, shape);
  uint32_t yView = kit.view(y, DType::F32, shape);
  kit.input("x", DType::F32, shape, x);
  kit.output("y", DType::F32, shape, yView);
  kit.launch(LaunchKind::Kernel, 0, {xView, wView, sumView}).flops = bytes;
  kit.launch(LaunchKind::Kernel, 1, {sumView, yView}, {kit.constant(2)});
  kit.segments.push_back({0, 2, bytes, 0});
  kit.header.numUnits = 5;
  kit.header.weightBytes = 16;
  kit.header.peakBytes = kit.times(batch, 48);
  kit.header.peakFormula = kit.string("batch * 48 B");
  kit.header.manifest = kit.string("{\"model\": \"affine\"}");
  kit.weights.push_back(
      {kit.string("w"), DType::F32, {}, 0, 16, kit.string("row-major"), 0});
  return kit.finish();
}

std::vector<uint8_t> selectPlan() {
  PlanKit kit;
  ExprId n = kit.symbolValue(kit.symbol("n", 0, INT64_MAX));
  uint32_t foundSymbol = kit.symbol("found", 0, 100, 1);
  ExprId found = kit.symbolValue(foundSymbol);
  ExprId eight = kit.constant(8), one = kit.constant(1);
  ExprId scratchBytes = kit.constant(8 * 64), total = kit.constant(1024);
  uint32_t x = kit.buffer(BufferKind::Input, 0, kit.times(n, 4));
  uint32_t count = kit.buffer(BufferKind::Arena, kit.constant(0), eight);
  uint32_t scratch =
      kit.buffer(BufferKind::Arena, kit.constant(64), scratchBytes);
  uint32_t y = kit.buffer(BufferKind::Output, 0, kit.times(found, 4));
  uint32_t sizes = kit.buffer(BufferKind::Output, 1, kit.constant(16));
  uint32_t xView = kit.view(x, DType::F32, {n});
  uint32_t countView = kit.view(count, DType::I64, {one});
  uint32_t yView = kit.view(y, DType::F32, {found});
  uint32_t sizesView = kit.view(sizes, DType::I64, {kit.constant(2)});
  kit.input("x", DType::F32, {n}, x);
  kit.output("y", DType::F32, {found}, yView);
  kit.output("sizes", DType::I64, {kit.constant(2)}, sizesView);
  rt::Launch &first = kit.launch(LaunchKind::Kernel, 2, {xView, countView});
  first.scratchBytes = scratchBytes;
  first.scratchBuffer = scratch;
  kit.launch(LaunchKind::BindSymbols, rt::none, {countView}, {foundSymbol});
  kit.launch(LaunchKind::Kernel, 3, {xView, yView});
  kit.launch(LaunchKind::WriteExprs, rt::none, {sizesView}, {n, found});
  kit.segments.push_back({0, 2, total, 0});
  kit.segments.push_back({2, 2, kit.constant(0), 0});
  kit.header.numUnits = 5;
  return kit.finish();
}

std::vector<uint8_t> checkedPlan() {
  PlanKit kit;
  ExprId n = kit.symbolValue(kit.symbol("n", 0, 1000));
  ExprId four = kit.constant(4), bytes = kit.times(n, 16);
  std::vector<ExprId> shape = {n, four};
  uint32_t x = kit.buffer(BufferKind::Input, 0, bytes);
  uint32_t y = kit.buffer(BufferKind::Output, 0, bytes);
  uint32_t z = kit.buffer(BufferKind::Output, 1, bytes);
  kit.input("x", DType::F32, shape, x);
  uint32_t xView = kit.view(x, DType::F32, shape);
  uint32_t yView = kit.view(y, DType::F32, shape);
  uint32_t zView = kit.view(z, DType::F32, shape);
  uint32_t flat = kit.view(y, DType::F32, {kit.times(n, 4)});
  uint32_t flatZ = kit.view(z, DType::F32, {kit.times(n, 4)});
  kit.output("y", DType::F32, shape, yView);
  kit.output("z", DType::F32, shape, zView);
  kit.launch(LaunchKind::Kernel, 4, {xView, yView});
  kit.launch(LaunchKind::Kernel, 1, {yView, zView}, {kit.constant(-1)});
  kit.launch(LaunchKind::Kernel, 4, {flatZ, flat});
  kit.segments.push_back({0, 3, kit.constant(0), 0});
  kit.header.numUnits = 5;
  return kit.finish();
}

std::vector<uint8_t> appendPlan() {
  PlanKit kit;
  ExprId n = kit.symbolValue(kit.symbol("n", 0, INT64_MAX));
  ExprId past = kit.symbolValue(kit.symbol("past", 0, INT64_MAX));
  ExprId total = kit.apply(rt::ExprOp::Add, past, n), four = kit.constant(4);
  uint32_t x = kit.buffer(BufferKind::Input, 0, kit.times(n, 16));
  uint32_t state = kit.buffer(BufferKind::State, 0, kit.constant(8 * 16));
  uint32_t xView = kit.view(x, DType::F32, {n, four});
  uint32_t added = kit.view(state, DType::F32, {n, four});
  kit.views[added].offset = kit.times(past, 4);
  uint32_t present = kit.view(state, DType::F32, {total, four});
  kit.input("x", DType::F32, {n, four}, x);
  kit.input("past", DType::F32, {past, four}, state);
  kit.output("present", DType::F32, {total, four}, present);
  kit.states.push_back({1, 0, state, 0, 8});
  kit.launch(LaunchKind::Kernel, 1, {xView, added}, {kit.constant(2)});
  kit.segments.push_back({0, 1, kit.constant(0), 0});
  kit.header.numUnits = 5;
  return kit.finish();
}

TestModel::TestModel(std::vector<uint8_t> bytes, std::vector<float> values)
    : planWords((bytes.size() + 7) / 8) {
  std::memcpy(planWords.data(), bytes.data(), bytes.size());
  weights = rt::allocateAligned(values.size() * 4);
  if (!values.empty())
    std::memcpy(weights.get(), values.data(), values.size() * 4);
  auto plan = rt::Plan::load(
      {reinterpret_cast<const uint8_t *>(planWords.data()), bytes.size()});
  if (!plan.ok()) {
    std::fprintf(stderr, "test plan: %s\n", plan.message().c_str());
    std::abort();
  }
  auto made =
      rt::Model::create(*plan, {weights.get(), values.size() * 4}, testForm());
  if (!made.ok()) {
    std::fprintf(stderr, "test plan: %s\n", made.message().c_str());
    std::abort();
  }
  model = std::move(*made);
}

} // namespace tenon::test
