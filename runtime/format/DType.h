//===- DType.h - facts about the element types ----------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_RUNTIME_FORMAT_DTYPE_H
#define TENON_RUNTIME_FORMAT_DTYPE_H

#include "runtime/format/plan.h"

#include <cstdint>

namespace tenon::rt {

/// What the runtime knows of an element type. `npy` is NumPy's type string
/// without the byte order; types that NumPy lacks are stored as the `ml_dtypes`
/// package stores them, as raw bytes ("V2" for bf16), and read by size alone.
/// Of types below a byte a file has a byte for each element: the number, or the
/// code of a float. In memory they are packed, the first in the low bits.
struct DTypeInfo {
  const char *name;
  uint8_t bits;
  const char *npy;
};

inline constexpr DTypeInfo dtypeInfos[] = {
    {"f64", 64, "f8"},       {"f32", 32, "f4"},   {"f16", 16, "f2"},
    {"bf16", 16, "V2"},      {"i64", 64, "i8"},   {"i32", 32, "i4"},
    {"i16", 16, "i2"},       {"i8", 8, "i1"},     {"u64", 64, "u8"},
    {"u32", 32, "u4"},       {"u16", 16, "u2"},   {"u8", 8, "u1"},
    {"bool", 8, "b1"},       {"i4", 4, "i1"},     {"u4", 4, "u1"},
    {"i2", 2, "i1"},         {"u2", 2, "u1"},     {"f8e4m3fn", 8, "V1"},
    {"f8e4m3fnuz", 8, "V1"}, {"f8e5m2", 8, "V1"}, {"f8e5m2fnuz", 8, "V1"},
    {"f8e8m0", 8, "V1"},     {"f4e2m1", 4, "u1"},
};
inline constexpr unsigned numDTypes =
    sizeof(dtypeInfos) / sizeof(dtypeInfos[0]);

inline constexpr bool isDType(DType type) { return unsigned(type) < numDTypes; }
inline constexpr const DTypeInfo &dtypeInfo(DType type) {
  return dtypeInfos[unsigned(type)];
}

} // namespace tenon::rt

#endif // TENON_RUNTIME_FORMAT_DTYPE_H
