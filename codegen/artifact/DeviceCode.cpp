//===- DeviceCode.cpp - writes an artifact's GPU code ---------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/artifact/DeviceCode.h"

#include "runtime/format/device_code.h"
#include "runtime/support/Checksum.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Compression.h"
#include "llvm/Support/MathExtras.h"
#include <cstring>

namespace tenon::codegen {

namespace {

/// \p text as a raw deflate stream: zlib's without its frame, which is two
/// bytes in front and four behind.
llvm::SmallVector<uint8_t, 0> deflated(llvm::StringRef text) {
  llvm::SmallVector<uint8_t, 0> out;
  llvm::compression::zlib::compress(llvm::arrayRefFromStringRef(text), out);
  out.erase(out.begin(), out.begin() + 2);
  out.truncate(out.size() - 4);
  return out;
}

class Writer {
public:
  std::vector<uint8_t> bytes;

  uint64_t add(const void *data, size_t size, size_t alignment) {
    bytes.resize(llvm::alignTo(bytes.size(), alignment));
    uint64_t at = bytes.size();
    auto *from = static_cast<const uint8_t *>(data);
    bytes.insert(bytes.end(), from, from + size);
    return at;
  }
};

} // namespace

std::vector<uint8_t> writeDeviceCode(llvm::ArrayRef<Source> sources,
                                     llvm::ArrayRef<DeviceObject> objects,
                                     unsigned numUnits) {
  Writer writer;
  rt::DeviceCodeHeader header = {};
  writer.add(&header, sizeof(header), 8);
  std::memcpy(header.magic, rt::deviceCodeMagic, sizeof(header.magic));
  header.version = rt::deviceCodeVersion;
  header.numUnits = numUnits;
  header.numModules = sources.size();
  std::vector<uint32_t> moduleOfUnit(numUnits);
  for (unsigned s = 0; s < sources.size(); ++s)
    for (unsigned unit : sources[s].units)
      moduleOfUnit[unit] = s;
  std::vector<rt::DeviceImage> images;
  size_t archs = sources.empty() ? 0 : objects.size() / sources.size();
  for (size_t i = 0; i < objects.size(); ++i) {
    const DeviceObject &object = objects[i];
    rt::DeviceImage image = {};
    image.module = uint32_t(i / archs);
    image.arch = uint16_t(object.arch->number);
    image.exact = object.arch->exact;
    image.kind = rt::ImageKind::Cubin;
    image.bytes = image.storedBytes = object.cubin.size();
    image.offset = writer.add(object.cubin.data(), object.cubin.size(), 64);
    images.push_back(image);
    llvm::SmallVector<uint8_t, 0> ptx = deflated(object.ptx);
    image.kind = rt::ImageKind::Ptx;
    image.bytes = object.ptx.size();
    image.storedBytes = ptx.size();
    image.offset = writer.add(ptx.data(), ptx.size(), 8);
    images.push_back(image);
  }
  header.numImages = images.size();
  header.imagesOffset =
      writer.add(images.data(), images.size() * sizeof(images[0]), 8);
  header.unitsOffset =
      writer.add(moduleOfUnit.data(), moduleOfUnit.size() * 4, 8);
  header.totalBytes = writer.bytes.size();
  std::memcpy(writer.bytes.data(), &header, sizeof(header));
  header.checksum = rt::checksum({writer.bytes.data(), writer.bytes.size()});
  std::memcpy(writer.bytes.data(), &header, sizeof(header));
  return std::move(writer.bytes);
}

} // namespace tenon::codegen
