//===- fuzz_tokenizer_json.cpp - tokenizers from any JSON ----------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/tokenizer/Tokenizer.h"
#include "runtime/text/Tokenizer.h"

using namespace tenon;

/// Compiles the bytes as a tokenizer.json. What compiles must load, encode any
/// text, and decode any ids.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  llvm::StringRef json(reinterpret_cast<const char *>(data), size);
  auto table = codegen::compileTokenizer(json, "fuzz");
  if (!table) {
    llvm::consumeError(table.takeError());
    return 0;
  }
  auto made = rt::Tokenizer::create({table->data(), table->size()});
  if (!made.ok())
    __builtin_trap();
  std::vector<uint32_t> ids;
  for (std::string_view text : {"a B\xc3\xa9  12\xff\xe4\xbd\xa0 <s>", "", " "})
    (void)(*made)->encode(text, true, ids);
  for (uint32_t id : {0u, 1u, 7u, 4000000000u})
    ids.push_back(id);
  (void)(*made)->decode(ids, true);
  rt::StreamDecoder decoder(**made);
  for (uint32_t id : ids)
    (void)decoder.add(id);
  (void)decoder.finish();
  return 0;
}
