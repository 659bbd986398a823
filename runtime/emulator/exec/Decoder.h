//===- Decoder.h - from PTX instructions to operations --------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_RUNTIME_EMULATOR_EXEC_DECODER_H
#define TENON_RUNTIME_EMULATOR_EXEC_DECODER_H

#include "runtime/emulator/exec/Program.h"
#include "runtime/support/Status.h"

#include <optional>
#include <span>

namespace tenon::emu {

/// Decodes the instructions of one function. A rule for an opcode takes the
/// instruction's modifiers one by one in the order of the PTX manual's syntax,
/// fills `op` and names the handler; what it leaves over makes the instruction
/// unknown.
class Decoder {
public:
  Decoder(Image &image, Code &code);

  rt::Status decode(const ptx::Instruction &instruction);

  // For rules. Modifiers:

  /// Takes the next modifier if it is this one.
  bool take(std::string_view modifier);
  /// Takes the next modifier if it is a type.
  std::optional<ptx::Type> takeType();
  std::string_view peek(size_t ahead = 0) const;
  void skip() { ++cursor; }

  // Operands. What is wrong is kept and reported after the rule.

  size_t operands() const { return in->operands.size(); }
  const ptx::Operand &operand(size_t i) const;
  bool expectOperands(size_t least, size_t most);
  /// Bytes of the register that operand i is; 0 for a predicate, and for an
  /// immediate.
  unsigned width(size_t i) const { return width(operand(i)); }
  unsigned width(const ptx::Operand &operand) const;
  bool isImmediate(size_t i) const;
  std::optional<int64_t> immediate(size_t i);

  Ref dst(size_t i, ptx::Type type) { return dst(operand(i), type); }
  Ref dst(const ptx::Operand &operand, ptx::Type type);
  Ref src(size_t i, ptx::Type type) { return src(operand(i), type); }
  Ref src(const ptx::Operand &operand, ptx::Type type);
  /// A register of any width: cvt, ld and st allow wider ones.
  Ref dstAny(const ptx::Operand &operand, unsigned &bytes);
  /// A predicate to be read; `flip` is all ones for a negated one.
  Ref predicateSource(size_t i, uint32_t &flip);
  Ref predicateResult(uint32_t reg);
  Ref reg(uint32_t reg) const { return places[reg]; }
  /// Fills the address fields of `op`.
  void address(size_t i, AddressSpace space) { address(operand(i), space); }
  void address(const ptx::Operand &operand, AddressSpace space);
  /// 32 lanes of one value.
  Ref constant(uint64_t bits, unsigned bytes);
  /// Where nobody looks.
  Ref sink() const { return FrameRef; }
  Ref special(std::string_view name, unsigned bytes);
  /// The places of a list of operands, for Op::more.
  uint32_t refs(const std::vector<Ref> &list);
  /// Keeps an object for the handler; Op::extra finds it.
  template <typename T> uint32_t keep(std::shared_ptr<const T> object) {
    code.objects.push_back(object.get());
    code.keep.push_back(std::move(object));
    return static_cast<uint32_t>(code.objects.size() - 1);
  }
  /// The usual form: a result and up to three sources, in order, of the given
  /// types. Returns `handler`, which may be null.
  Handler form(Handler handler, ptx::Type result,
               std::initializer_list<ptx::Type> sources);
  /// Makes the message that refuses the instruction.
  Handler refuse(const std::string &why);

  const ptx::Instruction &instruction() const { return *in; }
  unsigned arch() const { return image.arch; }

  Op op;
  Image &image;
  Code &code;

  /// A symbol's address as a 64-bit base and what to add to it.
  bool symbol(const ptx::Operand &operand, Ref &base, int64_t &offset,
              AddressSpace &space);

private:
  uint64_t immediateBits(const ptx::Operand &operand, ptx::Type type);
  rt::Status error(const std::string &what) const;

  const ptx::Instruction *in = nullptr;
  size_t cursor = 0;
  std::string problem;
  std::vector<Ref> places; // of registers
  std::unordered_map<uint64_t, Ref> constants[9];
};

/// A rule: the handler, or null for a form that is not known.
using Rule = Handler (*)(Decoder &decoder);
struct RuleEntry {
  std::string_view opcode;
  Rule rule;
};

// The rules by family, each in the file of its name.
std::span<const RuleEntry> integerRules();
std::span<const RuleEntry> bitRules();
std::span<const RuleEntry> floatRules();
std::span<const RuleEntry> roundedRules();
std::span<const RuleEntry> halfRules();
std::span<const RuleEntry> compareRules();
std::span<const RuleEntry> convertRules();
std::span<const RuleEntry> moveRules();
std::span<const RuleEntry> memoryRules();
std::span<const RuleEntry> atomicRules();
std::span<const RuleEntry> warpRules();
std::span<const RuleEntry> controlRules();
std::span<const RuleEntry> barrierRules();
std::span<const RuleEntry> asyncRules();
std::span<const RuleEntry> tensorRules();
std::span<const RuleEntry> wgmmaRules();
std::span<const RuleEntry> mbarrierRules();
std::span<const RuleEntry> bulkRules();
std::span<const RuleEntry> clusterRules();

/// Finds the rule of an opcode; several families may share one, so all of them
/// are tried in order until one knows the form.
std::span<const RuleEntry *const> rulesFor(std::string_view opcode);

/// The place of a special register, or -1; `bytes` becomes its size.
int specialPlace(std::string_view name, unsigned &bytes);
/// Fills those that the image uses.
void fillSpecials(Warp &warp, const Image &image);
/// Bytes that the special registers of a warp take.
size_t specialBytes();
/// Names of registers that PTX does not have: where the spaces of the running
/// block and function begin.
inline constexpr std::string_view sharedBaseName = "%shared_base";
inline constexpr std::string_view localBaseName = "%local_base";
inline constexpr std::string_view paramBaseName = "%param_base";

/// Completes a function after its last instruction: finds where divergent
/// branches meet and turns instruction numbers into operations (Flow.cpp).
void finishFlow(Code &code);

/// Decodes a whole module. Errors name the PTX line.
rt::Result<std::unique_ptr<Image>> load(std::string_view text, unsigned arch);
/// Gives the memory of its variables back.
void unload(Image &image);

} // namespace tenon::emu

#endif // TENON_RUNTIME_EMULATOR_EXEC_DECODER_H
