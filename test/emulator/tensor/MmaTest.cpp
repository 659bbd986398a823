//===- MmaTest.cpp - mma.sync against the manual's layouts ----------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/emulator/tensor/Mma.h"
#include "runtime/emulator/tensor/Kernels.h"
#include "test/emulator/tensor/TestMemory.h"

#include <cmath>
#include <functional>
#include <gtest/gtest.h>
#include <string>

using namespace tenon::emu::tensor;

namespace {

struct Place {
  unsigned row, column;
};

/// Where element i of a lane lies, as the manual writes it: g is groupID, t is
/// threadID_in_group.
using Layout = std::function<Place(unsigned g, unsigned t, unsigned i)>;

struct Case {
  unsigned m, n, k;
  std::vector<Element> inputs;
  std::vector<Element> accumulators;
  Layout a, b, c;
};

Place rowsOfTwo(unsigned g, unsigned t, unsigned i) {
  return {i < 2 ? g : g + 8, t * 2 + (i & 1)};
}
Place oneRow(unsigned g, unsigned t, unsigned i) {
  return {g, t * 2 + (i & 1)};
}

using enum Element;

// One entry for each shape of the manual, formulas in its own form.
const Case cases[] = {
    {16,
     8,
     8,
     {F16, BF16},
     {F16, F32},
     rowsOfTwo,
     [](unsigned g, unsigned t, unsigned i) { return Place{t * 2 + i, g}; },
     rowsOfTwo},
    {16,
     8,
     16,
     {F16, BF16},
     {F16, F32},
     [](unsigned g, unsigned t, unsigned i) {
       return Place{i < 2 || (4 <= i && i < 6) ? g : g + 8,
                    i < 4 ? t * 2 + (i & 1) : t * 2 + (i & 1) + 8};
     },
     [](unsigned g, unsigned t, unsigned i) {
       return Place{i < 2 ? t * 2 + (i & 1) : t * 2 + (i & 1) + 8, g};
     },
     rowsOfTwo},
    {16,
     8,
     4,
     {TF32},
     {F32},
     [](unsigned g, unsigned t, unsigned i) {
       return Place{i == 0 ? g : g + 8, t};
     },
     [](unsigned g, unsigned t, unsigned) { return Place{t, g}; },
     rowsOfTwo},
    {16,
     8,
     8,
     {TF32},
     {F32},
     [](unsigned g, unsigned t, unsigned i) {
       return Place{i == 0 || i == 2 ? g : g + 8, i == 0 || i == 1 ? t : t + 4};
     },
     [](unsigned g, unsigned t, unsigned i) {
       return Place{i == 0 ? t : t + 4, g};
     },
     rowsOfTwo},
    {16,
     8,
     16,
     {S8, U8, E4M3, E5M2},
     {S32, F32, F16},
     [](unsigned g, unsigned t, unsigned i) {
       return Place{i < 4 ? g : g + 8, t * 4 + (i & 3)};
     },
     [](unsigned g, unsigned t, unsigned i) { return Place{t * 4 + i, g}; },
     rowsOfTwo},
    {16,
     8,
     32,
     {S8, U8, E4M3, E5M2},
     {S32, F32, F16},
     [](unsigned g, unsigned t, unsigned i) {
       return Place{i < 4 || (8 <= i && i < 12) ? g : g + 8,
                    i < 8 ? t * 4 + (i & 3) : t * 4 + (i & 3) + 16};
     },
     [](unsigned g, unsigned t, unsigned i) {
       return Place{i < 4 ? t * 4 + (i & 3) : t * 4 + (i & 3) + 16, g};
     },
     rowsOfTwo},
    {8,
     8,
     16,
     {S8, U8},
     {S32},
     [](unsigned g, unsigned t, unsigned i) { return Place{g, t * 4 + i}; },
     [](unsigned g, unsigned t, unsigned i) { return Place{t * 4 + i, g}; },
     oneRow},
    {8,
     8,
     32,
     {S4, U4},
     {S32},
     [](unsigned g, unsigned t, unsigned i) { return Place{g, t * 8 + i}; },
     [](unsigned g, unsigned t, unsigned i) { return Place{t * 8 + i, g}; },
     oneRow},
    {16,
     8,
     32,
     {S4, U4},
     {S32},
     [](unsigned g, unsigned t, unsigned i) {
       return Place{i < 8 ? g : g + 8, t * 8 + (i & 7)};
     },
     [](unsigned g, unsigned t, unsigned i) { return Place{t * 8 + i, g}; },
     rowsOfTwo},
    {16,
     8,
     64,
     {S4, U4},
     {S32},
     [](unsigned g, unsigned t, unsigned i) {
       return Place{i < 8 || (16 <= i && i < 24) ? g : g + 8,
                    i < 16 ? t * 8 + (i & 7) : t * 8 + (i & 7) + 32};
     },
     [](unsigned g, unsigned t, unsigned i) {
       return Place{i < 8 ? t * 8 + (i & 7) : t * 8 + (i & 7) + 32, g};
     },
     rowsOfTwo},
    {8,
     8,
     128,
     {B1},
     {S32},
     [](unsigned g, unsigned t, unsigned i) { return Place{g, t * 32 + i}; },
     [](unsigned g, unsigned t, unsigned i) { return Place{t * 32 + i, g}; },
     oneRow},
    {16,
     8,
     128,
     {B1},
     {S32},
     [](unsigned g, unsigned t, unsigned i) {
       return Place{i < 32 ? g : g + 8, t * 32 + (i & 31)};
     },
     [](unsigned g, unsigned t, unsigned i) { return Place{t * 32 + i, g}; },
     rowsOfTwo},
    {16,
     8,
     256,
     {B1},
     {S32},
     [](unsigned g, unsigned t, unsigned i) {
       return Place{i < 32 || (64 <= i && i < 96) ? g : g + 8,
                    i < 64 ? t * 32 + (i & 31) : t * 32 + (i & 31) + 128};
     },
     [](unsigned g, unsigned t, unsigned i) {
       return Place{i < 32 ? t * 32 + (i & 31) : t * 32 + (i & 31) + 128, g};
     },
     rowsOfTwo},
    {8,
     8,
     4,
     {F64},
     {F64},
     [](unsigned g, unsigned t, unsigned) { return Place{g, t}; },
     [](unsigned g, unsigned t, unsigned) { return Place{t, g}; },
     oneRow},
    {16,
     8,
     4,
     {F64},
     {F64},
     [](unsigned g, unsigned t, unsigned i) {
       return Place{i == 0 ? g : g + 8, t};
     },
     [](unsigned g, unsigned t, unsigned) { return Place{t, g}; },
     rowsOfTwo},
    {16,
     8,
     8,
     {F64},
     {F64},
     [](unsigned g, unsigned t, unsigned i) {
       return Place{i == 0 || i == 2 ? g : g + 8, i == 0 || i == 1 ? t : t + 4};
     },
     [](unsigned g, unsigned t, unsigned i) {
       return Place{i == 0 ? t : t + 4, g};
     },
     rowsOfTwo},
    {16,
     8,
     16,
     {F64},
     {F64},
     [](unsigned g, unsigned t, unsigned i) {
       return Place{i % 2 == 0 ? g : g + 8, i < 2   ? t
                                            : i < 4 ? t + 4
                                            : i < 6 ? t + 8
                                                    : t + 12};
     },
     [](unsigned g, unsigned t, unsigned i) { return Place{t + 4 * i, g}; },
     rowsOfTwo},
};

/// A matrix of values that an element type has, and its fragment.
template <typename Word> struct Operand {
  Operand(Element type, unsigned rows, unsigned columns, const Layout &layout)
      : type(type), columns(columns), values(rows * columns),
        fragment(rows * columns * bitsOf(type) / (lanes * 8 * sizeof(Word))),
        layout(layout) {}

  void fill(Random &random) {
    for (double &v : values) {
      if (isInteger(type) && type != S32)
        v = decode(type, random.next());
      else if (type == S32)
        v = double(int32_t(random.next()) >> 8);
      else
        v = decode(type, encode(type, random.unit() * 4));
    }
  }

  void pack() {
    for (auto &reg : fragment.words)
      reg.fill(0);
    forEach(layout, [&](unsigned l, unsigned i, unsigned at) {
      unsigned bits = bitsOf(type), perWord = sizeof(Word) * 8 / bits;
      Word mask = bits == sizeof(Word) * 8 ? ~Word(0) : (Word(1) << bits) - 1;
      uint64_t code = isInteger(type) ? uint64_t(int64_t(values[at]))
                                      : encode(type, values[at]);
      fragment.words[i / perWord][l] |= (Word(code) & mask)
                                        << (i % perWord * bits);
    });
  }

  void unpack() {
    forEach(layout, [&](unsigned l, unsigned i, unsigned at) {
      unsigned bits = bitsOf(type), perWord = sizeof(Word) * 8 / bits;
      values[at] = decode(type, uint64_t(fragment.words[i / perWord][l]) >>
                                    (i % perWord * bits));
    });
  }

  template <typename See> void forEach(const Layout &where, See &&see) {
    unsigned perLane = unsigned(values.size()) / lanes;
    for (unsigned l = 0; l < lanes; ++l)
      for (unsigned i = 0; i < perLane; ++i) {
        Place p = where(l / 4, l % 4, i);
        see(l, i, p.row * columns + p.column);
      }
  }

  double at(unsigned row, unsigned column) const {
    return values[row * columns + column];
  }

  Element type;
  unsigned columns;
  std::vector<double> values;
  Fragment<Word> fragment;
  Layout layout;
};

/// How far a result may lie from the exact sum: sums are rounded to f32 after
/// each product, so k roundings of at most the sum of magnitudes; and once to
/// f16 where that is the type of D.
double tolerance(Element d, unsigned k, double magnitudes, double exact) {
  if (isInteger(d))
    return 0;
  double epsilon = d == F64 ? 0x1p-53 : 0x1p-24;
  double sum = k * epsilon * magnitudes;
  return d == F16 ? sum + std::fabs(exact) * 0x1p-11 + 0x1p-25 : sum;
}

template <typename Word>
void run(const Mma &mma, Operand<Word> &d, Operand<Word> &a, Operand<Word> &b,
         Operand<Word> &c) {
  if constexpr (sizeof(Word) == 8)
    mma.runF64(d.fragment.regs(), a.fragment.in(), b.fragment.in(),
               c.fragment.in());
  else
    mma.run(d.fragment.regs(), a.fragment.in(), b.fragment.in(),
            c.fragment.in());
}

template <typename Word>
void checkOne(const Case &shape, const MmaOp &op, uint64_t seed) {
  auto mma = Mma::find(op);
  ASSERT_TRUE(mma);
  Operand<Word> a(op.a, op.m, op.k, shape.a), b(op.b, op.k, op.n, shape.b);
  Operand<Word> c(op.c, op.m, op.n, shape.c), d(op.d, op.m, op.n, shape.c);
  ASSERT_EQ(mma->registersA(), a.fragment.words.size());
  ASSERT_EQ(mma->registersB(), b.fragment.words.size());
  ASSERT_EQ(mma->registersC(), c.fragment.words.size());
  ASSERT_EQ(mma->registersD(), d.fragment.words.size());
  Random random(seed);
  for (Operand<Word> *operand : {&a, &b, &c}) {
    operand->fill(random);
    operand->pack();
  }
  run(*mma, d, a, b, c);
  d.unpack();
  for (unsigned i = 0; i < op.m; ++i)
    for (unsigned j = 0; j < op.n; ++j) {
      double exact = c.at(i, j), magnitudes = std::fabs(exact);
      for (unsigned x = 0; x < op.k; ++x) {
        double product = a.at(i, x) * b.at(x, j);
        if (op.a == B1)
          product = op.bitOp == BitOp::Xor ? a.at(i, x) != b.at(x, j) : product;
        exact += product;
        magnitudes += std::fabs(product);
      }
      ASSERT_NEAR(d.at(i, j), exact, tolerance(op.d, op.k, magnitudes, exact))
          << i << ", " << j;
    }
}

TEST(Mma, EveryShapeAndType) {
  unsigned checked = 0;
  for (const Case &shape : cases)
    for (Element a : shape.inputs)
      for (Element b : shape.inputs)
        for (Element d : shape.accumulators)
          for (BitOp bitOp : {BitOp::Xor, BitOp::And}) {
            MmaOp op{uint16_t(shape.m),
                     uint16_t(shape.n),
                     uint16_t(shape.k),
                     d,
                     a,
                     b,
                     d,
                     false,
                     bitOp};
            if (!Mma::find(op) || (bitOp == BitOp::And && a != B1))
              continue;
            SCOPED_TRACE(testing::Message()
                         << "m" << shape.m << "n" << shape.n << "k" << shape.k
                         << " types " << int(d) << " " << int(a) << " "
                         << int(b));
            if (a == F64)
              checkOne<uint64_t>(shape, op, ++checked);
            else
              checkOne<uint32_t>(shape, op, ++checked);
          }
  // f16 2 * 2, bf16 2, tf32 2, f64 4, fp8 2 * 4 * 2, s8 3 * 4, s4 3 * 4,
  // b1 3 * 2.
  EXPECT_EQ(checked, 4u + 2 + 2 + 4 + 16 + 12 + 12 + 6);
}

TEST(Mma, EveryFormOfTheKernelsIsTheSame) {
#if defined(__x86_64__)
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
    GTEST_SKIP() << "this CPU has only the baseline";
  Random random(5);
  for (Element e : {F16, BF16, TF32, E4M3, E5M2, S8, U8, S4, U4}) {
    uint32_t a[lanes], b[lanes];
    for (unsigned l = 0; l < lanes; ++l) {
      // Exponents near zero, so that no product leaves the range of f32.
      a[l] = random.next() & (e == BF16 ? 0xbfffbfff : ~0u);
      b[l] = e == TF32 ? (random.next() & 0x007fffff) | 0x3f000000
                       : random.next() & (e == BF16 ? 0xbfffbfff : ~0u);
    }
    float va[2][8 * lanes], vb[2][8 * lanes], acc[2][64] = {};
    const Kernels *forms[] = {&kernelsBaseline, &kernelsAvx2};
    for (unsigned f = 0; f < 2; ++f) {
      forms[f]->decoder(e)(a, va[f]);
      forms[f]->decoder(e)(b, vb[f]);
      forms[f]->multiplier(32 / bitsOf(e))(acc[f], va[f], 0, vb[f], 0, 1);
    }
    EXPECT_EQ(std::memcmp(va[0], va[1], 32 / bitsOf(e) * lanes * 4), 0);
    for (unsigned i = 0; i < 64; ++i)
      EXPECT_TRUE(acc[0][i] == acc[1][i] ||
                  (acc[0][i] != acc[0][i] && acc[1][i] != acc[1][i]))
          << int(e) << " " << i;
  }
#endif
}

TEST(Mma, DecodersReadEveryPattern) {
  for (Element e : {F16, BF16, E4M3, E5M2, S8, U8, S4, U4}) {
    unsigned bits = bitsOf(e), perWord = 32 / bits;
    auto decoder = kernels().decoder(e);
    for (uint32_t base = 0; base < (1u << bits); base += lanes) {
      uint32_t words[lanes];
      for (unsigned l = 0; l < lanes; ++l) {
        words[l] = 0;
        for (unsigned i = 0; i < perWord; ++i)
          words[l] |= ((base + l) & ((1u << bits) - 1)) << (bits * i);
      }
      float out[8 * lanes];
      decoder(words, out);
      for (unsigned i = 0; i < perWord * lanes; ++i) {
        double want = decode(e, base + i % lanes);
        ASSERT_TRUE(out[i] == want || (out[i] != out[i] && want != want))
            << int(e) << " " << base + i % lanes;
        if (want == want) {
          ASSERT_EQ(std::signbit(out[i]), std::signbit(want));
        }
      }
    }
  }
}

TEST(Mma, IntegersWrapOrSaturate) {
  for (bool saturate : {false, true}) {
    auto mma = Mma::find({16, 8, 32, S32, S8, S8, S32, saturate});
    ASSERT_TRUE(mma);
    Fragment<uint32_t> a(4), b(2), c(4);
    for (auto &reg : a.words)
      reg.fill(0x7f7f7f7f);
    for (auto &reg : b.words)
      reg.fill(0x7f7f7f7f);
    for (auto &reg : c.words)
      reg.fill(0x7fffffff);
    // D in the registers of C.
    mma->run(c.regs(), a.in(), b.in(), c.in());
    uint32_t sum = 0x7fffffffu + 32 * 127 * 127;
    for (const auto &reg : c.words)
      for (uint32_t v : reg)
        ASSERT_EQ(v, saturate ? 0x7fffffffu : sum);
  }
}

TEST(Mma, InfinitiesAndNaNPropagate) {
  auto mma = Mma::find({16, 8, 16, F32, F16, F16, F32});
  Fragment<uint32_t> a(4), b(2), c(4), d(4);
  for (auto &reg : b.words)
    reg.fill(0x3c003c00);
  a.words[0][0] = 0x7c00;     // infinity in row 0
  a.words[0][4] = 0x7e00;     // NaN in row 1
  a.words[1][0] = 0xfc007c00; // both infinities in row 8
  mma->run(d.regs(), a.in(), b.in(), c.in());
  EXPECT_EQ(d.words[0][0], 0x7f800000u);
  EXPECT_EQ(d.words[0][4], 0x7fffffffu);
  EXPECT_EQ(d.words[2][3], 0x7fffffffu);
  EXPECT_EQ(d.words[0][8], 0u);
}

TEST(Mma, RefusesWhatDoesNotExist) {
  EXPECT_FALSE(Mma::find({16, 8, 16, F16, BF16, BF16, F16}));
  EXPECT_FALSE(Mma::find({16, 8, 16, F32, F16, BF16, F32}));
  EXPECT_FALSE(Mma::find({16, 8, 16, F32, F16, F16, F16}));
  EXPECT_FALSE(Mma::find({16, 8, 16, F32, F16, F16, F32, true}));
  EXPECT_FALSE(Mma::find({16, 8, 32, F32, F16, F16, F32}));
  EXPECT_FALSE(Mma::find({16, 8, 32, S32, S8, S4, S32}));
  EXPECT_FALSE(Mma::find({8, 8, 4, F32, F16, F16, F32}));
  EXPECT_FALSE(Mma::find({16, 8, 8, F32, F32, F32, F32}));
}

} // namespace
