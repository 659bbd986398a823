//===- Ptx.h - PTX text as data -------------------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_RUNTIME_EMULATOR_PTX_PTX_H
#define TENON_RUNTIME_EMULATOR_PTX_PTX_H

/// \file
/// What the parser makes of a PTX text: names are resolved to registers,
/// variables and instruction numbers; what the instructions mean is not known
/// here. Views point into the text that the Module owns.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::emu::ptx {

enum class Type : uint8_t {
  None,
  Pred,
  B8,
  B16,
  B32,
  B64,
  B128,
  U8,
  U16,
  U32,
  U64,
  S8,
  S16,
  S32,
  S64,
  F16,
  F16x2,
  BF16,
  BF16x2,
  TF32,
  F32,
  F64,
  U16x2,
  S16x2,
  F32x2,
  E4M3x2,
  E5M2x2,
};

/// Bytes of a value; 0 for a predicate.
unsigned sizeOf(Type type);
/// The type that a modifier such as "f16x2" (without the dot) names.
std::optional<Type> typeNamed(std::string_view name);
bool isSigned(Type type);

enum class Space : uint8_t { Global, Const, Shared, Local, Param };

/// One value of a variable's initialiser: bytes, or the address of a symbol.
struct Initial {
  uint64_t bits = 0;
  std::string_view symbol; // empty: a number
};

struct Variable {
  std::string_view name;
  Space space = Space::Global;
  Type type = Type::B8;
  unsigned align = 1;
  uint64_t bytes = 0;    // 0 with `unsized`
  bool unsized = false;  // extern shared memory, sized by the launch
  bool external = false; // declared here, defined elsewhere
  uint64_t offset = 0;   // in the space of its function (params and locals)
  std::vector<Initial> initial;
  unsigned line = 0;
};

/// An operand of an instruction.
struct Operand {
  enum Kind : uint8_t {
    Register, // `reg`, perhaps `negated`, perhaps with `second` as in %p|%q
    Integer,  // `bits`
    Float32,  // `bits`, 32 of them
    Float64,  // `bits`
    Symbol,   // a variable, function or label: `name`, `variable`, `offset`
    Special,  // %tid.x and the like: `name`
    Address,  // [base + offset]; `parts` are a tensor copy's coordinates
    Vector,   // {a, b, ...}: `parts`
    Sink,     // _
  };
  static constexpr uint32_t None = ~0u;

  Kind kind = Sink;
  Kind base = Sink; // of an Address: Register, Symbol or Integer
  bool negated = false;
  uint32_t reg = None;
  uint32_t second = None;
  uint32_t variable = None; // index in Function::variables; None: of the module
  uint64_t bits = 0;
  int64_t offset = 0;
  std::string_view name;
  std::vector<Operand> parts;
};

struct Instruction {
  std::string_view opcode;                 // "mad"
  std::vector<std::string_view> modifiers; // "lo", "s32"
  std::string_view text;                   // "mad.lo.s32"
  uint32_t guard = Operand::None;          // predicate register
  bool guardNegated = false;
  unsigned line = 0;
  unsigned sourceFile = 0, sourceLine = 0; // of .loc; 0: unknown
  std::vector<Operand> operands;
  /// Of a branch: the instruction to go to; of brx.idx: all of them.
  std::vector<uint32_t> targets;
  /// Of a call: which operands, as they were grouped in the text.
  uint32_t callReturns = 0, callArguments = 0;
};

struct Function {
  std::string_view name;
  bool entry = false;
  bool defined = false;
  unsigned line = 0;
  std::vector<Type> registers;
  std::vector<Variable> variables;       // params first, then locals
  std::vector<uint32_t> returns, params; // indices in `variables`
  uint64_t paramBytes = 0;               // of an entry: its parameter block
  uint64_t localBytes = 0;               // a thread's .local and call .param
  std::vector<Instruction> body;
  uint32_t maxThreads = 0;     // .maxntid's product; 0: not given
  uint32_t reqThreads[3] = {}; // .reqntid; 0: not given
  uint32_t reqCluster[3] = {}; // .reqnctapercluster
};

struct Module {
  std::unique_ptr<std::string> text;
  unsigned isaMajor = 0, isaMinor = 0;
  std::string_view target; // "sm_90a"
  std::vector<Variable> variables;
  std::vector<std::unique_ptr<Function>> functions;
  std::vector<std::pair<unsigned, std::string_view>> files; // of .file
};

} // namespace tenon::emu::ptx

#endif // TENON_RUNTIME_EMULATOR_PTX_PTX_H
