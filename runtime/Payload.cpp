//===- Payload.cpp - the plan and weights inside an artifact's file -----===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/Payload.h"

#include "runtime/Cpu.h"
#include "runtime/support/Checksum.h"

#include <cstdio>
#include <elf.h>
#include <fcntl.h>
#include <memory>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>

namespace tenon::rt {
namespace {

/// An open file descriptor.
class Descriptor {
public:
  explicit Descriptor(int fd) : fd(fd) {}
  Descriptor(const Descriptor &) = delete;
  ~Descriptor() {
    if (fd >= 0)
      ::close(fd);
  }
  int get() const { return fd; }

private:
  int fd;
};

/// Finds sections of a 64-bit little-endian ELF file by name.
class SectionFinder {
public:
  SectionFinder(int fd, uint64_t fileBytes) : fd(fd), fileBytes(fileBytes) {}

  Status open() {
    Elf64_Ehdr head;
    if (!read(0, &head, sizeof(head)) ||
        std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
        head.e_ident[EI_CLASS] != ELFCLASS64 ||
        head.e_ident[EI_DATA] != ELFDATA2LSB)
      return TN_ERROR("not an ELF file for a 64-bit machine");
    Elf64_Shdr first;
    if (head.e_shoff == 0 || head.e_shentsize != sizeof(Elf64_Shdr) ||
        !read(head.e_shoff, &first, sizeof(first)))
      return TN_ERROR("no section table: not an artifact, or damaged");
    // Counts that do not fit 16 bits live in the first section's header.
    uint64_t count = head.e_shnum ? head.e_shnum : first.sh_size;
    uint64_t namesIndex =
        head.e_shstrndx == SHN_XINDEX ? first.sh_link : head.e_shstrndx;
    if (count > fileBytes / sizeof(Elf64_Shdr) || namesIndex >= count)
      return TN_ERROR("damaged section table");
    sections.resize(count);
    if (!read(head.e_shoff, sections.data(), count * sizeof(Elf64_Shdr)))
      return TN_ERROR("damaged section table");
    const Elf64_Shdr &strings = sections[namesIndex];
    if (!inRange(strings.sh_offset, strings.sh_size, fileBytes) ||
        strings.sh_size > maxNames)
      return TN_ERROR("damaged section table");
    names.resize(strings.sh_size);
    if (!read(strings.sh_offset, names.data(), names.size()))
      return TN_ERROR("damaged section table");
    return {};
  }

  /// Null when there is none.
  const Elf64_Shdr *find(std::string_view name) const {
    for (const Elf64_Shdr &section : sections)
      if (section.sh_name < names.size() &&
          std::string_view(names).substr(section.sh_name, name.size() + 1) ==
              std::string_view(name.data(), name.size() + 1))
        return &section;
    return nullptr;
  }

  Result<MappedFile> map(const char *name, bool huge, bool required) const {
    const Elf64_Shdr *section = find(name);
    if (!section && !required)
      return MappedFile();
    if (!section)
      return TN_ERROR("no section %s: not an artifact of tenon, or a tool has "
                      "removed it",
                      name);
    if (section->sh_type == SHT_NOBITS ||
        !inRange(section->sh_offset, section->sh_size, fileBytes))
      return TN_ERROR("section %s reaches past the end: the file is truncated",
                      name);
    return MappedFile::map(fd, section->sh_offset, section->sh_size, huge);
  }

private:
  static constexpr uint64_t maxNames = 16 << 20;

  bool read(uint64_t offset, void *to, uint64_t size) const {
    return inRange(offset, size, fileBytes) &&
           pread(fd, to, size, off_t(offset)) == ssize_t(size);
  }

  int fd;
  uint64_t fileBytes;
  std::vector<Elf64_Shdr> sections;
  std::string names;
};

/// The file mapped at `address`, as the kernel knows it.
std::string fileMappedAt(const void *address) {
  std::unique_ptr<FILE, int (*)(FILE *)> maps(
      std::fopen("/proc/self/maps", "re"), std::fclose);
  std::string line;
  char buffer[512];
  while (maps && std::fgets(buffer, sizeof(buffer), maps.get())) {
    line += buffer;
    if (line.back() != '\n')
      continue;
    line.pop_back();
    unsigned long long begin = 0, end = 0;
    uint64_t wanted = reinterpret_cast<uint64_t>(address);
    size_t path = line.find('/');
    if (std::sscanf(line.c_str(), "%llx-%llx", &begin, &end) == 2 &&
        wanted >= begin && wanted < end && path != std::string::npos)
      return line.substr(path);
    line.clear();
  }
  return "";
}

} // namespace

Result<Payload> Payload::open(const std::string &path, WeightPages pages) {
  Payload payload;
  Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat info;
  if (fd.get() < 0 || fstat(fd.get(), &info) != 0)
    return TN_ERROR("%s", lastError().c_str());
  if (!S_ISREG(info.st_mode))
    return TN_ERROR("not a regular file");
  payload.size = uint64_t(info.st_size);
  SectionFinder finder(fd.get(), payload.size);
  if (Status status = finder.open(); !status.ok())
    return status;
  struct {
    MappedFile &map;
    const char *name;
    bool huge, required;
  } parts[] = {
      {payload.planMap, planSection, false, true},
      {payload.weightMap, weightsSection, pages == WeightPages::Huge, true},
      {payload.goldenMap, goldenSection, false, false},
      {payload.textMap, textSection, false, false},
      {payload.codeMap, deviceCodeSection, false, false}};
  for (auto &part : parts) {
    auto map = finder.map(part.name, part.huge, part.required);
    if (!map.ok())
      return map.status();
    part.map = std::move(*map);
  }
  auto plan = Plan::load(payload.planMap.bytes());
  if (!plan.ok())
    return plan.status();
  payload.thePlan = std::move(*plan);
  if (payload.weights().size() != payload.plan().header().weightBytes)
    return TN_ERROR(
        "damaged: %zu bytes of weights, expected %llu",
        payload.weights().size(),
        static_cast<unsigned long long>(payload.plan().header().weightBytes));
  return payload;
}

Result<Payload> Payload::openContaining(const void *address,
                                        WeightPages pages) {
  std::string path = fileMappedAt(address);
  if (path.empty())
    return TN_ERROR("cannot find the file this program was loaded from");
  Result<Payload> payload = open(path, pages);
  if (!payload.ok())
    return TN_ERROR("%s: %s", path.c_str(), payload.message().c_str());
  return payload;
}

Status Payload::verifyWeights(unsigned threads) const {
  if (blockChecksum(weights(), threads) == plan().header().weightChecksum)
    return {};
  return TN_ERROR("damaged: the weights' checksum differs");
}

Result<Model> openModel(const Payload &payload, std::span<const tn_form> forms,
                        const std::string &form) {
  if (!payload.deviceCode().empty())
    return Model::createForGpu(payload.plan(), payload.weights(),
                               payload.deviceCode());
  auto chosen = chooseForm(forms, cpuFeatures(), form);
  if (!chosen.ok())
    return chosen.status();
  return Model::create(payload.plan(), payload.weights(), **chosen);
}

} // namespace tenon::rt
