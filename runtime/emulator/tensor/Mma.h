//===- Mma.h - mma.sync: D = A * B + C of a warp --------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_RUNTIME_EMULATOR_TENSOR_MMA_H
#define TENON_RUNTIME_EMULATOR_TENSOR_MMA_H

#include "runtime/emulator/tensor/Formats.h"
#include "runtime/emulator/tensor/Memory.h"

#include <optional>

namespace tenon::emu::tensor {

/// How single-bit operands are combined before the population count.
enum class BitOp : uint8_t { Xor, And };

/// The qualifiers of an `mma.sync.aligned` instruction (row.col). `a` and `b`
/// of S4, U4, S8, U8, E4M3, E5M2 may differ in kind.
struct MmaOp {
  uint16_t m, n, k;
  Element d, a, b, c;
  bool saturate = false; ///< .satfinite, integers only
  BitOp bitOp = BitOp::Xor;
};

/// An mma instruction that exists, with what it needs to run.
///
/// Products are exact; they are added to the accumulator one k after the other
/// and each sum is rounded to f32 (f64: an fma; integers: exact, wrapping). The
/// hardware adds groups of products with fewer guard bits and in an order of
/// its own, so results differ from it by a few units in the last place of the
/// greatest partial sum; with f16 accumulators one rounding to f16 happens at
/// the end.
class Mma {
public:
  /// The instruction, or nothing if there is none of these qualifiers.
  static std::optional<Mma> find(const MmaOp &op);

  /// Registers of each operand: 32-bit ones, 64-bit ones for f64.
  unsigned registersD() const { return regs_[0]; }
  unsigned registersA() const { return regs_[1]; }
  unsigned registersB() const { return regs_[2]; }
  unsigned registersC() const { return regs_[3]; }
  bool isF64() const { return op_.d == Element::F64; }
  const MmaOp &op() const { return op_; }

  /// Multiply-adds of one instruction, for counters.
  unsigned work() const { return unsigned(op_.m) * op_.n * op_.k; }

  /// Runs it for one warp; not for f64.
  void run(RegsOut d, RegsIn a, RegsIn b, RegsIn c) const;
  void runF64(Regs64Out d, Regs64In a, Regs64In b, Regs64In c) const;

private:
  explicit Mma(const MmaOp &op);
  void runBits(RegsOut d, RegsIn a, RegsIn b, RegsIn c) const;
  MmaOp op_;
  uint8_t regs_[4];
};

} // namespace tenon::emu::tensor

#endif // TENON_RUNTIME_EMULATOR_TENSOR_MMA_H
