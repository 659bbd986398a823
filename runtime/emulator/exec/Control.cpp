//===- Control.cpp - branches, calls, exits -------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

/// \file
/// A warp runs one set of lanes at a time. Where lanes part, those that go the
/// other way wait on a stack with the place where the paths meet: a stack as
/// in "Dynamic warp formation" (Fung et al. 2007), but that an entry for the
/// meeting place is only pushed where it is not the one already awaited, so
/// that loops need no more than one.

#include "runtime/emulator/exec/Control.h"

#include "runtime/emulator/exec/Decoder.h"
#include "runtime/emulator/exec/Lanes.h"

#include <cstring>

using namespace tenon;
using namespace tenon::emu;
using ptx::Type;

namespace {

const Op *at(const Warp &warp, uint32_t index) {
  return warp.code->ops.data() + index;
}

/// Sends the lanes of `taken` to `target` and leaves the others here.
void diverge(Warp &warp, const Op &op, uint32_t taken, const Op *target) {
  const Op *join = at(warp, op.join);
  uint32_t rest = warp.mask & ~taken;
  if (join != warp.join)
    warp.stack.push_back({join, warp.join, warp.mask});
  if (warp.pc == join) { // the others wait there at once
    warp.pc = target;
    warp.mask = taken;
  } else if (target == join) {
    warp.mask = rest;
  } else {
    warp.stack.push_back({warp.pc, join, rest});
    warp.pc = target;
    warp.mask = taken;
  }
  warp.join = join;
}

void branch(Warp &warp, const Op &op, uint32_t mask) {
  const Op *target = at(warp, op.target);
  if (mask == warp.mask)
    warp.pc = target;
  else
    diverge(warp, op, mask, target);
}

/// brx.idx: one branch a distinct target; lanes left over run this again.
void branchTable(Warp &warp, const Op &op, uint32_t mask) {
  const std::vector<uint32_t> &table = warp.code->tables[op.extra];
  const uint32_t *index = lanes<uint32_t>(warp, op.a);
  unsigned first = __builtin_ctz(mask);
  if (index[first] >= table.size())
    return warp.fault(
        op, Fault::BadInstruction, first,
        rt::format("branches to entry %u of %zu", index[first], table.size()));
  uint32_t same =
      maskOf([=](unsigned i) { return index[i] == index[first]; }) & mask;
  if (same != mask)
    --warp.pc; // the rest comes back here
  const Op *target = at(warp, table[index[first]]);
  if (same == warp.mask)
    warp.pc = target;
  else
    diverge(warp, op, same, target);
}

void joinLanes(Warp &warp, const Op &op, uint32_t) {
  if (warp.join == &op)
    reconverge(warp);
}

void exitThreads(Warp &warp, const Op &, uint32_t mask) {
  exitLanes(warp, mask);
}

void copyLocal(Warp &warp, uint32_t mask, uint64_t to, uint64_t from,
               uint32_t bytes) {
  forLanes(mask, [&](unsigned lane) {
    uint64_t thread = lane * warp.localBytes;
    std::memcpy(&warp.local[thread + to], &warp.local[thread + from], bytes);
    std::memcpy(&warp.localShadow[thread + to],
                &warp.localShadow[thread + from], bytes);
  });
}

uint64_t frameEnd(const Warp &warp) {
  return (warp.localBase + warp.code->localBytes + 15) & ~uint64_t(15);
}

void setLocalBase(Warp &warp, uint64_t base) {
  warp.localBase = base;
  unsigned bytes;
  int place = specialPlace(localBaseName, bytes);
  uint64_t *value =
      lanes<uint64_t>(warp, SpecialRef | static_cast<Ref>(place * 256));
  for (unsigned i = 0; i != 32; ++i)
    value[i] = base;
}

void enter(Warp &warp, const Op &op, uint32_t mask, const CallSite &site,
           const Code &callee) {
  uint64_t base = frameEnd(warp);
  if (base + callee.localBytes > warp.localBytes ||
      warp.frames.size() == maxCallDepth)
    return warp.fault(op, Fault::CallStack, __builtin_ctz(mask),
                      rt::format("calls %s, which the call stack of %u bytes "
                                 "has no room for",
                                 callee.name.c_str(),
                                 static_cast<unsigned>(callStackBytes)));
  forLanes(mask, [&](unsigned lane) {
    std::memset(&warp.localShadow[lane * warp.localBytes + base], 0,
                callee.localBytes);
  });
  for (const ParamCopy &copy : site.arguments)
    copyLocal(warp, mask, base + copy.callee, warp.localBase + copy.caller,
              copy.bytes);
  size_t depth = warp.frames.size();
  warp.frames.push_back({warp.code, &site, warp.pc, warp.join, warp.mask,
                         warp.stack.size(), warp.localBase, warp.base[0]});
  if (warp.callFrames.size() == depth)
    warp.callFrames.emplace_back();
  warp.callFrames[depth] = std::make_unique<char[]>(callee.frameBytes + 64);
  char *frame = warp.callFrames[depth].get();
  warp.base[0] = frame + (64 - reinterpret_cast<uintptr_t>(frame) % 64) % 64;
  setLocalBase(warp, base);
  warp.code = &callee;
  warp.pc = callee.ops.data();
  warp.join = nullptr;
  warp.mask = mask;
}

void call(Warp &warp, const Op &op, uint32_t mask) {
  const CallSite &site = warp.code->calls[op.extra];
  if (site.builtin != Builtin::None)
    runBuiltin(warp, op, mask, site);
  else
    enter(warp, op, mask, site, *site.callee);
}

/// Through a register: one call a distinct function.
void callIndirect(Warp &warp, const Op &op, uint32_t mask) {
  const uint64_t *address = lanes<uint64_t>(warp, op.a);
  unsigned first = __builtin_ctz(mask);
  uint64_t index = address[first] / 16 - 1;
  const Image &image = *warp.launch->image;
  if (address[first] % 16 != 0 || index >= image.codes.size() ||
      image.codes[index]->entry || image.codes[index]->ops.empty())
    return warp.fault(
        op, Fault::BadInstruction, first,
        rt::format("calls 0x%llx, which is no function",
                   static_cast<unsigned long long>(address[first])));
  uint32_t same =
      maskOf([=](unsigned i) { return address[i] == address[first]; }) & mask;
  // Lanes that are left, or did not call, wait behind the call.
  if (same != warp.mask) {
    const Op *next = at(warp, op.join);
    warp.stack.push_back({next, warp.join, warp.mask});
    if (mask != same)
      warp.stack.push_back({&op, next, mask & ~same});
    warp.pc = warp.join = next;
    warp.mask = same;
  }
  // The callee's parameters are where its own declaration puts them.
  enter(warp, op, same, warp.code->calls[op.extra], *image.codes[index]);
}

void returnFromCall(Warp &warp, const Op &, uint32_t) {
  Frame frame = warp.frames.back();
  warp.frames.pop_back();
  uint64_t base = warp.localBase;
  for (const ParamCopy &copy : frame.site->results)
    copyLocal(warp, warp.mask, frame.localBase + copy.caller,
              base + copy.callee, copy.bytes);
  warp.base[0] = frame.registers;
  setLocalBase(warp, frame.localBase);
  warp.code = frame.code;
  warp.pc = frame.pc;
  warp.join = frame.join;
  warp.mask = frame.mask & ~warp.exited;
}

void trap(Warp &warp, const Op &op, uint32_t mask) {
  warp.fault(op, Fault::Trap, __builtin_ctz(mask), "executes trap");
}

void sleep(Warp &warp, const Op &, uint32_t) { warp.yielded = true; }
void nothing(Warp &, const Op &, uint32_t) {}

// Rules.

Handler buildBranch(Decoder &d) {
  d.take("uni");
  d.op.kind = OpClass::Branch;
  d.op.flow = Flow::Branch;
  d.op.target = d.op.join = d.instruction().targets[0];
  return branch;
}

Handler buildBranchTable(Decoder &d) {
  if (!d.take("idx") || !d.expectOperands(2, 2))
    return nullptr;
  d.take("uni");
  d.op.kind = OpClass::Branch;
  d.op.flow = Flow::Table;
  d.op.a = d.src(0, Type::U32);
  d.op.extra = static_cast<uint32_t>(d.code.tables.size());
  d.code.tables.push_back(d.instruction().targets);
  if (d.instruction().targets.empty())
    return d.refuse("the list of targets is empty");
  return branchTable;
}

/// Pairs a group of the call's .param variables with the callee's.
bool pairParams(Decoder &d, size_t first, size_t count,
                const ptx::Function &callee,
                const std::vector<uint32_t> &params,
                std::vector<ParamCopy> &copies) {
  if (params.size() != count) {
    d.refuse(rt::format("expected %zu values in a group, found %zu",
                        params.size(), count));
    return false;
  }
  for (size_t i = 0; i != count; ++i) {
    const ptx::Operand &operand = d.operand(first + i);
    if (operand.kind != ptx::Operand::Symbol ||
        operand.variable == ptx::Operand::None) {
      d.refuse("arguments must be .param variables");
      return false;
    }
    const ptx::Variable &from = d.code.source->variables[operand.variable];
    const ptx::Variable &to = callee.variables[params[i]];
    if (from.bytes != to.bytes) {
      d.refuse("an argument's size is not the parameter's");
      return false;
    }
    copies.push_back({from.offset, to.offset, static_cast<uint32_t>(to.bytes)});
  }
  return true;
}

Builtin builtinNamed(std::string_view name) {
  if (name == "vprintf")
    return Builtin::Printf;
  if (name == "__assertfail")
    return Builtin::AssertFail;
  return Builtin::None;
}

/// An indirect call's parameters lie as those of a function with parameters of
/// the same sizes.
void layParams(Decoder &d, size_t first, size_t count, uint64_t &end,
               std::vector<ParamCopy> &copies) {
  for (size_t i = 0; i != count; ++i) {
    const ptx::Operand &operand = d.operand(first + i);
    if (operand.kind != ptx::Operand::Symbol ||
        operand.variable == ptx::Operand::None) {
      d.refuse("arguments must be .param variables");
      return;
    }
    const ptx::Variable &from = d.code.source->variables[operand.variable];
    end = (end + from.align - 1) / from.align * from.align;
    copies.push_back({from.offset, end, static_cast<uint32_t>(from.bytes)});
    end += from.bytes;
  }
}

Handler buildCall(Decoder &d) {
  d.take("uni");
  const ptx::Instruction &in = d.instruction();
  d.op.kind = OpClass::Branch;
  d.op.extra = static_cast<uint32_t>(d.code.calls.size());
  d.image.hasCalls = true;
  CallSite site;
  size_t arguments = in.callReturns + 1;
  const ptx::Operand &target = d.operand(in.callReturns);
  unsigned bytes;
  d.image.usedSpecials[specialPlace(localBaseName, bytes)] = true;
  if (target.kind == ptx::Operand::Register) {
    d.op.a = d.src(target, Type::U64);
    d.op.flow = Flow::Call;
    uint64_t end = 0;
    layParams(d, 0, in.callReturns, end, site.results);
    layParams(d, arguments, in.callArguments, end, site.arguments);
    d.code.calls.push_back(std::move(site));
    return callIndirect;
  }
  auto found = d.image.byName.find(target.name);
  if (found == d.image.byName.end())
    return d.refuse("there is no function '" +
                    rt::printable(std::string(target.name)) + "'");
  const ptx::Function &callee = *found->second->source;
  site.callee = found->second;
  site.builtin = callee.defined ? Builtin::None : builtinNamed(target.name);
  if (!callee.defined && site.builtin == Builtin::None)
    return d.refuse("the function '" + rt::printable(std::string(target.name)) +
                    "' is declared but not defined");
  if (!pairParams(d, 0, in.callReturns, callee, callee.returns, site.results) ||
      !pairParams(d, arguments, in.callArguments, callee, callee.params,
                  site.arguments))
    return nullptr;
  d.code.calls.push_back(std::move(site));
  return call;
}

Handler buildReturn(Decoder &d) {
  d.take("uni");
  d.op.kind = OpClass::Branch;
  d.op.flow = d.code.entry ? Flow::Exit : Flow::Return;
  return d.code.entry ? exitThreads : branch;
}

Handler buildExit(Decoder &d) {
  d.op.kind = OpClass::Branch;
  d.op.flow = Flow::Exit;
  return exitThreads;
}

Handler buildTrap(Decoder &) { return trap; }
Handler buildSleep(Decoder &d) {
  d.take("u32");
  return sleep;
}
Handler buildNothing(Decoder &) { return nothing; }

constexpr RuleEntry rules[] = {
    {"bra", buildBranch}, {"brx", buildBranchTable}, {"call", buildCall},
    {"ret", buildReturn}, {"exit", buildExit},       {"trap", buildTrap},
    {"brkpt", buildTrap}, {"nanosleep", buildSleep}, {"pmevent", buildNothing},
};

} // namespace

std::span<const RuleEntry> emu::controlRules() { return rules; }

Op emu::joinOp() {
  Op op;
  op.run = joinLanes;
  op.kind = OpClass::Count; // is no instruction
  return op;
}

Op emu::endOp(bool entry) {
  Op op;
  op.run = entry ? exitThreads : returnFromCall;
  op.kind = OpClass::Count;
  op.flow = Flow::Exit;
  return op;
}

void emu::reconverge(Warp &warp) {
  // A function's own entries end where its caller's begin.
  size_t bottom = warp.frames.empty() ? 0 : warp.frames.back().stackBase;
  while (warp.stack.size() > bottom) {
    Pending next = warp.stack.back();
    warp.stack.pop_back();
    next.mask &= ~warp.exited;
    if (next.mask == 0)
      continue;
    warp.pc = next.pc;
    warp.join = next.join;
    warp.mask = next.mask;
    return;
  }
  if (!warp.frames.empty()) { // every lane of the call has exited
    Frame frame = warp.frames.back();
    warp.frames.pop_back();
    warp.base[0] = frame.registers;
    setLocalBase(warp, frame.localBase);
    warp.code = frame.code;
    warp.join = frame.join;
    warp.pc = frame.pc;
    warp.mask = frame.mask & ~warp.exited;
    if (warp.mask == 0)
      reconverge(warp);
    return;
  }
  warp.mask = 0;
  warp.state = WarpState::Done;
  leaveBarriers(warp);
}

void emu::exitLanes(Warp &warp, uint32_t gone) {
  warp.exited |= gone;
  warp.block->liveThreads -= static_cast<uint32_t>(__builtin_popcount(gone));
  warp.mask &= ~gone;
  if (warp.mask == 0)
    reconverge(warp);
}
