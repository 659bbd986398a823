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

struct Problem {
  int m, n, k;
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

  struct Result {
    Fault fault;
    std::string text;
    double worst = 0; ///< error over the bound; more than 1 is wrong
    std::vector<OpStats> stats;
  };

  Result run(Problem p, int fault, const std::string &kernel = "gemm") {
    std::mt19937 random(unsigned(p.m * 7 + p.n * 3 + p.k));
    std::uniform_real_distribution<float> unit(-1, 1);
    auto fill = [&](size_t count) {
      std::vector<uint16_t> values(count);
      for (uint16_t &v : values)
        v = tensor::floatToBF16(unit(random));
      return values;
    };
    std::vector<uint16_t> a = fill(size_t(p.m) * p.k);
    std::vector<uint16_t> b = fill(size_t(p.n) * p.k);
    DeviceArray<uint16_t> deviceA(a), deviceB(b);
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
    Result result{outcome.fault, outcome.text, 0, std::move(outcome.stats)};
    if (result.fault == Fault::None)
      result.worst = compare(p, a, b, c);
    return result;
  }

  /// f32 sums of exact products, rounded once to bf16 (8 bits).
  static double compare(Problem p, const std::vector<uint16_t> &a,
                        const std::vector<uint16_t> &b,
                        const DeviceArray<uint16_t> &c) {
    double worst = 0;
    for (int i = 0; i < p.m; ++i)
      for (int j = 0; j < p.n; ++j) {
        double exact = 0, magnitudes = 1e-30;
        for (int x = 0; x < p.k; ++x) {
          double product = double(tensor::bf16ToFloat(a[size_t(i) * p.k + x])) *
                           tensor::bf16ToFloat(b[size_t(j) * p.k + x]);
          exact += product;
          magnitudes += std::fabs(product);
        }
        double error =
            std::fabs(tensor::bf16ToFloat(c[size_t(i) * p.n + j]) - exact);
        worst = std::max(worst, error / (p.k * 0x1p-24 * magnitudes +
                                         std::fabs(exact) * 0x1p-8));
      }
    return worst;
  }
};

TEST_F(WgmmaGemm, IsRightAtEverySize) {
  for (Problem p : {Problem{64, 64, 64},
                    {128, 128, 256},
                    {40, 72, 200},
                    {1, 8, 8},
                    {130, 104, 640}}) {
    Result r = run(p, None);
    EXPECT_EQ(r.fault, Fault::None) << r.text;
    EXPECT_LE(r.worst, 1) << p.m << " " << p.n << " " << p.k;
  }
}

TEST_F(WgmmaGemm, HasNoBankConflicts) {
  Result r = run({64, 64, 256}, None);
  ASSERT_EQ(r.fault, Fault::None) << r.text;
  const Code &code = *kernels->byName.at("gemm");
  EXPECT_EQ(extraWavefronts(code, r.stats, "wgmma.mma_async"), 0u);
}

struct Expected {
  PlantedFault planted;
  const char *found; ///< what may be reported; "none": the result is wrong
  const char *text;  ///< in the report
};

TEST_F(WgmmaGemm, PlantedFaultsAreFound) {
  for (Expected e :
       {Expected{NoFullWait, "uninitialised, pending-copy", "wgmma"},
        {NoEmptyWait, "pending-copy", "cp.async.bulk"},
        {WrongSwizzle, "none", ""},
        {EarlyRelease, "pending-copy", "cp.async.bulk"},
        {NoProxyFence, "missing-fence", "cp.async.bulk"},
        {NoStoreBarrier, "shared-race, uninitialised", "cp.async.bulk"},
        {TooFewBytes, "deadlock", "mbarrier"},
        {NoBarrierInit, "uninitialised", "mbarrier"},
        {NoInitBarrier, "shared-race, uninitialised", "mbarrier"},
        {NoStoreWait, "pending-copy", "st.shared"}}) {
    SCOPED_TRACE(testing::Message() << "fault " << e.planted);
    Result r = run({70, 72, 520}, e.planted);
    EXPECT_NE(std::string(e.found).find(nameOf(r.fault)), std::string::npos)
        << nameOf(r.fault) << " " << r.text;
    EXPECT_NE(r.text.find(e.text), std::string::npos) << r.text;
    if (r.fault == Fault::None) {
      EXPECT_GT(r.worst, 1);
    } else {
      EXPECT_NE(r.text.find("kernel gemm"), std::string::npos) << r.text;
    }
  }
}

TEST_F(WgmmaGemm, RegistersUsedTooEarlyAreFound) {
  Result wait = run({64, 64, 128}, None, "gemmNoWgmmaWait");
  EXPECT_EQ(wait.fault, Fault::PendingCopy) << wait.text;
  EXPECT_NE(wait.text.find("not been waited for"), std::string::npos)
      << wait.text;
  Result fence = run({64, 64, 128}, None, "gemmNoWgmmaFence");
  EXPECT_EQ(fence.fault, Fault::PendingCopy) << fence.text;
  EXPECT_NE(fence.text.find("wgmma.fence"), std::string::npos) << fence.text;
}

} // namespace
