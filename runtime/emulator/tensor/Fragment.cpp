//===- Fragment.cpp - accumulators of the matrix instructions -------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/emulator/tensor/Fragment.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace tenon::emu::tensor {

namespace {

// One loop for each type, so that each is without branches.

void loadHalves(const uint32_t *c, float *acc) {
  for (unsigned l = 0; l < lanes; ++l) {
    acc[2 * l] = f16ToFloat(uint16_t(c[l]));
    acc[2 * l + 1] = f16ToFloat(uint16_t(c[l] >> 16));
  }
}

void storeHalves(const float *acc, uint32_t *d) {
  for (unsigned l = 0; l < lanes; ++l)
    d[l] = uint32_t(floatToF16(acc[2 * l])) |
           uint32_t(floatToF16(acc[2 * l + 1])) << 16;
}

void loadSingles(const uint32_t *c, float *acc) {
  for (unsigned l = 0; l < lanes; ++l)
    acc[2 * l] = std::bit_cast<float>(c[l]);
}

/// NaN results of the tensor cores are canonical.
void storeSingles(const float *acc, uint32_t *d) {
  for (unsigned l = 0; l < lanes; ++l) {
    uint32_t bits = std::bit_cast<uint32_t>(acc[2 * l]);
    d[l] = (bits & 0x7fffffff) > 0x7f800000 ? 0x7fffffff : bits;
  }
}

/// Products and their sums stay below 2^24: exact as floats.
void storeIntegers(const float *acc, const uint32_t *c, bool saturate,
                   uint32_t *d) {
  for (unsigned l = 0; l < lanes; ++l) {
    int64_t sum = int64_t(int32_t(c ? c[l] : 0)) + int64_t(acc[2 * l]);
    if (saturate)
      sum = std::clamp<int64_t>(sum, INT32_MIN, INT32_MAX);
    d[l] = uint32_t(sum);
  }
}

} // namespace

void loadAccumulator(Element type, RegsIn c, float *acc) {
  if (type == Element::F16)
    return loadHalves(c[0], acc);
  if (isInteger(type)) {
    std::fill_n(acc, 64, 0.0f);
    return;
  }
  for (unsigned j = 0; j < 2; ++j)
    loadSingles(c[j], acc + j);
}

void storeAccumulator(Element type, const float *acc, RegsIn c, bool saturate,
                      RegsOut d) {
  if (type == Element::F16)
    return storeHalves(acc, d[0]);
  for (unsigned j = 0; j < 2; ++j) {
    if (isInteger(type))
      storeIntegers(acc + j, c ? c[j] : nullptr, saturate, d[j]);
    else
      storeSingles(acc + j, d[j]);
  }
}

} // namespace tenon::emu::tensor
