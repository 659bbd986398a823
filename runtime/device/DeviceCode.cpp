//===- DeviceCode.cpp - reads an artifact's GPU code ----------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/device/DeviceCode.h"

#include "runtime/Inflate.h"
#include "runtime/support/Checksum.h"

#include <algorithm>
#include <cstring>

namespace tenon::rt {
namespace {

/// No module comes near this; a damaged length must not take all memory.
constexpr uint64_t maxImageBytes = uint64_t(1) << 30;

/// Whether the GPU runs an image, and how well it fits: 0 is not at all.
unsigned fitness(const DeviceImage &image, unsigned capability) {
  if (image.exact)
    return image.arch == capability ? 2000 : 0;
  if (image.arch > capability)
    return 0;
  // A cubin runs on later GPUs of its generation, PTX on all later ones.
  if (image.kind == ImageKind::Cubin && image.arch / 10 != capability / 10)
    return 0;
  return 1 + image.arch;
}

} // namespace

std::string archName(const DeviceImage &image) {
  return format("sm_%u%s", unsigned(image.arch), image.exact ? "a" : "");
}

Status DeviceCode::check(Bytes bytes) {
  auto damaged = [](const char *what) {
    return TN_ERROR("damaged GPU code: %s", what);
  };
  if (bytes.size() < sizeof(DeviceCodeHeader) ||
      std::memcmp(bytes.data(), deviceCodeMagic, sizeof(deviceCodeMagic)) != 0)
    return damaged("no header");
  base = bytes.data();
  head = reinterpret_cast<const DeviceCodeHeader *>(base);
  if (head->version != deviceCodeVersion)
    return TN_ERROR("GPU code has version %u, this runtime reads version %u",
                    head->version, deviceCodeVersion);
  if (head->totalBytes != bytes.size())
    return damaged("its size differs");
  std::vector<uint8_t> copy(bytes.begin(), bytes.end());
  std::memset(copy.data() + offsetof(DeviceCodeHeader, checksum), 0, 8);
  if (checksum({copy.data(), copy.size()}) != head->checksum)
    return damaged("its checksum differs");
  uint64_t imageBytes = uint64_t(head->numImages) * sizeof(DeviceImage);
  uint64_t unitBytes = uint64_t(head->numUnits) * sizeof(uint32_t);
  if (head->imagesOffset % 8 != 0 || head->unitsOffset % 4 != 0 ||
      !inRange(head->imagesOffset, imageBytes, bytes.size()) ||
      !inRange(head->unitsOffset, unitBytes, bytes.size()))
    return damaged("a table is out of range");
  images = {reinterpret_cast<const DeviceImage *>(base + head->imagesOffset),
            head->numImages};
  units = {reinterpret_cast<const uint32_t *>(base + head->unitsOffset),
           head->numUnits};
  for (const DeviceImage &image : images)
    if (image.module >= head->numModules || image.kind > ImageKind::Ptx ||
        image.bytes > maxImageBytes ||
        (image.kind == ImageKind::Cubin && image.bytes != image.storedBytes) ||
        !inRange(image.offset, image.storedBytes, bytes.size()))
      return damaged("an image is out of range");
  for (uint32_t module : units)
    if (module >= head->numModules)
      return damaged("a unit is out of range");
  return {};
}

Result<DeviceCode> DeviceCode::load(Bytes bytes) {
  DeviceCode code;
  if (Status status = code.check(bytes); !status.ok())
    return status;
  return code;
}

std::vector<const DeviceImage *>
DeviceCode::choose(uint32_t module, unsigned capability, bool ptxOnly) const {
  std::vector<const DeviceImage *> chosen;
  for (const DeviceImage &image : images)
    if (image.module == module && fitness(image, capability) > 0 &&
        (!ptxOnly || image.kind == ImageKind::Ptx))
      chosen.push_back(&image);
  std::stable_sort(chosen.begin(), chosen.end(),
                   [&](const DeviceImage *a, const DeviceImage *b) {
                     if (a->kind != b->kind)
                       return a->kind < b->kind;
                     return fitness(*a, capability) > fitness(*b, capability);
                   });
  return chosen;
}

Result<std::vector<char>> DeviceCode::contents(const DeviceImage &image) const {
  const char *from = reinterpret_cast<const char *>(base + image.offset);
  if (image.kind == ImageKind::Cubin)
    return std::vector<char>(from, from + image.storedBytes);
  std::vector<char> text(image.bytes + 1, '\0');
  Status status =
      inflate({base + image.offset, size_t(image.storedBytes)},
              {reinterpret_cast<uint8_t *>(text.data()), size_t(image.bytes)});
  if (!status.ok())
    return TN_ERROR("damaged GPU code: %s", status.message().c_str());
  return text;
}

std::string DeviceCode::emulatedArch() const {
  if (images.empty() || !choose(0, 80, /*ptxOnly=*/false).empty())
    return "";
  return "sm_" + std::to_string(images[0].arch);
}

std::string DeviceCode::archNames() const {
  std::string out;
  for (const DeviceImage &image : images)
    if (image.module == 0 && image.kind == ImageKind::Cubin)
      out += (out.empty() ? "" : ", ") + archName(image);
  return out;
}

} // namespace tenon::rt
