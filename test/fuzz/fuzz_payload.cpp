//===- fuzz_payload.cpp - any bytes as an artifact -----------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Any bytes open as an artifact or give an error; of what opens, every section
/// can be read.
///
//===----------------------------------------------------------------------===//

#include "runtime/Npz.h"
#include "runtime/Payload.h"

#include <cstdio>
#include <cstdlib>
#include <string>
#include <unistd.h>

using namespace tenon::rt;

namespace {

/// A file without a name, as a path.
class File {
public:
  File() : file(std::tmpfile()) {
    if (!file)
      std::abort();
    path = "/proc/self/fd/" + std::to_string(fileno(file));
  }
  ~File() { std::fclose(file); }

  const std::string &write(const uint8_t *data, size_t size) {
    if (ftruncate(fileno(file), 0) != 0 ||
        pwrite(fileno(file), data, size, 0) != ssize_t(size))
      std::abort();
    return path;
  }

private:
  FILE *file;
  std::string path;
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static File file;
  const std::string &path = file.write(data, size);
  for (WeightPages pages : {WeightPages::Map, WeightPages::Huge}) {
    auto payload = Payload::open(path, pages);
    if (!payload.ok())
      continue;
    (void)payload->verifyWeights(1);
    (void)readNpz(payload->golden());
  }
  return 0;
}
