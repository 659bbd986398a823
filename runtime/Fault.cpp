//===- Fault.cpp - what launches find wrong with data -------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/Fault.h"

#include <algorithm>

namespace tenon::rt {
namespace {

using Number = long long;

/// "[0, 5]": where element `position` of a view stands.
std::string describePosition(const tn_view &view, size_t rank,
                             int64_t position) {
  std::string out;
  for (size_t d = rank; d-- > 0;) {
    int64_t size = std::max<int64_t>(view.shape[d], 1);
    out = std::to_string(position % size) + (out.empty() ? "" : ", ") + out;
    position /= size;
  }
  return "[" + out + "]";
}

std::string describeFault(const tn_fault &fault, const std::string &where) {
  Number value = fault.value, limit = fault.limit;
  switch (fault.kind) {
  case TN_FAULT_INDEX:
    if (limit == 0)
      return format("index %lld at %s is out of range: axis %d has no entries",
                    value, where.c_str(), fault.axis);
    return format("index %lld at %s is out of range: axis %d has %lld %s "
                  "(%lld..%lld)",
                  value, where.c_str(), fault.axis, limit,
                  limit == 1 ? "entry" : "entries", -limit, limit - 1);
  case TN_FAULT_LENGTH:
    return format("%lld at %s of operand %d is out of range: expected 0..%lld",
                  value, where.c_str(), fault.operand, limit);
  case TN_FAULT_SIZE:
    return format("dimension %d of operand %d is %lld, expected at most %lld",
                  fault.axis, fault.operand, value, limit);
  case TN_FAULT_EMPTY:
    return format("dimension %d of operand %d is empty: there is nothing to "
                  "choose from",
                  fault.axis, fault.operand);
  }
  return format("fault of unknown kind %d", fault.kind);
}

} // namespace

std::string describeLaunch(const Plan &plan, size_t index) {
  const Launch &launch = plan.launches()[index];
  return format("node '%s' (%s)",
                printable(std::string(plan.string(launch.location))).c_str(),
                printable(std::string(plan.string(launch.kernel))).c_str());
}

void Faults::clear() {
  for (Record &record : records)
    record.fault = {};
  first.store(nowhere, std::memory_order_relaxed);
}

Status Faults::status(const Plan &plan, const Frame &frame) const {
  size_t index = first.load(std::memory_order_relaxed);
  if (index == nowhere)
    return {};
  const tn_fault *fault = nullptr;
  for (const Record &record : records)
    if (record.fault.kind != TN_FAULT_NONE &&
        (!fault || record.fault.position < fault->position))
      fault = &record.fault;
  return describe(plan, frame, index, *fault);
}

Status Faults::describe(const Plan &plan, const Frame &frame, size_t index,
                        const tn_fault &found) {
  const Launch &launch = plan.launches()[index];
  const tn_fault *fault = &found;
  std::string where;
  // A unit is compiled code: what it says is used, not trusted.
  if (fault->operand >= 0 && uint32_t(fault->operand) < launch.numViews) {
    uint32_t view = plan.run(launch.views, launch.numViews)[fault->operand];
    where = describePosition(frame.viewsOf(index)[fault->operand],
                             plan.views()[view].rank, fault->position);
  }
  return TN_ERROR("%s: %s", describeLaunch(plan, index).c_str(),
                  describeFault(*fault, where).c_str());
}

} // namespace tenon::rt
