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

class MmaGemm : public testing::Test {
protected:
  Kernels kernels{"mma_gemm.ptx", 80};

  GemmResult run(Problem p, int fault) {
    Operands x(p, tensor::floatToF16);
    DeviceArray<uint16_t> deviceA(x.a), deviceB(x.b);
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
    GemmResult result{outcome.fault, outcome.text, 0, std::move(outcome.stats)};
    if (result.fault == Fault::None)
      // f32 sums of exact products: k roundings of at most the magnitudes' sum.
      result.worst = worstError(
          p, x, tensor::f16ToFloat, [&](size_t i) { return double(c[i]); },
          [&](double, double magnitudes) {
            return (p.k + 1) * 0x1p-24 * magnitudes;
          });
    return result;
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
    GemmResult r = run(p, None);
    EXPECT_EQ(r.fault, Fault::None) << r.text;
    EXPECT_LE(r.worst, 1) << p.m << " " << p.n << " " << p.k;
  }
}

TEST_F(MmaGemm, HasNoBankConflicts) {
  GemmResult r = run({128, 128, 128}, None);
  ASSERT_EQ(r.fault, Fault::None) << r.text;
  const Code &code = *kernels->byName.at("gemm");
  EXPECT_EQ(extraWavefronts(code, r.stats, "ldmatrix"), 0u);
}

TEST_F(MmaGemm, PlantedFaultsAreFound) {
  for (Planted e : {Planted{WrongSwizzle, "none", ""},
                    {MissingWait, "pending-copy", "ldmatrix"},
                    {MissingBarrier, "shared-race, uninitialised", ""},
                    {WaitsForTooLittle, "pending-copy", "ldmatrix"},
                    {Misaligned, "misaligned", "ldmatrix"},
                    {OffByOne, "out-of-bounds", "cp.async"},
                    {UncheckedRows, "out-of-bounds", "cp.async"},
                    {NoCommit, "pending-copy", "ldmatrix"},
                    {DivergentMma, "bad-mask", "mma"}}) {
    SCOPED_TRACE(testing::Message() << "fault " << e.fault);
    GemmResult r = run({70, 72, 200}, e.fault);
    expectFound(e, r);
    if (r.fault != Fault::None) {
      EXPECT_NE(r.text.find("block ("), std::string::npos) << r.text;
    }
  }
}

} // namespace
