//===- Instructions.cpp - single instructions against their definitions --===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "test/emulator/Instructions.h"

#include "test/emulator/Gpu.h"

#include <gtest/gtest.h>

using namespace tenon::test;

namespace {

std::string kernelOf(const Case &test, size_t index) {
  std::string widen = test.result == 'r'   ? "cvt.u64.u32 %d, %r;\n"
                      : test.result == 'h' ? "cvt.u64.u16 %d, %h;\n"
                                           : "";
  return ".visible .entry case" + std::to_string(index) +
         "(.param .u64 in, .param .u64 out, .param .u32 count)\n{\n"
         ".reg .pred %p, %q, %in;\n.reg .b16 %h, %h1, %h2, %h3, %ha, %hb, "
         "%hc;\n"
         ".reg .b32 %r, %r1, %r2, %r3, %ra, %rb, %rc, %t<5>;\n"
         ".reg .b64 %d, %d1, %d2, %d3, %a, %b, %c, %at<5>;\n"
         "mov.u32 %t1, %tid.x;\nmov.u32 %t2, %ctaid.x;\nmov.u32 %t3, %ntid.x;\n"
         "mad.lo.u32 %t1, %t2, %t3, %t1;\nld.param.u32 %t4, [count];\n"
         "setp.ge.u32 %in, %t1, %t4;\n@%in ret;\n"
         "ld.param.u64 %at1, [in];\nld.param.u64 %at2, [out];\n"
         "mul.wide.u32 %at3, %t1, 24;\nadd.u64 %at1, %at1, %at3;\n"
         "mul.wide.u32 %at3, %t1, 8;\nadd.u64 %at2, %at2, %at3;\n"
         "ld.global.u64 %a, [%at1];\nld.global.u64 %b, [%at1+8];\n"
         "ld.global.u64 %c, [%at1+16];\n"
         "cvt.u32.u64 %ra, %a;\ncvt.u32.u64 %rb, %b;\ncvt.u32.u64 %rc, %c;\n"
         "cvt.u16.u64 %ha, %a;\ncvt.u16.u64 %hb, %b;\ncvt.u16.u64 %hc, %c;\n"
         "mov.u64 %d, 0;\nmov.u32 %r, 0;\nmov.u16 %h, 0;\n" +
         std::string(test.text) + "\n" + widen +
         "st.global.u64 [%at2], %d;\nret;\n}\n";
}

} // namespace

void tenon::test::checkCases(const std::vector<Case> &cases,
                             const std::vector<Operands> &values,
                             const std::string &target) {
  Gpu::get().reset();
  Array<Operands> in(values);
  Array<uint64_t> out(values.size());
  auto count = static_cast<uint32_t>(values.size());
  for (size_t i = 0; i != cases.size(); ++i) {
    Module module(".version 8.3\n.target " + target + "\n.address_size 64\n" +
                  kernelOf(cases[i], i));
    ASSERT_EQ(module.error, "") << cases[i].text;
    CUfunction function = module.function(("case" + std::to_string(i)).c_str());
    ASSERT_EQ(launch(function, {(count + 63) / 64}, {64}, 0, in.pointer,
                     out.pointer, count),
              CUDA_SUCCESS)
        << cases[i].text << "\n"
        << Gpu::get().lastReport();
    std::vector<uint64_t> got = out.read();
    for (size_t j = 0; j != values.size(); ++j) {
      uint64_t expected = cases[i].expected(values[j]);
      if (cases[i].result == 'r')
        expected &= 0xffffffff;
      if (cases[i].result == 'h')
        expected &= 0xffff;
      ASSERT_EQ(got[j], expected)
          << std::hex << cases[i].text << "\na = " << values[j].a
          << ", b = " << values[j].b << ", c = " << values[j].c << ": got "
          << got[j] << ", expected " << expected;
    }
  }
}

std::vector<Operands>
tenon::test::triples(const std::vector<uint64_t> &values) {
  std::vector<Operands> all;
  for (uint64_t a : values)
    for (uint64_t b : values)
      for (uint64_t c : values)
        all.push_back({a, b, c});
  return all;
}
