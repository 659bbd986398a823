//===- Decoder.cpp - from PTX instructions to operations ------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/emulator/exec/Decoder.h"

#include <cstring>

using namespace tenon;
using namespace tenon::emu;
using ptx::Operand;
using ptx::Type;

namespace {

constexpr uint32_t sinkBytes = 512;

using RuleMap =
    std::unordered_map<std::string_view, std::vector<const RuleEntry *>>;

const RuleMap &ruleMap() {
  static const RuleMap *map = [] {
    auto *made = new RuleMap;
    for (std::span<const RuleEntry> family :
         {integerRules(), bitRules(), floatRules(), roundedRules(), halfRules(),
          compareRules(), convertRules(), moveRules(), memoryRules(),
          atomicRules(), warpRules(), controlRules(), barrierRules(),
          asyncRules(), tensorRules(), wgmmaRules(), mbarrierRules(),
          bulkRules(), clusterRules()})
      for (const RuleEntry &entry : family)
        (*made)[entry.opcode].push_back(&entry);
    return made;
  }();
  return *map;
}

} // namespace

std::span<const RuleEntry *const> emu::rulesFor(std::string_view opcode) {
  auto found = ruleMap().find(opcode);
  if (found == ruleMap().end())
    return {};
  return found->second;
}

Decoder::Decoder(Image &image, Code &code) : image(image), code(code) {
  const std::vector<Type> &registers = code.source->registers;
  places.resize(registers.size());
  uint32_t at = sinkBytes;
  for (unsigned bytes : {16u, 8u, 4u, 2u})
    for (size_t i = 0; i != registers.size(); ++i)
      if (sizeOf(registers[i]) == bytes) {
        places[i] = FrameRef | at;
        at += bytes * 32;
        code.registerBytes += bytes < 4 ? 4 : bytes;
      }
  for (size_t i = 0; i != registers.size(); ++i)
    if (registers[i] == Type::Pred) {
      places[i] = FrameRef | at;
      at += 4;
    }
  code.frameBytes = (at + 63) & ~63u;
}

rt::Status Decoder::error(const std::string &what) const {
  return TN_ERROR("line %u: %s", in->line, what.c_str());
}

Handler Decoder::refuse(const std::string &why) {
  if (problem.empty())
    problem = why;
  return nullptr;
}

rt::Status Decoder::decode(const ptx::Instruction &instruction) {
  in = &instruction;
  problem.clear();
  std::string text = rt::printable(std::string(instruction.text));
  bool complete = false;
  for (const RuleEntry *entry : rulesFor(instruction.opcode)) {
    op = Op();
    cursor = 0;
    op.run = entry->rule(*this);
    complete = op.run && cursor == instruction.modifiers.size();
    if (complete || !problem.empty())
      break;
  }
  if (!problem.empty())
    return error("'" + text + "': " + problem);
  if (!complete)
    return error("the emulator does not know the instruction '" + text + "'");
  if (instruction.guard != Operand::None) {
    op.guard = places[instruction.guard];
    op.guardFlip = instruction.guardNegated ? ~0u : 0;
  }
  code.ops.push_back(op);
  code.where.push_back({instruction.text, instruction.line,
                        instruction.sourceFile, instruction.sourceLine});
  return {};
}

bool Decoder::take(std::string_view modifier) {
  if (cursor == in->modifiers.size() || in->modifiers[cursor] != modifier)
    return false;
  ++cursor;
  return true;
}

std::optional<Type> Decoder::takeType() {
  if (cursor == in->modifiers.size())
    return std::nullopt;
  std::optional<Type> type = ptx::typeNamed(in->modifiers[cursor]);
  cursor += type.has_value();
  return type;
}

std::string_view Decoder::peek(size_t ahead) const {
  size_t at = cursor + ahead;
  return at < in->modifiers.size() ? in->modifiers[at] : std::string_view();
}

const Operand &Decoder::operand(size_t i) const {
  static const Operand missing;
  return i < in->operands.size() ? in->operands[i] : missing;
}

bool Decoder::expectOperands(size_t least, size_t most) {
  if (operands() >= least && operands() <= most)
    return true;
  refuse(rt::format("expected %zu operands, found %zu", least, operands()));
  return false;
}

unsigned Decoder::width(const Operand &operand) const {
  if (operand.kind != Operand::Register)
    return 0;
  return sizeOf(code.source->registers[operand.reg]);
}

bool Decoder::isImmediate(size_t i) const {
  const Operand &it = operand(i);
  return it.kind == Operand::Integer || it.kind == Operand::Float32 ||
         it.kind == Operand::Float64;
}

std::optional<int64_t> Decoder::immediate(size_t i) {
  if (operand(i).kind == Operand::Integer)
    return static_cast<int64_t>(operand(i).bits);
  refuse(rt::format("operand %zu must be a number", i + 1));
  return std::nullopt;
}

Handler Decoder::form(Handler handler, Type result,
                      std::initializer_list<Type> sources) {
  size_t count = sources.size() + 1;
  if (!handler || !expectOperands(count, count))
    return nullptr;
  op.dst = dst(0, result);
  Ref *const places[] = {&op.a, &op.b, &op.c};
  size_t i = 0;
  for (Type type : sources) {
    *places[i] = src(i + 1, type);
    ++i;
  }
  return handler;
}

Ref Decoder::dst(const Operand &operand, Type type) {
  if (operand.kind == Operand::Sink)
    return sink();
  bool isPredicate = type == Type::Pred;
  if (operand.kind != Operand::Register ||
      (code.source->registers[operand.reg] == Type::Pred) != isPredicate ||
      width(operand) != sizeOf(type)) {
    refuse(isPredicate ? std::string("the result must be a predicate")
                       : rt::format("the result must be a register of %u bits",
                                    sizeOf(type) * 8));
    return sink();
  }
  return places[operand.reg];
}

Ref Decoder::dstAny(const Operand &operand, unsigned &bytes) {
  bytes = width(operand);
  if (operand.kind == Operand::Sink || bytes != 0)
    return operand.kind == Operand::Sink ? sink() : places[operand.reg];
  refuse("the result must be a register");
  return sink();
}

Ref Decoder::predicateResult(uint32_t reg) {
  if (reg == Operand::None)
    return sink();
  if (code.source->registers[reg] != Type::Pred)
    refuse("the result must be a predicate");
  return places[reg];
}

Ref Decoder::predicateSource(size_t i, uint32_t &flip) {
  const Operand &it = operand(i);
  flip = it.negated ? ~0u : 0;
  if (it.kind == Operand::Integer) { // a constant such as 1 or -1
    flip = it.bits ? 0 : ~0u;
    return ConstantRef;
  }
  if (it.kind != Operand::Register ||
      code.source->registers[it.reg] != Type::Pred) {
    refuse(rt::format("operand %zu must be a predicate", i + 1));
    return ConstantRef;
  }
  return places[it.reg];
}

/// The bits of a number as an operand of this type.
uint64_t Decoder::immediateBits(const Operand &operand, Type type) {
  double value = 0;
  if (operand.kind == Operand::Integer)
    return operand.bits;
  if (operand.kind == Operand::Float32) {
    auto bits = static_cast<uint32_t>(operand.bits);
    float narrow;
    std::memcpy(&narrow, &bits, 4);
    value = narrow;
    if (sizeOf(type) == 4)
      return bits;
  } else {
    std::memcpy(&value, &operand.bits, 8);
  }
  if (sizeOf(type) == 8) {
    uint64_t bits;
    std::memcpy(&bits, &value, 8);
    return bits;
  }
  if (sizeOf(type) != 4)
    refuse("a floating-point number cannot stand here");
  auto narrow = static_cast<float>(value);
  uint32_t bits;
  std::memcpy(&bits, &narrow, 4);
  return bits;
}

Ref Decoder::constant(uint64_t bits, unsigned bytes) {
  if (bytes > 8) {
    refuse("a number cannot stand for 128 bits");
    return sink();
  }
  if (bytes < 8)
    bits &= (uint64_t(1) << bytes * 8) - 1;
  auto [entry, isNew] = constants[bytes].try_emplace(bits, 0);
  if (isNew) {
    size_t at = (image.constants.size() + 63) & ~size_t(63);
    image.constants.resize(at + bytes * 32);
    for (unsigned lane = 0; lane != 32; ++lane)
      std::memcpy(&image.constants[at + lane * bytes], &bits, bytes);
    entry->second = ConstantRef | static_cast<Ref>(at);
  }
  return entry->second;
}

Ref Decoder::special(std::string_view name, unsigned bytes) {
  unsigned actual = 0;
  int place = specialPlace(name, actual);
  if (place < 0) {
    refuse("'" + rt::printable(std::string(name)) +
           "' is no register that the emulator knows");
    return sink();
  }
  if (actual != bytes)
    refuse(
        rt::format("'%s' has %u bits", std::string(name).c_str(), actual * 8));
  image.usedSpecials[place] = true;
  return SpecialRef | static_cast<Ref>(place * 256);
}

Ref Decoder::src(const Operand &operand, Type type) {
  unsigned bytes = sizeOf(type);
  switch (operand.kind) {
  case Operand::Register:
    if (width(operand) == bytes && !operand.negated &&
        code.source->registers[operand.reg] != Type::Pred)
      return places[operand.reg];
    refuse(rt::format("expected a register of %u bits, found '%s'", bytes * 8,
                      std::string(operand.name).c_str()));
    return sink();
  case Operand::Integer:
  case Operand::Float32:
  case Operand::Float64:
    return constant(immediateBits(operand, type), bytes);
  case Operand::Special:
    return special(operand.name, bytes);
  case Operand::Symbol: {
    Ref base;
    int64_t offset;
    AddressSpace space;
    if (symbol(operand, base, offset, space) && (base & ConstantRef))
      return constant(static_cast<uint64_t>(offset), bytes);
    [[fallthrough]];
  }
  default:
    refuse("expected a register or a number");
    return sink();
  }
}

uint32_t Decoder::refs(const std::vector<Ref> &list) {
  auto first = static_cast<uint32_t>(code.refs.size());
  code.refs.insert(code.refs.end(), list.begin(), list.end());
  return first;
}

bool Decoder::symbol(const Operand &operand, Ref &base, int64_t &offset,
                     AddressSpace &space) {
  offset = operand.offset;
  if (operand.variable != Operand::None) {
    const ptx::Variable &variable = code.source->variables[operand.variable];
    offset += static_cast<int64_t>(variable.offset);
    if (variable.space == ptx::Space::Shared) {
      base = special(sharedBaseName, 8);
      space = AddressSpace::Shared;
    } else if (code.entry && operand.variable < code.source->params.size()) {
      base = special(paramBaseName, 8);
      space = AddressSpace::Param;
    } else {
      base = special(localBaseName, 8);
      space = AddressSpace::Local;
    }
    return true;
  }
  auto global = image.globals.find(operand.name);
  if (global == image.globals.end()) {
    auto function = image.byName.find(operand.name);
    if (function == image.byName.end()) {
      refuse("there is no '" + rt::printable(std::string(operand.name)) + "'");
      return false;
    }
    // A function's address: its number, which is no address of memory.
    for (size_t i = 0; i != image.codes.size(); ++i)
      if (image.codes[i].get() == function->second)
        offset = static_cast<int64_t>((i + 1) * 16);
    base = constant(0, 8);
    space = AddressSpace::Generic;
    return true;
  }
  offset += static_cast<int64_t>(global->second.address);
  bool shared = global->second.space == ptx::Space::Shared;
  base = shared ? special(sharedBaseName, 8) : constant(0, 8);
  space = shared                                      ? AddressSpace::Shared
          : global->second.space == ptx::Space::Const ? AddressSpace::Const
                                                      : AddressSpace::Global;
  return true;
}

void Decoder::address(const Operand &operand, AddressSpace space) {
  op.space = space;
  if (operand.kind != Operand::Address) {
    refuse("expected an address in brackets");
    return;
  }
  op.offset = operand.offset;
  if (operand.base == Operand::Register) {
    unsigned bytes = width(operand)
                         ? width(operand)
                         : sizeOf(code.source->registers[operand.reg]);
    if (bytes != 4 && bytes != 8)
      refuse("an address must have 32 or 64 bits");
    op.narrowAddress = bytes == 4;
    op.a = places[operand.reg];
    if (space == AddressSpace::Param && !code.entry)
      op.space = AddressSpace::Local;
  } else if (operand.base == Operand::Integer) {
    op.a = constant(operand.bits, 8);
  } else {
    AddressSpace found;
    if (!symbol(operand, op.a, op.offset, found))
      return;
    bool generic =
        space == AddressSpace::Generic && found != AddressSpace::Local;
    if (space == AddressSpace::Param || generic)
      op.space = found;
    else if (found != space && space != AddressSpace::Generic)
      refuse("'" + rt::printable(std::string(operand.name)) +
             "' lies in another space");
  }
}
