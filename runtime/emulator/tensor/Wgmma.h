//===- Wgmma.h - wgmma.mma_async: D = A * B + D of a warpgroup ------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_RUNTIME_EMULATOR_TENSOR_WGMMA_H
#define TENON_RUNTIME_EMULATOR_TENSOR_WGMMA_H

#include "runtime/emulator/tensor/Formats.h"
#include "runtime/emulator/tensor/Memory.h"

#include <optional>

namespace tenon::emu::tensor {

/// The qualifiers of a wgmma.mma_async instruction; m is 64.
struct WgmmaOp {
  uint16_t n, k;
  Element d, a, b;
  bool aInRegisters = false;
  bool transposeA = false; ///< A in shared memory is M-major
  bool transposeB = false; ///< B is N-major
  bool negateA = false;    ///< imm-scale-a is -1
  bool negateB = false;    ///< imm-scale-b is -1
  bool saturate = false;   ///< .satfinite, integers only
};

/// A 64-bit shared-memory matrix descriptor, taken apart.
struct MatrixDescriptor {
  enum class Swizzle : uint8_t { None = 0, B128 = 1, B64 = 2, B32 = 3 };
  uint32_t start;         ///< byte address in the block's shared window
  uint32_t leadingOffset; ///< bytes
  uint32_t strideOffset;  ///< bytes
  uint32_t baseOffset;    ///< 0..7
  Swizzle swizzle;

  static MatrixDescriptor decode(uint64_t bits);
  uint64_t encode() const;

  /// Shared address of the 16-byte piece `chunk` of line `line` of a matrix.
  /// K-major: a line is one m (or n), chunks go along k. MN-major: a line is
  /// one k, chunks go along m (or n).
  uint32_t address(unsigned line, unsigned chunk, bool mnMajor) const;
};

/// A wgmma instruction that exists. It runs warp by warp: each warp of the
/// warpgroup computes its own 16 rows of D. The sums are made as `Mma` says.
class Wgmma {
public:
  static std::optional<Wgmma> find(const WgmmaOp &op);

  unsigned registersD() const { return regsD_; }
  unsigned registersA() const { return op_.aInRegisters ? 4 : 0; }
  const WgmmaOp &op() const { return op_; }
  /// Multiply-adds of one warp, for counters.
  unsigned workPerWarp() const { return 16u * op_.n * op_.k; }

  /// Runs warp `warp` (0..3) of the warpgroup: D = A * B + (scaleD ? D : 0).
  /// `a` is null when A is in shared memory, else its four registers, and
  /// `descriptorA` is ignored. Reads of shared memory are announced as those
  /// of the asynchronous proxy, one core matrix (8 x 16 bytes) a group. False
  /// when one was refused: D is untouched.
  bool run(unsigned warp, RegsOut d, RegsIn a, uint64_t descriptorA,
           uint64_t descriptorB, bool scaleD, SharedMemory &memory) const;

private:
  explicit Wgmma(const WgmmaOp &op);
  WgmmaOp op_;
  uint8_t regsD_;
};

} // namespace tenon::emu::tensor

#endif // TENON_RUNTIME_EMULATOR_TENSOR_WGMMA_H
