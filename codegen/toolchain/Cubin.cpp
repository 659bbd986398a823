//===- Cubin.cpp - what compiled kernels take of a GPU --------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/toolchain/Cubin.h"

#include "llvm/Object/ELF.h"
#include "llvm/Support/Endian.h"
#include <map>

namespace tenon::codegen {

namespace {

using Elf = llvm::object::ELF64LEFile;

/// Kinds of records in the section .nv.info: each has a format, a kind, and
/// for format 4 a size of two bytes and so many bytes of value; here a symbol's
/// number and a number.
constexpr uint8_t sizedFormat = 4, frameSize = 0x11, registerCount = 0x2f;

struct Info {
  unsigned registers = 0, stackBytes = 0;
};

std::map<unsigned, Info> readInfo(llvm::ArrayRef<uint8_t> bytes) {
  using llvm::support::endian::read16le;
  using llvm::support::endian::read32le;
  std::map<unsigned, Info> bySymbol;
  while (bytes.size() >= 4) {
    size_t value = bytes[0] == sizedFormat ? read16le(&bytes[2]) : 0;
    if (value > bytes.size() - 4)
      break;
    if (bytes[0] == sizedFormat && value >= 8) {
      unsigned symbol = read32le(&bytes[4]), number = read32le(&bytes[8]);
      if (bytes[1] == registerCount)
        bySymbol[symbol].registers = number;
      if (bytes[1] == frameSize)
        bySymbol[symbol].stackBytes = number;
    }
    bytes = bytes.drop_front(4 + value);
  }
  return bySymbol;
}

} // namespace

llvm::Expected<std::vector<KernelResources>>
cubinResources(llvm::StringRef cubin) {
  auto elf = Elf::create(cubin);
  if (!elf)
    return elf.takeError();
  auto sections = elf->sections();
  if (!sections)
    return sections.takeError();
  std::map<unsigned, Info> infos;
  std::map<std::string, unsigned> shared;
  const Elf::Elf_Shdr *symbols = nullptr;
  unsigned reserved = 0; // the system's part of each kernel's shared memory
  for (const Elf::Elf_Shdr &section : *sections) {
    auto name = elf->getSectionName(section);
    if (!name)
      return name.takeError();
    if (section.sh_type == llvm::ELF::SHT_SYMTAB)
      symbols = &section;
    if (*name == ".nv.shared.reserved.0")
      reserved = 1024;
    else if (name->consume_front(".nv.shared."))
      shared[name->str()] = unsigned(section.sh_size);
    if (*name != ".nv.info")
      continue;
    auto contents = elf->getSectionContents(section);
    if (!contents)
      return contents.takeError();
    infos = readInfo(*contents);
  }
  std::vector<KernelResources> kernels;
  if (!symbols)
    return kernels;
  auto table = elf->symbols(symbols);
  if (!table)
    return table.takeError();
  auto strings = elf->getStringTableForSymtab(*symbols);
  if (!strings)
    return strings.takeError();
  for (const auto &[index, info] : infos) {
    if (index >= table->size())
      continue;
    auto name = (*table)[index].getName(*strings);
    if (!name)
      return name.takeError();
    llvm::StringRef number = *name;
    KernelResources kernel;
    if (!number.consume_front("tn_unit_") ||
        number.getAsInteger(10, kernel.unit))
      continue;
    kernel.registers = info.registers;
    kernel.stackBytes = info.stackBytes;
    unsigned bytes = shared[name->str()];
    kernel.sharedBytes = bytes - std::min(bytes, reserved);
    kernels.push_back(kernel);
  }
  return kernels;
}

} // namespace tenon::codegen
