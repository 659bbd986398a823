//===- WgmmaGemmTest.cpp - a GEMM of wgmma and bulk copies, its faults ----===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/emulator/tensor/Formats.h"
#include "runtime/emulator/tensor/TensorMap.h"
#include "test/emulator/tensor_kernels/Runner.h"

#include <cmath>

using namespace tenon::emu;

namespace {

// As in wgmma_gemm.cu.
enum PlantedFault {
  None,
  NoFullWait,
  NoEmptyWait,
  WrongSwizzle,
  EarlyRelease,
  NoProxyFence,
  NoStoreBarrier,
  TooFewBytes,
  NoBarrierInit,
  NoInitBarrier,
  NoStoreWait,
};

/// A row-major matrix of bf16, copied in swizzled tiles of 64 x 64.
tensor::TensorMap mapOf(uint64_t address, int rows, int columns) {
  uint64_t dim[2] = {uint64_t(columns), uint64_t(rows)};
  uint64_t stride[1] = {uint64_t(columns) * 2};
  uint32_t box[2] = {64, 64}, steps[2] = {1, 1};
  tensor::TiledArguments args;
  args.dataType = uint32_t(tensor::TensorData::BF16);
  args.rank = 2;
  args.globalAddress = address;
  args.globalDim = dim;
  args.globalStrides = stride;
  args.boxDim = box;
  args.elementStrides = steps;
  args.swizzle = uint32_t(tensor::TensorSwizzle::B128);
  tensor::TensorMap map;
  const char *wrong = tensor::TensorMap::encodeTiled(args, map);
  EXPECT_EQ(wrong, nullptr) << wrong;
  return map;
}

class WgmmaGemm : public testing::Test {
protected:
  Kernels kernels{"wgmma_gemm.ptx", 90};

  GemmResult run(Problem p, int fault, const std::string &kernel = "gemm") {
    Operands x(p, tensor::floatToBF16);
    DeviceArray<uint16_t> deviceA(x.a), deviceB(x.b);
    DeviceArray<uint16_t> c(size_t(p.m) * p.n);
    Extent grid{uint32_t(p.n + 63) / 64, uint32_t(p.m + 63) / 64, 1};
    auto outcome = kernels.run(kernel, grid, {160, 1, 1},
                               Arguments()
                                   .add(mapOf(deviceA.address, p.m, p.k))
                                   .add(mapOf(deviceB.address, p.n, p.k))
                                   .add(mapOf(c.address, p.m, p.n))
                                   .add(p.k)
                                   .add(fault),
                               7 * 8192 + 1024);
    GemmResult result{outcome.fault, outcome.text, 0, std::move(outcome.stats)};
    if (result.fault == Fault::None)
      // f32 sums of exact products, rounded once to bf16 (8 bits).
      result.worst = worstError(
          p, x, tensor::bf16ToFloat,
          [&](size_t i) { return double(tensor::bf16ToFloat(c[i])); },
          [&](double exact, double magnitudes) {
            return p.k * 0x1p-24 * magnitudes + std::fabs(exact) * 0x1p-8;
          });
    return result;
  }
};

TEST_F(WgmmaGemm, IsRightAtEverySize) {
  for (Problem p : {Problem{64, 64, 64},
                    {128, 128, 256},
                    {40, 72, 200},
                    {1, 8, 8},
                    {130, 104, 640}}) {
    GemmResult r = run(p, None);
    EXPECT_EQ(r.fault, Fault::None) << r.text;
    EXPECT_LE(r.worst, 1) << p.m << " " << p.n << " " << p.k;
  }
}

TEST_F(WgmmaGemm, HasNoBankConflicts) {
  GemmResult r = run({64, 64, 256}, None);
  ASSERT_EQ(r.fault, Fault::None) << r.text;
  const Code &code = *kernels->byName.at("gemm");
  EXPECT_EQ(extraWavefronts(code, r.stats, "wgmma.mma_async"), 0u);
}

TEST_F(WgmmaGemm, PlantedFaultsAreFound) {
  for (Planted e :
       {Planted{NoFullWait, "uninitialised, pending-copy", "wgmma"},
        {NoEmptyWait, "pending-copy", "cp.async.bulk"},
        {WrongSwizzle, "none", ""},
        {EarlyRelease, "pending-copy", "cp.async.bulk"},
        {NoProxyFence, "missing-fence", "cp.async.bulk"},
        {NoStoreBarrier, "shared-race, uninitialised", "cp.async.bulk"},
        {TooFewBytes, "deadlock", "mbarrier"},
        {NoBarrierInit, "uninitialised", "mbarrier"},
        {NoInitBarrier, "shared-race, uninitialised", "mbarrier"},
        {NoStoreWait, "pending-copy", "st.shared"}}) {
    SCOPED_TRACE(testing::Message() << "fault " << e.fault);
    GemmResult r = run({70, 72, 520}, e.fault);
    expectFound(e, r);
  }
}

TEST_F(WgmmaGemm, RegistersUsedTooEarlyAreFound) {
  GemmResult wait = run({64, 64, 128}, None, "gemmNoWgmmaWait");
  EXPECT_EQ(wait.fault, Fault::PendingCopy) << wait.text;
  EXPECT_NE(wait.text.find("not been waited for"), std::string::npos)
      << wait.text;
  GemmResult fence = run({64, 64, 128}, None, "gemmNoWgmmaFence");
  EXPECT_EQ(fence.fault, Fault::PendingCopy) << fence.text;
  EXPECT_NE(fence.text.find("wgmma.fence"), std::string::npos) << fence.text;
}

} // namespace
