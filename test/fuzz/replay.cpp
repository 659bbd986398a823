//===- replay.cpp - runs a fuzz target without libFuzzer ----------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

namespace {

/// The files that \p path is or holds, in order of their names.
std::vector<std::filesystem::path> filesOf(const std::filesystem::path &path) {
  if (!std::filesystem::is_directory(path))
    return {path};
  std::vector<std::filesystem::path> files;
  for (const auto &entry : std::filesystem::directory_iterator(path))
    files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

} // namespace

/// usage: TARGET ROUNDS [FILE-OR-FOLDER...]: feeds the target these seeds and
/// ROUNDS changed copies of them (random bytes when there are none), always the
/// same ones, so that a fuzz target is an ordinary test too. With TENON_VERBOSE
/// set, names each file first.
int main(int argc, char **argv) {
  long rounds = argc > 1 ? std::strtol(argv[1], nullptr, 10) : 1000;
  std::vector<std::vector<uint8_t>> seeds;
  for (int i = 2; i < argc; ++i)
    for (const std::filesystem::path &path : filesOf(argv[i])) {
      std::ifstream file(path, std::ios::binary);
      seeds.emplace_back(std::istreambuf_iterator<char>(file),
                         std::istreambuf_iterator<char>());
      if (std::getenv("TENON_VERBOSE"))
        std::fprintf(stderr, "%s\n", path.c_str());
      LLVMFuzzerTestOneInput(seeds.back().data(), seeds.back().size());
    }
  if (seeds.empty())
    seeds.emplace_back(400);
  std::mt19937 random(12345);
  for (long round = 0; round < rounds; ++round) {
    std::vector<uint8_t> bytes = seeds[random() % seeds.size()];
    for (unsigned n = random() % 8 + 1; n > 0 && !bytes.empty(); --n) {
      size_t at = random() % bytes.size();
      switch (random() % 4) {
      case 0:
        bytes[at] = uint8_t(random());
        break;
      case 1:
        bytes[at] = random() % 2 ? 0xff : 0;
        break;
      case 2:
        bytes.resize(at);
        break;
      default:
        bytes.insert(bytes.begin() + long(at), 4, uint8_t(random()));
      }
    }
    bytes.shrink_to_fit();
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  }
  std::printf("%ld rounds\n", rounds);
  return 0;
}
