//===- Cse.cpp - common subexpressions ---------------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Pass.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/STLExtras.h"
#include <unordered_map>

using namespace tenon;
using namespace tenon::ir;
using namespace tenon::passes;

namespace {

/// Constants up to this many bytes are compared by contents; bigger ones are
/// the same only when they are the same bytes in memory, so that no weight is
/// read from disk for this.
constexpr uint64_t maxComparedBytes = 1 << 16;

bool isSmall(const Constant &constant) {
  switch (constant.form()) {
  case Constant::Form::Dense:
    return constant.bytes().size() <= maxComparedBytes;
  case Constant::Form::Converted: // as big as its source
    return false;
  default:
    return true;
  }
}

uint64_t hashConstant(const Constant &constant) {
  if (isSmall(constant))
    return constant.contentHash();
  if (constant.form() == Constant::Form::Converted)
    return llvm::hash_value(&constant);
  return llvm::hash_combine(constant.bytes().data(), constant.bytes().size());
}

bool sameConstant(const Constant &a, const Constant &b) {
  if (&a == &b)
    return true;
  if (isSmall(a) && isSmall(b))
    return a.equals(b);
  return a.element() == b.element() && a.shape() == b.shape() &&
         a.form() == Constant::Form::Dense && b.form() == a.form() &&
         a.bytes().data() == b.bytes().data();
}

class Cse final : public FuncPass {
public:
  llvm::Expected<bool> runOnFunc(Module &module, Func &func,
                                 PassContext &context) override {
    std::unordered_multimap<uint64_t, Op *> seen;
    bool changed = false;
    for (Op &op : llvm::make_early_inc_range(func.body)) {
      number(op);
      if (!isCandidate(op))
        continue;
      uint64_t key = hash(op);
      auto [first, last] = seen.equal_range(key);
      auto equal = std::find_if(
          first, last, [&](const auto &e) { return isSame(*e.second, op); });
      if (equal == last || !context.allow("cse", op)) {
        seen.emplace(key, &op);
        continue;
      }
      for (auto [mine, theirs] :
           llvm::zip(op.results(), equal->second->results()))
        mine->replaceAllUsesWith(theirs);
      op.erase();
      changed = true;
    }
    return changed;
  }

private:
  static bool isCandidate(Op &op) {
    return op.numResults() && !op.region() && !is(op, SideEffect) &&
           !is(op, Terminator);
  }

  /// Numbers values in order, so that hashes don't depend on addresses.
  void number(Op &op) {
    for (Value *result : op.results())
      numbers[result] = numbers.size() + 1;
  }
  unsigned numberOf(Value *value) {
    if (!value)
      return 0;
    return numbers.try_emplace(value, numbers.size() + 1).first->second;
  }

  llvm::SmallVector<Value *, 4> orderedOperands(Op &op) {
    llvm::SmallVector<Value *, 4> operands(op.operands());
    if (is(op, Commutative) && operands.size() == 2 &&
        numberOf(operands[0]) > numberOf(operands[1]))
      std::swap(operands[0], operands[1]);
    return operands;
  }

  uint64_t hash(Op &op) {
    if (op.kind() == OpKind::Const)
      return hashConstant(*op.attrs<ConstAttrs>().value);
    llvm::SmallVector<unsigned, 8> parts{static_cast<unsigned>(op.kind())};
    for (Value *operand : orderedOperands(op))
      parts.push_back(numberOf(operand));
    return llvm::hash_combine(
        hashAttrs(op.rawAttrs()),
        llvm::hash_combine_range(parts.begin(), parts.end()));
  }

  bool isSame(Op &a, Op &b) {
    if (a.kind() != b.kind() || a.numResults() != b.numResults())
      return false;
    if (a.kind() == OpKind::Const)
      return sameConstant(*a.attrs<ConstAttrs>().value,
                          *b.attrs<ConstAttrs>().value);
    return orderedOperands(a) == orderedOperands(b) &&
           equal(a.rawAttrs(), b.rawAttrs()) &&
           llvm::all_of(llvm::zip(a.results(), b.results()), [](auto pair) {
             return std::get<0>(pair)->type == std::get<1>(pair)->type;
           });
  }

  llvm::DenseMap<Value *, unsigned> numbers;
};

} // namespace

std::unique_ptr<Pass> passes::createCse() { return std::make_unique<Cse>(); }
