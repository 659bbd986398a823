//===- units.h - the table of compiled kernels in an artifact ------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_RUNTIME_FORMAT_UNITS_H
#define TENON_RUNTIME_FORMAT_UNITS_H

/// \file
/// The compiler writes one unit table for each CPU form into the artifact's
/// generated C++ (`tenon_forms`); the runtime picks a form by cpuid.

#include "runtime/format/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/// CPU features that a form needs, as bits.
enum tn_feature {
  TN_AVX2_FMA = 1u << 0, /* x86-64-v3: AVX2, FMA, F16C, BMI2 */
  TN_AVX512 = 1u << 1,   /* x86-64-v4: F, BW, CD, DQ, VL */
  TN_AVX512_VNNI = 1u << 2,
  TN_AVX512_BF16 = 1u << 3,
  TN_AVX512_FP16 = 1u << 4,
  TN_AMX = 1u << 5, /* tile, bf16, int8 */
};

typedef struct tn_form {
  const char *name; /* "x86-64-v4" */
  uint32_t features;
  uint32_t num_units;
  const tn_unit *units;
} tn_form;

/* Best form first. */
extern const tn_form *const tenon_forms;
extern const uint32_t tenon_num_forms;

#ifdef __cplusplus
}
#endif

#endif // TENON_RUNTIME_FORMAT_UNITS_H
