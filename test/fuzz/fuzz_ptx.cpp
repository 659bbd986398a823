//===- fuzz_ptx.cpp - PTX texts from anywhere -----------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

/// \file
/// Loading a text, parsing and decoding, ends with a module or with a message,
/// whatever the text is.

#include "runtime/emulator/exec/Decoder.h"

#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  auto image = tenon::emu::load(
      std::string_view(reinterpret_cast<const char *>(data), size), 90);
  if (image.ok())
    tenon::emu::unload(**image);
  return 0;
}
