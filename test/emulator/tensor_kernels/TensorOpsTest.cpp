//===- TensorOpsTest.cpp - forms of tensor and bulk instructions ----------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/emulator/tensor/Formats.h"
#include "runtime/emulator/tensor/Mma.h"
#include "runtime/emulator/tensor/TensorMap.h"
#include "test/emulator/tensor_kernels/Runner.h"

#include <cmath>
#include <numeric>

using namespace tenon::emu;
using enum tensor::Element;

namespace {

class TensorOps : public testing::Test {
protected:
  Kernels kernels{"tensor_ops.ptx", 90};
  std::mt19937 random{7};

  std::vector<uint32_t> words(size_t count) {
    std::vector<uint32_t> values(count);
    for (uint32_t &v : values)
      v = random();
    return values;
  }
};

TEST_F(TensorOps, ThreeTransposesAreOne) {
  std::vector<uint16_t> in(256);
  std::iota(in.begin(), in.end(), 0);
  DeviceArray<uint16_t> from(in), to(256);
  auto outcome = kernels.run("transposeMatrices", {}, {32, 1, 1},
                             Arguments().add(from.address).add(to.address));
  ASSERT_EQ(outcome.fault, Fault::None) << outcome.text;
  for (unsigned m = 0; m < 4; ++m)
    for (unsigned r = 0; r < 8; ++r)
      for (unsigned c = 0; c < 8; ++c)
        ASSERT_EQ(to[m * 64 + r * 8 + c], in[m * 64 + c * 8 + r]);
}

struct MmaCase {
  const char *kernel;
  tensor::MmaOp op;
};

TEST_F(TensorOps, MmaOfEveryKindFindsItsRegisters) {
  for (MmaCase c : {MmaCase{"mmaBF16", {16, 8, 16, F32, BF16, BF16, F32}},
                    {"mmaTF32", {16, 8, 8, F32, TF32, TF32, F32}},
                    {"mmaFp8", {16, 8, 32, F32, E4M3, E5M2, F32}},
                    {"mmaS8", {16, 8, 32, S32, S8, U8, S32}},
                    {"mmaS8Saturated", {16, 8, 32, S32, S8, S8, S32, true}},
                    {"mmaS4", {16, 8, 64, S32, S4, S4, S32}}}) {
    SCOPED_TRACE(c.kernel);
    std::vector<uint32_t> in = words(10 * 32);
    if (c.op.d == F32)
      for (uint32_t &v : in)
        v &= 0xbf7fbf7f; // small, no NaN
    DeviceArray<uint32_t> from(in), to(4 * 32);
    auto outcome = kernels.run(c.kernel, {}, {32, 1, 1},
                               Arguments().add(from.address).add(to.address));
    ASSERT_EQ(outcome.fault, Fault::None) << outcome.text;
    uint32_t *regs[10], out[4][32], *outs[4];
    for (unsigned i = 0; i < 10; ++i)
      regs[i] = &in[i * 32];
    for (unsigned i = 0; i < 4; ++i)
      outs[i] = out[i];
    auto mma = tensor::Mma::find(c.op);
    ASSERT_TRUE(mma);
    mma->run(outs, regs, regs + 4, regs + 6);
    EXPECT_EQ(std::memcmp(out, to.data(), sizeof(out)), 0);
  }
}

TEST_F(TensorOps, MmaOfDoubles) {
  std::vector<double> in(128);
  for (double &v : in)
    v = double(int(random() % 2001) - 1000) / 64;
  DeviceArray<double> from(in), to(64);
  auto outcome = kernels.run("mmaF64", {}, {32, 1, 1},
                             Arguments().add(from.address).add(to.address));
  ASSERT_EQ(outcome.fault, Fault::None) << outcome.text;
  for (unsigned l = 0; l < 32; ++l)
    for (unsigned j = 0; j < 2; ++j) {
      unsigned row = l / 4, column = l % 4 * 2 + j;
      double sum = in[64 + j * 32 + l];
      for (unsigned k = 0; k < 4; ++k)
        sum += in[row * 4 + k] * in[32 + column * 4 + k]; // exact
      EXPECT_EQ(to[j * 32 + l], sum);
    }
}

TEST_F(TensorOps, WgmmaOfRegistersAndTransposedB) {
  auto value = [&] { return float(int(random() % 9) - 4); };
  std::vector<float> a(64 * 16), b(16 * 32);
  std::generate(a.begin(), a.end(), value);
  std::generate(b.begin(), b.end(), value);
  std::vector<uint32_t> regs(4 * 128);
  for (unsigned i = 0; i < 4; ++i)
    for (unsigned t = 0; t < 128; ++t) {
      unsigned row = t / 32 * 16 + t % 32 / 4 + i % 2 * 8;
      unsigned k = i / 2 * 8 + t % 4 * 2;
      regs[i * 128 + t] = tensor::floatToF16(a[row * 16 + k]) |
                          uint32_t(tensor::floatToF16(a[row * 16 + k + 1]))
                              << 16;
    }
  std::vector<uint16_t> halves;
  for (float v : b)
    halves.push_back(tensor::floatToF16(v));
  DeviceArray<uint32_t> deviceA(regs), out(8 * 128);
  DeviceArray<uint16_t> deviceB(halves);
  auto outcome = kernels.run(
      "wgmmaF16", {}, {128, 1, 1},
      Arguments().add(deviceA.address).add(deviceB.address).add(out.address));
  ASSERT_EQ(outcome.fault, Fault::None) << outcome.text;
  for (unsigned i = 0; i < 8; ++i)
    for (unsigned t = 0; t < 128; ++t)
      for (unsigned j = 0; j < 2; ++j) {
        unsigned row = t / 32 * 16 + t % 32 / 4 + i % 2 * 8;
        unsigned column = i / 2 * 8 + t % 4 * 2 + j;
        float sum = 0; // + 1 - 1 times the product: small integers, exact
        for (unsigned k = 0; k < 16; ++k)
          sum += a[row * 16 + k] * b[k * 32 + column];
        uint16_t got = uint16_t(out[i * 128 + t] >> (16 * j));
        ASSERT_EQ(tensor::f16ToFloat(got), sum) << row << ", " << column;
      }
}

TEST_F(TensorOps, BulkCopyAndReduction) {
  std::vector<float> in(256), start(256);
  std::iota(in.begin(), in.end(), 1.0f);
  std::iota(start.begin(), start.end(), 1000.0f);
  auto run = [&](int bytes, int skip, DeviceArray<float> &out) {
    DeviceArray<float> from(in);
    return kernels.run(
        "bulkAdd", {}, {64, 1, 1},
        Arguments().add(from.address).add(out.address).add(bytes).add(skip));
  };
  for (int bytes : {16, 512, 1024}) {
    DeviceArray<float> out(start);
    auto outcome = run(bytes, 0, out);
    ASSERT_EQ(outcome.fault, Fault::None) << outcome.text;
    for (int i = 0; i < 256; ++i)
      EXPECT_EQ(out[i], start[i] + (i < bytes / 4 ? 2 * in[i] : 0));
  }
  struct Expected {
    int bytes, skip;
    Fault fault;
  };
  for (Expected e : {Expected{1024, 1, Fault::PendingCopy}, // no mbarrier wait
                     {1024, 2, Fault::MissingFence},        // no proxy fence
                     {1024, 3, Fault::SharedRace},          // no barrier
                     {1024, 4, Fault::PendingCopy},         // no wait_group
                     {24, 0, Fault::BadInstruction},        // half a piece
                     {1040, 0, Fault::OutOfBounds}}) {
    SCOPED_TRACE(testing::Message() << e.bytes << " " << e.skip);
    DeviceArray<float> out(start);
    auto outcome = run(e.bytes, e.skip, out);
    EXPECT_STREQ(nameOf(outcome.fault), nameOf(e.fault)) << outcome.text;
  }
}

TEST_F(TensorOps, CopiesThatArrive) {
  std::vector<float> in(512);
  std::iota(in.begin(), in.end(), 0.0f);
  auto run = [&](int skip) {
    DeviceArray<float> from(in), to(512);
    auto outcome =
        kernels.run("copyArrive", {}, {128, 1, 1},
                    Arguments().add(from.address).add(to.address).add(skip));
    for (unsigned i = 0; skip == 0 && i < 512; ++i)
      EXPECT_EQ(to[i], in[(i + 128) % 512]);
    return outcome;
  };
  auto good = run(0), plain = run(1), unwaited = run(2);
  EXPECT_EQ(good.fault, Fault::None) << good.text;
  // An ordinary arrival says nothing about the copies.
  EXPECT_EQ(plain.fault, Fault::PendingCopy) << plain.text;
  EXPECT_TRUE(unwaited.fault == Fault::SharedRace ||
              unwaited.fault == Fault::Uninitialised)
      << unwaited.text;
}

TEST_F(TensorOps, MulticastInACluster) {
  std::vector<uint16_t> in(64 * 32);
  std::iota(in.begin(), in.end(), 0);
  DeviceArray<uint16_t> from(in), to(2 * 2048 / 2);
  uint64_t dim[2] = {64, 32}, stride[1] = {128};
  uint32_t box[2] = {32, 16}, steps[2] = {1, 1};
  tensor::TiledArguments args;
  args.dataType = uint32_t(tensor::TensorData::U16);
  args.rank = 2;
  args.globalAddress = from.address;
  args.globalDim = dim;
  args.globalStrides = stride;
  args.boxDim = box;
  args.elementStrides = steps;
  tensor::TensorMap map;
  ASSERT_EQ(tensor::TensorMap::encodeTiled(args, map), nullptr);
  auto outcome =
      kernels.run("multicast", {2, 1, 1}, {64, 1, 1},
                  Arguments().add(map).add(to.address), 0, {2, 1, 1});
  ASSERT_EQ(outcome.fault, Fault::None) << outcome.text;
  // Both blocks hold both boxes: rows 0..15 and 16..31, 32 elements of each.
  for (unsigned rank = 0; rank < 2; ++rank)
    for (unsigned row = 0; row < 32; ++row)
      for (unsigned x = 0; x < 32; ++x)
        ASSERT_EQ(to[rank * 1024 + row * 32 + x], in[row * 64 + x]);
}

} // namespace
