//===- Cpu.cpp - what the processor can do ------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/Cpu.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <sched.h>
#include <set>
#include <sys/syscall.h>
#include <unistd.h>
#ifdef __x86_64__
#include <cpuid.h>
#endif

namespace tenon::rt {
namespace {

struct FeatureName {
  uint32_t bit;
  const char *name;
};
constexpr FeatureName names[] = {
    {TN_AVX2_FMA, "AVX2+FMA"},        {TN_AVX512, "AVX-512"},
    {TN_AVX512_VNNI, "AVX-512 VNNI"}, {TN_AVX512_BF16, "AVX-512 BF16"},
    {TN_AVX512_FP16, "AVX-512 FP16"}, {TN_AMX, "AMX"},
};

bool hasAll(uint32_t word, std::initializer_list<unsigned> bits) {
  for (unsigned bit : bits)
    if (!(word >> bit & 1))
      return false;
  return true;
}

#ifdef __x86_64__
/// XCR0: which register state the operating system saves.
uint64_t enabledState() {
  uint32_t low, high;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return uint64_t(high) << 32 | low;
}

/// AMX's tile data must also be asked for, once for the process.
bool requestTiles() {
  constexpr long requestPermission = 0x1023, tileData = 18;
  return syscall(SYS_arch_prctl, requestPermission, tileData) == 0;
}

uint32_t detect() {
  unsigned a, b, c, d, a1, b1, c1, d1;
  if (!__get_cpuid(1, &a1, &b1, &c1, &d1) || !hasAll(c1, {27, 28}) ||
      !__get_cpuid_count(7, 0, &a, &b, &c, &d))
    return 0;
  unsigned subleaves = a, eax1 = 0, unused;
  if (subleaves >= 1)
    __get_cpuid_count(7, 1, &eax1, &unused, &unused, &unused);
  unsigned extended = 0;
  __get_cpuid(0x80000001, &unused, &unused, &extended, &unused);
  uint64_t state = enabledState();
  uint32_t features = 0;
  // Level 1: FMA 12, MOVBE 22, F16C 29. 7: BMI1 3, AVX2 5, BMI2 8. LZCNT 5.
  if ((state & 0x6) == 0x6 && hasAll(c1, {12, 22, 29}) &&
      hasAll(b, {3, 5, 8}) && hasAll(extended, {5}))
    features |= TN_AVX2_FMA;
  // F 16, DQ 17, CD 28, BW 30, VL 31; state: opmask and the upper halves.
  if ((features & TN_AVX2_FMA) && (state & 0xe6) == 0xe6 &&
      hasAll(b, {16, 17, 28, 30, 31}))
    features |= TN_AVX512;
  if (features & TN_AVX512) {
    features |= hasAll(c, {11}) ? TN_AVX512_VNNI : 0;
    features |= hasAll(eax1, {5}) ? TN_AVX512_BF16 : 0;
    features |= hasAll(d, {23}) ? TN_AVX512_FP16 : 0;
    // AMX-BF16 22, tile 24, int8 25; state: tile configuration and data.
    bool tiles = hasAll(d, {22, 24, 25}) && (state & 0x60000) == 0x60000;
    features |= tiles && requestTiles() ? TN_AMX : 0;
  }
  return features;
}
#else
uint32_t detect() { return 0; }
#endif

/// The first line of a small file in /proc or /sys, without its end.
bool readLine(const std::string &path, std::string &line) {
  std::unique_ptr<FILE, int (*)(FILE *)> file(std::fopen(path.c_str(), "re"),
                                              std::fclose);
  char buffer[512];
  if (!file || !std::fgets(buffer, sizeof(buffer), file.get()))
    return false;
  buffer[std::strcspn(buffer, "\n")] = '\0';
  line = buffer;
  return true;
}

/// CPUs that the quota of the cgroup at `folder` allows, 0 when it has none.
unsigned quotaOf(const std::string &folder) {
  std::string line;
  double quota = -1, period = 0;
  if (readLine(folder + "/cpu.max", line)) { // "max 100000" has no number
    if (std::sscanf(line.c_str(), "%lf %lf", &quota, &period) != 2)
      return 0;
  } else if (readLine(folder + "/cpu.cfs_quota_us", line)) {
    quota = std::strtod(line.c_str(), nullptr);
    if (readLine(folder + "/cpu.cfs_period_us", line))
      period = std::strtod(line.c_str(), nullptr);
  }
  if (quota <= 0 || period <= 0)
    return 0;
  unsigned cpus = unsigned(quota / period + 0.999);
  return cpus == 0 ? 1 : cpus;
}

/// The least quota of this process's cgroups and those above, 0 when none.
unsigned cgroupQuota() {
  std::unique_ptr<FILE, int (*)(FILE *)> file(
      std::fopen("/proc/self/cgroup", "re"), std::fclose);
  unsigned least = 0;
  char buffer[4096];
  while (file && std::fgets(buffer, sizeof(buffer), file.get())) {
    buffer[std::strcspn(buffer, "\n")] = '\0';
    char *controllers = std::strchr(buffer, ':');
    char *path = controllers ? std::strchr(controllers + 1, ':') : nullptr;
    if (!path)
      continue;
    *controllers++ = '\0';
    *path++ = '\0';
    bool unified = *controllers == '\0';
    if (!unified && !std::strstr(controllers, "cpu"))
      continue;
    std::string root = unified ? "/sys/fs/cgroup" : "/sys/fs/cgroup/cpu";
    for (std::string at = path;; at.resize(at.rfind('/'))) {
      unsigned quota = quotaOf(root + at);
      least = quota != 0 && (least == 0 || quota < least) ? quota : least;
      if (at.find('/') == std::string::npos)
        break;
    }
  }
  return least;
}

/// The CPUs this process may run on.
cpu_set_t allowedCpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0)
    for (long i = 0; i < sysconf(_SC_NPROCESSORS_ONLN) && i < CPU_SETSIZE; ++i)
      CPU_SET(size_t(i), &set);
  return set;
}

} // namespace

uint32_t cpuFeatures() {
  static const uint32_t features = detect();
  return features;
}

std::string featureNames(uint32_t features) {
  std::string out;
  for (const FeatureName &feature : names)
    if (features & feature.bit)
      out += (out.empty() ? "" : ", ") + std::string(feature.name);
  return out.empty() ? "none beyond x86-64" : out;
}

Result<const tn_form *> chooseForm(std::span<const tn_form> forms,
                                   uint32_t features, const std::string &name) {
  std::string known;
  for (const tn_form &form : forms)
    known += (known.empty() ? "'" : ", '") + std::string(form.name) + "'";
  for (const tn_form &form : forms) {
    if (!name.empty() && name != form.name)
      continue;
    if ((form.features & ~features) == 0)
      return &form;
    if (!name.empty())
      return TN_ERROR("CPU form '%s' needs %s, which this processor lacks",
                      form.name,
                      featureNames(form.features & ~features).c_str());
  }
  if (!name.empty())
    return TN_ERROR("no CPU form '%s'; there are %s", printable(name).c_str(),
                    known.c_str());
  return TN_ERROR("compiled for %s, none of which runs on this processor (it "
                  "has %s); compile with another --cpu",
                  known.empty() ? "no CPU" : known.c_str(),
                  featureNames(features).c_str());
}

unsigned availableCpus() {
  cpu_set_t set = allowedCpus();
  int count = CPU_COUNT(&set);
  return count > 0 ? unsigned(count) : 1;
}

unsigned defaultThreads() {
  // CPUs of one core share a list of siblings; without one each is a core.
  cpu_set_t set = allowedCpus();
  std::set<std::string> cores;
  for (size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &set))
      continue;
    std::string id = "cpu" + std::to_string(cpu);
    readLine("/sys/devices/system/cpu/" + id + "/topology/thread_siblings_list",
             id);
    cores.insert(id);
  }
  unsigned threads = cores.empty() ? 1 : unsigned(cores.size());
  unsigned quota = cgroupQuota();
  return quota != 0 && quota < threads ? quota : threads;
}

} // namespace tenon::rt
