//===- WgmmaCheck.cpp - registers of wgmma used too early -----------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/emulator/exec/WgmmaCheck.h"
#include "runtime/emulator/exec/State.h"
#include "runtime/support/Status.h"

#include <algorithm>
#include <span>

using namespace tenon;
using namespace tenon::emu;
using ptx::Instruction;
using ptx::Operand;

namespace {

/// What is known of a register at a place of the code.
struct Fact {
  static constexpr uint8_t landed = 0xff;
  /// Groups committed since the wgmma that uses it, the least of all paths;
  /// 0 while its own group is open.
  uint8_t groups = landed;
  /// Computed after the last wgmma.fence.
  bool fresh = false;

  bool operator==(const Fact &) const = default;
  bool inFlight() const { return groups != landed; }
  /// What holds where paths meet.
  bool meet(const Fact &other) {
    Fact before = *this;
    groups = std::min(groups, other.groups);
    fresh |= other.fresh;
    return *this != before;
  }
};
using Facts = std::vector<Fact>;

enum class Kind : uint8_t { Other, Move, Multiply, Fence, Commit, Wait };

Kind kindOf(const Instruction &in) {
  if (in.opcode == "mov")
    return Kind::Move;
  if (in.opcode != "wgmma" || in.modifiers.empty())
    return Kind::Other;
  std::string_view what = in.modifiers[0];
  return what == "mma_async"      ? Kind::Multiply
         : what == "fence"        ? Kind::Fence
         : what == "commit_group" ? Kind::Commit
         : what == "wait_group"   ? Kind::Wait
                                  : Kind::Other;
}

/// Calls see(register) for each register of an operand.
template <typename See> void forRegisters(const Operand &operand, See &&see) {
  bool named =
      operand.kind == Operand::Register ||
      (operand.kind == Operand::Address && operand.base == Operand::Register);
  if (named) {
    see(operand.reg);
    if (operand.second != Operand::None)
      see(operand.second);
  }
  for (const Operand &part : operand.parts)
    forRegisters(part, see);
}

class Analysis {
public:
  explicit Analysis(Code &code) : code(code), body(code.source->body) {}

  /// Runs to a fixed point, then over the code once more, reporting.
  void run();

private:
  void markStarts();
  void step(size_t i, Facts &facts);
  void multiply(const Instruction &in, Facts &facts);
  void enter(size_t to, const Facts &facts);
  void leave(size_t i, const Facts &facts);
  void report(size_t i, const std::string &what);

  Code &code;
  const std::vector<Instruction> &body;
  std::vector<bool> starts; // of blocks
  std::vector<Facts> at;    // facts at the starts that are reached
  std::vector<size_t> work;
  bool reporting = false;
  size_t current = 0;
};

void Analysis::markStarts() {
  starts.assign(body.size() + 1, false);
  starts[0] = true;
  for (size_t i = 0; i != body.size(); ++i) {
    const Op &op = code.ops[i];
    if (op.flow != Flow::Next)
      starts[i + 1] = true;
    for (uint32_t target : body[i].targets)
      if (target < body.size())
        starts[target] = true;
  }
}

void Analysis::enter(size_t to, const Facts &facts) {
  if (to >= body.size())
    return;
  if (at[to].empty()) {
    at[to] = facts;
    work.push_back(to);
    return;
  }
  bool changed = false;
  for (size_t r = 0; r != facts.size(); ++r)
    changed |= at[to][r].meet(facts[r]);
  if (changed)
    work.push_back(to);
}

/// Hands the facts after instruction i to where it may go.
void Analysis::leave(size_t i, const Facts &facts) {
  const Op &op = code.ops[i];
  bool branches = op.flow == Flow::Branch || op.flow == Flow::Table;
  for (uint32_t target : body[i].targets)
    enter(target, facts);
  bool conditional = body[i].guard != Operand::None;
  if (!branches && op.flow != Flow::Return && op.flow != Flow::Exit)
    conditional = true;
  if (conditional)
    enter(i + 1, facts);
}

void hazard(Warp &warp, const Op &op, uint32_t mask) {
  const auto *what =
      static_cast<const std::string *>(warp.code->objects[op.extra]);
  warp.fault(op, Fault::PendingCopy, __builtin_ctz(mask), *what);
}

void Analysis::report(size_t i, const std::string &what) {
  Op &op = code.ops[i];
  if (op.run == hazard)
    return;
  op.run = hazard;
  op.flow = Flow::Next;
  op.extra = static_cast<uint32_t>(code.objects.size());
  auto text = std::make_shared<const std::string>(what);
  code.objects.push_back(text.get());
  code.keep.push_back(std::move(text));
}

void Analysis::multiply(const Instruction &in, Facts &facts) {
  bool anyFresh = false;
  for (size_t i = 0; i != 2; ++i) // D, and A if it is in registers
    if (in.operands[i].kind == Operand::Vector)
      forRegisters(in.operands[i], [&](uint32_t reg) {
        anyFresh |= facts[reg].fresh;
        facts[reg] = {0, false};
      });
  if (reporting && anyFresh)
    report(current, "uses registers that were computed after the last "
                    "wgmma.fence");
}

void Analysis::step(size_t i, Facts &facts) {
  const Instruction &in = body[i];
  current = i;
  switch (kindOf(in)) {
  case Kind::Multiply:
    return multiply(in, facts);
  case Kind::Fence:
    for (Fact &fact : facts)
      fact.fresh = false;
    return;
  case Kind::Commit:
    for (Fact &fact : facts)
      if (fact.inFlight() && fact.groups != Fact::landed - 1)
        ++fact.groups;
    return;
  case Kind::Wait:
    for (Fact &fact : facts)
      if (fact.groups != 0 && fact.groups > in.operands[0].bits)
        fact.groups = Fact::landed;
    return;
  case Kind::Move: {
    Fact fact;
    for (size_t o = 1; o < in.operands.size(); ++o)
      forRegisters(in.operands[o],
                   [&](uint32_t reg) { fact.meet(facts[reg]); });
    forRegisters(in.operands[0], [&](uint32_t reg) {
      if (in.guard == Operand::None)
        facts[reg] = fact;
      else
        facts[reg].meet(fact);
    });
    return;
  }
  case Kind::Other:
    break;
  }
  bool early = false;
  for (const Operand &operand : in.operands)
    forRegisters(operand,
                 [&](uint32_t reg) { early |= facts[reg].inFlight(); });
  if (reporting && early)
    report(i, "uses a register of a wgmma.mma_async that has not been waited "
              "for");
  bool writes =
      !in.operands.empty() && (in.operands[0].kind == Operand::Register ||
                               in.operands[0].kind == Operand::Vector);
  if (writes)
    forRegisters(in.operands[0],
                 [&](uint32_t reg) { facts[reg].fresh = true; });
}

void Analysis::run() {
  bool any = std::any_of(body.begin(), body.end(), [](const Instruction &in) {
    return in.opcode == "wgmma";
  });
  if (!any)
    return;
  markStarts();
  at.resize(body.size());
  enter(0, Facts(code.source->registers.size()));
  auto runBlock = [&](size_t start) {
    Facts facts = at[start];
    size_t i = start;
    for (;; ++i) {
      step(i, facts);
      if (starts[i + 1] || i + 1 == body.size())
        break;
    }
    if (!reporting)
      leave(i, facts);
  };
  while (!work.empty()) {
    size_t start = work.back();
    work.pop_back();
    runBlock(start);
  }
  reporting = true;
  for (size_t start = 0; start != body.size(); ++start)
    if (!at[start].empty())
      runBlock(start);
}

} // namespace

void emu::checkWgmma(Code &code) { Analysis(code).run(); }
