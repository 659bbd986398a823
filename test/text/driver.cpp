//===- driver.cpp - a tokenizer.json applied to many texts ---------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

///
/// \file
/// For comparisons with other tokenizers:
///
///   text_driver TOKENIZER.json encode|encode-special|decode|decode-special|
///     stream|table < IN > OUT
///
/// Records are little-endian: texts are a u32 length and its bytes, ids a u32
/// count and that many u32. `encode` turns texts into ids, `decode` and
/// `stream` (one id at a time) turn ids into texts; `-special` adds, or keeps,
/// special tokens. Standard error gets the megabytes of text and the seconds.

#include "codegen/tokenizer/Tokenizer.h"
#include "runtime/text/Tokenizer.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include <ctime>

using namespace tenon;

namespace {

/// Reads records from bytes.
class Reader {
public:
  explicit Reader(llvm::StringRef bytes) : rest(bytes) {}
  bool more() const { return rest.size() >= 4; }
  uint32_t number() { return rt::readAs<uint32_t>(take(4)); }
  std::string_view text() {
    uint32_t length = number();
    return {reinterpret_cast<const char *>(take(length)), length};
  }
  std::vector<uint32_t> ids() {
    std::vector<uint32_t> out(number());
    for (uint32_t &id : out)
      id = number();
    return out;
  }

private:
  const uint8_t *take(size_t count) {
    if (rest.size() < count) {
      llvm::errs() << "input ends inside a record\n";
      std::exit(1);
    }
    const uint8_t *at = rest.bytes_begin();
    rest = rest.drop_front(count);
    return at;
  }
  llvm::StringRef rest;
};

void writeNumber(std::string &out, uint32_t number) {
  out.append(reinterpret_cast<const char *>(&number), 4);
}

void writeText(std::string &out, std::string_view text) {
  writeNumber(out, uint32_t(text.size()));
  out += text;
}

rt::Result<std::string> stream(rt::Tokenizer &tokenizer,
                               const std::vector<uint32_t> &ids) {
  rt::StreamDecoder decoder(tokenizer);
  std::string all;
  for (uint32_t id : ids) {
    auto part = decoder.add(id);
    if (!part.ok())
      return part;
    all += *part;
  }
  auto rest = decoder.finish();
  return rest.ok() ? rt::Result<std::string>(all + *rest) : rest;
}

} // namespace

int main(int argc, char **argv) {
  auto fail = [](const llvm::Twine &message) {
    llvm::errs() << message << '\n';
    return 1;
  };
  if (argc != 3)
    return fail("usage: text_driver TOKENIZER.json MODE < IN > OUT");
  auto json = llvm::MemoryBuffer::getFile(argv[1]);
  if (!json)
    return fail("cannot read the tokenizer");
  auto table = codegen::compileTokenizer((*json)->getBuffer(), argv[1]);
  if (!table)
    return fail(llvm::toString(table.takeError()));
  auto made = rt::Tokenizer::create({table->data(), table->size()});
  if (!made.ok())
    return fail(made.message());
  rt::Tokenizer &tokenizer = **made;
  if (llvm::StringRef(argv[2]) == "table") {
    llvm::outs().write(reinterpret_cast<const char *>(table->data()),
                       table->size());
    return 0;
  }
  auto input = llvm::MemoryBuffer::getSTDIN();
  if (!input)
    return fail("cannot read standard input");
  llvm::StringRef mode = argv[2];
  Reader reader((*input)->getBuffer());
  std::string out;
  size_t bytes = 0;
  std::clock_t begin = std::clock();
  while (reader.more()) {
    if (mode.starts_with("encode")) {
      std::string_view text = reader.text();
      bytes += text.size();
      std::vector<uint32_t> ids;
      if (auto status = tokenizer.encode(text, mode == "encode-special", ids);
          !status.ok())
        return fail(status.message());
      writeNumber(out, uint32_t(ids.size()));
      for (uint32_t id : ids)
        writeNumber(out, id);
      continue;
    }
    std::vector<uint32_t> ids = reader.ids();
    auto text = mode == "stream"
                    ? stream(tokenizer, ids)
                    : tokenizer.decode(ids, mode != "decode-special");
    if (!text.ok())
      return fail(text.message());
    bytes += text->size();
    writeText(out, *text);
  }
  double seconds = double(std::clock() - begin) / CLOCKS_PER_SEC;
  llvm::outs() << out;
  llvm::errs() << llvm::format("%.2f MB in %.2f s of processor time\n",
                               double(bytes) / 1e6, seconds);
  return 0;
}
