//===- WgmmaTest.cpp - wgmma against the canonical layouts ----------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/emulator/tensor/Wgmma.h"
#include "runtime/emulator/tensor/Mma.h"
#include "test/emulator/tensor/TestMemory.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace tenon::emu::tensor;
using enum Element;
using Swizzle = MatrixDescriptor::Swizzle;

namespace {

constexpr uint32_t origin = 0x400;

/// A matrix of `lines` x `depth` elements (depth along k) in shared memory, in
/// one of the manual's canonical layouts, written out here from the definition:
/// atoms of eight lines (K-major: rows of the matrix, MN-major: values of k) of
/// `width` bytes, in each of which the 16-byte piece c of line r lies at
/// c ^ (r * width / 128 % (width / 16)).
struct Stored {
  Element type;
  unsigned rows, depth;
  bool mnMajor;
  Swizzle swizzle;
  uint32_t at;
  std::vector<double> values;

  unsigned bytes() const { return bitsOf(type) / 8; }
  uint32_t width() const {
    return swizzle == Swizzle::None ? 16 : 16u << (4 - unsigned(swizzle));
  }
  uint32_t atomBytes() const { return 8 * width(); }
  /// Elements along the contiguous dimension, and along the other.
  unsigned inner() const { return mnMajor ? rows : depth; }
  unsigned outer() const { return mnMajor ? depth : rows; }
  uint32_t atomsInner() const {
    return (inner() * bytes() + width() - 1) / width();
  }
  uint32_t size() const { return atomsInner() * outer() / 8 * atomBytes(); }

  /// Atoms lie one after the other, first along the inner dimension.
  uint32_t address(unsigned row, unsigned k) const {
    unsigned in = (mnMajor ? row : k) * bytes(), out = mnMajor ? k : row;
    uint32_t atom = out / 8 * atomsInner() + in / width();
    uint32_t line = out % 8, piece = in % width() / 16;
    if (swizzle != Swizzle::None)
      piece ^= line * width() / 128 % (width() / 16);
    return at + atom * atomBytes() + line * width() + piece * 16 + in % 16;
  }

  void store(TestShared &memory, Random &random) {
    values.resize(size_t(rows) * depth);
    for (unsigned r = 0; r < rows; ++r)
      for (unsigned k = 0; k < depth; ++k) {
        double v = isInteger(type) ? decode(type, random.next())
                                   : decode(type, encode(type, random.unit()));
        values[size_t(r) * depth + k] = v;
        uint64_t code =
            isInteger(type) ? uint64_t(int64_t(v)) : encode(type, v);
        std::memcpy(memory.at(address(r, k)), &code, bytes());
      }
  }
  double operator()(unsigned r, unsigned k) const {
    return values[size_t(r) * depth + k];
  }

  /// Of the part that begins at k, as kernels advance through a tile.
  uint64_t descriptor(unsigned k) const {
    uint32_t alongInner = atomBytes(), alongOuter = atomsInner() * atomBytes();
    MatrixDescriptor d = {};
    d.swizzle = swizzle;
    d.start = mnMajor ? at + k / 8 * alongOuter
                      : at + k * bytes() / width() * alongInner +
                            k * bytes() % width();
    if (swizzle == Swizzle::None) {
      // Stride: from eight rows to the next. Leading: along k.
      d.strideOffset = mnMajor ? alongInner : alongOuter;
      d.leadingOffset = mnMajor ? alongOuter : alongInner;
    } else {
      d.strideOffset = alongOuter;
      d.leadingOffset = mnMajor ? alongInner : 16;
    }
    return d.encode();
  }
};

/// D of the warpgroup by the manual's figure: element i of lane l of warp w.
struct Place {
  unsigned row, column;
};
Place placeOfD(unsigned w, unsigned l, unsigned i) {
  return {16 * w + l / 4 + 8 * (i / 2 % 2), 8 * (i / 4) + 2 * (l % 4) + i % 2};
}

struct Spec {
  WgmmaOp op;
  Swizzle a, b;
  unsigned steps; ///< along k, of op.k each
};

class WgmmaTest : public testing::Test {
protected:
  TestShared memory{256 * 1024, origin};
  std::vector<Fragment<uint32_t>> d;

  double resultOf(const WgmmaOp &op, unsigned w, unsigned l, unsigned i) {
    if (op.d == F16)
      return decode(F16, d[w].words[i / 2][l] >> (16 * (i % 2)));
    return decode(op.d, d[w].words[i][l]);
  }

  /// A fragment of A by the manual: as that of m16n8k16 and its like.
  Fragment<uint32_t> fragmentA(const Stored &a, unsigned w, unsigned k0) {
    Fragment<uint32_t> f(4);
    unsigned perWord = 4 / a.bytes();
    for (unsigned r = 0; r < 4; ++r)
      for (unsigned l = 0; l < lanes; ++l)
        for (unsigned i = 0; i < perWord; ++i) {
          unsigned row = 16 * w + l / 4 + 8 * (r % 2);
          unsigned k = k0 + (r / 2 * 4 + l % 4) * perWord + i;
          double v = a(row, k);
          uint64_t code = isInteger(a.type) ? uint64_t(int64_t(v)) & 0xff
                                            : encode(a.type, v);
          f.words[r][l] |= uint32_t(code) << (i * bitsOf(a.type));
        }
    return f;
  }

  void check(const Spec &s) {
    SCOPED_TRACE(testing::Message()
                 << "n" << s.op.n << " types " << int(s.op.d) << " "
                 << int(s.op.a) << " " << int(s.op.b) << " swizzles "
                 << int(s.a) << " " << int(s.b) << " transposed "
                 << s.op.transposeA << s.op.transposeB << " registers "
                 << s.op.aInRegisters);
    auto wgmma = Wgmma::find(s.op);
    ASSERT_TRUE(wgmma);
    unsigned depth = s.op.k * s.steps;
    Random random(s.op.n + depth);
    Stored a{s.op.a, 64, depth, s.op.transposeA, s.a, 0x400, {}};
    a.store(memory, random);
    uint32_t next = (a.at + a.size() + 1023) / 1024 * 1024;
    Stored b{s.op.b, s.op.n, depth, s.op.transposeB, s.b, next, {}};
    b.store(memory, random);
    d.assign(4, Fragment<uint32_t>(wgmma->registersD()));
    for (unsigned w = 0; w < 4; ++w) {
      Fragment<uint32_t> mine(wgmma->registersD());
      for (auto &reg : mine.words)
        reg.fill(0x7f7f7f7f); // what scale-d = 0 must ignore
      for (unsigned step = 0; step < s.steps; ++step) {
        unsigned k = step * s.op.k;
        Fragment<uint32_t> inA = fragmentA(a, w, k);
        uint64_t inShared = s.op.aInRegisters ? 0 : a.descriptor(k);
        ASSERT_TRUE(wgmma->run(w, mine.regs(), inA.in(), inShared,
                               b.descriptor(k), step > 0, memory));
      }
      d[w].words = mine.words;
    }
    compare(s, a, b, depth);
  }

  void compare(const Spec &s, const Stored &a, const Stored &b,
               unsigned depth) {
    double sign = s.op.negateA != s.op.negateB ? -1 : 1;
    for (unsigned w = 0; w < 4; ++w)
      for (unsigned l = 0; l < lanes; ++l)
        for (unsigned i = 0; i < s.op.n / 2u; ++i) {
          Place p = placeOfD(w, l, i);
          double exact = 0, magnitudes = 0;
          for (unsigned k = 0; k < depth; ++k) {
            double product = sign * a(p.row, k) * b(p.column, k);
            exact += product;
            magnitudes += std::fabs(product);
          }
          double bound = isInteger(s.op.d) ? 0 : depth * 0x1p-24 * magnitudes;
          if (s.op.d == F16)
            bound += s.steps * (magnitudes * 0x1p-11 + 0x1p-25);
          ASSERT_NEAR(resultOf(s.op, w, l, i), exact, bound)
              << p.row << ", " << p.column;
        }
  }
};

constexpr Swizzle swizzles[] = {Swizzle::None, Swizzle::B32, Swizzle::B64,
                                Swizzle::B128};

TEST_F(WgmmaTest, EverySwizzleOfBothOperands) {
  for (Swizzle a : swizzles)
    for (Swizzle b : swizzles)
      check({{64, 16, F32, F16, F16}, a, b, 4});
}

TEST_F(WgmmaTest, EveryTranspose) {
  for (bool transposeA : {false, true})
    for (bool transposeB : {false, true})
      for (Swizzle swizzle : swizzles) {
        WgmmaOp op{64, 16, F32, BF16, BF16, false, transposeA, transposeB};
        check({op, swizzle, swizzle, 2});
        op.n = 128;
        check({op, swizzle, swizzle, 4});
      }
}

TEST_F(WgmmaTest, EveryType) {
  for (bool inRegisters : {false, true}) {
    for (Element accumulator : {F32, F16}) {
      check({{32, 16, accumulator, F16, F16, inRegisters},
             Swizzle::B128,
             Swizzle::B128,
             4});
      for (Element a : {E4M3, E5M2})
        for (Element b : {E4M3, E5M2})
          check({{24, 32, accumulator, a, b, inRegisters},
                 Swizzle::B64,
                 Swizzle::B128,
                 4});
    }
    check({{32, 16, F32, BF16, BF16, inRegisters},
           Swizzle::B32,
           Swizzle::B128,
           4});
    check({{32, 8, F32, TF32, TF32, inRegisters},
           Swizzle::B128,
           Swizzle::B128,
           4});
    for (Element a : {S8, U8})
      for (Element b : {S8, U8})
        check({{32, 32, S32, a, b, inRegisters},
               Swizzle::B128,
               Swizzle::None,
               2});
  }
}

TEST_F(WgmmaTest, EveryWidth) {
  for (unsigned n = 8; n <= 256; n += 8)
    check({{uint16_t(n), 16, F32, F16, F16}, Swizzle::B128, Swizzle::B128, 1});
}

TEST_F(WgmmaTest, Negates) {
  WgmmaOp op{16, 16, F32, F16, F16};
  op.negateA = true;
  check({op, Swizzle::B128, Swizzle::B128, 2});
  op.negateB = true;
  check({op, Swizzle::B128, Swizzle::B128, 2});
  op.negateA = false;
  check({op, Swizzle::B128, Swizzle::B128, 2});
}

TEST_F(WgmmaTest, ReadsWithoutBankConflictsWhereSwizzled) {
  Random random(1);
  Stored b{F16, 64, 64, false, Swizzle::B128, 0x400, {}};
  b.store(memory, random);
  auto wgmma = Wgmma::find({64, 16, F32, F16, F16, true});
  Fragment<uint32_t> d(wgmma->registersD()), a(4);
  for (unsigned k = 0; k < 64; k += 16) {
    memory.groups = memory.wavefronts = 0;
    ASSERT_TRUE(
        wgmma->run(0, d.regs(), a.in(), 0, b.descriptor(k), false, memory));
    // Eight tiles of two core matrices, 128 bytes in one visit each.
    EXPECT_EQ(memory.groups, 16u);
    EXPECT_EQ(memory.wavefronts, 16u);
  }
  EXPECT_EQ(memory.last.proxy, Proxy::Async);
}

TEST_F(WgmmaTest, RefusedReadsLeaveD) {
  auto wgmma = Wgmma::find({8, 16, F32, F16, F16, true});
  Fragment<uint32_t> d(4), a(4);
  d.words[1].fill(7);
  MatrixDescriptor outside = {};
  outside.start = 0x3fff0;
  outside.strideOffset = 0x3fff0;
  outside.leadingOffset = 16;
  TestShared small(1024, origin);
  EXPECT_FALSE(
      wgmma->run(0, d.regs(), a.in(), 0, outside.encode(), false, small));
  EXPECT_EQ(d.words[1][3], 7u);
}

TEST(Descriptor, RoundTrips) {
  MatrixDescriptor d{0x12340, 0x80, 0x400, 5, Swizzle::B64};
  MatrixDescriptor e = MatrixDescriptor::decode(d.encode());
  EXPECT_EQ(e.start, d.start);
  EXPECT_EQ(e.leadingOffset, d.leadingOffset);
  EXPECT_EQ(e.strideOffset, d.strideOffset);
  EXPECT_EQ(e.baseOffset, d.baseOffset);
  EXPECT_EQ(e.swizzle, d.swizzle);
  // The bits as the manual numbers them.
  EXPECT_EQ(d.encode(), uint64_t(0x1234) | uint64_t(0x8) << 16 |
                            uint64_t(0x40) << 32 | uint64_t(5) << 49 |
                            uint64_t(2) << 62);
}

TEST(Wgmma, RefusesWhatDoesNotExist) {
  EXPECT_FALSE(Wgmma::find({12, 16, F32, F16, F16}));
  EXPECT_FALSE(Wgmma::find({264, 16, F32, F16, F16}));
  EXPECT_FALSE(Wgmma::find({40, 32, S32, S8, S8}));
  EXPECT_FALSE(Wgmma::find({64, 32, F32, F16, F16}));
  EXPECT_FALSE(Wgmma::find({64, 16, F16, BF16, BF16}));
  EXPECT_FALSE(Wgmma::find({64, 32, F32, E4M3, E4M3, false, false, true}));
  EXPECT_FALSE(Wgmma::find({64, 16, F32, F16, F16, true, true}));
  EXPECT_FALSE(Wgmma::find({64, 16, F32, F16, BF16}));
}

} // namespace
