//===- plan_seeds.cpp - writes plans to fuzz from -----------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/Payload.h"
#include "test/runtime/TestPlans.h"

#include <cstring>
#include <elf.h>
#include <fstream>
#include <string>

namespace {

void write(const std::string &path, const std::vector<uint8_t> &bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char *>(bytes.data()), long(bytes.size()));
}

/// The smallest ELF file that an artifact's payload can be read from.
std::vector<uint8_t> artifact(const std::vector<uint8_t> &plan,
                              const std::vector<uint8_t> &weights) {
  using namespace tenon::rt;
  std::vector<uint8_t> file(sizeof(Elf64_Ehdr));
  std::vector<Elf64_Shdr> sections(1);
  std::string names(1, '\0');
  auto add = [&](const char *name, uint32_t type, const void *data,
                 size_t size) {
    file.resize((file.size() + 63) / 64 * 64);
    Elf64_Shdr section = {};
    section.sh_name = uint32_t(names.size());
    section.sh_type = type;
    section.sh_offset = file.size();
    section.sh_size = size;
    names += name + std::string(1, '\0');
    const auto *bytes = static_cast<const uint8_t *>(data);
    file.insert(file.end(), bytes, bytes + size);
    sections.push_back(section);
  };
  add(planSection, SHT_PROGBITS, plan.data(), plan.size());
  add(weightsSection, SHT_PROGBITS, weights.data(), weights.size());
  std::string all = names + ".shstrtab" + std::string(1, '\0');
  add(".shstrtab", SHT_STRTAB, all.data(), all.size());

  Elf64_Ehdr head = {};
  std::memcpy(head.e_ident, ELFMAG, SELFMAG);
  head.e_ident[EI_CLASS] = ELFCLASS64;
  head.e_ident[EI_DATA] = ELFDATA2LSB;
  head.e_shoff = file.size();
  head.e_shentsize = sizeof(Elf64_Shdr);
  head.e_shnum = uint16_t(sections.size());
  head.e_shstrndx = uint16_t(sections.size() - 1);
  const auto *table = reinterpret_cast<const uint8_t *>(sections.data());
  file.insert(file.end(), table, table + sections.size() * sizeof(Elf64_Shdr));
  std::memcpy(file.data(), &head, sizeof(head));
  return file;
}

} // namespace

/// usage: plan_seeds FOLDER: writes FOLDER/plan/* and FOLDER/payload/*.
int main(int argc, char **argv) {
  using namespace tenon;
  if (argc != 2)
    return 1;
  std::string folder = argv[1];
  std::vector<uint8_t> affine = test::affinePlan(), select = test::selectPlan();
  write(folder + "/plan/affine.plan", affine);
  write(folder + "/plan/select.plan", select);
  for (auto [name, plan] :
       {std::pair("affine", &affine), {"select", &select}}) {
    rt::PlanHeader header;
    std::memcpy(&header, plan->data(), sizeof(header));
    write(folder + "/payload/" + name,
          artifact(*plan, std::vector<uint8_t>(header.weightBytes)));
  }
  return 0;
}
