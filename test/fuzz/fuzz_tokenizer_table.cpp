//===- fuzz_tokenizer_table.cpp - tokenizers from any table --------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/text/Tokenizer.h"

#include <cstring>

using namespace tenon::rt;

/// Loads the bytes as a tokenizer's table, as they are and with a checksum that
/// is right, so that what it guards is reached too; then encodes and decodes.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::vector<uint64_t> aligned(size / 8 + 1);
  auto *bytes = reinterpret_cast<uint8_t *>(aligned.data());
  if (size != 0)
    std::memcpy(bytes, data, size);
  (void)Tokenizer::create({bytes, size});
  if (size < sizeof(TextHeader))
    return 0;
  TextHeader header;
  std::memcpy(&header, bytes, sizeof(header));
  header.totalBytes = size;
  std::memcpy(bytes, &header, sizeof(header));
  header.textChecksum = textChecksum({bytes, size});
  std::memcpy(bytes, &header, sizeof(header));
  auto made = Tokenizer::create({bytes, size});
  if (!made.ok())
    return 0;
  std::vector<uint32_t> ids;
  for (std::string_view text : {"a B\xc3\xa9  12\xff\xe4\xbd\xa0 <s>", "", " "})
    (void)(*made)->encode(text, true, ids);
  ids.resize(std::min<size_t>(ids.size(), 1000));
  for (uint32_t id : {0u, 1u, 7u, 4000000000u})
    ids.push_back(id);
  (void)(*made)->decode(ids, true);
  (void)(*made)->chat();
  return 0;
}
