//===- Program.h - decoded PTX --------------------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_RUNTIME_EMULATOR_EXEC_PROGRAM_H
#define TENON_RUNTIME_EMULATOR_EXEC_PROGRAM_H

/// \file
/// A PTX function as the interpreter runs it: an array of operations, each with
/// the function that executes it for all 32 lanes of a warp, and places of its
/// operands. A register is 32 values, one a lane, next to each other; a
/// predicate is one 32-bit mask.

#include "runtime/emulator/ptx/Ptx.h"

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace tenon::emu {

struct Warp;
struct Op;
struct Code;

/// Where an operand lies: in the frame of the function, among the constants,
/// or among the special registers of the warp (the two high bits), and its
/// offset there in bytes.
using Ref = uint32_t;
enum : Ref {
  FrameRef = 0u << 30,
  ConstantRef = 1u << 30,
  SpecialRef = 2u << 30,
  OffsetMask = (1u << 30) - 1,
};

/// Executes an operation for the lanes of `mask`, which is not empty.
using Handler = void (*)(Warp &warp, const Op &op, uint32_t mask);

/// What counters distinguish.
enum class OpClass : uint8_t {
  Integer,
  Float,
  Half,
  Double,
  Convert,
  Move,
  Branch,
  GlobalLoad,
  GlobalStore,
  SharedLoad,
  SharedStore,
  Local,
  Constant,
  Atomic,
  WarpWide,
  Barrier,
  AsyncCopy,
  Tensor,
  Other,
  Count,
};
const char *nameOf(OpClass kind);

enum class AddressSpace : uint8_t {
  Global,
  Shared,
  Local,
  Const,
  Param,
  Generic,
};

/// How an operation may change which is run next.
enum class Flow : uint8_t { Next, Branch, Table, Call, Return, Exit };

struct Op {
  Handler run = nullptr;
  Ref guard = ConstantRef; // the constant true, unless there is a guard
  uint32_t guardFlip = 0;  // all ones: run where the guard is false
  Ref dst = 0, a = 0, b = 0, c = 0;
  int64_t offset = 0;  // of an address, or an immediate
  uint32_t more = 0;   // index in Code::refs of further operands
  uint32_t extra = 0;  // what the handler makes of it
  uint32_t target = 0; // index in Code::ops
  uint32_t join = 0;   // of a branch: where its sides meet again
  uint32_t id = 0;     // among those that a launch of its kernel can run
  OpClass kind = OpClass::Other;
  Flow flow = Flow::Next;
  AddressSpace space = AddressSpace::Generic;
  bool narrowAddress = false; // the base is a 32-bit register
  bool synchronizes = false;  // volatile, acquire, release, atomic
};

/// What a report says about an operation.
struct Where {
  std::string_view text; // "ld.global.f32"
  unsigned line = 0;
  unsigned sourceFile = 0, sourceLine = 0;
};

/// A copy between a call's .param variables and its callee's.
struct ParamCopy {
  uint64_t caller, callee;
  uint32_t bytes;
};

/// What the emulator itself does when a kernel calls it.
enum class Builtin : uint8_t { None, Printf, AssertFail };

struct CallSite {
  const Code *callee = nullptr; // null: `builtin`, or through a register
  Builtin builtin = Builtin::None;
  std::vector<ParamCopy> arguments, results;
};

struct Code {
  std::string name;
  const ptx::Function *source = nullptr;
  bool entry = false;
  std::vector<Op> ops; // ends with the function's one exit
  std::vector<Where> where;
  std::vector<Ref> refs;
  std::vector<CallSite> calls;
  std::vector<std::vector<uint32_t>> tables;     // of brx.idx
  std::vector<std::shared_ptr<const void>> keep; // what handlers' refs point to
  std::vector<const void *> objects;             // Op::extra is an index here
  uint32_t numIds = 0; // of operations that its launch can run
  uint32_t frameBytes = 0;
  uint32_t registerBytes = 0; // of one thread, as declared
  uint64_t localBytes = 0;
  uint64_t staticShared = 0; // end of static shared memory (entries)
  const ptx::Module *module = nullptr;
};

/// A loaded module.
struct Image {
  ptx::Module module;
  unsigned arch = 0; // of the device: 80 for sm_80
  std::vector<std::unique_ptr<Code>> codes;
  std::unordered_map<std::string_view, Code *> byName;
  /// Values of constants, 32 lanes each; the first is the true predicate.
  std::vector<char> constants;
  uint64_t sharedBytes = 0; // end of the module's shared variables

  struct Global {
    uint64_t address;
    uint64_t bytes;
    ptx::Space space;
  };
  /// Module-level variables: device addresses, or offsets in shared memory.
  std::unordered_map<std::string_view, Global> globals;
  std::vector<bool> usedSpecials; // which special registers must be filled
  bool hasCalls = false;
};

/// Where the shared window of the first block of a cluster begins: what lies
/// below belongs to the system, as on sm_90.
inline constexpr uint32_t sharedStart = 1024;
/// Bits that tell a generic address of shared or local memory from others.
inline constexpr uint64_t sharedWindow = uint64_t(1) << 56;
inline constexpr uint64_t localWindow = uint64_t(2) << 56;
/// Block r of a cluster sees its shared memory at r << clusterShift.
inline constexpr unsigned clusterShift = 24;
/// The first address of local memory: 0 is the null pointer.
inline constexpr uint64_t localStart = 16;
/// Local memory for the frames of called functions, per thread.
inline constexpr uint64_t callStackBytes = 16 << 10;
inline constexpr unsigned maxCallDepth = 256;

} // namespace tenon::emu

#endif // TENON_RUNTIME_EMULATOR_EXEC_PROGRAM_H
