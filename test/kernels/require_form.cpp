//===- require_form.cpp - ends where the CPU lacks the program's form -----===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include <cpuid.h>
#include <cstdio>
#include <cstring>
#include <sys/syscall.h>
#include <unistd.h>

/// Whether there are tiles; they must be asked for, once for the process.
static bool hasTiles() {
  constexpr long requestPermission = 0x1023, tileData = 18;
  constexpr unsigned needed = 1u << 22 | 1u << 24;
  unsigned a, b, c, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & needed) == needed &&
         syscall(SYS_arch_prctl, requestPermission, tileData) == 0;
}

/// Runs before every other constructor, which may already use instructions of
/// the form. 77 is what ctest takes for "skipped".
__attribute__((constructor(101))) static void requireForm() {
  __builtin_cpu_init();
  const char *form = TN_CPU_FORM;
  bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  bool avx512 = avx2 && __builtin_cpu_supports("avx512f") &&
                __builtin_cpu_supports("avx512bw") &&
                __builtin_cpu_supports("avx512dq") &&
                __builtin_cpu_supports("avx512vl");
  bool vnni = avx512 && __builtin_cpu_supports("avx512vnni");
  bool amx = vnni && hasTiles();
  if ((!strcmp(form, "avx2") && !avx2) ||
      (!strcmp(form, "avx512") && !avx512) ||
      (!strcmp(form, "avx512vnni") && !vnni) ||
      (!strcmp(form, "avx512amx") && !amx)) {
    fprintf(stderr, "skipped: no %s on this machine\n", form);
    _exit(77);
  }
}
