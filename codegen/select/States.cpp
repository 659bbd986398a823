//===- States.cpp - caches become state ----------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/select/States.h"
#include "ir/support/Diag.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/StringSet.h"

namespace tenon::codegen {

using ir::Dim;
using ir::Op;
using ir::OpKind;
using ir::Value;

namespace {

class StateFinder {
public:
  StateFinder(const ir::Module &module, const ir::Func &func, int64_t capacity)
      : module(module), func(func), end(*func.body.terminator()),
        capacity(capacity) {}

  llvm::Expected<std::vector<kernel::State>> run() {
    collectSizes();
    std::string why = "no output is an input with more behind it, as "
                      "'present' is of 'past'";
    for (unsigned i = 0; i < end.numOperands(); ++i) {
      std::optional<Growth> growth = growthOf(end.operand(i)->def());
      if (!growth)
        continue;
      kernel::State state{growth->past->index(), i, growth->axis, capacity};
      if (llvm::Error error = checkCapacity(*growth->past, state))
        return error;
      if (std::optional<std::string> reason = legality(*growth->past, state))
        why = "'" + func.inputs[state.input].name + "' is no state: " + *reason;
      else
        states.push_back(state);
    }
    if (states.empty())
      return userError("--max-context={0}: {1}", capacity, why);
    return std::move(states);
  }

private:
  const ir::Module &module;
  const ir::Func &func;
  const Op &end;
  int64_t capacity;
  /// Symbols that inputs other than caches have as sizes.
  llvm::StringSet<> known;
  std::vector<kernel::State> states;

  /// A cache that grows along an axis.
  struct Growth {
    Value *past;
    int64_t axis;
  };

  std::optional<Growth> growthOf(Op *op) const {
    if (!op)
      return std::nullopt;
    Growth growth{};
    if (op->kind() == OpKind::Concat && op->numOperands() == 2) {
      growth = {op->operand(0), op->attrs<ir::AxisAttrs>().axis};
    } else if (op->kind() == OpKind::ScatterElements) {
      const auto &attrs = op->attrs<ir::ScatterElementsAttrs>();
      if (attrs.reduction != ir::ScatterReduction::None)
        return std::nullopt;
      growth.axis = attrs.axis;
      Op *pad = op->operand(0)->def(OpKind::Pad);
      if (!pad || !padsEnd(*pad, growth.axis) ||
          !pad->operand(0)->hasOneUse() || !pad->result()->hasOneUse())
        return std::nullopt;
      growth.past = pad->operand(0);
    }
    if (!growth.past || growth.past->def() ||
        growth.past->owner() != &func.body)
      return std::nullopt;
    return growth;
  }

  static bool padsEnd(const Op &pad, int64_t axis) {
    const auto &attrs = pad.attrs<ir::PadAttrs>();
    for (const auto &[d, low, high] : llvm::enumerate(attrs.low, attrs.high))
      if (!low.isConstant(0) || (int64_t(d) != axis && !high.isConstant(0)))
        return false;
    return attrs.mode == ir::PadMode::Constant;
  }

  void collectSizes() {
    llvm::SmallPtrSet<const Value *, 8> pasts;
    for (Value *output : end.operands())
      if (std::optional<Growth> growth = growthOf(output->def()))
        pasts.insert(growth->past);
    for (unsigned i = 0; i < func.body.numArguments(); ++i) {
      Value *input = func.body.argument(i);
      if (pasts.contains(input))
        continue;
      for (Dim dim : input->shape())
        if (std::optional<llvm::StringRef> name = dim.symbolName())
          known.insert(*name);
    }
  }

  /// The range of the length says how many the model has positions for.
  llvm::Error checkCapacity(const Value &past,
                            const kernel::State &state) const {
    std::optional<llvm::StringRef> length =
        past.shape()[state.axis].symbolName();
    int64_t most = length ? module.rangeOf(*length).high : INT64_MAX;
    if (capacity <= most)
      return llvm::Error::success();
    return userError("--max-context={0}: input '{1}' may be {2} long at most",
                     capacity, func.inputs[state.input].name, most);
  }

  std::optional<std::string> legality(const Value &past,
                                      const kernel::State &state) const {
    if (ir::bitWidth(past.element()) < 8)
      return "its elements are smaller than a byte";
    for (const auto &[d, dim] : llvm::enumerate(past.shape())) {
      std::optional<llvm::StringRef> name = dim.symbolName();
      bool isLength = int64_t(d) == state.axis;
      if (isLength && (!name || known.contains(*name)))
        return "its length is not a size of its own";
      if (!isLength && !dim.constant() && !(name && known.contains(*name)))
        return "no other input tells the size of dimension " +
               std::to_string(d);
    }
    for (const kernel::State &other : states) {
      if (other.input == state.input)
        return "it is one already";
      const Value *first = func.body.argument(other.input);
      if (first->shape()[other.axis] != past.shape()[state.axis] ||
          end.operand(other.output)->shape()[other.axis] !=
              end.operand(state.output)->shape()[state.axis])
        return "its length is not that of '" + func.inputs[other.input].name +
               "'";
    }
    return std::nullopt;
  }
};

} // namespace

llvm::Expected<std::vector<kernel::State>>
findStates(const ir::Module &module, const ir::Func &func, int64_t capacity) {
  return StateFinder(module, func, capacity).run();
}

const Op *padOf(const ir::Func &func, const kernel::State &state) {
  Op *scatter = func.body.terminator()
                    ->operand(state.output)
                    ->def(OpKind::ScatterElements);
  return scatter ? scatter->operand(0)->def(OpKind::Pad) : nullptr;
}

} // namespace tenon::codegen
