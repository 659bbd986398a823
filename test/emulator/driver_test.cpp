//===- driver_test.cpp - the driver's own functions ----------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/emulator/Gpu.h"

#include <cstring>
#include <gtest/gtest.h>

using namespace tenon::test;

namespace {

class Driver : public testing::Test {
protected:
  void SetUp() override { gpu.reset(); }
  Gpu &gpu = Gpu::get();
};

constexpr char scale[] = R"(.version 8.0
.target sm_80
.address_size 64
.global .align 4 .u32 seen[3] = {5, 6, 7};
.visible .entry scale(.param .u64 x, .param .f32 by, .param .u8 add)
{
  .reg .b32 %t<4>; .reg .f32 %f<4>; .reg .b64 %a<4>;
  ld.param.u64 %a1, [x];
  ld.param.f32 %f1, [by];
  ld.param.u8 %t1, [add];
  mov.u32 %t2, %tid.x;
  mul.wide.u32 %a2, %t2, 4;
  add.s64 %a1, %a1, %a2;
  ld.global.f32 %f2, [%a1];
  cvt.rn.f32.u32 %f3, %t1;
  fma.rn.f32 %f2, %f2, %f1, %f3;
  st.global.f32 [%a1], %f2;
  ret;
}
)";

TEST_F(Driver, ParametersOfUnequalSizes) {
  Module module(scale);
  ASSERT_EQ(module.error, "");
  Array<float> x(std::vector<float>{1, 2, 3, 4});
  CUfunction function = module.function("scale");
  EXPECT_EQ(launch(function, {1}, {4}, 0, x.pointer, 10.0f, uint8_t(7)),
            CUDA_SUCCESS);
  EXPECT_EQ(x.read(), (std::vector<float>{17, 27, 37, 47}));
  // The same through one buffer.
  struct {
    CUdeviceptr x;
    float by;
    uint8_t add;
  } block{x.pointer, 0.5f, 1};
  size_t bytes = sizeof(block);
  void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &block,
                   CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
  EXPECT_EQ(gpu.cuLaunchKernel(function, 1, 1, 1, 2, 1, 1, 0, nullptr, nullptr,
                               extra),
            CUDA_SUCCESS);
  EXPECT_EQ(x.read(), (std::vector<float>{9.5, 14.5, 37, 47}));
}

TEST_F(Driver, Globals) {
  Module module(scale);
  CUdeviceptr seen = 0;
  size_t bytes = 0;
  ASSERT_EQ(gpu.cuModuleGetGlobal_v2(&seen, &bytes, module.handle, "seen"),
            CUDA_SUCCESS);
  EXPECT_EQ(bytes, 12u);
  int values[3];
  EXPECT_EQ(gpu.cuMemcpyDtoH_v2(values, seen, 12), CUDA_SUCCESS);
  EXPECT_EQ(values[2], 7);
  EXPECT_EQ(gpu.cuModuleGetGlobal_v2(&seen, &bytes, module.handle, "none"),
            CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(module.function("none"), nullptr);
}

TEST_F(Driver, GraphsReplayWhatStreamsRecorded) {
  Module module(scale);
  CUstream one, two;
  CUevent fork, join;
  gpu.cuStreamCreate(&one, 0);
  gpu.cuStreamCreate(&two, 0);
  gpu.cuEventCreate(&fork, 0);
  gpu.cuEventCreate(&join, 0);
  Array<float> x(std::vector<float>{1, 2, 3, 4}), y(4);
  CUdeviceptr pointer = x.pointer;
  float by = 2;
  uint8_t add = 1;
  void *arguments[] = {&pointer, &by, &add};
  ASSERT_EQ(gpu.cuStreamBeginCapture_v2(one, CU_STREAM_CAPTURE_MODE_RELAXED),
            CUDA_SUCCESS);
  EXPECT_EQ(gpu.cuLaunchKernel(module.function("scale"), 1, 1, 1, 4, 1, 1, 0,
                               one, arguments, nullptr),
            CUDA_SUCCESS);
  by = 1000; // arguments were copied
  gpu.cuEventRecord(fork, one);
  gpu.cuStreamWaitEvent(two, fork, 0);
  EXPECT_EQ(gpu.cuMemcpyDtoDAsync_v2(y.pointer, x.pointer, 16, two),
            CUDA_SUCCESS);
  gpu.cuEventRecord(join, two);
  gpu.cuStreamWaitEvent(one, join, 0);
  CUgraph graph;
  ASSERT_EQ(gpu.cuStreamEndCapture(one, &graph), CUDA_SUCCESS);
  EXPECT_EQ(x.read()[3], 4); // nothing has run yet
  CUgraphExec exec;
  ASSERT_EQ(gpu.cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_SUCCESS);
  EXPECT_EQ(gpu.cuGraphDestroy(graph), CUDA_SUCCESS);
  EXPECT_EQ(gpu.cuGraphLaunch(exec, one), CUDA_SUCCESS);
  EXPECT_EQ(gpu.cuGraphLaunch(exec, one), CUDA_SUCCESS);
  EXPECT_EQ(gpu.cuStreamSynchronize(one), CUDA_SUCCESS);
  EXPECT_EQ(y.read(), (std::vector<float>{7, 11, 15, 19}));
  gpu.cuGraphExecDestroy(exec);
  gpu.cuEventDestroy_v2(fork);
  gpu.cuEventDestroy_v2(join);
  gpu.cuStreamDestroy_v2(one);
  gpu.cuStreamDestroy_v2(two);
}

TEST_F(Driver, MemoryIsLimited) {
  size_t before = 0, total = 0, after = 0;
  gpu.cuMemGetInfo_v2(&before, &total);
  EXPECT_EQ(total, size_t(64) << 20);
  CUdeviceptr some = 0, more = 0;
  ASSERT_EQ(gpu.cuMemAlloc_v2(&some, 40 << 20), CUDA_SUCCESS);
  EXPECT_EQ(gpu.cuMemAlloc_v2(&more, 40 << 20), CUDA_ERROR_OUT_OF_MEMORY);
  gpu.cuMemGetInfo_v2(&after, &total);
  EXPECT_EQ(before - after, size_t(40) << 20);
  EXPECT_EQ(gpu.cuMemFree_v2(some), CUDA_SUCCESS);
  EXPECT_EQ(gpu.cuMemFree_v2(some), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(gpu.cuMemAlloc_v2(&more, 40 << 20), CUDA_SUCCESS);
  EXPECT_EQ(gpu.cuMemFree_v2(more), CUDA_SUCCESS);
  EXPECT_EQ(gpu.cuMemAlloc_v2(&more, 0), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Driver, CopiesOutOfBoundsAreRefused) {
  Array<float> x(4);
  float values[8] = {};
  EXPECT_EQ(gpu.cuMemcpyHtoD_v2(x.pointer, values, 32),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(gpu.cuMemcpyDtoH_v2(values, x.pointer + 4, 16),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(gpu.cuMemcpyHtoD_v2(x.pointer, values, 16), CUDA_SUCCESS);
}

TEST_F(Driver, MemsetAndCopiesWriteMemory) {
  Module module(scale);
  Array<float> x(4), y(4);
  CUfunction function = module.function("scale");
  // A copy of memory that nobody wrote is no better than it.
  gpu.cuMemcpyDtoDAsync_v2(y.pointer, x.pointer, 16, nullptr);
  EXPECT_EQ(launch(function, {1}, {4}, 0, y.pointer, 1.0f, uint8_t(0)),
            CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_STREQ(gpu.lastFault(), "uninitialised");
  gpu.reset();
  gpu.cuMemsetD32Async(x.pointer, 0x3f800000, 4, nullptr);
  gpu.cuMemcpyDtoDAsync_v2(y.pointer, x.pointer, 16, nullptr);
  EXPECT_EQ(launch(function, {1}, {4}, 0, y.pointer, 3.0f, uint8_t(0)),
            CUDA_SUCCESS);
  EXPECT_EQ(y.read(), (std::vector<float>{3, 3, 3, 3}));
}

TEST_F(Driver, PinnedMemoryIsSeenByKernels) {
  Module module(scale);
  void *host = nullptr;
  ASSERT_EQ(gpu.cuMemHostAlloc(&host, 16, 0), CUDA_SUCCESS);
  float *values = static_cast<float *>(host);
  for (int i = 0; i < 4; ++i)
    values[i] = static_cast<float>(i);
  EXPECT_EQ(launch(module.function("scale"), {1}, {4}, 0,
                   reinterpret_cast<CUdeviceptr>(host), 2.0f, uint8_t(1)),
            CUDA_SUCCESS);
  EXPECT_EQ(values[3], 7);
  EXPECT_EQ(gpu.cuMemFreeHost(host), CUDA_SUCCESS);
}

TEST_F(Driver, BadLaunchesAreRefused) {
  Module module(scale);
  CUfunction function = module.function("scale");
  Array<float> x(std::vector<float>(4));
  auto tryIt = [&](Shape grid, Shape block, unsigned shared) {
    return launch(function, grid, block, shared, x.pointer, 1.0f, uint8_t(0));
  };
  EXPECT_EQ(tryIt({0}, {4}, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(tryIt({1}, {1025}, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(tryIt({1}, {2, 2, 65}, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(tryIt({1}, {4}, 48 * 1024 + 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(gpu.cuFuncSetAttribute(
                function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                200 * 1024),
            CUDA_SUCCESS);
  EXPECT_EQ(tryIt({1}, {4}, 200 * 1024), CUDA_SUCCESS);
  EXPECT_EQ(gpu.cuFuncSetAttribute(
                function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                300 * 1024),
            CUDA_ERROR_INVALID_VALUE);
}

/// What a text must be refused with.
void expectRefusal(const std::string &body, const char *words) {
  Module module(".version 8.0\n.target sm_80\n.address_size 64\n" + body);
  EXPECT_NE(module.error.find(words), std::string::npos)
      << "no '" << words << "' in: " << module.error;
}

std::string entry(const std::string &body) {
  return ".visible .entry k(.param .u64 x)\n{\n.reg .b32 %r<4>;\n"
         ".reg .b64 %d<4>;\n.reg .pred %p;\n" +
         body + "\n}\n";
}

TEST_F(Driver, BadModulesAreRefused) {
  expectRefusal(entry("frobnicate.b32 %r1, %r2;"),
                "line 9: the emulator does not know the instruction "
                "'frobnicate.b32'");
  expectRefusal(entry("add.frob.s32 %r1, %r2, %r3;"), "does not know");
  expectRefusal(entry("add.s32 %r1, %d2, %r3;"), "register of 32 bits");
  expectRefusal(entry("add.s32 %r1, %r2;"), "expected 3 operands, found 2");
  expectRefusal(entry("add.s32 %r1, %r2, %r9;"), "line 9");
  expectRefusal(entry(".reg .b128 %w; mov.b128 %w, 5;"), "128 bits");
  expectRefusal(entry("bra NOWHERE;"), "no label 'NOWHERE'");
  expectRefusal(entry("ld.param.u64 %d1, [x+8];"), "beyond the end");
  expectRefusal(entry("@%r1 ret;"), "'%r1' is no predicate");
  expectRefusal(entry("call.uni missing;"), "no function 'missing'");
  expectRefusal(entry("tex.2d.v4.f32.f32 {%r1,%r1,%r1,%r1}, [%d1, {%r1,%r2}];"),
                "does not know");
  expectRefusal(entry("add.s32 %r1, %r2, %r3"), "expected ';'");
  expectRefusal(".entry k(", "expected '.param'");
  expectRefusal("{", "expected a directive");
  EXPECT_NE(Module("").error.find("no PTX text"), std::string::npos);
  EXPECT_NE(Module("\x7f"
                   "ELF")
                .error.find("machine code"),
            std::string::npos);
  EXPECT_NE(Module(".version 9.0\n.target sm_120\n.address_size 64\n")
                .error.find("sm_120 does not run on the emulated sm_90"),
            std::string::npos);
}

TEST_F(Driver, CountersTellWhatKernelsDid) {
  Module module(ptxOf("right", false));
  ASSERT_EQ(module.error, "");
  std::vector<float> values(64 * 32, 1.0f);
  Array<float> from(values), to(values.size());
  gpu.clearCounters();
  ASSERT_EQ(launch(module.function("copy_vectors"), {1}, {32}, 0, to.pointer,
                   from.pointer, 512),
            CUDA_SUCCESS);
  std::string json = gpu.counters();
  for (const char *part :
       {"\"name\": \"copy_vectors\", \"launches\": 1", "\"load_bytes\": 8192",
        "\"load_sectors\": 256", "\"load_sectors_ideal\": 256",
        "\"store_sectors\": 256", "\"bank_conflicts\": 0"})
    EXPECT_NE(json.find(part), std::string::npos) << part << "\n" << json;
  // 33 floats a row keep the transposition free of conflicts.
  gpu.clearCounters();
  ASSERT_EQ(launch(module.function("transpose"), {2, 1}, {32, 8}, 0, to.pointer,
                   from.pointer, 32, 64),
            CUDA_SUCCESS);
  json = gpu.counters();
  EXPECT_NE(json.find("\"bank_conflicts\": 0"), std::string::npos) << json;
}

TEST_F(Driver, CountersSeeConflictsAndScatteredAccesses) {
  Module module(".version 8.0\n.target sm_80\n.address_size 64\n"
                ".shared .align 16 .b8 s[8192];\n" +
                entry("ld.param.u64 %d1, [x]; mov.u32 %r1, %tid.x;\n"
                      "shl.b32 %r2, %r1, 7; mov.u32 %r3, s;\n"
                      "add.u32 %r3, %r3, %r2; st.shared.u32 [%r3], %r1;\n"
                      "mul.wide.u32 %d2, %r1, 64; add.u64 %d1, %d1, %d2;\n"
                      "st.global.u32 [%d1], %r1;\n"));
  ASSERT_EQ(module.error, "");
  Array<int> x(512);
  gpu.clearCounters();
  ASSERT_EQ(launch(module.function("k"), {1}, {32}, 0, x.pointer),
            CUDA_SUCCESS);
  std::string json = gpu.counters();
  for (const char *part :
       {"\"wavefronts\": 32", "\"wavefronts_ideal\": 1",
        "\"bank_conflicts\": 31", "\"store_bytes\": 128",
        "\"store_sectors\": 32", "\"store_sectors_ideal\": 4"})
    EXPECT_NE(json.find(part), std::string::npos) << part << "\n" << json;
}

} // namespace
