//===- MmaGemmTest.cpp - a GEMM of mma.sync, and its faults ---------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/emulator/tensor/Formats.h"
#include "test/emulator/tensor_kernels/Runner.h"

#include <cmath>

using namespace tenon::emu;

namespace {

// As in mma_gemm.cu.
enum PlantedFault {
  None,
  WrongSwizzle,
  MissingWait,
  MissingBarrier,
  WaitsForTooLittle,
  Misaligned,
  OffByOne,
  UncheckedRows,
  NoCommit,
  DivergentMma,
};

struct Problem {
  int m, n, k;
};

class MmaGemm : public testing::Test {
protected:
  Kernels kernels{"mma_gemm.ptx", 80};

  struct Result {
    Fault fault;
    std::string text;
    double worst = 0; ///< error over the bound; more than 1 is wrong
    std::vector<OpStats> stats;
  };

  Result run(Problem p, int fault) {
    std::mt19937 random(unsigned(p.m * 7 + p.n * 3 + p.k));
    std::uniform_real_distribution<float> unit(-1, 1);
    auto fill = [&](size_t count) {
      std::vector<uint16_t> values(count);
      for (uint16_t &v : values)
        v = tensor::floatToF16(unit(random));
      return values;
    };
    std::vector<uint16_t> a = fill(size_t(p.m) * p.k);
    std::vector<uint16_t> b = fill(size_t(p.n) * p.k);
    DeviceArray<uint16_t> deviceA(a), deviceB(b);
    DeviceArray<float> c(size_t(p.m) * p.n);
    Extent grid{uint32_t(p.n + 63) / 64, uint32_t(p.m + 63) / 64, 1};
    auto outcome = kernels.run("gemm", grid, {128, 1, 1},
                               Arguments()
                                   .add(deviceA.address)
                                   .add(deviceB.address)
                                   .add(c.address)
                                   .add(p.m)
                                   .add(p.n)
                                   .add(p.k)
                                   .add(fault));
    Result result{outcome.fault, outcome.text, 0, std::move(outcome.stats)};
    if (result.fault == Fault::None)
      result.worst = compare(p, a, b, c);
    return result;
  }

  /// f32 sums of exact products: k roundings of at most the magnitudes' sum.
  static double compare(Problem p, const std::vector<uint16_t> &a,
                        const std::vector<uint16_t> &b,
                        const DeviceArray<float> &c) {
    double worst = 0;
    for (int i = 0; i < p.m; ++i)
      for (int j = 0; j < p.n; ++j) {
        double exact = 0, magnitudes = 1e-30;
        for (int x = 0; x < p.k; ++x) {
          double product = double(tensor::f16ToFloat(a[size_t(i) * p.k + x])) *
                           tensor::f16ToFloat(b[size_t(j) * p.k + x]);
          exact += product;
          magnitudes += std::fabs(product);
        }
        double error = std::fabs(c[size_t(i) * p.n + j] - exact);
        worst = std::max(worst, error / ((p.k + 1) * 0x1p-24 * magnitudes));
      }
    return worst;
  }
};

TEST_F(MmaGemm, IsRightAtEverySize) {
  for (Problem p : {Problem{64, 64, 32},
                    {128, 128, 96},
                    {70, 72, 40},
                    {1, 8, 8},
                    {130, 100, 96},
                    {63, 65, 200},
                    {64, 64, 256}}) {
    Result r = run(p, None);
    EXPECT_EQ(r.fault, Fault::None) << r.text;
    EXPECT_LE(r.worst, 1) << p.m << " " << p.n << " " << p.k;
  }
}

TEST_F(MmaGemm, HasNoBankConflicts) {
  Result r = run({128, 128, 128}, None);
  ASSERT_EQ(r.fault, Fault::None) << r.text;
  const Code &code = *kernels->byName.at("gemm");
  EXPECT_EQ(extraWavefronts(code, r.stats, "ldmatrix"), 0u);
}

struct Expected {
  PlantedFault planted;
  const char *found; ///< what may be reported; "none": the result is wrong
  const char *text;  ///< in the report
};

TEST_F(MmaGemm, PlantedFaultsAreFound) {
  for (Expected e : {Expected{WrongSwizzle, "none", ""},
                     {MissingWait, "pending-copy", "ldmatrix"},
                     {MissingBarrier, "shared-race, uninitialised", ""},
                     {WaitsForTooLittle, "pending-copy", "ldmatrix"},
                     {Misaligned, "misaligned", "ldmatrix"},
                     {OffByOne, "out-of-bounds", "cp.async"},
                     {UncheckedRows, "out-of-bounds", "cp.async"},
                     {NoCommit, "pending-copy", "ldmatrix"},
                     {DivergentMma, "bad-mask", "mma"}}) {
    SCOPED_TRACE(testing::Message() << "fault " << e.planted);
    Result r = run({70, 72, 200}, e.planted);
    EXPECT_NE(std::string(e.found).find(nameOf(r.fault)), std::string::npos)
        << nameOf(r.fault) << " " << r.text;
    EXPECT_NE(r.text.find(e.text), std::string::npos) << r.text;
    if (r.fault == Fault::None) {
      EXPECT_GT(r.worst, 1);
    } else {
      EXPECT_NE(r.text.find("kernel gemm"), std::string::npos) << r.text;
      EXPECT_NE(r.text.find("block ("), std::string::npos) << r.text;
    }
  }
}

} // namespace
