//===- DimTest.cpp - tests of symbolic dimensions ------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ir/Dim.h"
#include "llvm/ADT/StringMap.h"
#include "gtest/gtest.h"
#include <random>

using namespace tenon::ir;

namespace tenon::ir {
void PrintTo(Dim dim, std::ostream *os) {
  std::string text;
  llvm::raw_string_ostream(text) << dim;
  *os << text;
}
} // namespace tenon::ir

namespace {

std::string str(Dim dim) {
  std::string text;
  llvm::raw_string_ostream(text) << dim;
  return text;
}

/// Parses; a test's own text is well-formed.
Dim D(llvm::StringRef text) {
  std::optional<Dim> dim = parseDim(text);
  EXPECT_TRUE(dim) << text.str();
  return dim.value_or(Dim::overflow());
}

TEST(Dim, PrintsInOneOrder) {
  EXPECT_EQ(str(D("seq + past")), "past + seq");
  EXPECT_EQ(str(D("seq*2*batch")), "2 * batch * seq");
  EXPECT_EQ(str(D("1 + n * n + n")), "n * n + n + 1");
  EXPECT_EQ(str(D("3 - n")), "-n + 3");
  EXPECT_EQ(str(D("floordiv(seq + 1, 2)")), "floordiv(seq + 1, 2)");
  EXPECT_EQ(str(D("\"odd name\" * \"min\"")), "\"min\" * \"odd name\"");
  EXPECT_EQ(str(Dim()), "0");
  EXPECT_EQ(str(Dim(INT64_MIN)), "-9223372036854775808");
}

TEST(Dim, EqualExpressionsAreOneNode) {
  EXPECT_EQ(D("(a + b) * (a - b)"), D("a * a - b * b"));
  EXPECT_EQ(D("a + b - a"), D("b"));
  EXPECT_EQ(D("2 * (a - a)"), Dim(0));
  EXPECT_EQ(D("min(b, a)"), D("min(a, b)"));
  EXPECT_NE(D("a"), D("b"));
  EXPECT_EQ(hash_value(D("x * (y + 1)")), hash_value(D("x + x * y")));
}

TEST(Dim, OrderIsTotalAndStructural) {
  const char *ordered[] = {"a * b", "a", "a + 1", "a + 2", "b", "min(a, b)"};
  for (size_t i = 0; i < std::size(ordered); ++i)
    for (size_t j = 0; j < std::size(ordered); ++j) {
      int order = Dim::compare(D(ordered[i]), D(ordered[j]));
      EXPECT_EQ(order == 0, i == j);
      EXPECT_EQ(order, -Dim::compare(D(ordered[j]), D(ordered[i])));
    }
}

TEST(Dim, DividesExactly) {
  EXPECT_EQ(Dim::divideExactly(D("12 * batch * seq"), D("4 * seq")),
            D("3 * batch"));
  EXPECT_EQ(Dim::divideExactly(D("a * a - b * b"), D("a + b")), D("a - b"));
  EXPECT_EQ(Dim::divideExactly(D("0"), D("n")), Dim(0));
  EXPECT_EQ(Dim::divideExactly(D("3 * n"), D("2")), std::nullopt);
  EXPECT_EQ(Dim::divideExactly(D("n + 1"), D("n")), std::nullopt);
  EXPECT_EQ(Dim::divideExactly(D("n"), D("0")), std::nullopt);
}

TEST(Dim, FloorDivSimplifies) {
  EXPECT_EQ(D("floordiv(768 * batch, 64)"), D("12 * batch"));
  EXPECT_EQ(D("floordiv(batch * seq * 768, batch * seq)"), Dim(768));
  EXPECT_EQ(D("floordiv(4 * n + 7, 4)"), D("n + 1"));
  EXPECT_EQ(D("floordiv(2 * n + 1, 4)"), D("floordiv(n, 2)"));
  EXPECT_EQ(D("floordiv(floordiv(n, 2), 3)"), D("floordiv(n, 6)"));
  EXPECT_EQ(D("floordiv(n, -2)"), D("floordiv(-n, 2)"));
  EXPECT_EQ(D("floordiv(mod(n, 4), 4)"), Dim(0));
  EXPECT_EQ(D("ceildiv(n, 4)"), D("floordiv(n + 3, 4)"));
  EXPECT_EQ(D("floordiv(-7, 2)"), Dim(-4));
  EXPECT_EQ(D("ceildiv(-7, 2)"), Dim(-3));
}

TEST(Dim, ModSimplifies) {
  EXPECT_EQ(D("mod(4 * n + 5, 4)"), Dim(1));
  EXPECT_EQ(D("mod(2 * n, 4)"), D("2 * mod(n, 2)"));
  EXPECT_EQ(D("mod(mod(n, 8), 4)"), D("mod(n, 4)"));
  EXPECT_EQ(D("mod(mod(n, 3), 5)"), D("mod(n, 3)"));
  EXPECT_EQ(D("mod(-7, 4)"), Dim(1));
}

TEST(Dim, MinAndMaxUseWhatIsProvable) {
  EXPECT_EQ(D("min(n, n + 1)"), D("n"));
  EXPECT_EQ(D("max(a, max(b, a + b))"), D("a + b"));
  EXPECT_EQ(D("max(n, 0)"), D("n"));
  EXPECT_EQ(D("min(min(a, b), min(b, c))"), D("min(a, min(b, c))"));
  EXPECT_EQ(str(D("max(seq - 1, 0)")), "max(0, seq - 1)");
}

TEST(Dim, BroadcastSimplifies) {
  EXPECT_EQ(D("broadcast(a, 1)"), D("a"));
  EXPECT_EQ(D("broadcast(a, a)"), D("a"));
  EXPECT_EQ(D("broadcast(broadcast(a, b), b)"), D("broadcast(a, b)"));
  EXPECT_EQ(D("broadcast(a, 5)"), Dim(5));
  EXPECT_EQ(D("broadcast(a, past + 2)"), D("past + 2"));
  EXPECT_EQ(D("broadcast(b, a)"), D("broadcast(a, b)"));
}

TEST(Dim, BoundsAreProved) {
  EXPECT_TRUE(D("past + seq").isAtLeast(0));
  EXPECT_FALSE(D("past + seq").isAtLeast(1));
  EXPECT_FALSE(D("a - b").isAtLeast(0));
  EXPECT_TRUE(D("16 * ceildiv(n, 16) - n").isAtLeast(0));
  EXPECT_TRUE(D("n - min(n, k)").isAtLeast(0));
  EXPECT_TRUE(D("max(n, k) - k").isAtLeast(0));
  EXPECT_TRUE(D("n - floordiv(n, 2)").isAtLeast(0));
  EXPECT_TRUE(D("n - mod(n, 3)").isAtLeast(0));
  EXPECT_TRUE(D("3 - mod(n, 4)").isAtLeast(0));
  EXPECT_FALSE(D("2 - mod(n, 4)").isAtLeast(0));
}

TEST(Dim, OverflowIsNeitherAWrapNorACrash) {
  Dim n = Dim::symbol("n");
  EXPECT_TRUE((Dim(INT64_MAX) + Dim(1)).isOverflow());
  EXPECT_TRUE((Dim(INT64_MAX) * n + n).isOverflow());
  EXPECT_TRUE((Dim(0) - Dim(INT64_MIN)).isOverflow());
  EXPECT_TRUE(Dim::floorDiv(Dim(INT64_MIN), Dim(-1)).isOverflow());
  EXPECT_TRUE(Dim::floorDiv(n, Dim(INT64_MIN)).isOverflow());
  EXPECT_TRUE(Dim::ceilDiv(n, Dim(INT64_MIN)).isOverflow());
  EXPECT_FALSE(Dim::mod(n, Dim(INT64_MIN)).isOverflow());
  Dim power = n;
  for (int i = 0; i < 100; ++i)
    power = power * power;
  EXPECT_TRUE(power.isOverflow());
  Dim nested = n;
  for (int i = 0; i < 100; ++i)
    nested = Dim::floorDiv(nested * nested + 1, Dim::symbol("m"));
  EXPECT_TRUE(nested.isOverflow());
  Dim sum = 0;
  for (int i = 0; i < 1000; ++i)
    sum = sum + Dim::symbol("s" + std::to_string(i));
  EXPECT_TRUE(sum.isOverflow());
  EXPECT_TRUE(Dim::max(sum, n).isOverflow());
  EXPECT_EQ(sum.evaluate([](llvm::StringRef) { return 1; }), std::nullopt);
  EXPECT_FALSE(sum.isAtLeast(INT64_MIN));
}

TEST(Dim, DivisionByZeroHasNoValue) {
  EXPECT_EQ(D("floordiv(n, 0)").evaluate([](llvm::StringRef) { return 4; }),
            std::nullopt);
  EXPECT_EQ(D("mod(4, 0)").constant(), std::nullopt);
}

TEST(Dim, SubstitutesAndSimplifies) {
  Dim result = D("floordiv(n * seq, 4) + past")
                   .substitute([](llvm::StringRef name) -> std::optional<Dim> {
                     if (name == "n")
                       return D("8 * batch");
                     if (name == "past")
                       return Dim(0);
                     return std::nullopt;
                   });
  EXPECT_EQ(result, D("2 * batch * seq"));
}

TEST(Dim, CollectsSymbolsOnce) {
  std::string seen;
  D("b * a + min(a, c) + b").collectSymbols([&](llvm::StringRef name) {
    seen += name;
  });
  EXPECT_EQ(seen.size(), 3u);
}

TEST(Dim, RefusesWrongText) {
  for (const char *text :
       {"", "+", "a +", "a b", "min(a)", "min(a, b", "(a", "1.5", "\"open",
        "9223372036854775808", "a ** b", "<overflow>"})
    EXPECT_EQ(parseDim(text), std::nullopt) << text;
  EXPECT_EQ(parseDim(std::string(100000, '(')), std::nullopt);
  EXPECT_EQ(parseDim(std::string(100000, '-') + "1"), std::nullopt);
  std::string wide = "a";
  for (int i = 0; i < 20000; ++i)
    wide += " + x" + std::to_string(i);
  EXPECT_EQ(parseDim(wide), std::nullopt);
}

//===----------------------------------------------------------------------===//
// Random expressions: the algebra agrees with integers
//===----------------------------------------------------------------------===//

/// An expression built twice: as a Dim and as a value under each assignment.
class RandomDims : public testing::TestWithParam<unsigned> {
protected:
  static constexpr unsigned assignments = 6;
  struct Sample {
    Dim dim;
    /// nullopt: this expression has no value there.
    std::optional<int64_t> values[assignments];
  };

  Sample leaf() {
    Sample sample;
    if (random() % 3 == 0) {
      int64_t value = int64_t(random() % 13) - 4;
      sample.dim = value;
      std::fill(std::begin(sample.values), std::end(sample.values), value);
      return sample;
    }
    std::string name(1, char('a' + random() % 4));
    sample.dim = Dim::symbol(name);
    for (unsigned i = 0; i < assignments; ++i)
      sample.values[i] = env(i, name);
    return sample;
  }

  /// The value of symbol \p name under assignment \p i.
  int64_t env(unsigned i, llvm::StringRef name) {
    return (i * 7 + unsigned(name[0]) * 5 + GetParam()) % 11;
  }

  Sample expression(unsigned depth) {
    if (depth == 0)
      return leaf();
    Sample x = expression(depth - 1), y = expression(random() % depth), sample;
    unsigned choice = random() % 9;
    auto apply = [&](auto f) {
      for (unsigned i = 0; i < assignments; ++i)
        if (x.values[i] && y.values[i])
          sample.values[i] = f(*x.values[i], *y.values[i]);
    };
    using Value = std::optional<int64_t>;
    auto floorOf = [](int64_t a, int64_t b) -> Value {
      if (b == 0)
        return std::nullopt;
      return int64_t(std::floor(double(a) / double(b)));
    };
    switch (choice) {
    case 0:
    case 1:
      sample.dim = x.dim + y.dim;
      apply([](int64_t a, int64_t b) -> Value { return a + b; });
      break;
    case 2:
      sample.dim = x.dim - y.dim;
      apply([](int64_t a, int64_t b) -> Value { return a - b; });
      break;
    case 3:
      sample.dim = x.dim * y.dim;
      apply([](int64_t a, int64_t b) -> Value { return a * b; });
      break;
    case 4:
      sample.dim = Dim::floorDiv(x.dim, y.dim);
      apply(floorOf);
      break;
    case 5:
      sample.dim = Dim::ceilDiv(x.dim, y.dim);
      apply([&](int64_t a, int64_t b) -> Value {
        Value q = floorOf(-a, b);
        return q ? Value(-*q) : std::nullopt;
      });
      break;
    case 6:
      sample.dim = Dim::mod(x.dim, y.dim);
      apply([&](int64_t a, int64_t b) -> Value {
        Value q = floorOf(a, b);
        return q ? Value(a - b * *q) : std::nullopt;
      });
      break;
    case 7:
      sample.dim = Dim::min(x.dim, y.dim);
      apply([](int64_t a, int64_t b) -> Value { return std::min(a, b); });
      break;
    case 8:
      sample.dim = Dim::max(x.dim, y.dim);
      apply([](int64_t a, int64_t b) -> Value { return std::max(a, b); });
      break;
    }
    return sample;
  }

  std::mt19937 random{GetParam() * 7919 + 1};
};

TEST_P(RandomDims, AgreeWithIntegers) {
  for (unsigned n = 0; n < 200; ++n) {
    Sample sample = expression(1 + n % 5);
    if (sample.dim.isOverflow())
      continue;
    EXPECT_EQ(parseDim(str(sample.dim)), sample.dim) << str(sample.dim);
    for (unsigned i = 0; i < assignments; ++i) {
      // Values past what a double divides exactly are not compared.
      if (!sample.values[i] || std::abs(*sample.values[i]) > (1ll << 40))
        continue;
      auto lookup = [&](llvm::StringRef name) -> std::optional<int64_t> {
        return env(i, name);
      };
      std::optional<int64_t> value = sample.dim.evaluate(lookup);
      EXPECT_EQ(value, sample.values[i]) << str(sample.dim);
      EXPECT_GE(*sample.values[i], sample.dim.lowerBound().value_or(INT64_MIN))
          << str(sample.dim);
      EXPECT_LE(*sample.values[i], sample.dim.upperBound().value_or(INT64_MAX))
          << str(sample.dim);
      for (int64_t bound : {-3, 0, 1, 5})
        EXPECT_TRUE(!sample.dim.isAtLeast(bound) || *sample.values[i] >= bound)
            << str(sample.dim);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomDims, testing::Range(0u, 25u));

/// Depth is limited, not how many sizes a maximum is of.
TEST(Dim, MaximaOfManySizes) {
  Dim most, other;
  int64_t expected = 0;
  for (int i = 0; i < 60; ++i) {
    Dim size = Dim::symbol("n" + std::to_string(i * 7 % 60)) * Dim(4);
    most = Dim::max(most, size);
    other = Dim::max(Dim::symbol("n" + std::to_string(i)) * Dim(4), other);
    expected = std::max<int64_t>(expected, 4 * (i % 47));
  }
  ASSERT_FALSE(most.isOverflow());
  EXPECT_EQ(most, other);
  EXPECT_EQ(most.evaluate([](llvm::StringRef name) -> std::optional<int64_t> {
    return std::stoi(name.drop_front().str()) % 47;
  }),
            expected);
}

} // namespace
