//===- Wgmma.cpp - wgmma.mma_async: D = A * B + D of a warpgroup ----------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/emulator/tensor/Wgmma.h"
#include "runtime/emulator/tensor/Fragment.h"
#include "runtime/emulator/tensor/Kernels.h"

#include <array>
#include <cstring>

namespace tenon::emu::tensor {
namespace {

/// A block of eight lines by 16 bytes in shared memory, as a register of a
/// fragment. K-major: the lines are the eight rows of the block. MN-major (of
/// 16-bit elements): the lines are eight values of k, and are transposed.
struct CoreMatrix {
  std::array<uint32_t, 8> lines;

  void read(const SharedMemory &memory, bool mnMajor, uint32_t *words) const {
    uint16_t piece[8][8];
    for (unsigned i = 0; i < 8; ++i)
      std::memcpy(piece[i], memory.at(lines[i]), 16);
    if (!mnMajor) {
      std::memcpy(words, piece, sizeof(piece));
      return;
    }
    uint16_t turned[8][8];
    for (unsigned i = 0; i < 8; ++i)
      for (unsigned j = 0; j < 8; ++j)
        turned[i][j] = piece[j][i];
    std::memcpy(words, turned, sizeof(turned));
  }
};

/// Rows (or columns) 8 * group .. of block `block` along k.
CoreMatrix coreMatrix(const MatrixDescriptor &descriptor, unsigned group,
                      unsigned block, bool mnMajor) {
  CoreMatrix m;
  for (unsigned i = 0; i < 8; ++i)
    m.lines[i] = mnMajor ? descriptor.address(8 * block + i, group, true)
                         : descriptor.address(8 * group + i, block, false);
  return m;
}

/// Two blocks along k make every wgmma: 32 bytes of k.
constexpr unsigned blocksOfK = 2;

bool announce(const CoreMatrix &m, SharedMemory &memory) {
  std::array<LaneAccess, 8> accesses;
  for (unsigned i = 0; i < 8; ++i)
    accesses[i] = {m.lines[i], 16, 0};
  return memory.access(AccessKind::Read, Proxy::Async, accesses);
}

/// The core matrices of warp `warp`'s rows of A (register order), then of B.
template <typename See>
bool forEachMatrix(const WgmmaOp &op, unsigned warp, uint64_t bitsA,
                   uint64_t bitsB, See &&see) {
  if (!op.aInRegisters) {
    MatrixDescriptor a = MatrixDescriptor::decode(bitsA);
    for (unsigned r = 0; r < 2 * blocksOfK; ++r)
      if (!see(coreMatrix(a, 2 * warp + r % 2, r / 2, op.transposeA)))
        return false;
  }
  MatrixDescriptor b = MatrixDescriptor::decode(bitsB);
  for (unsigned tile = 0; tile < op.n / 8u; ++tile)
    for (unsigned block = 0; block < blocksOfK; ++block)
      if (!see(coreMatrix(b, tile, block, op.transposeB)))
        return false;
  return true;
}

bool validN(unsigned n, bool integers) {
  if (n < 8 || n > 256 || n % 8 != 0)
    return false;
  return !integers || n == 8 || n == 24 || n % 16 == 0;
}

bool validTypes(const WgmmaOp &op) {
  auto isFp8 = [](Element e) {
    return e == Element::E4M3 || e == Element::E5M2;
  };
  auto isInt8 = [](Element e) { return e == Element::S8 || e == Element::U8; };
  if (isInt8(op.a) && isInt8(op.b))
    return op.d == Element::S32 && op.k == 32;
  bool half = op.d == Element::F16;
  if (op.d != Element::F32 && !half)
    return false;
  if (isFp8(op.a) && isFp8(op.b))
    return op.k == 32;
  if (op.a != op.b)
    return false;
  if (op.a == Element::F16)
    return op.k == 16;
  if (op.a == Element::BF16)
    return op.k == 16 && !half;
  return op.a == Element::TF32 && op.k == 8 && !half;
}

} // namespace

MatrixDescriptor MatrixDescriptor::decode(uint64_t bits) {
  auto bytes = [&](unsigned at) { return uint32_t(bits >> at & 0x3fff) << 4; };
  return {bytes(0), bytes(16), bytes(32), uint32_t(bits >> 49 & 7),
          Swizzle(bits >> 62)};
}

uint64_t MatrixDescriptor::encode() const {
  auto field = [](uint32_t bytes) { return uint64_t(bytes >> 4 & 0x3fff); };
  return field(start) | field(leadingOffset) << 16 | field(strideOffset) << 32 |
         uint64_t(baseOffset & 7) << 49 | uint64_t(swizzle) << 62;
}

uint32_t MatrixDescriptor::address(unsigned line, unsigned chunk,
                                   bool mnMajor) const {
  unsigned inner = line % 8, outer = line / 8;
  if (swizzle == Swizzle::None) {
    uint32_t lineStep = mnMajor ? leadingOffset : strideOffset;
    uint32_t chunkStep = mnMajor ? strideOffset : leadingOffset;
    return start + inner * 16 + outer * lineStep + chunk * chunkStep;
  }
  // Lines of 128, 64 or 32 bytes, eight of them together.
  unsigned log = 4 - unsigned(swizzle); // of the chunks in a line
  unsigned width = 16u << log;
  uint32_t linear = start + inner * width + outer * strideOffset;
  if (mnMajor)
    linear += chunk % (1u << log) * 16 + (chunk >> log) * leadingOffset;
  else
    linear += chunk * 16;
  uint32_t phase = ((linear >> 7) - baseOffset) & ((1u << log) - 1);
  return linear ^ phase << 4;
}

std::optional<Wgmma> Wgmma::find(const WgmmaOp &op) {
  bool integers = isInteger(op.a);
  if (!validTypes(op) || !validN(op.n, integers))
    return std::nullopt;
  if (op.saturate && !integers)
    return std::nullopt;
  bool turns = op.a == Element::F16 || op.a == Element::BF16;
  if ((op.transposeA || op.transposeB) && !turns)
    return std::nullopt;
  if (op.transposeA && op.aInRegisters)
    return std::nullopt;
  if ((op.negateA || op.negateB) && integers)
    return std::nullopt;
  return Wgmma(op);
}

Wgmma::Wgmma(const WgmmaOp &op)
    : op_(op), regsD_(uint8_t(op.n / 8 * 2 * accumulatorRegisters(op.d))) {}

bool Wgmma::run(unsigned warp, RegsOut d, RegsIn a, uint64_t descriptorA,
                uint64_t descriptorB, bool scaleD, SharedMemory &memory) const {
  bool granted =
      forEachMatrix(op_, warp, descriptorA, descriptorB,
                    [&](const CoreMatrix &m) { return announce(m, memory); });
  if (!granted)
    return false;
  const Kernels &k = kernels();
  unsigned perWord = 32 / bitsOf(op_.a);
  size_t block = size_t(perWord) * lanes;
  Kernels::Decode decodeA = k.decoder(op_.a), decodeB = k.decoder(op_.b);
  Kernels::Multiply multiply = k.multiplier(perWord);

  alignas(64) float valuesA[2 * blocksOfK * 4 * lanes];
  MatrixDescriptor inA = MatrixDescriptor::decode(descriptorA);
  for (unsigned r = 0; r < 2 * blocksOfK; ++r) {
    uint32_t words[lanes];
    if (!op_.aInRegisters)
      coreMatrix(inA, 2 * warp + r % 2, r / 2, op_.transposeA)
          .read(memory, op_.transposeA, words);
    decodeA(op_.aInRegisters ? a[r] : words, valuesA + r * block);
  }
  if (op_.negateA != op_.negateB)
    for (size_t i = 0; i < 2 * blocksOfK * block; ++i)
      valuesA[i] = -valuesA[i];

  MatrixDescriptor inB = MatrixDescriptor::decode(descriptorB);
  unsigned perHalf = accumulatorRegisters(op_.d);
  for (unsigned tile = 0; tile < op_.n / 8u; ++tile) {
    alignas(64) float valuesB[blocksOfK * 4 * lanes];
    for (unsigned r = 0; r < blocksOfK; ++r) {
      uint32_t words[lanes], turned[lanes];
      coreMatrix(inB, tile, r, op_.transposeB)
          .read(memory, op_.transposeB, words);
      transposeWords(words, turned);
      decodeB(turned, valuesB + r * block);
    }
    for (unsigned h = 0; h < 2; ++h) {
      RegsOut half = d + (2 * tile + h) * perHalf;
      alignas(64) float acc[64] = {};
      if (scaleD)
        loadAccumulator(op_.d, half, acc);
      multiply(acc, valuesA + h * block, 2 * block, valuesB, block, blocksOfK);
      storeAccumulator(op_.d, acc, scaleD ? half : nullptr, op_.saturate, half);
    }
  }
  return true;
}

} // namespace tenon::emu::tensor
