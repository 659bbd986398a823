//===- DeviceCodeTest.cpp - GPU code, written and read --------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/artifact/DeviceCode.h"
#include "runtime/device/Cuda.h"
#include "runtime/device/DeviceCode.h"
#include <cstring>
#include <gtest/gtest.h>

using namespace tenon;

namespace {

/// Two modules for sm_80 and sm_90a; the texts say what they are.
std::vector<uint8_t> makeSection() {
  std::vector<codegen::Source> sources(2);
  sources[0].units = {0, 2};
  sources[1].units = {1};
  std::vector<codegen::DeviceObject> objects;
  auto archs = llvm::cantFail(codegen::parseGpuArchs("sm_80,sm_90a"));
  for (const char *module : {"a", "b"})
    for (const codegen::GpuArch *arch : archs) {
      codegen::DeviceObject &object = objects.emplace_back();
      object.arch = arch;
      object.cubin = std::string("cubin ") + module + arch->name.data();
      object.ptx = std::string(1000, 'x') + module + arch->name.data();
    }
  return codegen::writeDeviceCode(sources, objects, 3);
}

/// What is tried first for module 1 on a GPU.
std::string firstImage(const rt::DeviceCode &code, unsigned capability,
                       bool ptxOnly) {
  auto images = code.choose(1, capability, ptxOnly);
  if (images.empty())
    return "nothing";
  auto contents = code.contents(*images[0]);
  if (!contents.ok())
    return contents.message();
  std::string text(contents->begin(), contents->end());
  return text.substr(text.find_first_not_of('x')).c_str();
}

TEST(DeviceCode, FindsWhatFitsAGpu) {
  std::vector<uint8_t> bytes = makeSection();
  auto code = rt::DeviceCode::load({bytes.data(), bytes.size()});
  ASSERT_TRUE(code.ok()) << code.message();
  EXPECT_EQ(code->numUnits(), 3u);
  EXPECT_EQ(code->moduleOf(1), 1u);
  EXPECT_EQ(code->moduleOf(2), 0u);
  EXPECT_EQ(code->archNames(), "sm_80, sm_90a");
  // The very architecture, a later one of its generation, later ones by PTX.
  EXPECT_EQ(firstImage(*code, 80, false), "cubin bsm_80");
  EXPECT_EQ(firstImage(*code, 89, false), "cubin bsm_80");
  EXPECT_EQ(firstImage(*code, 90, false), "cubin bsm_90a");
  EXPECT_EQ(firstImage(*code, 100, false), "bsm_80");
  EXPECT_EQ(firstImage(*code, 90, true), "bsm_90a");
  // "a" code runs nowhere else, and nothing runs on what is older.
  EXPECT_EQ(firstImage(*code, 75, false), "nothing");
}

TEST(DeviceCode, RefusesDamage) {
  std::vector<uint8_t> whole = makeSection();
  for (size_t at : {size_t(0), size_t(8), size_t(20), size_t(60),
                    whole.size() / 2, whole.size() - 1}) {
    std::vector<uint8_t> bytes = whole;
    bytes[at] ^= 0x40;
    EXPECT_FALSE(rt::DeviceCode::load({bytes.data(), bytes.size()}).ok())
        << "byte " << at;
  }
  for (size_t size : {size_t(0), size_t(7), size_t(63), whole.size() - 8}) {
    EXPECT_FALSE(rt::DeviceCode::load({whole.data(), size}).ok()) << size;
  }
}

TEST(CudaDriver, SaysThatThereIsNone) {
  rt::CudaOptions options;
  options.emulated = true;
  setenv("TENON_CUDA_DRIVER", "/nonexistent/libcuda.so", 1);
  auto driver = rt::CudaDriver::open(options);
  unsetenv("TENON_CUDA_DRIVER");
  ASSERT_FALSE(driver.ok());
  EXPECT_NE(driver.message().find("no CUDA driver"), std::string::npos)
      << driver.message();
}

} // namespace
