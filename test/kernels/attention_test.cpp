//===- attention_test.cpp - flash attention and its decode form -----------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kernels/cpu/attention.h"
#include "support.h"

#include <algorithm>

using namespace test;

namespace {

struct Plain {
  static constexpr int64_t D = 64, Dv = 64;
  static constexpr float scale = 0.125f, softcap = 0;
  static constexpr tn::Mask mask = tn::Mask::none;
  static constexpr tn::Align align = tn::Align::bottom_right;
  static constexpr int64_t left = tn::dynamic, right = tn::dynamic;
  static constexpr bool alibi = false;
  static constexpr tn::MaskedRow masked_row = tn::MaskedRow::zero;
};

/// The operands of a case, in the kernel's order, and the result.
struct Case {
  View q, k, v, mask, slope;
  Tensor<float> o;
  int64_t offset = 0;
};

/// Scores of one row as the contract defines them; false where the bounds hide
/// the key.
template <class Cfg>
std::vector<double> scoresOf(const Case &c, int64_t b, int64_t h, int64_t i,
                             std::vector<bool> &seen) {
  int64_t keys = c.k.shape[1], group = c.q.shape[2] / c.k.shape[2];
  int64_t place =
      i + (Cfg::align == tn::Align::bottom_right ? keys - c.q.shape[1]
           : Cfg::align == tn::Align::param      ? c.offset
                                                 : 0);
  std::vector<double> scores(keys);
  seen.assign(keys, true);
  for (int64_t j = 0; j < keys; ++j) {
    double s = 0;
    for (int64_t d = 0; d < Cfg::D; ++d)
      s += double(c.q.at<float>({b, i, h, d})) *
           c.k.at<float>({b, j, h / group, d});
    s *= Cfg::scale;
    if (Cfg::softcap != 0)
      s = Cfg::softcap * std::tanh(s / Cfg::softcap);
    if (Cfg::alibi)
      s += c.slope.at<float>({h}) * double(j - place);
    if (Cfg::mask == tn::Mask::additive)
      s = float(float(s) + c.mask.at<float>({b, h, i, j}));
    if (Cfg::mask == tn::Mask::boolean && !c.mask.at<uint8_t>({b, h, i, j}))
      s = Cfg::masked_row == tn::MaskedRow::uniform ? -3.4028234663852886e38
                                                    : -INFINITY;
    if ((Cfg::left != tn::dynamic && j < place - Cfg::left) ||
        (Cfg::right != tn::dynamic && j > place + Cfg::right)) {
      seen[j] = false;
      s = -INFINITY;
    }
    scores[j] = s;
  }
  return scores;
}

template <class Cfg>
std::vector<double> expected(const Case &c, int64_t b, int64_t h, int64_t i) {
  int64_t keys = c.k.shape[1], group = c.q.shape[2] / c.k.shape[2];
  std::vector<double> o(Cfg::Dv, 0);
  if (keys == 0)
    return o;
  std::vector<bool> seen;
  std::vector<double> s = scoresOf<Cfg>(c, b, h, i, seen);
  double max = -INFINITY, sum = 0;
  for (double x : s)
    max = std::max(max, x);
  bool none = std::find(seen.begin(), seen.end(), true) == seen.end();
  bool low = max <= -1.7e38 && max > -INFINITY;
  bool uniform = Cfg::masked_row == tn::MaskedRow::uniform &&
                 (none || (low && Cfg::mask == tn::Mask::boolean));
  for (double &x : s) {
    x = uniform ? 1 : std::exp(x - (max == -INFINITY ? 0 : max));
    sum += x;
  }
  for (int64_t d = 0; d < Cfg::Dv; ++d) {
    for (int64_t j = 0; j < keys; ++j)
      o[d] += s[j] / sum * c.v.at<float>({b, j, h / group, d});
    if (sum == 0)
      o[d] = Cfg::masked_row == tn::MaskedRow::zero ? 0 : NAN;
  }
  return o;
}

template <class Cfg> struct InHalves : Cfg {
  static constexpr int products = 1;
};

/// A product of numbers of bf16 rounds the weights alone, to 8 bits: that many
/// of values below 2.
#if defined(TN_AMX_TILES)
constexpr double ofWeights = 2 * 0x1p-8;
#else
constexpr double ofWeights = 0;
#endif

/// `rounding` bounds how far scores are from the reference's.
template <class Cfg> void check(Case &c, double rounding = 0) {
  tn_unit units[] = {[](const tn_args *a) { tn::attention<Cfg>(a); },
                     [](const tn_args *a) { tn::attention_decode<Cfg>(a); },
                     [](const tn_args *a) { tn::attention<InHalves<Cfg>>(a); }};
  std::vector<View> views = {c.q, c.k, c.v};
  if (Cfg::mask != tn::Mask::none)
    views.push_back(c.mask);
  if (Cfg::alibi)
    views.push_back(c.slope);
  views.push_back(c.o);
  int64_t B = c.q.shape[0], S = c.q.shape[1], H = c.q.shape[2];
  int64_t scratch =
      4 * B * H * S * ((c.k.shape[1] + 255) / 256) * (Cfg::Dv + 2);
  for (int form = 0; form < 3; ++form) {
    double most = 2e-6 + 2 * rounding + (form == 2 ? ofWeights : 0);
    std::fill(c.o.data.begin(), c.o.data.end(), 77.0f);
    launchAll(units[form], views, c.o, {c.offset}, form == 1 ? scratch : 0);
    for (int64_t b = 0; b < B; ++b)
      for (int64_t h = 0; h < H; ++h)
        for (int64_t i = 0; i < S; ++i) {
          std::vector<double> want = expected<Cfg>(c, b, h, i);
          for (int64_t d = 0; d < Cfg::Dv; ++d) {
            double got = c.o.view().at<float>({b, i, h, d});
            ASSERT_TRUE(isClose(got, want[d], 2e-5, most))
                << "form " << form << " at " << name({b, i, h, d}) << ": "
                << got << " for " << want[d];
          }
        }
  }
}

/// Numbers that bf16 has, so that all forms are given the same.
Tensor<float> operand(const Dims &shape, float low = -1, float high = 1) {
  Tensor<float> t = randomTensor(shape, low, high);
  for (float &x : t.data)
    x = tn_to_float(tn_round_to<tn_bf16>(x));
  return t;
}

/// Storage for random operands with q, k and v interleaved as a merged
/// projection leaves them where sizes allow.
struct Operands {
  Tensor<float> q, k, v;
  Operands(int64_t b, int64_t sq, int64_t skv, int64_t h, int64_t hkv,
           int64_t d, int64_t dv)
      : q(operand({b, sq, h, d}, -2, 2)), k(operand({b, skv, hkv, d}, -2, 2)),
        v(operand({b, skv, hkv, dv}, -2, 2)) {}
  Case get() {
    Dims o = q.shape;
    o[3] = v.shape[3];
    return {q.view(), k.view(), v.view(), {}, {}, Tensor<float>(o), 0};
  }
};

TEST(Attention, Lengths) {
  for (int64_t sq : {0, 1, 17, 130})
    for (int64_t skv : {0, 1, 16, 129, 300}) {
      Operands x(1, sq, skv, 2, 1, 64, 64);
      Case c = x.get();
      check<Plain>(c);
    }
}

struct Odd : Plain {
  static constexpr int64_t D = 20, Dv = 13;
  static constexpr float scale = 0.3f;
};

TEST(Attention, OddHeadSizesAndTransposedLayouts) {
  Operands x(2, 9, 40, 4, 2, 20, 13);
  Case c = x.get();
  check<Odd>(c);
  // Heads before positions in memory, and D not contiguous.
  Tensor<float> q = operand({2, 4, 20, 9}), k = operand({2, 2, 20, 40});
  Tensor<float> v = operand({2, 2, 13, 40});
  c.q = q.view().permuted({0, 3, 1, 2});
  c.k = k.view().permuted({0, 3, 1, 2});
  c.v = v.view().permuted({0, 3, 1, 2});
  check<Odd>(c);
}

TEST(Attention, MergedProjectionStrides) {
  Tensor<float> qkv = operand({2, 21, 3, 4, 64});
  auto part = [&](int64_t i) {
    View v = qkv.view();
    v.data += i * v.stride[2] * 4;
    return View{v.data,
                {2, 21, 4, 64},
                {v.stride[0], v.stride[1], v.stride[3], v.stride[4]},
                4};
  };
  Case c = {part(0), part(1), part(2), {}, {}, Tensor<float>({2, 21, 4, 64}),
            0};
  check<Plain>(c);
}

struct Causal : Plain {
  static constexpr int64_t D = 32, Dv = 32, right = 0;
  static constexpr tn::MaskedRow masked_row = tn::MaskedRow::nan;
};
struct CausalTop : Causal {
  static constexpr tn::Align align = tn::Align::top_left;
};
struct CausalParam : Causal {
  static constexpr tn::Align align = tn::Align::param;
};
struct Window : Plain {
  static constexpr int64_t D = 32, Dv = 32, left = 40, right = 3;
};
struct CappedAlibi : Causal {
  static constexpr float softcap = 1.5f;
  static constexpr bool alibi = true;
};

TEST(Attention, Bounds) {
  for (auto [sq, skv] : {std::pair<int64_t, int64_t>{150, 150},
                         {5, 270},
                         {270, 5},
                         {131, 260}}) {
    Operands x(1, sq, skv, 2, 2, 32, 32);
    Case c = x.get();
    check<Causal>(c);
    check<CausalTop>(c);
    check<Window>(c);
    Tensor<float> slope({2});
    slope.data = {0.5f, 0.0625f};
    c.slope = slope.view();
    check<CappedAlibi>(c);
    for (int64_t offset : {-7, 0, 3, 400}) {
      c.offset = offset;
      check<CausalParam>(c);
    }
  }
}

template <tn::Mask M, tn::MaskedRow R, int64_t Right = tn::dynamic>
struct Masked : Plain {
  static constexpr int64_t D = 16, Dv = 16, right = Right;
  static constexpr tn::Mask mask = M;
  static constexpr tn::MaskedRow masked_row = R;
};

template <tn::MaskedRow R> void checkBoolean() {
  Operands x(2, 6, 140, 2, 2, 16, 16);
  Case c = x.get();
  Tensor<uint8_t> padding = randomIntegers<uint8_t>({2, 1, 1, 140}, 0, 1);
  std::fill(padding.data.begin(), padding.data.begin() + 140, 0);
  c.mask = padding.view().broadcast({2, 2, 6, 140});
  check<Masked<tn::Mask::boolean, R>>(c);
  check<Masked<tn::Mask::boolean, R, 0>>(c);
  Tensor<uint8_t> full = randomIntegers<uint8_t>({2, 2, 6, 140}, 0, 1);
  c.mask = full.view();
  check<Masked<tn::Mask::boolean, R>>(c);
}

TEST(Attention, BooleanMasks) {
  checkBoolean<tn::MaskedRow::zero>();
  checkBoolean<tn::MaskedRow::uniform>();
  checkBoolean<tn::MaskedRow::nan>();
}

template <tn::MaskedRow R> void checkAdditive(float low) {
  Operands x(2, 6, 140, 2, 2, 16, 16);
  Case c = x.get();
  Tensor<float> mask({2, 1, 6, 140});
  for (float &m : mask.data)
    m = generator()() % 2 ? 0.0f : low;
  // Query 2 of batch 0 sees nothing; query 3 not in its first block.
  for (int j = 0; j < 140; ++j) {
    mask.data[2 * 140 + j] = low;
    mask.data[3 * 140 + j] = j < 130 ? low : 0;
  }
  c.mask = mask.view().broadcast({2, 2, 6, 140});
  // The sum of a score and -1e4 may be rounded either way.
  double rounding = low == -10000 ? 10000 * 0x1p-24 : 0;
  check<Masked<tn::Mask::additive, R>>(c, rounding);
  check<Masked<tn::Mask::additive, R, 0>>(c, rounding);
}

TEST(Attention, AdditiveMasks) {
  for (float low : {-10000.0f, -3.40282347e38f, -INFINITY}) {
    checkAdditive<tn::MaskedRow::zero>(low);
    checkAdditive<tn::MaskedRow::uniform>(low);
    checkAdditive<tn::MaskedRow::nan>(low);
  }
}

TEST(Attention, NanStaysInItsRow) {
  Operands x(1, 3, 20, 1, 1, 64, 64);
  x.q.data[64 + 5] = NAN;
  Case c = x.get();
  check<Plain>(c);
}

} // namespace
