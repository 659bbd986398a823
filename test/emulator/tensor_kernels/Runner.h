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

} // namespace tenon::emu

#endif // TENON_TEST_EMULATOR_TENSOR_KERNELS_RUNNER_H
