//===- Load.cpp - from PTX text to a runnable module ----------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/emulator/check/DeviceMemory.h"
#include "runtime/emulator/exec/Decoder.h"
#include "runtime/emulator/exec/WgmmaCheck.h"
#include "runtime/emulator/ptx/Parser.h"

#include <algorithm>
#include <cinttypes>
#include <cstring>

using namespace tenon;
using namespace tenon::emu;

namespace {

constexpr uint64_t maxShared = 228 << 10;

uint64_t alignTo(uint64_t value, uint64_t align) {
  return (value + align - 1) / align * align;
}

class Loader {
public:
  Loader(Image &image) : image(image) {}
  rt::Status run();

private:
  rt::Status placeVariables();
  rt::Status fill(const ptx::Variable &variable);
  rt::Status declareFunctions();
  rt::Status placeShared(ptx::Function &function, uint64_t &end);
  void placeDynamic(Code &code);
  rt::Status decode(Code &code);
  void numberOps();

  Image &image;
  bool hasFunctions = false; // besides kernels
  uint64_t largestStatic = 0;
};

rt::Status Loader::placeVariables() {
  DeviceMemory &memory = DeviceMemory::get();
  image.sharedBytes = sharedStart;
  for (const ptx::Variable &variable : image.module.variables) {
    Image::Global global{0, variable.bytes, variable.space};
    if (variable.space == ptx::Space::Shared && !variable.unsized) {
      global.address = alignTo(image.sharedBytes, variable.align);
      image.sharedBytes = global.address + variable.bytes;
      if (image.sharedBytes > sharedStart + maxShared)
        return TN_ERROR("line %u: more shared memory than any GPU has",
                        variable.line);
    } else if (variable.space == ptx::Space::Global ||
               variable.space == ptx::Space::Const) {
      if (variable.external)
        continue; // an error only where it is used
      global.address = memory.allocate(variable.bytes,
                                       variable.space == ptx::Space::Const
                                           ? Allocation::Constant
                                           : Allocation::Variable,
                                       std::string(variable.name));
      if (global.address == 0)
        return TN_ERROR(
            "line %u: no memory for the %" PRIu64 " bytes of variable '%s'",
            variable.line, variable.bytes, std::string(variable.name).c_str());
    } else if (variable.space != ptx::Space::Shared) {
      continue;
    }
    if (!image.globals.emplace(variable.name, global).second)
      return TN_ERROR("line %u: '%s' is declared twice", variable.line,
                      std::string(variable.name).c_str());
  }
  return {};
}

/// Variables without an initialiser are zero, and so written too.
rt::Status Loader::fill(const ptx::Variable &variable) {
  auto found = image.globals.find(variable.name);
  if (found == image.globals.end() || found->second.space == ptx::Space::Shared)
    return {};
  uint64_t address = found->second.address;
  if (found->second.space == ptx::Space::Global)
    DeviceMemory::get().markWritten(address, variable.bytes);
  unsigned bytes = sizeOf(variable.type);
  for (const ptx::Initial &initial : variable.initial) {
    uint64_t bits[2] = {initial.bits, 0};
    if (!initial.symbol.empty()) {
      auto symbol = image.globals.find(initial.symbol);
      if (symbol == image.globals.end())
        return TN_ERROR("line %u: there is no variable '%s'", variable.line,
                        rt::printable(std::string(initial.symbol)).c_str());
      bits[0] += symbol->second.address;
    }
    std::memcpy(reinterpret_cast<void *>(address), bits, bytes);
    address += bytes;
  }
  return {};
}

rt::Status Loader::placeShared(ptx::Function &function, uint64_t &end) {
  for (ptx::Variable &variable : function.variables) {
    if (variable.space != ptx::Space::Shared || variable.unsized)
      continue;
    variable.offset = alignTo(end, variable.align);
    end = variable.offset + variable.bytes;
    if (end > sharedStart + maxShared)
      return TN_ERROR("line %u: more shared memory than any GPU has",
                      variable.line);
  }
  return {};
}

rt::Status Loader::declareFunctions() {
  for (const auto &function : image.module.functions) {
    auto code = std::make_unique<Code>();
    code->name = function->name;
    code->source = function.get();
    code->entry = function->entry;
    code->module = &image.module;
    code->localBytes = function->localBytes;
    Code *&known = image.byName[function->name];
    if (known && known->source->defined && function->defined)
      return TN_ERROR("line %u: '%s' is defined twice", function->line,
                      code->name.c_str());
    if (!known || function->defined)
      known = code.get();
    image.codes.push_back(std::move(code));
  }
  // Functions' shared variables have one place for all kernels.
  for (const auto &function : image.module.functions)
    if (!function->entry && function->defined) {
      hasFunctions = true;
      if (rt::Status s = placeShared(*function, image.sharedBytes); !s.ok())
        return s;
    }
  for (const auto &code : image.codes)
    if (code->entry) {
      code->staticShared = image.sharedBytes;
      auto &function = const_cast<ptx::Function &>(*code->source);
      if (rt::Status s = placeShared(function, code->staticShared); !s.ok())
        return s;
      code->staticShared = alignTo(code->staticShared, 16);
      largestStatic = std::max(largestStatic, code->staticShared);
    }
  return {};
}

/// Extern shared memory begins where the kernel's own ends, all of it at one
/// place; the gap before it counts as the kernel's own.
void Loader::placeDynamic(Code &code) {
  auto &function = const_cast<ptx::Function &>(*code.source);
  auto isDynamic = [](const ptx::Variable &variable) {
    return variable.space == ptx::Space::Shared && variable.unsized;
  };
  if (hasFunctions)
    code.staticShared = std::max(code.staticShared, largestStatic);
  uint64_t align = 16;
  for (const ptx::Variable &variable : image.module.variables)
    if (isDynamic(variable))
      align = std::max<uint64_t>(align, variable.align);
  for (const ptx::Variable &variable : function.variables)
    if (isDynamic(variable))
      align = std::max<uint64_t>(align, variable.align);
  code.staticShared = alignTo(code.staticShared, align);
  for (const ptx::Variable &variable : image.module.variables)
    if (isDynamic(variable))
      image.globals[variable.name].address = code.staticShared;
  for (ptx::Variable &variable : function.variables)
    if (isDynamic(variable))
      variable.offset = code.staticShared;
}

rt::Status Loader::decode(Code &code) {
  placeDynamic(code);
  Decoder decoder(image, code);
  for (const ptx::Instruction &instruction : code.source->body)
    if (rt::Status s = decoder.decode(instruction); !s.ok())
      return s;
  checkWgmma(code);
  finishFlow(code);
  return {};
}

/// Numbers operations: those of each kernel on their own, unless kernels call
/// functions.
void Loader::numberOps() {
  uint32_t next = 0;
  for (const auto &code : image.codes) {
    if (!image.hasCalls)
      next = 0;
    for (Op &op : code->ops)
      op.id = next++;
    code->numIds = next;
  }
  if (image.hasCalls)
    for (const auto &code : image.codes)
      code->numIds = next;
}

rt::Status Loader::run() {
  image.constants.assign(64, '\xff'); // the true predicate
  image.usedSpecials.resize(specialBytes() / 256);
  if (rt::Status s = placeVariables(); !s.ok())
    return s;
  for (const ptx::Variable &variable : image.module.variables)
    if (rt::Status s = fill(variable); !s.ok())
      return s;
  if (rt::Status s = declareFunctions(); !s.ok())
    return s;
  for (const auto &code : image.codes)
    if (code->source->defined)
      if (rt::Status s = decode(*code); !s.ok())
        return s;
  numberOps();
  return {};
}

} // namespace

rt::Result<std::unique_ptr<Image>> emu::load(std::string_view text,
                                             unsigned arch) {
  rt::Result<ptx::Module> module = ptx::parse(text);
  if (!module.ok())
    return module.status();
  auto image = std::make_unique<Image>();
  image->module = std::move(*module);
  image->arch = arch;
  rt::Status status = Loader(*image).run();
  if (!status.ok()) {
    unload(*image);
    return status;
  }
  return image;
}

void emu::unload(Image &image) {
  for (const auto &[name, global] : image.globals)
    if (global.space != ptx::Space::Shared && global.address != 0)
      DeviceMemory::get().release(global.address);
  image.globals.clear();
}
