//===- faults_test.cpp - wrong kernels are found out ---------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/emulator/Gpu.h"

#include <gtest/gtest.h>

using namespace tenon::test;

namespace {

class Faults : public KernelTest {
protected:
  Faults() : KernelTest("faults") {}
  /// Launches a kernel that must fail with this kind of finding, whose report
  /// names the kernel, an instruction and its line, a thread and a block, and
  /// holds `words`.
  template <typename... Args>
  void expectFault(const char *fault, CUresult error, const char *words,
                   const char *name, Shape block, unsigned shared,
                   Args... args) {
    CUfunction function = module->function(name);
    ASSERT_NE(function, nullptr);
    EXPECT_EQ(launch(function, {1}, block, shared, args...), error);
    EXPECT_STREQ(Gpu::get().lastFault(), fault);
    std::string report = Gpu::get().lastReport();
    for (const char *part : {fault, name, "PTX line ", "thread (", "of block (",
                             "faults.cu:", words})
      if (std::string(part) != "faults.cu:" || !GetParam()) {
        EXPECT_NE(report.find(part), std::string::npos)
            << "no '" << part << "' in: " << report;
      }
    // The error stays until the device is reset.
    EXPECT_EQ(Gpu::get().cuCtxSynchronize(), error);
    Gpu::get().reset();
    EXPECT_EQ(Gpu::get().cuCtxSynchronize(), CUDA_SUCCESS);
  }

  Array<float> x{std::vector<float>(1024, 1.0f)}, out{1024}, small{8};
};

TEST_P(Faults, ReadBeyond) {
  Array<float> exact(std::vector<float>(40, 1.0f));
  expectFault("out-of-bounds", CUDA_ERROR_ILLEGAL_ADDRESS,
              "0 bytes after the end of allocation", "read_beyond", {64}, 0,
              out.pointer, exact.pointer, 40);
}

TEST_P(Faults, WriteBeyond) {
  Array<float> exact(40);
  expectFault("out-of-bounds", CUDA_ERROR_ILLEGAL_ADDRESS,
              "thread (40, 0, 0) of block (0, 0, 0) writes 4 bytes",
              "write_beyond", {64}, 0, exact.pointer, 40);
}

TEST_P(Faults, WriteBefore) {
  expectFault("out-of-bounds", CUDA_ERROR_ILLEGAL_ADDRESS, "thread (0, 0, 0)",
              "write_before", {32}, 0, out.pointer);
}

TEST_P(Faults, NullPointer) {
  expectFault("out-of-bounds", CUDA_ERROR_ILLEGAL_ADDRESS,
              "address 0x0, which is no device address", "null_pointer", {1}, 0,
              x.pointer);
}

TEST_P(Faults, Misaligned) {
  expectFault("misaligned", CUDA_ERROR_MISALIGNED_ADDRESS, "reads 16 bytes",
              "misaligned", {1}, 0, out.pointer, x.pointer);
}

TEST_P(Faults, UnwrittenGlobal) {
  Array<float> some(33);
  some.set(std::vector<float>(32, 1.0f));
  expectFault("uninitialised", CUDA_ERROR_LAUNCH_FAILED, "thread (31, 0, 0)",
              "unwritten_global", {32}, 0, out.pointer, some.pointer);
}

TEST_P(Faults, UnwrittenShared) {
  expectFault("uninitialised", CUDA_ERROR_LAUNCH_FAILED, "thread (63, 0, 0)",
              "unwritten_shared", {64}, 0, out.pointer);
}

TEST_P(Faults, UnwrittenLocal) {
  expectFault("uninitialised", CUDA_ERROR_LAUNCH_FAILED, "local address",
              "unwritten_local", {32}, 0, out.pointer, 9);
}

TEST_P(Faults, SharedBeyond) {
  expectFault("out-of-bounds", CUDA_ERROR_ILLEGAL_ADDRESS, "shared address",
              "shared_beyond", {32}, 128, out.pointer, 2);
}

TEST_P(Faults, SharedMisaligned) {
  expectFault("misaligned", CUDA_ERROR_MISALIGNED_ADDRESS, "shared address",
              "shared_misaligned", {64}, 0, out.pointer, 3);
}

TEST_P(Faults, MissingBarrier) {
  expectFault("uninitialised", CUDA_ERROR_LAUNCH_FAILED,
              "or not before a barrier", "missing_barrier", {128}, 0,
              out.pointer);
}

TEST_P(Faults, MissingSecondBarrier) {
  expectFault("shared-race", CUDA_ERROR_LAUNCH_FAILED,
              "with no barrier between", "missing_second_barrier", {128}, 0,
              out.pointer, x.pointer);
}

TEST_P(Faults, TwoWriters) {
  expectFault("shared-race", CUDA_ERROR_LAUNCH_FAILED, "wrote with no barrier",
              "two_writers", {64}, 0, out.pointer);
}

TEST_P(Faults, DivergentBarrier) {
  expectFault("divergent-barrier", CUDA_ERROR_LAUNCH_FAILED,
              "without lane 16 of its warp", "divergent_barrier", {64}, 0,
              out.pointer);
}

TEST_P(Faults, BarrierInOneWarp) {
  expectFault("deadlock", CUDA_ERROR_LAUNCH_TIMEOUT, "never come",
              "barrier_in_one_warp", {64}, 0, out.pointer);
}

TEST_P(Faults, UnequalCounts) {
  expectFault("divergent-barrier", CUDA_ERROR_LAUNCH_FAILED,
              "another number of threads", "unequal_counts", {64}, 0,
              out.pointer);
}

TEST_P(Faults, MissingWait) {
  expectFault("pending-copy", CUDA_ERROR_LAUNCH_FAILED, "under way",
              "missing_wait", {64}, 0, out.pointer, x.pointer);
}

TEST_P(Faults, WaitTooFew) {
  expectFault("pending-copy", CUDA_ERROR_LAUNCH_FAILED, "under way",
              "wait_too_few", {64}, 0, out.pointer, x.pointer);
}

TEST_P(Faults, WaitWithoutBarrier) {
  CUfunction function = module->function("wait_without_barrier");
  EXPECT_EQ(launch(function, {1}, {64}, 0, out.pointer, x.pointer),
            CUDA_ERROR_LAUNCH_FAILED);
  // The other warp has written, has copies under way, or not come so far.
  std::string fault = Gpu::get().lastFault();
  EXPECT_TRUE(fault == "shared-race" || fault == "pending-copy" ||
              fault == "uninitialised")
      << fault;
  Gpu::get().reset();
}

TEST_P(Faults, CopyOverReaders) {
  expectFault("shared-race", CUDA_ERROR_LAUNCH_FAILED,
              "with no barrier between", "copy_over_readers", {64}, 0,
              out.pointer, x.pointer);
}

TEST_P(Faults, ShuffleInBranch) {
  expectFault("bad-mask", CUDA_ERROR_LAUNCH_FAILED,
              "lane 17, which is not here", "shuffle_in_branch", {32}, 0,
              out.pointer, 17);
}

TEST_P(Faults, ShuffleFromOutside) {
  expectFault("bad-mask", CUDA_ERROR_LAUNCH_FAILED, "lane 20",
              "shuffle_from_outside", {32}, 0, out.pointer, 16);
}

TEST_P(Faults, MmaInBranch) {
  expectFault("bad-mask", CUDA_ERROR_LAUNCH_FAILED, "whole warp",
              "mma_in_branch", {32}, 0, out.pointer, 31);
}

TEST_P(Faults, LdmatrixMisaligned) {
  expectFault("misaligned", CUDA_ERROR_MISALIGNED_ADDRESS, "16 bytes",
              "ldmatrix_misaligned", {32}, 0, out.pointer, 1);
}

TEST_P(Faults, NeverEnds) {
  Array<int> flag(std::vector<int>{0});
  expectFault("deadlock", CUDA_ERROR_LAUNCH_TIMEOUT, "never happens",
              "never_ends", {32}, 0, flag.pointer);
}

TEST_P(Faults, Traps) {
  expectFault("trap", CUDA_ERROR_LAUNCH_FAILED, "thread (5, 0, 0)", "traps",
              {32}, 0, 5);
}

TEST_P(Faults, WritesConstant) {
  struct {
    float v[4] = {};
  } value;
  expectFault("write-to-constant", CUDA_ERROR_LAUNCH_FAILED, "parameters",
              "writes_constant", {32}, 0, out.pointer, value);
}

TEST_P(Faults, UseAfterFree) {
  CUdeviceptr gone = 0;
  Gpu::get().cuMemAlloc_v2(&gone, 64);
  Gpu::get().cuMemFree_v2(gone);
  expectFault("out-of-bounds", CUDA_ERROR_ILLEGAL_ADDRESS, "global address",
              "use_after_free", {32}, 0, out.pointer, gone);
}

TEST_P(Faults, WrongSpace) {
  expectFault("out-of-bounds", CUDA_ERROR_ILLEGAL_ADDRESS,
              "which is no device address", "wrong_space", {32}, 0,
              out.pointer);
}

TEST_P(Faults, EndlessRecursion) {
  Array<int> values(std::vector<int>(32, 1));
  expectFault("call-stack", CUDA_ERROR_HARDWARE_STACK_ERROR, "call stack",
              "endless_recursion", {32}, 0, values.pointer);
}

INSTANTIATE_TEST_SUITE_P(Ptx, Faults, testing::Bool(), [](const auto &info) {
  return info.param ? "nvrtc" : "committed";
});

} // namespace
