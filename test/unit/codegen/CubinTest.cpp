//===- CubinTest.cpp - what compiled kernels take of a GPU ----------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/toolchain/Cubin.h"

#include "codegen/target/Target.h"
#include "gtest/gtest.h"

using namespace tenon::codegen;

namespace {

// What the file says is what the compiler's log says.
TEST(Cubin, SaysWhatTheLogSays) {
  auto compiler = Nvrtc::find();
  if (!compiler) {
    llvm::consumeError(compiler.takeError());
    GTEST_SKIP() << "no NVRTC";
  }
  Source source;
  source.name = "two.cu";
  source.target = Target::Cuda;
  source.text = R"(
extern "C" __global__ void tn_unit_3(float *out) {
  __shared__ float part[64];
  part[threadIdx.x] = out[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = part[63 - threadIdx.x];
}
extern "C" __global__ void tn_unit_12(float *out, int i) {
  float many[100];
  for (int k = 0; k < 100; ++k)
    many[k] = out[k];
  many[i] = 0;
  for (int k = 0; k < 100; ++k)
    out[100 + k] = many[k] + many[(i * k) % 100];
}
)";
  auto archs = parseGpuArchs("sm_75,sm_90a");
  ASSERT_TRUE(bool(archs));
  ToolchainOptions options;
  auto made = compiler->compile(source, *archs, options);
  ASSERT_TRUE(bool(made)) << llvm::toString(made.takeError());
  ASSERT_EQ(made->objects.size(), 2u);
  for (const DeviceObject &object : made->objects) {
    auto kernels = cubinResources(object.cubin);
    ASSERT_TRUE(bool(kernels)) << llvm::toString(kernels.takeError());
    ASSERT_EQ(kernels->size(), object.kernels.size());
    for (const KernelResources &want : object.kernels) {
      auto got = llvm::find_if(*kernels, [&](const KernelResources &kernel) {
        return kernel.unit == want.unit;
      });
      ASSERT_NE(got, kernels->end());
      EXPECT_EQ(got->registers, want.registers);
      EXPECT_EQ(got->stackBytes, want.stackBytes);
      EXPECT_EQ(got->sharedBytes, want.unit == 3 ? 256u : 0u);
    }
  }
}

TEST(Cubin, DamagedOnes) {
  for (llvm::StringRef text : {"",
                               "\x7f"
                               "ELF",
                               "no cubin at all"}) {
    auto kernels = cubinResources(text);
    EXPECT_FALSE(bool(kernels));
    llvm::consumeError(kernels.takeError());
  }
}

} // namespace
