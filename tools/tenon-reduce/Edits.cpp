//===- Edits.cpp - ways to make a graph smaller --------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "tools/tenon-reduce/Edits.h"

#include "ir/Builder.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSet.h"

using namespace tenon;
using namespace tenon::ir;
using namespace tenon::reduce;

namespace {

/// The op of \p func at \p index: the same in a clone.
Op &opAt(Func &func, size_t index) {
  return *std::next(func.body.begin(), static_cast<std::ptrdiff_t>(index));
}

/// Ranges of \p count things: all halves, quarters and so on.
std::vector<std::pair<size_t, size_t>> ranges(size_t count) {
  std::vector<std::pair<size_t, size_t>> result;
  for (size_t length = count; length != 0; length /= 2)
    for (size_t end = count; end != 0; end -= std::min(end, length))
      result.push_back({end - std::min(end, length), end});
  return result;
}

/// Gives \p func the results \p values. Names of outputs that stay are kept.
void setOutputs(Func &func, llvm::ArrayRef<Value *> values) {
  Op &last = *func.body.terminator();
  std::vector<Port> ports;
  llvm::StringSet<> taken;
  llvm::DenseMap<Value *, std::string> names;
  for (unsigned i = 0; i != last.numOperands(); ++i)
    names.try_emplace(last.operand(i), func.outputs[i].name);
  for (Value *value : values) {
    std::string name = names.lookup(value);
    for (unsigned n = 0; name.empty() || !taken.insert(name).second; ++n)
      name = "out" + std::to_string(n);
    ports.push_back({name});
  }
  last.setOperands(values);
  func.outputs = std::move(ports);
}

Value *addInput(Func &func, const TensorType &type) {
  llvm::StringSet<> taken;
  for (const Port &port : func.inputs)
    taken.insert(port.name);
  std::string name = "in";
  for (unsigned n = 0; taken.contains(name); ++n)
    name = "in" + std::to_string(n);
  func.inputs.push_back({name});
  return func.body.addArgument(type, name);
}

//===----------------------------------------------------------------------===//
// Functions and outputs
//===----------------------------------------------------------------------===//

std::vector<Edit> dropFunctions(const Module &module) {
  std::vector<Edit> edits;
  for (size_t i = 0; module.funcs.size() > 1 && i != module.funcs.size(); ++i)
    edits.push_back([i](Module &clone) {
      std::unique_ptr<Func> kept = std::move(clone.funcs[i]);
      clone.funcs.clear();
      clone.funcs.push_back(std::move(kept));
      return true;
    });
  return edits;
}

std::vector<Edit> dropOutputs(const Module &module) {
  std::vector<Edit> edits;
  size_t count = module.entry().outputs.size();
  for (auto [first, end] : ranges(count)) {
    if (end - first == count)
      continue;
    edits.push_back([first = first, end = end](Module &clone) {
      Func &func = clone.entry();
      llvm::SmallVector<Value *> values(func.body.terminator()->operands());
      values.erase(values.begin() + first, values.begin() + end);
      setOutputs(func, values);
      return true;
    });
  }
  return edits;
}

/// Ends the function after its first \p kept ops: what they made and others
/// used become its outputs.
bool truncate(Module &module, size_t kept) {
  Func &func = module.entry();
  llvm::DenseSet<const Op *> early;
  size_t i = 0;
  for (Op &op : func.body)
    if (i++ < kept)
      early.insert(&op);
  llvm::SmallSetVector<Value *, 8> live;
  for (Op &op : func.body)
    if (!early.contains(&op))
      for (Value *operand : op.operands())
        if (operand && operand->def() && early.contains(operand->def()) &&
            operand->def()->kind() != OpKind::Const)
          live.insert(operand);
  if (live.empty())
    return false;
  setOutputs(func, live.getArrayRef());
  return true;
}

std::vector<Edit> truncations(const Module &module) {
  std::vector<Edit> edits;
  size_t count = module.entry().body.size() - 1;
  for (size_t step = count / 2; step != 0; step /= 2)
    for (size_t kept = step; kept < count; kept += step)
      edits.push_back([kept](Module &clone) { return truncate(clone, kept); });
  return edits;
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

bool isRemovable(const Op &op) {
  return op.kind() != OpKind::Const && !is(op, Terminator);
}

/// Makes inputs of what ops \p first to \p end make for others.
bool makeInputs(Module &module, size_t first, size_t end) {
  Func &func = module.entry();
  llvm::SmallVector<Op *, 16> chosen;
  for (size_t i = first; i != end; ++i)
    if (isRemovable(opAt(func, i)))
      chosen.push_back(&opAt(func, i));
  bool any = false;
  for (Op *op : chosen)
    for (Value *result : op->results()) {
      bool isUsed = llvm::any_of(result->uses(), [&](const Use &use) {
        return !llvm::is_contained(chosen, use.op);
      });
      if (isUsed)
        result->replaceAllUsesWith(addInput(func, result->type));
      any = true;
    }
  for (Op *op : llvm::reverse(chosen))
    op->erase();
  return any;
}

std::vector<Edit> opsToInputs(const Module &module) {
  std::vector<Edit> edits;
  for (auto [first, end] : ranges(module.entry().body.size() - 1))
    edits.push_back([first = first, end = end](Module &clone) {
      return makeInputs(clone, first, end);
    });
  return edits;
}

/// Uses an operand of the same type in place of an op's result.
std::vector<Edit> opsToOperands(const Module &module) {
  std::vector<Edit> edits;
  size_t index = 0;
  for (Op &op : module.entry().body) {
    size_t i = index++;
    if (!isRemovable(op) || op.numResults() != 1)
      continue;
    for (unsigned k = 0; k != op.numOperands(); ++k)
      if (op.operand(k) && op.operand(k)->type == op.result()->type)
        edits.push_back([i, k](Module &clone) {
          Op &copy = opAt(clone.entry(), i);
          copy.result()->replaceAllUsesWith(copy.operand(k));
          copy.erase();
          return true;
        });
  }
  std::reverse(edits.begin(), edits.end());
  return edits;
}

std::vector<Edit> opsToConstants(const Module &module) {
  std::vector<Edit> edits;
  size_t index = 0;
  for (Op &op : module.entry().body) {
    size_t i = index++;
    if (!isRemovable(op) || op.numResults() != 1 ||
        !constantShape(op.result()->shape()))
      continue;
    edits.push_back([i](Module &clone) {
      Op &copy = opAt(clone.entry(), i);
      const Value &result = *copy.result();
      Value *one = Builder::before(&copy).constant(
          Constant::splat(result.element(), *constantShape(result.shape()), 1));
      copy.result()->replaceAllUsesWith(one);
      copy.erase();
      return true;
    });
  }
  std::reverse(edits.begin(), edits.end());
  return edits;
}

/// A contraction without its epilogue.
std::vector<Edit> dropEpilogues(const Module &module) {
  std::vector<Edit> edits;
  size_t index = 0;
  for (Op &op : module.entry().body) {
    size_t i = index++;
    if (!is(op, HasEpilogue) || !op.region())
      continue;
    edits.push_back([i](Module &clone) {
      Op &copy = opAt(clone.entry(), i);
      llvm::Expected<Op *> plain = Builder::before(&copy).create(
          copy.kind(), copy.operands().take_front(2), copy.rawAttrs().clone());
      if (!plain) {
        llvm::consumeError(plain.takeError());
        return false;
      }
      copy.result()->replaceAllUsesWith((*plain)->result());
      copy.erase();
      return true;
    });
  }
  return edits;
}

//===----------------------------------------------------------------------===//
// Constants, constraints
//===----------------------------------------------------------------------===//

/// Constants of many different elements become one element, repeated.
std::vector<Edit> splatConstants(const Module &module) {
  std::vector<Edit> edits;
  size_t index = 0;
  for (Op &op : module.entry().body) {
    size_t i = index++;
    if (op.kind() != OpKind::Const)
      continue;
    const Constant &value = *op.attrs<ConstAttrs>().value;
    if (value.form() == Constant::Form::Splat || value.numElements() < 2 ||
        bitWidth(value.element()) < 8)
      continue;
    edits.push_back([i](Module &clone) {
      ConstantRef &value = opAt(clone.entry(), i).attrs<ConstAttrs>().value;
      std::vector<uint8_t> first(bitWidth(value->element()) / 8);
      value->read(0, 1, first.data());
      value = Constant::splatBytes(value->element(), value->shape(), first);
      return true;
    });
  }
  return edits;
}

std::vector<Edit> dropConstraints(const Module &module) {
  if (module.entry().constraints.empty())
    return {};
  return {[](Module &clone) {
    clone.entry().constraints.clear();
    return true;
  }};
}

std::vector<Edit> fixSymbols(const Module &module) {
  std::vector<Edit> edits;
  for (const Module::Symbol &symbol : module.symbols)
    for (int64_t size : {1, 2, 3})
      if (symbol.range.low <= size && size <= symbol.range.high)
        edits.push_back([name = symbol.name, size](Module &clone) {
          clone.substituteSymbol(name, Dim(size));
          return true;
        });
  return edits;
}

/// Whether another input, or none, has the symbols of input \p i.
bool isDispensable(const Func &func, unsigned i) {
  if (!func.body.argument(i)->uses().empty())
    return false;
  llvm::StringSet<> needed;
  for (Dim dim : func.body.argument(i)->shape())
    dim.collectSymbols([&](llvm::StringRef name) { needed.insert(name); });
  for (unsigned k = 0; k != func.body.numArguments(); ++k)
    if (k != i)
      for (Dim dim : func.body.argument(k)->shape())
        if (auto name = dim.symbolName())
          needed.erase(*name);
  auto isUsed = [&](ShapeRef shape) {
    bool used = false;
    for (Dim dim : shape)
      dim.collectSymbols(
          [&](llvm::StringRef name) { used |= needed.contains(name); });
    return used;
  };
  if (needed.empty())
    return true;
  for (unsigned k = 0; k != func.body.numArguments(); ++k)
    if (k != i && isUsed(func.body.argument(k)->shape()))
      return false;
  for (Op &op : func.body)
    for (Value *result : op.results())
      if (isUsed(result->shape()))
        return false;
  return func.constraints.empty();
}

} // namespace

void reduce::removeUnused(Module &module) {
  for (const std::unique_ptr<Func> &func : module.funcs) {
    Op *op = &func->body.back();
    while (op) {
      Op *previous = op->prev();
      if (!op->hasUses() && !is(*op, Terminator) && !is(*op, SideEffect))
        op->erase();
      op = previous;
    }
    for (unsigned i = func->body.numArguments(); i-- != 0;)
      if (isDispensable(*func, i)) {
        func->body.eraseArgument(i);
        func->inputs.erase(func->inputs.begin() + i);
      }
  }
}

llvm::ArrayRef<EditList> reduce::allEdits() {
  static const EditList lists[] = {
      dropFunctions, dropOutputs,   truncations,    opsToInputs,
      opsToOperands, dropEpilogues, opsToConstants, dropConstraints,
      fixSymbols,    shrinkEdits,   splatConstants};
  return lists;
}
