//===- Cpu.h - what the processor can do --------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_RUNTIME_CPU_H
#define TENON_RUNTIME_CPU_H

#include "runtime/format/units.h"
#include "runtime/support/Status.h"

#include <span>
#include <string>

namespace tenon::rt {

/// The `tn_feature` bits of this processor that the operating system also
/// allows (it must save the wide registers).
uint32_t cpuFeatures();

/// "AVX2+FMA, AVX-512".
std::string featureNames(uint32_t features);

/// The first of `forms` that runs on a processor with `features`; with `name`
/// not empty that one. The message lists the forms there are.
Result<const tn_form *> chooseForm(std::span<const tn_form> forms,
                                   uint32_t features, const std::string &name);

/// Threads to use by default: the physical cores this process may run on, at
/// most what its cgroup's CPU quota allows, at least 1.
unsigned defaultThreads();

/// CPUs this process may run on.
unsigned availableCpus();

} // namespace tenon::rt

#endif // TENON_RUNTIME_CPU_H
