//===- counters.h - reading the emulator's counters -----------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_TEST_KERNELS_CUDA_COUNTERS_H
#define TENON_TEST_KERNELS_CUDA_COUNTERS_H

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

namespace test {

/// Accesses of one kind, added up: pieces are wavefronts of shared memory, or
/// 32-byte sectors of global memory, `ideal` the least for the bytes.
struct Accesses {
  int64_t count = 0, bytes = 0, pieces = 0, ideal = 0;
  int64_t conflicts() const { return pieces - ideal; }
  double ratio() const { return ideal ? double(pieces) / double(ideal) : 1; }
};

/// Those instructions in the emulator's JSON whose text begins with `prefix`.
inline Accesses accessesOf(const std::string &json, const std::string &prefix) {
  Accesses sum;
  std::string key = "\"text\": \"" + prefix;
  auto number = [&](size_t from, size_t end, const char *name) -> int64_t {
    size_t at = json.find("\"" + std::string(name) + "\": ", from);
    return at < end ? atoll(json.c_str() + at + strlen(name) + 4) : 0;
  };
  for (size_t at = json.find(key); at != std::string::npos;
       at = json.find(key, at + 1)) {
    size_t end = json.find('}', at);
    sum.count += number(at, end, "count");
    sum.bytes += number(at, end, "bytes");
    sum.pieces += number(at, end, "wavefronts") + number(at, end, "sectors");
    sum.ideal += number(at, end, "ideal");
  }
  return sum;
}

} // namespace test

#endif // TENON_TEST_KERNELS_CUDA_COUNTERS_H
