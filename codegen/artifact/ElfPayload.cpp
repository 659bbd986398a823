//===- ElfPayload.cpp - appends sections to a linked ELF file -----------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/artifact/ElfPayload.h"

#include "ir/support/Diag.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace tenon::codegen {

using namespace llvm::ELF;

ElfPayload::ElfPayload(ElfPayload &&other) noexcept
    : path(std::move(other.path)), fd(std::exchange(other.fd, -1)),
      end(other.end), header(other.header), sections(std::move(other.sections)),
      names(std::move(other.names)) {}

ElfPayload::~ElfPayload() {
  if (fd >= 0)
    ::close(fd);
}

llvm::Expected<ElfPayload> ElfPayload::open(llvm::StringRef path) {
  ElfPayload file;
  file.path = path.str();
  file.fd = ::open(file.path.c_str(), O_RDWR | O_CLOEXEC);
  struct stat info;
  if (file.fd < 0 || fstat(file.fd, &info) != 0)
    return userError("{0}: {1}", path, std::strerror(errno));
  file.end = uint64_t(info.st_size);
  if (llvm::Error error = file.readTables())
    return error;
  return file;
}

llvm::Error ElfPayload::damaged() const {
  return userError("{0}: the linker's output is not an ELF file this can "
                   "extend",
                   path);
}

llvm::Error ElfPayload::readAt(uint64_t offset, void *to, uint64_t size) const {
  if (pread(fd, to, size, off_t(offset)) != ssize_t(size))
    return damaged();
  return llvm::Error::success();
}

llvm::Error ElfPayload::readTables() {
  if (llvm::Error error = readAt(0, &header, sizeof(header)))
    return error;
  if (std::memcmp(header.e_ident, ElfMagic, 4) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_ident[EI_DATA] != ELFDATA2LSB ||
      header.e_shentsize != sizeof(Elf64_Shdr) || header.e_shnum == 0 ||
      header.e_shstrndx >= header.e_shnum)
    return damaged();
  sections.resize(header.e_shnum);
  if (llvm::Error error = readAt(header.e_shoff, sections.data(),
                                 sections.size() * sizeof(Elf64_Shdr)))
    return error;
  const Elf64_Shdr &strings = sections[header.e_shstrndx];
  if (strings.sh_size > end)
    return damaged();
  names.resize(strings.sh_size);
  return readAt(strings.sh_offset, names.data(), names.size());
}

uint64_t ElfPayload::codeBytes() const {
  uint64_t sum = 0;
  for (const Elf64_Shdr &section : sections)
    sum += section.sh_flags & SHF_EXECINSTR ? section.sh_size : 0;
  return sum;
}

uint64_t ElfPayload::add(llvm::StringRef name, uint64_t bytes,
                         uint64_t alignment) {
  Elf64_Shdr section = {};
  section.sh_name = names.size();
  section.sh_type = SHT_PROGBITS;
  section.sh_offset = llvm::alignTo(end, alignment);
  section.sh_size = bytes;
  section.sh_addralign = alignment;
  names += name;
  names += '\0';
  sections.push_back(section);
  end = section.sh_offset + bytes;
  return section.sh_offset;
}

llvm::Error ElfPayload::write(uint64_t offset,
                              llvm::ArrayRef<uint8_t> bytes) const {
  while (!bytes.empty()) {
    ssize_t done = pwrite(fd, bytes.data(), bytes.size(), off_t(offset));
    if (done < 0 && errno == EINTR)
      continue;
    if (done <= 0)
      return userError("{0}: cannot write: {1}", path, std::strerror(errno));
    bytes = bytes.drop_front(done);
    offset += uint64_t(done);
  }
  return llvm::Error::success();
}

llvm::Error ElfPayload::finish() {
  auto bytesOf = [](const auto &records) {
    return llvm::ArrayRef(reinterpret_cast<const uint8_t *>(records.data()),
                          records.size() * sizeof(records[0]));
  };
  Elf64_Shdr &strings = sections[header.e_shstrndx];
  strings.sh_offset = end;
  strings.sh_size = names.size();
  header.e_shoff = llvm::alignTo(end + names.size(), 8);
  header.e_shnum = sections.size();
  end = header.e_shoff + sections.size() * sizeof(Elf64_Shdr);
  if (llvm::Error error = write(strings.sh_offset, bytesOf(names)))
    return error;
  if (llvm::Error error = write(header.e_shoff, bytesOf(sections)))
    return error;
  return write(0, {reinterpret_cast<const uint8_t *>(&header), sizeof(header)});
}

} // namespace tenon::codegen
