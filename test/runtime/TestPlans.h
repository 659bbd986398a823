//===- TestPlans.h - hand-made plans and units --------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_TEST_RUNTIME_TESTPLANS_H
#define TENON_TEST_RUNTIME_TESTPLANS_H

#include "codegen/artifact/PlanBuilder.h"
#include "runtime/Session.h"

#include <optional>
#include <vector>

namespace tenon::test {

using codegen::PlanBuilder;
using rt::DType;
using rt::ExprId;
using rt::ExprOp;

/// Shorthands for building plans by hand.
struct PlanKit : PlanBuilder {
  uint32_t view(uint32_t buffer, DType dtype, std::vector<ExprId> shape) {
    std::vector<ExprId> strides(shape.size());
    ExprId stride = constant(1);
    for (size_t d = shape.size(); d-- > 0;) {
      strides[d] = stride;
      stride = apply(ExprOp::Mul, stride, shape[d]);
    }
    views.push_back({buffer, dtype, uint8_t(shape.size()), 0, constant(0),
                     run(shape), run(strides)});
    return uint32_t(views.size() - 1);
  }
  uint32_t buffer(rt::BufferKind kind, uint64_t offset, ExprId bytes,
                  uint32_t segment = 0) {
    buffers.push_back({kind, {}, segment, bytes, 0, offset});
    return uint32_t(buffers.size() - 1);
  }
  void input(const char *name, DType dtype, std::vector<ExprId> shape,
             uint32_t buffer) {
    inputs.push_back(
        {string(name), dtype, uint8_t(shape.size()), 0, run(shape), buffer});
  }
  void output(const char *name, DType dtype, std::vector<ExprId> shape,
              uint32_t view) {
    outputs.push_back(
        {string(name), dtype, uint8_t(shape.size()), 0, run(shape), view});
  }
  rt::Launch &launch(rt::LaunchKind kind, uint32_t unit,
                     std::vector<uint32_t> views,
                     std::vector<uint32_t> params = {}) {
    launches.push_back({kind,
                        {},
                        unit,
                        string("kernel"),
                        string("/node"),
                        run(views),
                        uint32_t(views.size()),
                        run(params),
                        uint32_t(params.size()),
                        rt::none,
                        rt::none,
                        rt::none,
                        rt::none});
    return launches.back();
  }
  ExprId times(ExprId a, int64_t b) {
    return apply(ExprOp::Mul, a, constant(b));
  }
};

/// The plan of y = (x + w) * scale over f32[batch, 4] in two launches, and the
/// weights w. Unit 0 adds a row to each row, unit 1 doubles.
std::vector<uint8_t> affinePlan();
/// A plan whose output's size is in the data: counts the positive elements of
/// x: f32[n], then gives them; unit 2 counts, unit 3 selects.
std::vector<uint8_t> selectPlan();
/// A plan with state: doubles x: f32[n, 4] behind `past`, f32[past, 4], with
/// room for 8 rows; the output `present` is all of it.
std::vector<uint8_t> appendPlan();

/// A plan that refuses data: unit 4 copies x: f32[n, 4] to y if nothing in it
/// is negative; z is -y; and unit 4 refuses z again if y has positive elements.
std::vector<uint8_t> checkedPlan();

/// The units 0 to 4 that these plans call.
const tn_form &testForm();

/// A plan, kept alive with its bytes and weights, as a model.
struct TestModel {
  explicit TestModel(std::vector<uint8_t> plan,
                     std::vector<float> weights = {});
  std::vector<uint64_t> planWords;
  rt::AlignedBytes weights;
  std::optional<rt::Model> model;
};

} // namespace tenon::test

#endif // TENON_TEST_RUNTIME_TESTPLANS_H
