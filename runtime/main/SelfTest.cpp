//===- SelfTest.cpp - inputs from files and answers stored in an artifact ===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/main/SelfTest.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace tenon::rt {
namespace {

NpyArray *find(std::span<NpyArray> arrays, const std::string &name) {
  for (NpyArray &array : arrays)
    if (array.name == name)
      return &array;
  return nullptr;
}

/// The elements of a file as the model has them, if they may be such.
Status takeType(NpyArray &array, DType dtype) {
  return array.fits(dtype) ? array.convert(dtype) : Status();
}

/// Greatest difference of f32 or f64 elements; infinity where one is NaN, or
/// the difference exceeds the tolerance {relative, absolute}.
template <typename T>
double difference(const uint8_t *found, const uint8_t *expected, uint64_t bytes,
                  const double (&tolerance)[2]) {
  double worst = 0;
  for (uint64_t at = 0; at < bytes; at += sizeof(T)) {
    double a = double(readAs<T>(found + at));
    double b = double(readAs<T>(expected + at));
    if (a == b || (std::isnan(a) && std::isnan(b)))
      continue;
    double delta = std::fabs(a - b);
    if (!(delta <= tolerance[1] + tolerance[0] * std::fabs(b)))
      return INFINITY;
    worst = delta > worst ? delta : worst;
  }
  return worst;
}

double differenceOf(const OutputValue &found, const NpyArray &expected,
                    const double (&tolerance)[2]) {
  const uint8_t *data = static_cast<const uint8_t *>(found.data);
  const uint8_t *right = expected.data.get();
  if (found.dtype == DType::F32)
    return difference<float>(data, right, found.bytes, tolerance);
  if (found.dtype == DType::F64)
    return difference<double>(data, right, found.bytes, tolerance);
  return std::memcmp(data, right, found.bytes) == 0 ? 0 : INFINITY;
}

} // namespace

Status setInputs(Session &session, std::span<NpyArray> arrays) {
  const Plan &plan = session.model().plan();
  bool unnamed =
      plan.inputs().size() == 1 && arrays.size() == 1 && arrays[0].name.empty();
  for (NpyArray &array : arrays) {
    for (const Port &port : plan.inputs())
      if (unnamed || array.name == plan.string(port.name))
        if (Status status = takeType(array, port.dtype); !status.ok())
          return status;
    std::string name =
        unnamed ? plan.string(plan.inputs()[0].name) : array.name;
    Status status =
        session.setInput(name, array.dtype, array.shape, array.data.get());
    if (!status.ok())
      return status;
  }
  for (size_t i = 0; i < plan.inputs().size(); ++i)
    if (!unnamed && !plan.stateOfInput(i) &&
        !find(arrays, plan.string(plan.inputs()[i].name)))
      return TN_ERROR("%s is missing; expected %s",
                      describeInput(plan, i).c_str(),
                      plan.text(plan.inputs()[i]).c_str());
  return {};
}

Result<double> compareGolden(Session &session, Bytes golden) {
  auto arrays = readNpz(golden);
  if (!arrays.ok())
    return TN_ERROR("stored answers: %s", arrays.message().c_str());
  const Plan &plan = session.model().plan();
  double tolerance[2] = {1e-4, 1e-4};
  const NpyArray *stored = find(*arrays, "tolerance");
  if (stored && stored->dtype == DType::F64 && stored->bytes == 16)
    std::memcpy(tolerance, stored->data.get(), sizeof(tolerance));
  for (const Port &port : plan.inputs()) {
    std::string name = plan.string(port.name);
    NpyArray *array = find(*arrays, "input/" + name);
    if (!array)
      return TN_ERROR("stored answers: no input '%s'", printable(name).c_str());
    if (Status status = takeType(*array, port.dtype); !status.ok())
      return status;
    Status status =
        session.setInput(name, array->dtype, array->shape, array->data.get());
    if (!status.ok())
      return status;
  }
  if (Status status = session.run(); !status.ok())
    return status;
  double worst = 0;
  for (size_t i = 0; i < plan.outputs().size(); ++i) {
    std::string name = plan.string(plan.outputs()[i].name);
    NpyArray *expected = find(*arrays, "output/" + name);
    const OutputValue &found = session.output(i);
    if (expected)
      if (Status status = takeType(*expected, found.dtype); !status.ok())
        return status;
    if (!expected || expected->dtype != found.dtype ||
        !std::equal(found.shape.begin(), found.shape.end(),
                    expected->shape.begin(), expected->shape.end()))
      return TN_ERROR(
          "output '%s': found %s, expected %s", printable(name).c_str(),
          describeType(found.dtype, found.shape).c_str(),
          expected ? describeType(expected->dtype, expected->shape).c_str()
                   : "none");
    double delta = differenceOf(found, *expected, tolerance);
    if (std::isinf(delta))
      return TN_ERROR("output '%s' differs from the stored answer by more than "
                      "%g relative + %g absolute",
                      printable(name).c_str(), tolerance[0], tolerance[1]);
    worst = delta > worst ? delta : worst;
  }
  return worst;
}

} // namespace tenon::rt
