//===- Runner.h - runs a kernel of a PTX file on the emulator's core ------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_TEST_EMULATOR_TENSOR_KERNELS_RUNNER_H
#define TENON_TEST_EMULATOR_TENSOR_KERNELS_RUNNER_H

#include "runtime/emulator/exec/Decoder.h"
#include "runtime/emulator/exec/State.h"

#include <cmath>
#include <cstring>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <random>
#include <string>
#include <vector>

namespace tenon::emu {

/// Device memory of T, filled from the host.
template <typename T> class DeviceArray {
public:
  explicit DeviceArray(const std::vector<T> &values)
      : DeviceArray(values.size(), false) {
    std::memcpy(data(), values.data(), bytes());
    DeviceMemory::get().markWritten(address, bytes());
  }
  /// Memory that nobody has written.
  explicit DeviceArray(size_t count) : DeviceArray(count, false) {}
  ~DeviceArray() { DeviceMemory::get().release(address); }
  DeviceArray(const DeviceArray &) = delete;

  T *data() const { return reinterpret_cast<T *>(address); }
  size_t bytes() const { return count * sizeof(T); }
  const T &operator[](size_t i) const { return data()[i]; }

  uint64_t address;

private:
  DeviceArray(size_t count, bool) : count(count) {
    address = DeviceMemory::get().allocate(std::max<size_t>(bytes(), 1),
                                           Allocation::Device);
  }
  size_t count;
};

/// Kernel arguments, each aligned to its size (a tensor map: to 128).
class Arguments {
public:
  template <typename T> Arguments &add(const T &value) {
    size_t align = sizeof(T) > 8 ? 128 : sizeof(T);
    bytes.resize((bytes.size() + align - 1) / align * align);
    const char *from = reinterpret_cast<const char *>(&value);
    bytes.insert(bytes.end(), from, from + sizeof(T));
    return *this;
  }
  std::vector<char> bytes;
};

/// A module of this folder.
class Kernels {
public:
  Kernels(const std::string &file, unsigned arch) {
    std::ifstream in(std::string(TN_TEST_DIR) + "/" + file);
    std::string text((std::istreambuf_iterator<char>(in)), {});
    auto loaded = load(text, arch);
    if (loaded.ok())
      image = std::move(*loaded);
    else
      ADD_FAILURE() << file << ": " << loaded.status().message();
  }

  struct Outcome {
    Fault fault = Fault::None;
    std::string text;
    std::vector<OpStats> stats;
  };

  Outcome run(const std::string &name, Extent grid, Extent block,
              const Arguments &arguments, uint32_t dynamicShared = 0,
              Extent cluster = {}) {
    Outcome outcome;
    auto found = image ? image->byName.find(name) : image->byName.end();
    if (!image || found == image->byName.end()) {
      outcome.text = "no kernel " + name;
      outcome.fault = Fault::BadInstruction;
      return outcome;
    }
    Launch launch;
    launch.image = image.get();
    launch.kernel = found->second;
    launch.grid = grid;
    launch.block = block;
    launch.cluster = cluster;
    launch.dynamicShared = dynamicShared;
    launch.sharedEnd =
        static_cast<uint32_t>(found->second->staticShared + dynamicShared);
    launch.parameters = arguments.bytes;
    launch.maxInstructions = 20'000'000;
    // Parameters whose address is taken lie in memory.
    launch.parameterAddress = DeviceMemory::get().allocate(
        arguments.bytes.size(), Allocation::Parameters, name);
    std::memcpy(reinterpret_cast<void *>(launch.parameterAddress),
                arguments.bytes.data(), arguments.bytes.size());
    launch.memory = DeviceMemory::get().table();
    emu::run(launch);
    DeviceMemory::get().release(launch.parameterAddress);
    outcome.fault = launch.findings.fault();
    outcome.text = launch.findings.text();
    outcome.stats = std::move(launch.stats);
    return outcome;
  }

  const Image *operator->() const { return image.get(); }

private:
  std::unique_ptr<Image> image;
};

/// Wavefronts of shared memory beyond the least possible, over the operations
/// of a kernel whose text begins with `prefix`.
inline uint64_t extraWavefronts(const Code &code,
                                const std::vector<OpStats> &stats,
                                std::string_view prefix) {
  uint64_t extra = 0;
  for (size_t i = 0; i != code.ops.size(); ++i) {
    const OpStats &s = stats[code.ops[i].id];
    if (code.where[i].text.substr(0, prefix.size()) == prefix)
      extra += s.pieces - s.ideal;
  }
  return extra;
}

/// C[m, n] = A[m, k] * B[n, k]^T in a 16-bit type, on the device and exactly.
struct Problem {
  int m, n, k;
};

/// Values in [-1, 1), the same for the same problem.
struct Operands {
  Operands(Problem p, uint16_t (*round)(float)) {
    std::mt19937 random(unsigned(p.m * 7 + p.n * 3 + p.k));
    std::uniform_real_distribution<float> unit(-1, 1);
    a.resize(size_t(p.m) * p.k);
    b.resize(size_t(p.n) * p.k);
    for (std::vector<uint16_t> *values : {&a, &b})
      for (uint16_t &v : *values)
        v = round(unit(random));
  }
  std::vector<uint16_t> a, b;
};

/// The greatest error of `found(element)` over `bound(exact, magnitudes)`, the
/// latter the sum of the products' magnitudes.
template <typename Found, typename Bound>
double worstError(Problem p, const Operands &x, float (*widen)(uint16_t),
                  Found found, Bound bound) {
  double worst = 0;
  for (int i = 0; i < p.m; ++i)
    for (int j = 0; j < p.n; ++j) {
      double exact = 0, magnitudes = 1e-30;
      for (int l = 0; l < p.k; ++l) {
        double product = double(widen(x.a[size_t(i) * p.k + l])) *
                         widen(x.b[size_t(j) * p.k + l]);
        exact += product;
        magnitudes += std::fabs(product);
      }
      double error = std::fabs(found(size_t(i) * p.n + j) - exact);
      worst = std::max(worst, error / bound(exact, magnitudes));
    }
  return worst;
}

struct GemmResult {
  Fault fault;
  std::string text;
  double worst = 0; ///< error over the bound; more than 1 is wrong
  std::vector<OpStats> stats;
};

/// A planted fault.
struct Planted {
  int fault;
  const char *found; ///< what may be reported; "none": the result is wrong
  const char *text;  ///< in the report
};

inline void expectFound(const Planted &planted, const GemmResult &r) {
  EXPECT_NE(std::string(planted.found).find(nameOf(r.fault)), std::string::npos)
      << nameOf(r.fault) << " " << r.text;
  EXPECT_NE(r.text.find(planted.text), std::string::npos) << r.text;
  if (r.fault == Fault::None) {
    EXPECT_GT(r.worst, 1);
  } else {
    EXPECT_NE(r.text.find("kernel gemm"), std::string::npos) << r.text;
  }
}

} // namespace tenon::emu

#endif // TENON_TEST_EMULATOR_TENSOR_KERNELS_RUNNER_H
