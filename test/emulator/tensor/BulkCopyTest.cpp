//===- BulkCopyTest.cpp - bulk copies and tensor maps ---------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/emulator/tensor/BulkCopy.h"
#include "runtime/emulator/tensor/MatrixMove.h"
#include "test/emulator/tensor/TestMemory.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace tenon::emu::tensor;

namespace {

constexpr auto ok = BulkError::None;

/// A tensor of up to five dimensions, and a box.
struct Tensor {
  TensorData data = TensorData::U16;
  std::vector<uint64_t> dim;
  std::vector<uint32_t> box;
  TensorSwizzle swizzle = TensorSwizzle::None;
  std::vector<uint32_t> steps = {};
  bool fillNaN = false;

  std::vector<uint64_t> strides = {};
  TensorMap map = {};

  const char *encode() {
    static const unsigned bytesOf[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
    uint64_t stride = dim[0] * bytesOf[unsigned(data)];
    strides.clear();
    for (size_t d = 0; d < dim.size(); ++d) {
      stride = (stride + 15) / 16 * 16;
      strides.push_back(stride);
      if (d + 1 < dim.size())
        stride *= dim[d + 1];
    }
    if (steps.empty())
      steps.assign(dim.size(), 1);
    TiledArguments args;
    args.dataType = uint32_t(data);
    args.rank = uint32_t(dim.size());
    args.globalAddress = TestGlobal::base;
    args.globalDim = dim.data();
    args.globalStrides = strides.data();
    args.boxDim = box.data();
    args.elementStrides = steps.data();
    args.swizzle = uint32_t(swizzle);
    args.oobFill = fillNaN;
    return TensorMap::encodeTiled(args, map);
  }
  uint64_t bytes() const { return strides.back(); }
};

TestGlobal patterned(uint64_t size) {
  TestGlobal global(size);
  Random random(size);
  for (uint8_t &b : global.storage)
    b = uint8_t(random.next());
  return global;
}

/// Where byte `b` of element `at` of the box belongs: the box is dense, and
/// 16-byte pieces of each 128 (64, 32) bytes are exchanged by the low bits of
/// the number of the 128 bytes.
uint32_t placeOf(const Tensor &t, const std::vector<uint32_t> &at, unsigned b) {
  uint64_t linear = 0, scale = 1;
  for (size_t d = 0; d < at.size(); ++d) {
    linear += at[d] * scale;
    scale *= (t.box[d] + t.steps[d] - 1) / t.steps[d];
  }
  uint32_t byte = uint32_t(linear * t.map.elementBytes()) + b;
  uint32_t line = byte / 128, piece = byte % 128 / 16;
  unsigned pieces =
      t.swizzle == TensorSwizzle::None ? 1 : 1u << unsigned(t.swizzle);
  piece ^= line % pieces;
  return line * 128 + piece * 16 + byte % 16;
}

/// Loads the box and compares every byte with the tensor's element.
void checkLoad(Tensor t, std::vector<int32_t> coords) {
  ASSERT_EQ(t.encode(), nullptr);
  TestGlobal global = patterned(t.bytes());
  TestShared shared(64 * 1024, 0x1000);
  SharedMemory *destinations[] = {&shared};
  uint32_t base = 0x2000;
  ASSERT_EQ(loadBox(t.map, coords.data(), global, destinations, base), ok);
  EXPECT_EQ(shared.last.access.bytes, t.map.boxBytes());
  EXPECT_EQ(shared.last.proxy, Proxy::Async);
  unsigned size = t.map.elementBytes();
  std::vector<uint32_t> at(t.dim.size(), 0);
  for (uint64_t i = 0; i < t.map.boxBytes() / size; ++i) {
    bool inside = true;
    uint64_t from = 0;
    for (size_t d = 0; d < at.size(); ++d) {
      int64_t x = coords[d] + int64_t(at[d]) * t.steps[d];
      inside = inside && x >= 0 && x < int64_t(t.dim[d]);
      from += uint64_t(x) * (d == 0 ? size : t.strides[d - 1]);
    }
    for (unsigned b = 0; b < size; ++b) {
      uint8_t want = inside      ? global.storage[from + b]
                     : t.fillNaN ? (b + 1 == size ? 0x7f : 0xff)
                                 : 0;
      ASSERT_EQ(shared.get<uint8_t>(base + placeOf(t, at, b)), want)
          << "element " << i << " byte " << b;
    }
    for (size_t d = 0; d < at.size(); ++d) {
      if (++at[d] < (t.box[d] + t.steps[d] - 1) / t.steps[d])
        break;
      at[d] = 0;
    }
  }
}

TEST(TensorCopy, LoadsBoxesOfEveryRank) {
  checkLoad({.dim = {64}, .box = {24}}, {8});
  checkLoad({.dim = {64, 20}, .box = {16, 8}}, {32, 5});
  checkLoad({.dim = {24, 6, 5}, .box = {8, 3, 2}}, {8, 2, 3});
  checkLoad({.dim = {16, 4, 3, 5}, .box = {8, 2, 2, 3}}, {8, 1, 1, 2});
  checkLoad({.dim = {8, 3, 4, 2, 3}, .box = {8, 2, 3, 2, 2}}, {0, 1, 1, 0, 1});
}

TEST(TensorCopy, LoadsEveryElementSize) {
  for (TensorData data :
       {TensorData::U8, TensorData::U16, TensorData::S32, TensorData::U64,
        TensorData::F16, TensorData::F32, TensorData::F64, TensorData::BF16})
    checkLoad({.data = data, .dim = {50, 9}, .box = {32, 4}}, {16, 3});
}

TEST(TensorCopy, FillsTheOutside) {
  for (bool nan : {false, true})
    for (TensorData data : {TensorData::F16, TensorData::F32, TensorData::F64})
      for (int32_t x : {-40, -5, 0, 30, 49, 60})
        for (int32_t y : {-9, -2, 0, 7, 9}) {
          Tensor t{.data = data, .dim = {50, 9}, .box = {32, 4}};
          t.fillNaN = nan;
          checkLoad(t, {x, y});
        }
  checkLoad({.dim = {24, 6, 5}, .box = {8, 3, 2}}, {20, -1, 4});
}

TEST(TensorCopy, SwizzlesAsTheManualDraws) {
  checkLoad({.dim = {64, 80}, .box = {64, 32}, .swizzle = TensorSwizzle::B128},
            {0, 8});
  checkLoad({.dim = {96, 80}, .box = {32, 40}, .swizzle = TensorSwizzle::B64},
            {32, 8});
  checkLoad({.dim = {96, 80}, .box = {16, 64}, .swizzle = TensorSwizzle::B32},
            {16, 40});
  checkLoad({.data = TensorData::F32,
             .dim = {40, 30, 4},
             .box = {32, 16, 2},
             .swizzle = TensorSwizzle::B128},
            {16, 20, 3});
}

TEST(TensorCopy, StepsOverElements) {
  checkLoad({.dim = {32, 40}, .box = {16, 9}, .steps = {1, 2}}, {0, 4});
  checkLoad({.dim = {32, 40, 7}, .box = {16, 8, 5}, .steps = {1, 3, 4}},
            {8, 30, 1});
}

// In the swizzled box the eight rows of a matrix of ldmatrix lie in different
// banks, in the straight one they lie in the same.
TEST(TensorCopy, TheWidestSwizzleHasNoBankConflicts) {
  for (bool swizzled : {true, false}) {
    Tensor t{.dim = {64, 64}, .box = {64, 64}};
    t.swizzle = swizzled ? TensorSwizzle::B128 : TensorSwizzle::None;
    ASSERT_EQ(t.encode(), nullptr);
    TestGlobal global = patterned(t.bytes());
    TestShared shared(16 * 1024);
    SharedMemory *destinations[] = {&shared};
    int32_t coords[2] = {};
    ASSERT_EQ(loadBox(t.map, coords, global, destinations, 0), ok);
    for (unsigned row = 0; row < 64; row += 8)
      for (unsigned piece = 0; piece < 8; ++piece) {
        uint32_t addresses[lanes] = {};
        for (unsigned r = 0; r < 8; ++r)
          addresses[r] =
              swizzleAddress((row + r) * 128 + piece * 16, t.swizzle);
        shared.wavefronts = 0;
        Fragment<uint32_t> d(1);
        ASSERT_TRUE(loadMatrix({1, false}, addresses, shared, d.regs()));
        EXPECT_EQ(shared.wavefronts, swizzled ? 1u : 8u);
        for (unsigned l = 0; l < lanes; ++l)
          ASSERT_EQ(
              std::memcmp(
                  &d.words[0][l],
                  &global.storage[(row + l / 4) * 128 + piece * 16 + l % 4 * 4],
                  4),
              0);
      }
  }
}

TEST(TensorCopy, Multicasts) {
  Tensor t{.dim = {32, 32}, .box = {16, 8}};
  ASSERT_EQ(t.encode(), nullptr);
  TestGlobal global = patterned(t.bytes());
  TestShared one(4096), two(4096);
  SharedMemory *destinations[] = {&one, &two};
  int32_t coords[2] = {8, 8};
  ASSERT_EQ(loadBox(t.map, coords, global, destinations, 128), ok);
  EXPECT_EQ(one.storage, two.storage);
  EXPECT_EQ(std::memcmp(one.at(128), &global.storage[8 * 64 + 16], 32), 0);
  EXPECT_EQ(global.reads, 16u * 8 * 2); // once, not for each destination
}

TEST(TensorCopy, StoresOnlyTheInside) {
  for (TensorSwizzle swizzle : {TensorSwizzle::None, TensorSwizzle::B64}) {
    Tensor t{.dim = {50, 20}, .box = {32, 8}, .swizzle = swizzle};
    ASSERT_EQ(t.encode(), nullptr);
    TestShared shared(4096);
    for (unsigned y = 0; y < 8; ++y)
      for (unsigned x = 0; x < 32; ++x)
        shared.put(1024 + placeOf(t, {x, y}, 0), uint16_t(y << 8 | x));
    TestGlobal global(t.bytes());
    std::fill(global.storage.begin(), global.storage.end(), 0xee);
    int32_t coords[2] = {40, 15};
    ASSERT_EQ(storeBox(t.map, coords, shared, 1024, global), ok);
    EXPECT_EQ(shared.last.kind, AccessKind::Read);
    uint64_t pitch = t.strides[0];
    for (unsigned y = 0; y < 20; ++y)
      for (unsigned x = 0; x < pitch / 2; ++x) {
        uint16_t got;
        std::memcpy(&got, &global.storage[y * pitch + 2 * x], 2);
        bool inside = x >= 40 && x < 50 && y >= 15;
        uint16_t want = uint16_t((y - 15) << 8 | (x - 40));
        ASSERT_EQ(got, inside ? want : 0xeeee) << x << ", " << y;
      }
  }
}

TEST(TensorCopy, Reduces) {
  Tensor t{.data = TensorData::F32, .dim = {16, 4}, .box = {8, 4}};
  ASSERT_EQ(t.encode(), nullptr);
  TestGlobal global(t.bytes());
  TestShared shared(1024);
  for (unsigned i = 0; i < 64; ++i) {
    float v = float(i);
    std::memcpy(&global.storage[4 * i], &v, 4);
  }
  for (unsigned i = 0; i < 32; ++i)
    shared.put(4 * i, 1000.0f * float(i));
  int32_t coords[2] = {12, 1};
  ASSERT_EQ(reduceBox(t.map, coords, ReduceOp::Add, shared, 0, global), ok);
  for (unsigned y = 0; y < 4; ++y)
    for (unsigned x = 0; x < 16; ++x) {
      float got;
      std::memcpy(&got, &global.storage[64 * y + 4 * x], 4);
      float want = float(16 * y + x);
      if (x >= 12 && y >= 1)
        want += 1000.0f * float((y - 1) * 8 + x - 12);
      EXPECT_EQ(got, want);
    }
  EXPECT_EQ(reduceBox(t.map, coords, ReduceOp::Min, shared, 0, global),
            BulkError::ReduceType);
}

TEST(TensorCopy, FlushesSubnormals) {
  Tensor t{.data = TensorData::F32Ftz, .dim = {4}, .box = {4}};
  ASSERT_EQ(t.encode(), nullptr);
  TestGlobal global(t.bytes());
  float values[4] = {0x1p-140f, -0x1p-127f, 0x1p-126f, -2.0f};
  std::memcpy(global.storage.data(), values, 16);
  TestShared shared(256);
  SharedMemory *destinations[] = {&shared};
  int32_t coords[1] = {0};
  ASSERT_EQ(loadBox(t.map, coords, global, destinations, 0), ok);
  EXPECT_EQ(shared.get<uint32_t>(0), 0u);
  EXPECT_EQ(shared.get<uint32_t>(4), 0x80000000u);
  EXPECT_EQ(shared.get<float>(8), 0x1p-126f);
  EXPECT_EQ(shared.get<float>(12), -2.0f);
}

TEST(TensorCopy, ReportsFaults) {
  Tensor t{.dim = {64, 64}, .box = {64, 8}};
  ASSERT_EQ(t.encode(), nullptr);
  TestGlobal global = patterned(t.bytes());
  TestShared shared(2048);
  SharedMemory *destinations[] = {&shared};
  int32_t coords[2] = {0, 0};
  EXPECT_EQ(loadBox(t.map, coords, global, destinations, 64),
            BulkError::Misaligned);
  EXPECT_EQ(loadBox(t.map, coords, global, destinations, 1152),
            BulkError::Refused);
  TestGlobal shorter(100);
  EXPECT_EQ(loadBox(t.map, coords, shorter, destinations, 0),
            BulkError::Refused);
  EXPECT_EQ(storeBox(t.map, coords, shared, 0, shorter), BulkError::Refused);
  Tensor huge{
      .data = TensorData::U64, .dim = {256, 256, 256}, .box = {256, 256, 256}};
  ASSERT_EQ(huge.encode(), nullptr);
  EXPECT_EQ(loadBox(huge.map, coords, global, destinations, 0),
            BulkError::TooLarge);
  int32_t far[2] = {INT32_MIN, INT32_MAX};
  EXPECT_EQ(loadBox(t.map, far, global, destinations, 0), ok);
  EXPECT_EQ(shared.get<uint64_t>(512), 0u);
}

TEST(TensorMaps, RefuseWhatTheDriverRefuses) {
  auto encodes = [](Tensor t) { return t.encode() == nullptr; };
  EXPECT_TRUE(encodes({.dim = {64, 8}, .box = {64, 8}}));
  EXPECT_FALSE(encodes({.dim = {64, 8}, .box = {4, 8}}));   // 8-byte rows
  EXPECT_FALSE(encodes({.dim = {64, 8}, .box = {512, 8}})); // over 256
  EXPECT_FALSE(encodes({.dim = {64, 0}, .box = {64, 8}}));
  EXPECT_FALSE(encodes({.dim = {64, 8}, .box = {64, 0}}));
  EXPECT_FALSE(encodes({.dim = {64, 8}, .box = {64, 8}, .steps = {1, 9}}));
  EXPECT_FALSE(encodes({.data = TensorData::U8,
                        .dim = {64, 8},
                        .box = {64, 8},
                        .fillNaN = true}));
  EXPECT_FALSE(encodes(
      {.dim = {128, 8}, .box = {128, 8}, .swizzle = TensorSwizzle::B128}));
  EXPECT_FALSE(encodes({.data = TensorData::TF32, .dim = {64}, .box = {64}}));
  TensorMap map;
  uint64_t dim[2] = {64, 8}, stride[1] = {8};
  uint32_t box[2] = {8, 8}, steps[2] = {1, 1};
  TiledArguments args{
      uint32_t(TensorData::U16), 2, 4096, dim, stride, box, steps};
  EXPECT_NE(TensorMap::encodeTiled(args, map), nullptr); // stride of 8
  stride[0] = 128;
  EXPECT_EQ(TensorMap::encodeTiled(args, map), nullptr);
  args.globalAddress = 4100;
  EXPECT_NE(TensorMap::encodeTiled(args, map), nullptr);
}

TEST(TensorMaps, AreKnownByTheirMark) {
  Tensor t{.dim = {64, 8}, .box = {64, 8}};
  ASSERT_EQ(t.encode(), nullptr);
  TensorMap read;
  EXPECT_TRUE(TensorMap::decode(&t.map, read));
  EXPECT_EQ(read.boxBytes(), 64u * 8 * 2);
  uint8_t zeros[128] = {};
  EXPECT_FALSE(TensorMap::decode(zeros, read));
  TensorMap damaged = t.map;
  damaged.rank = 9;
  EXPECT_FALSE(TensorMap::decode(&damaged, read));
}

TEST(BulkCopy, MovesBytes) {
  TestGlobal global = patterned(4096);
  TestShared one(4096, 0x100), two(4096, 0x100);
  SharedMemory *both[] = {&one, &two};
  ASSERT_EQ(bulkLoad(both, 0x110, global, TestGlobal::base + 32, 1008), ok);
  EXPECT_EQ(std::memcmp(one.at(0x110), &global.storage[32], 1008), 0);
  EXPECT_EQ(one.storage, two.storage);
  TestGlobal out(4096);
  ASSERT_EQ(bulkStore(out, TestGlobal::base + 64, one, 0x110, 512), ok);
  EXPECT_EQ(std::memcmp(&out.storage[64], &global.storage[32], 512), 0);
  ASSERT_EQ(bulkMove(two, 0x800, one, 0x110, 256), ok);
  EXPECT_EQ(std::memcmp(two.at(0x800), &global.storage[32], 256), 0);
  EXPECT_EQ(bulkLoad(both, 0x100, global, TestGlobal::base, 0), ok);

  EXPECT_EQ(bulkLoad(both, 0x108, global, TestGlobal::base, 16),
            BulkError::Misaligned);
  EXPECT_EQ(bulkLoad(both, 0x100, global, TestGlobal::base + 8, 16),
            BulkError::Misaligned);
  EXPECT_EQ(bulkLoad(both, 0x100, global, TestGlobal::base, 24),
            BulkError::SizeNotMultiple);
  EXPECT_EQ(bulkLoad(both, 0x100, global, TestGlobal::base + 4080, 32),
            BulkError::Refused);
  EXPECT_EQ(bulkStore(out, TestGlobal::base, one, 0x10f0, 32),
            BulkError::Refused);
}

template <typename T> T reduced(ReduceOp op, ReduceType type, T to, T from) {
  TestGlobal global(16);
  TestShared shared(16);
  std::memcpy(global.storage.data(), &to, sizeof(T));
  shared.put(0, from);
  EXPECT_EQ(bulkReduce(global, TestGlobal::base, shared, 0, 16, op, type), ok);
  std::memcpy(&to, global.storage.data(), sizeof(T));
  return to;
}

TEST(BulkCopy, Reduces) {
  using enum ReduceOp;
  using T = ReduceType;
  EXPECT_EQ(reduced<float>(Add, T::F32, 1.5f, 2.25f), 3.75f);
  EXPECT_EQ(reduced<double>(Add, T::F64, 1.5, 2.25), 3.75);
  EXPECT_EQ(reduced<uint16_t>(Add, T::F16, 0x3c00, 0x3c01), 0x4000); // tie
  EXPECT_EQ(reduced<uint16_t>(Add, T::BF16, 0x3f80, 0x4000), 0x4040);
  EXPECT_EQ(reduced<int32_t>(Add, T::S32, INT32_MAX, 1), INT32_MIN);
  EXPECT_EQ(reduced<uint64_t>(Add, T::U64, ~0ull, 2), 1u);
  EXPECT_EQ(reduced<int32_t>(Min, T::S32, 3, -4), -4);
  EXPECT_EQ(reduced<uint32_t>(Min, T::U32, 3, uint32_t(-4)), 3u);
  EXPECT_EQ(reduced<int64_t>(Max, T::S64, 3, -4), 3);
  EXPECT_EQ(reduced<uint16_t>(Max, T::F16, 0xbc00, 0x3800), 0x3800);
  EXPECT_EQ(reduced<uint16_t>(Max, T::F16, 0x8000, 0x0000), 0x0000);
  EXPECT_EQ(reduced<uint16_t>(Min, T::F16, 0x0000, 0x8000), 0x8000);
  EXPECT_EQ(reduced<uint16_t>(Min, T::BF16, 0x7fc0, 0x3f80), 0x3f80);
  EXPECT_EQ(reduced<uint32_t>(Inc, T::U32, 4, 5), 5u);
  EXPECT_EQ(reduced<uint32_t>(Inc, T::U32, 5, 5), 0u);
  EXPECT_EQ(reduced<uint32_t>(Dec, T::U32, 0, 5), 5u);
  EXPECT_EQ(reduced<uint32_t>(Dec, T::U32, 9, 5), 5u);
  EXPECT_EQ(reduced<uint32_t>(Dec, T::U32, 3, 5), 2u);
  EXPECT_EQ(reduced<uint32_t>(And, T::B32, 0xff0, 0x0ff), 0x0f0u);
  EXPECT_EQ(reduced<uint64_t>(Or, T::B64, 0xff0, 0x00f), 0xfffu);
  EXPECT_EQ(reduced<uint32_t>(Xor, T::B32, 0xff0, 0x0ff), 0xf0fu);
  TestGlobal global(16);
  TestShared shared(16);
  EXPECT_EQ(bulkReduce(global, TestGlobal::base, shared, 0, 16, And, T::F32),
            BulkError::ReduceType);
}

} // namespace
