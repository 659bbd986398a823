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
#include <vector>

namespace test {

/// What one instruction, or some of them, did: pieces are wavefronts of shared
/// memory, or 32-byte sectors of global memory, `ideal` the least for the
/// bytes.
struct Accesses {
  std::string text;
  int64_t count = 0, bytes = 0, pieces = 0, ideal = 0;
  int64_t conflicts() const { return pieces - ideal; }
  double ratio() const { return ideal ? double(pieces) / double(ideal) : 1; }
};

/// Those instructions in the emulator's JSON whose text begins with `prefix`.
inline std::vector<Accesses> everyAccess(const std::string &json,
                                         const std::string &prefix) {
  std::vector<Accesses> all;
  std::string key = "\"text\": \"";
  for (size_t at = json.find(key + prefix); at != std::string::npos;
       at = json.find(key + prefix, at + 1)) {
    size_t end = json.find('}', at);
    auto number = [&](const char *name) -> int64_t {
      size_t found = json.find("\"" + std::string(name) + "\": ", at);
      return found < end ? atoll(json.c_str() + found + strlen(name) + 4) : 0;
    };
    Accesses a;
    size_t text = at + key.size();
    a.text = json.substr(text, json.find('"', text) - text);
    a.count = number("count");
    a.bytes = number("bytes");
    a.pieces = number("wavefronts") + number("sectors");
    a.ideal = number("ideal");
    all.push_back(a);
  }
  return all;
}

/// All of them together.
inline Accesses accessesOf(const std::string &json, const std::string &prefix) {
  Accesses sum;
  for (const Accesses &a : everyAccess(json, prefix)) {
    sum.count += a.count;
    sum.bytes += a.bytes;
    sum.pieces += a.pieces;
    sum.ideal += a.ideal;
  }
  return sum;
}

} // namespace test

#endif // TENON_TEST_KERNELS_CUDA_COUNTERS_H
