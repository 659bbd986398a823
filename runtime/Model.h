//===- Model.h - what sessions share ------------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_RUNTIME_MODEL_H
#define TENON_RUNTIME_MODEL_H

#include "runtime/Plan.h"
#include "runtime/format/units.h"

namespace tenon::rt {

/// A plan with its weights and the compiled units: for this processor, or for
/// GPUs. Read only; any number of sessions may use one at the same time.
class Model {
public:
  /// `weights` must be 64-byte aligned and outlive the model, as must what
  /// `plan` and `form` refer to.
  static Result<Model> create(const Plan &plan, Bytes weights,
                              const tn_form &form) {
    if (form.num_units != plan.header().numUnits)
      return TN_ERROR("damaged artifact: CPU form '%s' has %u kernels, the "
                      "plan %u",
                      form.name, form.num_units, plan.header().numUnits);
    return create(plan, weights, &form, {});
  }
  /// With `code`, the section of GPU code (runtime/device/DeviceCode.h).
  static Result<Model> createForGpu(const Plan &plan, Bytes weights,
                                    Bytes code) {
    return create(plan, weights, nullptr, code);
  }

  const Plan &plan() const { return thePlan; }
  Bytes weights() const { return theWeights; }
  /// Null: there is no code for CPUs.
  const tn_form *form() const { return theForm; }
  Bytes deviceCode() const { return theCode; }

private:
  static Result<Model> create(const Plan &plan, Bytes weights,
                              const tn_form *form, Bytes code) {
    if (weights.size() != plan.header().weightBytes)
      return TN_ERROR(
          "damaged artifact: %zu bytes of weights, expected %llu",
          weights.size(),
          static_cast<unsigned long long>(plan.header().weightBytes));
    if (reinterpret_cast<uintptr_t>(weights.data()) % bufferAlignment != 0)
      return TN_ERROR("damaged artifact: the weights are not aligned");
    return Model(plan, weights, form, code);
  }
  Model(const Plan &plan, Bytes weights, const tn_form *form, Bytes code)
      : thePlan(plan), theWeights(weights), theForm(form), theCode(code) {}

  Plan thePlan;
  Bytes theWeights;
  const tn_form *theForm;
  Bytes theCode;
};

} // namespace tenon::rt

#endif // TENON_RUNTIME_MODEL_H
