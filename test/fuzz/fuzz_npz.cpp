//===- fuzz_npz.cpp - tensors from any bytes ----------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/Inflate.h"
#include "runtime/Npz.h"

using namespace tenon::rt;

/// Reads the bytes as .npz or .npy, and as a deflate stream. What can be read
/// must come back the same after writing.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  Bytes bytes(data, size);
  std::vector<uint8_t> out(size % 5000);
  (void)inflate(bytes, out);
  auto arrays = readNpz(bytes);
  if (!arrays.ok())
    return 0;
  std::vector<NpyView> views;
  for (const NpyArray &array : *arrays)
    views.push_back({array.name, array.dtype, array.shape, array.data.get()});
  auto written = writeNpz(views);
  if (!written.ok())
    return 0;
  auto again = readNpz(*written);
  if (!again.ok() || again->size() != arrays->size())
    __builtin_trap();
  for (size_t i = 0; i < views.size(); ++i)
    if ((*again)[i].shape != views[i].shape ||
        (*again)[i].bytes != (*arrays)[i].bytes)
      __builtin_trap();
  return 0;
}
