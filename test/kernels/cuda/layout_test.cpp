//===- layout_test.cpp - banks and sectors, by index maths alone ----------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kernels/cuda/attention_shape.cuh"
#include "kernels/cuda/gemm_shape.cuh"

#include <algorithm>
#include <functional>
#include <gtest/gtest.h>
#include <map>
#include <set>
#include <vector>

using tn::Layout;
using tn::Math;
using tn::Place;

namespace {

/// How many passes over the 32 banks `lanes` lanes of `bytes` bytes need beyond
/// the least, each lane at the address that f gives. Shared memory serves
/// 128 bytes at a time: 8 lanes of 16 bytes, 16 of 8, 32 of 4.
int conflicts(int bytes, const std::function<int(int)> &f) {
  int phase = 128 / bytes, extra = 0;
  for (int first = 0; first < 32; first += phase) {
    std::map<int, std::set<int>> words; // by bank
    for (int lane = first; lane < first + phase; ++lane)
      for (int w = 0; w < bytes; w += 4) {
        int word = (f(lane) + w) / 4;
        words[word % 32].insert(word);
      }
    size_t passes = 1;
    for (const auto &[bank, set] : words)
      passes = std::max(passes, set.size());
    extra += int(passes) - 1;
  }
  return extra;
}

/// Sectors of 32 bytes that a warp touches, over the least for its bytes.
double sectorRatio(int bytes, const std::function<int64_t(int)> &f) {
  std::set<int64_t> sectors;
  for (int lane = 0; lane < 32; ++lane)
    for (int b = 0; b < bytes; ++b)
      sectors.insert((f(lane) + b) / 32);
  return double(sectors.size()) / (32 * bytes / 32);
}

/// What holds for the copy of any tile: each chunk has a place of its own, the
/// stores meet in no bank, the loads touch no sector twice.
template <class Tile> void checkTile(int threads) {
  std::set<int> places;
  for (int row = 0; row < Tile::rows; ++row)
    for (int chunk = 0; chunk < Tile::chunks; ++chunk) {
      int at = Tile::at(row, chunk);
      EXPECT_TRUE(at % 16 == 0 && at >= 0 && at < Tile::bytes);
      EXPECT_TRUE(places.insert(at).second) << row << " " << chunk;
    }
  constexpr int count = Tile::rows * Tile::chunks;
  for (int first = 0; first + 32 <= count; first += 32) {
    auto chunkOf = [&](int lane) {
      int index = first + lane;
      return Place{index / Tile::chunks, index % Tile::chunks};
    };
    EXPECT_EQ(conflicts(16,
                        [&](int lane) {
                          Place p = chunkOf(lane);
                          return Tile::at(p.row, p.chunk);
                        }),
              0)
        << "stores from chunk " << first << " on, " << threads << " threads";
    EXPECT_LE(sectorRatio(16,
                          [&](int lane) {
                            Place p = chunkOf(lane);
                            return int64_t(p.row) * 4096 + p.chunk * 16;
                          }),
              1.05);
  }
}

template <class Tile>
int matrixConflicts(Place (*place)(int, int), int step, int row, int chunk) {
  return conflicts(16, [&](int lane) {
    Place p = place(lane, step);
    return Tile::at(row + p.row, chunk + p.chunk);
  });
}

template <class Cfg> void checkMma() {
  using S = tn::GemmShape<Cfg>;
  for (int step = 0; step < S::k_bytes / 32; ++step) {
    for (int row = 0; row < S::BM; row += 16)
      EXPECT_EQ(
          (matrixConflicts<typename S::ATile>(
              [](int l, int s) { return tn::place_a(l, s); }, step, row, 0)),
          0);
    for (int column = 0; column < S::BN; column += 16) {
      if (Cfg::b == Layout::nk) {
        EXPECT_EQ((matrixConflicts<typename S::BTile>(
                      [](int l, int s) { return tn::place_nk(l, s); }, step,
                      column, 0)),
                  0);
      } else if (S::size == 2) {
        EXPECT_EQ((matrixConflicts<typename S::BTile>(
                      [](int l, int s) { return tn::place_kn(l, s); }, step, 0,
                      column / 8)),
                  0);
      } else {
        for (int x = 0; x < 4; ++x)
          EXPECT_EQ(conflicts(4,
                              [&](int lane) {
                                return S::word_kn(lane, step, column, x);
                              }),
                    0);
      }
    }
  }
}

/// As FmaSums::multiply reads.
template <class Cfg> void checkFma() {
  using S = tn::GemmShape<Cfg>;
  for (int chunk = 0; chunk < S::k_bytes / 16; ++chunk) {
    for (int row = 0; row < S::BM; row += 4)
      EXPECT_EQ(conflicts(16,
                          [&](int lane) {
                            return S::ATile::at(row + lane / 8, chunk);
                          }),
                0);
    for (int column = 0; column < S::BN; column += 32)
      EXPECT_EQ(conflicts(16,
                          [&](int lane) {
                            int x = lane % 8;
                            return Cfg::b == Layout::kn
                                       ? S::BTile::at(chunk * 4, column / 4 + x)
                                       : S::BTile::at(column + x, chunk);
                          }),
                0);
  }
}

/// The sums' way through shared memory at the end of a tile.
template <class Cfg> void checkSlab() {
  using S = tn::GemmShape<Cfg>;
  if (Cfg::math == Math::fma)
    return;
  EXPECT_EQ(conflicts(8,
                      [](int lane) {
                        return (tn::fragment_row(lane) * S::slab_pitch +
                                tn::fragment_column(lane)) *
                               4;
                      }),
            0);
}

struct Half {
  uint16_t bits;
};
struct Byte {
  uint8_t bits;
};
using half = Half;
using byte = Byte;
using single = float;

template <class T, class Tiling_, Math Kind, Layout Order> struct Cfg {
  using In = T;
  using Tiling = Tiling_;
  static constexpr Math math = Kind;
  static constexpr Layout b = Order;
};

template <class C> void checkGemm() {
  using S = tn::GemmShape<C>;
  checkTile<typename S::ATile>(S::threads);
  checkTile<typename S::BTile>(S::threads);
  if constexpr (C::math == Math::fma)
    checkFma<C>();
  else
    checkMma<C>();
  checkSlab<C>();
}

#define TN_GEMM_TUNING(NAME, MATH, ELEMENT, BM, BN, KB, WM, WN, STAGES, ARCH)  \
  TEST(Layout, NAME) {                                                         \
    using Tiling = tn::GemmTiling<BM, BN, KB, WM, WN, STAGES>;                 \
    checkGemm<Cfg<ELEMENT, Tiling, Math::MATH, Layout::nk>>();                 \
    if constexpr (sizeof(ELEMENT) > 1)                                         \
      checkGemm<Cfg<ELEMENT, Tiling, Math::MATH, Layout::kn>>();               \
    using C = Cfg<ELEMENT, Tiling, Math::MATH, Layout::nk>;                    \
    EXPECT_LE(tn::GemmShape<C>::shared_bytes, (ARCH < 80 ? 64 : 227) * 1024);  \
  }
#include "kernels/cuda/tunings.def"

template <class T_, class Tiling_, int Size> struct AttentionCfg {
  using T = T_;
  using Tiling = Tiling_;
  static constexpr int64_t D = Size, Dv = Size;
  static constexpr bool has_mask = true;
};

template <class S> void checkMatrices() {
  for (int step = 0; step < S::qk_steps; ++step) {
    EXPECT_EQ((matrixConflicts<typename S::QTile>(
                  [](int l, int s) { return tn::place_a(l, s); }, step, 0, 0)),
              0);
    for (int j = 0; j < S::BN; j += 16)
      EXPECT_EQ(
          (matrixConflicts<typename S::KTile>(
              [](int l, int s) { return tn::place_nk(l, s); }, step, j, 0)),
          0);
  }
  for (int step = 0; step < S::pv_steps; ++step)
    for (int j = 0; j < S::value_tiles; j += 2)
      EXPECT_EQ(
          (matrixConflicts<typename S::VTile>(
              [](int l, int s) { return tn::place_kn(l, s); }, step, 0, j)),
          0);
  for (int j = 0; j < S::value_tiles; ++j)
    EXPECT_EQ(conflicts(4,
                        [&](int lane) {
                          return S::OTile::at(tn::fragment_row(lane), j) +
                                 tn::fragment_column(lane) * 2;
                        }),
              0);
  EXPECT_EQ(conflicts(8,
                      [](int lane) {
                        return (tn::fragment_row(lane) * S::mask_pitch +
                                tn::fragment_column(lane)) *
                               4;
                      }),
            0);
}

/// What f32 reads and writes without matrix instructions is counted by the
/// emulator, in attention_cases.cpp.
template <class T, class Tiling, int D> void checkAttention(int arch) {
  using S = tn::AttentionShape<AttentionCfg<T, Tiling, D>>;
  checkTile<typename S::QTile>(S::threads);
  checkTile<typename S::KTile>(S::threads);
  checkTile<typename S::VTile>(S::threads);
  if constexpr (S::tensor)
    checkMatrices<S>();
  EXPECT_LE(S::tensor ? S::mask_at : S::shared_bytes,
            (arch < 80 ? 64 : 99) * 1024);
}

#define TN_ATTENTION_TUNING(NAME, ELEMENT, MAX_D, BM, BN, ARCH)                \
  TEST(Layout, NAME) {                                                         \
    using Tiling = tn::AttentionTiling<BM, BN>;                                \
    checkAttention<ELEMENT, Tiling, MAX_D>(ARCH);                              \
    checkAttention<ELEMENT, Tiling, MAX_D - 16>(ARCH);                         \
    checkAttention<ELEMENT, Tiling, 32>(ARCH);                                 \
  }
#include "kernels/cuda/tunings.def"

} // namespace
