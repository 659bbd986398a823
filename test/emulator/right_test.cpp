//===- right_test.cpp - right kernels compute what the CPU does ----------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/emulator/Gpu.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <numeric>
#include <random>

using namespace tenon::test;

namespace {

class Right : public KernelTest {
protected:
  Right() : KernelTest("right") {}
  void TearDown() override { EXPECT_STREQ(Gpu::get().lastReport(), ""); }

  template <typename... Args>
  void run(const char *name, Shape grid, Shape block, unsigned shared,
           Args... args) {
    CUfunction function = module->function(name);
    ASSERT_NE(function, nullptr);
    ASSERT_EQ(launch(function, grid, block, shared, args...), CUDA_SUCCESS)
        << Gpu::get().lastReport();
  }
};

std::vector<float> randomFloats(size_t count, float low = -4, float high = 4) {
  std::mt19937 random(7);
  std::uniform_real_distribution<float> values(low, high);
  std::vector<float> result(count);
  for (float &v : result)
    v = values(random);
  return result;
}

uint16_t toHalf(float v) {
  _Float16 h = static_cast<_Float16>(v);
  uint16_t bits;
  std::memcpy(&bits, &h, 2);
  return bits;
}
float fromHalf(uint16_t bits) {
  _Float16 h;
  std::memcpy(&h, &bits, 2);
  return static_cast<float>(h);
}
float fromBrain(uint16_t bits) {
  uint32_t wide = uint32_t(bits) << 16;
  float v;
  std::memcpy(&v, &wide, 4);
  return v;
}
uint16_t toBrain(float v) {
  uint32_t bits;
  std::memcpy(&bits, &v, 4);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

TEST_P(Right, Saxpy) {
  for (int n : {1, 31, 1000}) {
    std::vector<float> x = randomFloats(n), y = randomFloats(n, 0, 1);
    Array<float> dx(x), dy(y);
    run("saxpy", {8}, {128}, 0, dy.pointer, dx.pointer, 2.5f, n);
    std::vector<float> got = dy.read();
    for (int i = 0; i < n; ++i)
      ASSERT_EQ(got[i], std::fma(2.5f, x[i], y[i]));
  }
}

TEST_P(Right, CopyVectors) {
  std::vector<float> x = randomFloats(4 * 1001);
  Array<float> from(x), to(x.size());
  run("copy_vectors", {3}, {96}, 0, to.pointer, from.pointer, 1001);
  EXPECT_EQ(to.read(), x);
}

TEST_P(Right, BlockSums) {
  std::vector<float> x(5000);
  std::iota(x.begin(), x.end(), 1.0f); // sums are exact
  Array<float> dx(x), sums(4);
  run("block_sums", {4}, {256}, 0, sums.pointer, dx.pointer, 5000);
  std::vector<float> got = sums.read();
  EXPECT_EQ(got[0] + got[1] + got[2] + got[3], 5000.0f * 5001 / 2);
}

TEST_P(Right, Transpose) {
  int rows = 45, cols = 70;
  std::vector<float> x = randomFloats(rows * cols);
  Array<float> from(x), to(x.size());
  run("transpose", {3, 2}, {32, 8}, 0, to.pointer, from.pointer, rows, cols);
  std::vector<float> got = to.read();
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < cols; ++c)
      ASSERT_EQ(got[c * rows + r], x[r * cols + c]);
}

TEST_P(Right, Histogram) {
  std::vector<unsigned char> x(10000);
  std::vector<int> expected(256), zero(256);
  std::mt19937 random(3);
  for (unsigned char &v : x)
    ++expected[v = static_cast<unsigned char>(random() % 50 * 5)];
  Array<unsigned char> dx(x);
  Array<int> bins(zero);
  run("histogram", {5}, {160}, 0, bins.pointer, dx.pointer, 10000);
  EXPECT_EQ(bins.read(), expected);
}

TEST_P(Right, Collatz) {
  int n = 500;
  Array<int> steps(n);
  run("collatz", {4}, {128}, 0, steps.pointer, n);
  std::vector<int> got = steps.read();
  for (int i = 0; i < n; ++i) {
    int count = 0;
    for (unsigned long long v = i + 1; v != 1; ++count)
      v = v & 1 ? 3 * v + 1 : v / 2;
    ASSERT_EQ(got[i], count) << i;
  }
}

TEST_P(Right, Recursion) {
  Array<int> out(64);
  run("recursion", {1}, {64}, 0, out.pointer);
  std::vector<int> got = out.read();
  const int fibonacci[] = {0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55};
  for (int i = 0; i < 64; ++i)
    ASSERT_EQ(got[i], fibonacci[i % 11]);
}

TEST_P(Right, Indirect) {
  std::vector<float> x = randomFloats(64);
  std::vector<int> which(64);
  for (int i = 0; i < 64; ++i)
    which[i] = i % 7 == 0 ? -1 : i % 3;
  Array<float> dx(x);
  Array<int> dw(which);
  run("indirect", {1}, {64}, 0, dx.pointer, dw.pointer);
  std::vector<float> got = dx.read();
  for (int i = 0; i < 64; ++i)
    ASSERT_EQ(got[i], which[i] < 0    ? x[i]
                      : which[i] == 0 ? 2 * x[i]
                      : which[i] == 1 ? x[i] * x[i]
                                      : -x[i]);
}

TEST_P(Right, Branches) {
  std::vector<int> which(128);
  for (int i = 0; i < 128; ++i)
    which[i] = i * 5 % 9;
  Array<int> dw(which);
  Array<float> out(128);
  run("branches", {1}, {128}, 0, out.pointer, dw.pointer);
  std::vector<float> got = out.read();
  for (int i = 0; i < 128; ++i) {
    float v = i;
    double expected[] = {v + 1.,          v * 2.,       std::sin(v),
                         std::exp(-v),    std::sqrt(v), 1 / (v + 1.),
                         std::log(v + 1), std::tanh(v), v};
    // The device's sinf, expf and logf are within a few units.
    ASSERT_NEAR(got[i], expected[which[i]],
                4e-7 * std::fabs(expected[which[i]]) + 1e-37)
        << i;
  }
}

TEST_P(Right, ConstantsAndLocals) {
  Array<float> out(64);
  Array<int> order(64);
  run("constants", {1}, {64}, 0, out.pointer, order.pointer);
  std::vector<float> got = out.read();
  for (int i = 0; i < 64; ++i) {
    float mine[8];
    for (int j = 0; j < 8; ++j)
      mine[(j * 3 + i) % 8] = static_cast<float>(1 << j);
    ASSERT_EQ(got[i], mine[i % 8] + mine[(i + 5) % 8]);
  }
  std::vector<int> seen = order.read();
  std::sort(seen.begin(), seen.end());
  for (int i = 1; i < 64; ++i)
    ASSERT_EQ(seen[i], seen[0] + i);
}

TEST_P(Right, ByValue) {
  struct {
    int values[40];
  } big;
  for (int i = 0; i < 40; ++i)
    big.values[i] = i * i;
  Array<int> out(64);
  run("by_value", {1}, {64}, 0, out.pointer, big, 3);
  std::vector<int> got = out.read();
  for (int i = 0; i < 64; ++i)
    ASSERT_EQ(got[i], (i % 40) * (i % 40) * 3);
}

TEST_P(Right, Halves) {
  std::vector<float> a = randomFloats(32), b = randomFloats(32, -2, 2);
  std::vector<uint16_t> ha, hb;
  for (int i = 0; i < 32; ++i) {
    ha.push_back(toHalf(a[i]));
    hb.push_back(toHalf(b[i]));
  }
  Array<uint16_t> da(ha), db(hb), out(96);
  run("halves", {1}, {32}, 0, out.pointer, da.pointer, db.pointer);
  std::vector<uint16_t> got = out.read();
  for (int i = 0; i < 32; ++i) {
    double x = fromHalf(ha[i]), y = fromHalf(hb[i]);
    float low = fromHalf(toHalf(static_cast<float>(x * x + x)));
    float high = fromHalf(toHalf(static_cast<float>(y * y + y)));
    float product = fromHalf(toHalf(high * static_cast<float>(x)));
    ASSERT_EQ(got[i], toHalf(low + product)) << i;
    ASSERT_EQ(got[i + 32], toHalf(static_cast<float>(std::max(x, y))));
    ASSERT_NEAR(fromHalf(got[i + 64]), std::exp2(x), std::exp2(x) * 1e-3);
  }
}

TEST_P(Right, Brains) {
  std::vector<float> a = randomFloats(32), b = randomFloats(32, -2, 2);
  std::vector<uint16_t> ha, hb;
  for (int i = 0; i < 32; ++i) {
    ha.push_back(toBrain(a[i]));
    hb.push_back(toBrain(b[i]));
  }
  Array<uint16_t> da(ha), db(hb), out(64);
  run("brains", {1}, {32}, 0, out.pointer, da.pointer, db.pointer);
  std::vector<uint16_t> got = out.read();
  for (int i = 0; i < 32; ++i) {
    float x = fromBrain(ha[i]), y = fromBrain(hb[i]);
    ASSERT_EQ(got[i], toBrain(x + y));
    ASSERT_EQ(got[i + 32], toBrain(std::fma(x, y, x)));
  }
}

TEST_P(Right, WideIntegers) {
  std::mt19937_64 random(5);
  std::vector<long long> a(32), b(32);
  for (int i = 0; i < 32; ++i) {
    a[i] = static_cast<long long>(random()) >> (i * 2 % 50);
    b[i] = i % 5 == 0 ? 0 : static_cast<long long>(random()) >> (63 - i);
  }
  Array<long long> da(a), db(b), out(128);
  run("wide_integers", {1}, {32}, 0, out.pointer, da.pointer, db.pointer);
  std::vector<long long> got = out.read();
  for (int i = 0; i < 32; ++i) {
    auto product = static_cast<__int128>(a[i]) * b[i];
    ASSERT_EQ(got[4 * i], static_cast<long long>(product));
    ASSERT_EQ(got[4 * i + 1], b[i] ? a[i] / b[i] : 0) << a[i] << " " << b[i];
    ASSERT_EQ(got[4 * i + 2], static_cast<long long>(product >> 64));
    ASSERT_EQ(got[4 * i + 3], __builtin_popcountll(a[i]) +
                                  (b[i] ? __builtin_clzll(b[i]) : 64) +
                                  (a[i] >> (b[i] & 63)));
  }
}

uint32_t bytePermute(uint32_t a, uint32_t b, uint32_t s) {
  uint64_t bytes = uint64_t(b) << 32 | a;
  uint32_t r = 0;
  for (int i = 0; i < 4; ++i)
    r |= static_cast<uint32_t>(bytes >> 8 * (s >> 4 * i & 7) & 0xff) << 8 * i;
  return r;
}

TEST_P(Right, Bits) {
  std::mt19937 random(11);
  std::vector<uint32_t> a(32);
  for (uint32_t &v : a)
    v = random();
  a[3] = 0;
  Array<uint32_t> da(a), out(32);
  run("bits", {1}, {32}, 0, out.pointer, da.pointer);
  std::vector<uint32_t> got = out.read();
  uint32_t sum = 0;
  for (uint32_t v : a)
    sum += v & 0xff;
  for (int i = 0; i < 32; ++i) {
    uint32_t x = a[i], reversed = 0;
    for (int j = 0; j < 32; ++j)
      reversed |= (x >> j & 1) << (31 - j);
    uint32_t r = bytePermute(x, ~x, 0x2615) ^ reversed;
    uint64_t both = uint64_t(r) << 32 | x;
    r += static_cast<uint32_t>((both << (x & 31)) >> 32) +
         __builtin_popcount(x) + __builtin_clz(x | 1) + __builtin_ffs(x);
    int dot = 7;
    for (int j = 0; j < 4; ++j)
      dot += static_cast<signed char>(x >> 8 * j) *
             static_cast<signed char>(r >> 8 * j);
    uint32_t pairs = ((x + r) & 0xffff) | ((x >> 16) + (r >> 16)) << 16;
    r ^= static_cast<uint32_t>(dot) + pairs;
    ASSERT_EQ(got[i], r + sum) << i;
  }
}

TEST_P(Right, Votes) {
  std::vector<int> x(32);
  for (int i = 0; i < 32; ++i)
    x[i] = i * 7 % 23;
  Array<int> dx(x);
  Array<uint32_t> out(32);
  run("votes", {1}, {32}, 0, out.pointer, dx.pointer);
  std::vector<uint32_t> got = out.read();
  uint32_t ballot = 0;
  int second = 0;
  for (int i = 0; i < 32; ++i) {
    ballot |= static_cast<uint32_t>(x[i] & 1) << i;
    second += (x[i] & 2) != 0;
  }
  for (int i = 0; i < 32; ++i) {
    uint32_t same = 0;
    for (int j = 0; j < 32; ++j)
      same |= static_cast<uint32_t>(x[j] % 4 == x[i] % 4) << j;
    uint32_t r = (ballot + 2) ^ same;
    ASSERT_EQ(got[i], x[i] & 2 ? r + second : r);
  }
}

TEST_P(Right, Doubles) {
  std::vector<double> x(32);
  for (int i = 0; i < 32; ++i)
    x[i] = i * 1.37;
  Array<double> dx(x), out(32);
  run("doubles", {1}, {32}, 0, out.pointer, dx.pointer);
  std::vector<double> got = out.read();
  for (int i = 0; i < 32; ++i) {
    double v = x[i], expected = std::sqrt(v) + std::exp(-v) + v / 3 +
                                std::fma(v, v, 1.0) + std::sin(v);
    ASSERT_NEAR(got[i], expected, 1e-14 * std::fabs(expected));
  }
}

TEST_P(Right, Conversions) {
  std::vector<float> x = randomFloats(32, -300, 300);
  x[0] = 0.5f;
  x[1] = -0.5f;
  x[2] = 2.5f;
  x[3] = 1e10f;
  x[4] = -1e30f;
  x[5] = NAN;
  Array<float> dx(x), out(256);
  run("conversions", {1}, {32}, 0, out.pointer, dx.pointer);
  std::vector<float> got = out.read();
  auto clamped = [](double v, double low, double high) {
    return v != v ? 0 : std::min(std::max(v, low), high);
  };
  for (int i = 0; i < 32; ++i) {
    const float *g = &got[8 * i];
    double v = x[i];
    auto cut =
        static_cast<int>(clamped(std::trunc(v), -2147483648.0, 2147483647.0));
    ASSERT_EQ(g[0], static_cast<float>(cut)) << v;
    ASSERT_EQ(g[1], static_cast<float>(static_cast<unsigned>(
                        clamped(std::nearbyint(v), 0, 4294967295.0))));
    if (i != 5) {
      ASSERT_EQ(g[2], static_cast<float>(static_cast<long long>(clamped(
                          std::trunc(v), -9223372036854775808.0, 9e18))));
      ASSERT_EQ(g[3], std::nearbyint(x[i]));
      ASSERT_EQ(g[4], fromHalf(toHalf(x[i])));
      ASSERT_EQ(g[5], fromBrain(toBrain(x[i])));
    }
    ASSERT_EQ(g[6], static_cast<float>(static_cast<signed char>(cut)));
    ASSERT_EQ(g[7], static_cast<float>(clamped(v, 0, 1)));
  }
}

TEST_P(Right, Matmul) {
  for (int k : {32, 64, 160}) {
    int m = 128, n = 64;
    std::vector<float> a = randomFloats(m * k, -1, 1),
                       b = randomFloats(n * k, -1, 1);
    std::vector<uint16_t> ha, hb;
    for (float v : a)
      ha.push_back(toHalf(v));
    for (float v : b)
      hb.push_back(toHalf(v));
    Array<uint16_t> da(ha), db(hb);
    Array<float> c(m * n);
    run("matmul", {1, 2}, {128}, 3 * 2 * 64 * 40 * 2, c.pointer, da.pointer,
        db.pointer, m, n, k);
    std::vector<float> got = c.read();
    for (int i = 0; i < m; ++i)
      for (int j = 0; j < n; ++j) {
        double sum = 0;
        for (int p = 0; p < k; ++p)
          sum += double(fromHalf(ha[i * k + p])) * fromHalf(hb[j * k + p]);
        // f32 sums of k products below 1.
        ASSERT_NEAR(got[i * n + j], sum, k * 1e-6);
      }
  }
}

TEST_P(Right, LastBlock) {
  Array<float> total(1), parts(50);
  run("last_block", {50}, {64}, 0, total.pointer, parts.pointer);
  EXPECT_EQ(total.read()[0], 50 * 51 / 2);
}

TEST_P(Right, Chain) {
  Array<int> turn(std::vector<int>{0}), order(20);
  run("chain", {20}, {32}, 0, turn.pointer, order.pointer);
  std::vector<int> got = order.read();
  for (int i = 0; i < 20; ++i)
    ASSERT_EQ(got[i], 19 - i);
}

TEST_P(Right, Printf) {
  testing::internal::CaptureStdout();
  run("hello", {1}, {32}, 0, 2);
  EXPECT_EQ(testing::internal::GetCapturedStdout(),
            "lane 0 of this:  0.00\nlane 1 of this:  0.50\n");
}

TEST_P(Right, Relay) {
  Array<int> out(32);
  run("relay", {1}, {64}, 0, out.pointer);
  std::vector<int> got = out.read();
  for (int i = 0; i < 32; ++i)
    ASSERT_EQ(got[i], (31 - i) * 3);
}

INSTANTIATE_TEST_SUITE_P(Ptx, Right, testing::Bool(), [](const auto &info) {
  return info.param ? "nvrtc" : "committed";
});

} // namespace
