//===- Cpu.cpp - the CPU forms -------------------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/target/Target.h"
#include "ir/support/Diag.h"
#include "runtime/format/units.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace tenon::codegen {

namespace {

constexpr llvm::StringLiteral amxFlags[] = {
    "-march=x86-64-v4", "-mprefer-vector-width=512", "-mamx-tile", "-mamx-bf16",
    "-mavx512vnni"};
constexpr llvm::StringLiteral vnniFlags[] = {
    "-march=x86-64-v4", "-mprefer-vector-width=512", "-mavx512vnni"};
constexpr llvm::StringLiteral v4Flags[] = {"-march=x86-64-v4",
                                           "-mprefer-vector-width=512"};
constexpr llvm::StringLiteral v3Flags[] = {"-march=x86-64-v3"};
constexpr llvm::StringLiteral v1Flags[] = {"-march=x86-64"};

const CpuForm forms[] = {
    {"x86-64-v4-amx", amxFlags,
     TN_AMX | TN_AVX512_VNNI | TN_AVX512 | TN_AVX2_FMA},
    {"x86-64-v4-vnni", vnniFlags, TN_AVX512_VNNI | TN_AVX512 | TN_AVX2_FMA},
    {"x86-64-v4", v4Flags, TN_AVX512 | TN_AVX2_FMA},
    {"x86-64-v3", v3Flags, TN_AVX2_FMA},
    {"x86-64", v1Flags, 0},
};

#if defined(__x86_64__)
/// Whether the processor has tiles and the kernel lets this process use them.
bool hasTiles() {
  constexpr long requestPermission = 0x1023, tileData = 18;
  constexpr unsigned needed = 1u << 22 | 1u << 24 | 1u << 25;
  unsigned a, b, c, d = 0; // d: AMX-BF16 22, tile 24, int8 25
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & needed) == needed &&
         syscall(SYS_arch_prctl, requestPermission, tileData) == 0;
}
#endif

bool runsHere(const CpuForm &form) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if ((form.features & TN_AMX) && !hasTiles())
    return false;
  if ((form.features & TN_AVX512) && !__builtin_cpu_supports("x86-64-v4"))
    return false;
  if ((form.features & TN_AVX512_VNNI) && !__builtin_cpu_supports("avx512vnni"))
    return false;
  return !(form.features & TN_AVX2_FMA) || __builtin_cpu_supports("x86-64-v3");
#else
  return form.features == 0;
#endif
}

llvm::Error addForm(llvm::StringRef name,
                    std::vector<const CpuForm *> &chosen) {
  const CpuForm *found = name == "native"
                             ? llvm::find_if(forms, runsHere)
                             : llvm::find_if(forms, [&](const CpuForm &form) {
                                 return form.name == name;
                               });
  if (found == std::end(forms)) {
    std::string known = "native";
    for (const CpuForm &form : forms)
      known += (", " + form.name).str();
    return userError("no CPU form '{0}'; there are {1}", name, known);
  }
  if (!llvm::is_contained(chosen, found))
    chosen.push_back(found);
  return llvm::Error::success();
}

} // namespace

llvm::ArrayRef<CpuForm> cpuForms() { return forms; }

llvm::Expected<std::vector<const CpuForm *>>
parseCpuForms(llvm::StringRef list) {
  llvm::SmallVector<llvm::StringRef> names;
  list.split(names, ',');
  std::vector<const CpuForm *> chosen;
  for (llvm::StringRef name : names)
    if (llvm::Error error = addForm(name.trim(), chosen))
      return error;
  llvm::sort(chosen); // in the table's order: best first
  return chosen;
}

} // namespace tenon::codegen
