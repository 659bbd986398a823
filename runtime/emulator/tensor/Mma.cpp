//===- Mma.cpp - mma.sync: D = A * B + C of a warp ------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/emulator/tensor/Mma.h"
#include "runtime/emulator/tensor/Fragment.h"
#include "runtime/emulator/tensor/Kernels.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace tenon::emu::tensor {
namespace {

enum class Family : uint8_t { F16, BF16, TF32, F64, Fp8, Int8, Int4, Bit };

struct Shape {
  Family family;
  uint16_t m, n, k;
};

// The PTX manual's table of shapes, without m8n8k4 of f16 (Volta's own).
constexpr Shape shapes[] = {
    {Family::F16, 16, 8, 8},   {Family::F16, 16, 8, 16},
    {Family::BF16, 16, 8, 8},  {Family::BF16, 16, 8, 16},
    {Family::TF32, 16, 8, 4},  {Family::TF32, 16, 8, 8},
    {Family::F64, 8, 8, 4},    {Family::F64, 16, 8, 4},
    {Family::F64, 16, 8, 8},   {Family::F64, 16, 8, 16},
    {Family::Fp8, 16, 8, 16},  {Family::Fp8, 16, 8, 32},
    {Family::Int8, 8, 8, 16},  {Family::Int8, 16, 8, 16},
    {Family::Int8, 16, 8, 32}, {Family::Int4, 8, 8, 32},
    {Family::Int4, 16, 8, 32}, {Family::Int4, 16, 8, 64},
    {Family::Bit, 8, 8, 128},  {Family::Bit, 16, 8, 128},
    {Family::Bit, 16, 8, 256},
};

std::optional<Family> familyOf(Element type) {
  switch (type) {
  case Element::F16:
    return Family::F16;
  case Element::BF16:
    return Family::BF16;
  case Element::TF32:
    return Family::TF32;
  case Element::F64:
    return Family::F64;
  case Element::E4M3:
  case Element::E5M2:
    return Family::Fp8;
  case Element::S8:
  case Element::U8:
    return Family::Int8;
  case Element::S4:
  case Element::U4:
    return Family::Int4;
  case Element::B1:
    return Family::Bit;
  default:
    return std::nullopt;
  }
}

/// The accumulator types of a family.
bool accumulates(Family family, Element type) {
  switch (family) {
  case Family::F16:
  case Family::Fp8:
    return type == Element::F16 || type == Element::F32;
  case Family::BF16:
  case Family::TF32:
    return type == Element::F32;
  case Family::F64:
    return type == Element::F64;
  default:
    return type == Element::S32;
  }
}

/// Decoded blocks of the registers of A or B.
struct Decoded {
  alignas(64) float values[4 * 8 * lanes]; // at most four registers of 4 bits
};

} // namespace

std::optional<Mma> Mma::find(const MmaOp &op) {
  std::optional<Family> family = familyOf(op.a);
  if (!family || familyOf(op.b) != family || op.d != op.c ||
      !accumulates(*family, op.d))
    return std::nullopt;
  if (op.saturate && *family != Family::Int8 && *family != Family::Int4)
    return std::nullopt;
  for (const Shape &s : shapes)
    if (s.family == *family && s.m == op.m && s.n == op.n && s.k == op.k)
      return Mma(op);
  return std::nullopt;
}

Mma::Mma(const MmaOp &op) : op_(op) {
  unsigned registerBits = isF64() ? 64 : 32;
  auto registers = [&](unsigned elements, Element type) {
    return uint8_t(elements * bitsOf(type) / (lanes * registerBits));
  };
  regs_[0] = regs_[3] = registers(op.m * op.n, op.d);
  regs_[1] = registers(op.m * op.k, op.a);
  regs_[2] = registers(op.n * op.k, op.b);
}

void Mma::run(RegsOut d, RegsIn a, RegsIn b, RegsIn c) const {
  if (op_.a == Element::B1)
    return runBits(d, a, b, c);
  const Kernels &k = kernels();
  unsigned perWord = 32 / bitsOf(op_.a);
  size_t block = size_t(perWord) * lanes;
  Decoded decodedA, decodedB;
  Kernels::Decode decodeA = k.decoder(op_.a), decodeB = k.decoder(op_.b);
  for (unsigned r = 0; r < registersA(); ++r)
    decodeA(a[r], decodedA.values + r * block);
  for (unsigned r = 0; r < registersB(); ++r) {
    uint32_t words[lanes];
    transposeWords(b[r], words);
    decodeB(words, decodedB.values + r * block);
  }
  unsigned halves = op_.m / 8;
  unsigned perHalf = accumulatorRegisters(op_.d);
  Kernels::Multiply multiply = k.multiplier(perWord);
  // By way of a copy, for a register of D may be one of C too.
  uint32_t result[4][lanes];
  uint32_t *const to[4] = {result[0], result[1], result[2], result[3]};
  for (unsigned h = 0; h < halves; ++h) {
    alignas(64) float acc[64];
    loadAccumulator(op_.c, c + h * perHalf, acc);
    multiply(acc, decodedA.values + h * block, halves * block, decodedB.values,
             block, registersB());
    storeAccumulator(op_.d, acc, c + h * perHalf, op_.saturate,
                     to + h * perHalf);
  }
  for (unsigned r = 0; r < registersD(); ++r)
    std::copy_n(result[r], lanes, d[r]);
}

void Mma::runBits(RegsOut d, RegsIn a, RegsIn b, RegsIn c) const {
  uint32_t result[4][lanes];
  unsigned halves = op_.m / 8;
  for (unsigned r = 0; r < registersD(); ++r)
    for (unsigned l = 0; l < lanes; ++l) {
      unsigned half = r / 2, row = l / 4, column = 2 * (l % 4) + r % 2;
      uint32_t sum = c[r][l];
      for (unsigned block = 0; block < registersB(); ++block)
        for (unsigned t = 0; t < 4; ++t) {
          uint32_t x = a[block * halves + half][row * 4 + t];
          uint32_t y = b[block][column * 4 + t];
          sum +=
              uint32_t(std::popcount(op_.bitOp == BitOp::Xor ? x ^ y : x & y));
        }
      result[r][l] = sum;
    }
  for (unsigned r = 0; r < registersD(); ++r)
    std::copy_n(result[r], lanes, d[r]);
}

void Mma::runF64(Regs64Out d, Regs64In a, Regs64In b, Regs64In c) const {
  double result[4][lanes];
  unsigned halves = op_.m / 8;
  for (unsigned r = 0; r < registersD(); ++r)
    for (unsigned l = 0; l < lanes; ++l) {
      unsigned half = r / 2, row = l / 4, column = 2 * (l % 4) + r % 2;
      double sum = std::bit_cast<double>(c[r][l]);
      for (unsigned block = 0; block < registersB(); ++block)
        for (unsigned t = 0; t < 4; ++t) {
          uint64_t x = a[block * halves + half][row * 4 + t];
          uint64_t y = b[block][column * 4 + t];
          sum =
              std::fma(std::bit_cast<double>(x), std::bit_cast<double>(y), sum);
        }
      result[r][l] = sum;
    }
  for (unsigned r = 0; r < registersD(); ++r)
    for (unsigned l = 0; l < lanes; ++l)
      d[r][l] = std::bit_cast<uint64_t>(result[r][l]);
}

} // namespace tenon::emu::tensor
