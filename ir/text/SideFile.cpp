//===- SideFile.cpp - the weights that belong to a text ------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ir/text/SideFile.h"
#include "ir/support/Diag.h"
#include "ir/support/Output.h"
#include "ir/text/Names.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/EndianStream.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/Path.h"

using namespace llvm;

namespace tenon::ir {

namespace {

constexpr StringLiteral magic = "TNWEIGHT";
constexpr uint32_t version = 1;
constexpr uint64_t dataAlignment = 64;

/// Takes little-endian numbers and strings off the front of a buffer; after
/// the end has been passed, `ok` is false and everything is 0.
struct Reader {
  StringRef rest;
  bool ok = true;

  StringRef bytes(uint64_t n) {
    if (n > rest.size()) {
      ok = false;
      rest = {};
      return {};
    }
    StringRef taken = rest.take_front(n);
    rest = rest.drop_front(n);
    return taken;
  }
  template <class T> T number() {
    StringRef taken = bytes(sizeof(T));
    return taken.empty()
               ? T(0)
               : support::endian::read<T, endianness::little>(taken.data());
  }
};

struct Entry {
  StringRef name;
  std::string typeName;
  SmallVector<int64_t, 4> shape;
  uint64_t offset, size;
};

Entry readEntry(Reader &reader) {
  Entry entry;
  entry.name = reader.bytes(reader.number<uint32_t>());
  entry.typeName = reader.bytes(reader.number<uint8_t>()).str();
  for (unsigned rank = reader.number<uint8_t>(); rank != 0; --rank)
    entry.shape.push_back(int64_t(reader.number<uint64_t>()));
  entry.offset = reader.number<uint64_t>();
  entry.size = reader.number<uint64_t>();
  return entry;
}

/// The constant of \p entry; its data is a part of \p buffer.
Expected<ConstantRef> makeConstant(const Entry &entry,
                                   std::shared_ptr<MemoryBuffer> buffer) {
  std::optional<ElementType> element = parseElementType(entry.typeName);
  if (!element)
    return userError("weight '{0}' has the unknown element type '{1}'",
                     entry.name, entry.typeName);
  std::optional<uint64_t> count = elementCount(entry.shape);
  std::optional<uint64_t> size =
      count ? byteSize(*element, *count) : std::nullopt;
  if (!size || *size != entry.size)
    return userError("weight '{0}' has {1} bytes, which its shape contradicts",
                     entry.name, entry.size);
  uint64_t available = buffer->getBufferSize();
  if (entry.offset > available || entry.size > available - entry.offset)
    return userError("weight '{0}' lies outside the file: {1} bytes at {2} of "
                     "{3}; the file may be cut off",
                     entry.name, entry.size, entry.offset, available);
  ArrayRef<uint8_t> data(
      reinterpret_cast<const uint8_t *>(buffer->getBufferStart()) +
          entry.offset,
      entry.size);
  return Constant::dense(*element, entry.shape, data, std::move(buffer),
                         entry.name);
}

uint64_t sizeOf(const Constant &constant) {
  return *byteSize(constant.element(), constant.numElements());
}

/// Writes the elements, a part at a time: a constant may be as large as half of
/// the memory.
void writeData(const Constant &constant, raw_ostream &os) {
  constexpr uint64_t chunk = 1 << 16;
  std::vector<uint8_t> bytes(chunk * 8);
  for (uint64_t at = 0; at < constant.numElements(); at += chunk) {
    uint64_t n = std::min(chunk, constant.numElements() - at);
    constant.read(at, n, bytes.data());
    os.write(reinterpret_cast<const char *>(bytes.data()),
             *byteSize(constant.element(), n));
  }
}

} // namespace

Expected<SideFile> SideFile::read(std::shared_ptr<MemoryBuffer> buffer) {
  Reader reader{buffer->getBuffer()};
  if (reader.bytes(magic.size()) != magic)
    return userError("not a weights file: it does not start with {0}", magic);
  if (uint32_t found = reader.number<uint32_t>(); found != version)
    return userError("weights file of version {0}, expected {1}", found,
                     version);
  SideFile file;
  for (uint32_t n = reader.number<uint32_t>(); n != 0 && reader.ok; --n) {
    Entry entry = readEntry(reader);
    if (!reader.ok)
      break;
    Expected<ConstantRef> constant = makeConstant(entry, buffer);
    if (!constant)
      return constant.takeError();
    if (!file.constants.try_emplace(entry.name, std::move(*constant)).second)
      return userError("weight '{0}' is there twice", entry.name);
  }
  if (!reader.ok)
    return userError("the list of weights is cut off");
  return file;
}

Expected<SideFile> SideFile::open(StringRef path) {
  ErrorOr<std::unique_ptr<MemoryBuffer>> buffer =
      MemoryBuffer::getFile(path, /*IsText=*/false,
                            /*RequiresNullTerminator=*/false);
  if (!buffer)
    return userError("{0}: error: {1}", path, buffer.getError().message());
  Expected<SideFile> file = read(std::move(*buffer));
  if (!file)
    return withPrefix(file.takeError(), path + ": error: ");
  return file;
}

ConstantRef SideFile::lookup(StringRef name) const {
  return constants.lookup(name);
}

void writeSideFile(const Module &module, raw_ostream &os,
                   const PrintOptions &options) {
  ConstantNames names(module, options.maxInlineElements);
  uint64_t offset = magic.size() + 2 * sizeof(uint32_t);
  for (const Constant *constant : names.constants())
    offset += 4 + names.of(constant).size() + 1 +
              mnemonic(constant->element()).size() + 1 +
              8 * constant->shape().size() + 16;
  uint64_t position = offset;

  support::endian::Writer writer(os, endianness::little);
  os << magic;
  writer.write(version);
  writer.write(uint32_t(names.constants().size()));
  for (const Constant *constant : names.constants()) {
    StringRef name = names.of(constant), type = mnemonic(constant->element());
    writer.write(uint32_t(name.size()));
    os << name;
    writer.write(uint8_t(type.size()));
    os << type;
    writer.write(uint8_t(constant->shape().size()));
    for (int64_t dim : constant->shape())
      writer.write(uint64_t(dim));
    offset = alignTo(offset, dataAlignment);
    writer.write(offset);
    writer.write(uint64_t(sizeOf(*constant)));
    offset += sizeOf(*constant);
  }
  for (const Constant *constant : names.constants()) {
    os.write_zeros(alignTo(position, dataAlignment) - position);
    writeData(*constant, os);
    position = alignTo(position, dataAlignment) + sizeOf(*constant);
  }
}

std::string sideFilePath(StringRef path) { return (path + ".weights").str(); }

Expected<ParsedFile> parseFile(StringRef path) {
  ErrorOr<std::unique_ptr<MemoryBuffer>> buffer =
      MemoryBuffer::getFileOrSTDIN(path);
  if (!buffer)
    return userError("{0}: error: {1}", path, buffer.getError().message());
  std::string weights = sideFilePath(path);
  if (path == "-" || !sys::fs::exists(weights))
    return parse(**buffer);
  Expected<SideFile> side = SideFile::open(weights);
  if (!side)
    return side.takeError();
  return parse(**buffer, [&](StringRef name) { return side->lookup(name); });
}

Error writeFile(const Module &module, StringRef path,
                const PrintOptions &options) {
  if (Error error = writeWhole(
          path, [&](raw_ostream &os) { print(module, os, options); }))
    return error;
  std::string weights = sideFilePath(path);
  ConstantNames names(module, options.maxInlineElements);
  if (names.constants().empty()) {
    // One that is left from before would belong to another module.
    sys::fs::remove(weights);
    return Error::success();
  }
  Error error = writeWhole(
      weights, [&](raw_ostream &os) { writeSideFile(module, os, options); });
  if (error) // half of the two is nothing
    sys::fs::remove(path);
  return error;
}

} // namespace tenon::ir
