//===- Names.cpp - the names that the printer gives ----------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ir/text/Names.h"
#include "ir/text/Lexer.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace tenon::ir {

bool isValueName(StringRef name) {
  // Names of digits are the printer's own numbers; `_` is a left out operand.
  return !name.empty() && name != "_" && all_of(name, isValueNameChar) &&
         !all_of(name, isDigit);
}

std::string UniqueNames::get(StringRef base) {
  std::string name = base.str();
  while (!take(name))
    name = (base + "_" + Twine(++next[base])).str();
  return name;
}

ValueNames::ValueNames(const Block &block, ArrayRef<Port> inputs) {
  // Names of the interface come first: they must not be changed.
  for (unsigned i = 0; i < block.numArguments() && i < inputs.size(); ++i)
    if (isValueName(inputs[i].name) && unique.take(inputs[i].name))
      names[block.argument(i)] = inputs[i].name;
  for (unsigned i = 0; i < block.numArguments(); ++i) {
    const Value *argument = block.argument(i);
    if (names.contains(argument))
      continue;
    bool hasHint = inputs.empty() && isValueName(argument->name);
    give(argument, hasHint ? argument->name : ("arg" + Twine(i)).str());
  }
  for (const Op &op : block)
    for (const Value *result : op.results())
      give(result, result->name);
}

void ValueNames::give(const Value *value, StringRef hint) {
  names[value] = isValueName(hint) ? unique.get(hint)
                                   : unique.get(std::to_string(nextNumber++));
}

StringRef ValueNames::of(const Value *value) const {
  auto it = names.find(value);
  return it == names.end() ? StringRef("<elsewhere>") : StringRef(it->second);
}

ConstantNames::ConstantNames(const Module &module, uint64_t maxInlineElements) {
  for (const std::unique_ptr<Func> &func : module.funcs)
    visit(func->body, maxInlineElements);
}

void ConstantNames::visit(const Block &block, uint64_t maxInlineElements) {
  for (const Op &op : block) {
    if (op.region())
      visit(*op.region(), maxInlineElements);
    if (op.kind() != OpKind::Const)
      continue;
    const Constant *constant = op.attrs<ConstAttrs>().value.get();
    bool hasContents =
        constant &&
        llvm::is_contained({Constant::Form::Dense, Constant::Form::Concat,
                            Constant::Form::Converted},
                           constant->form());
    if (!hasContents || constant->numElements() <= maxInlineElements ||
        names.contains(constant))
      continue;
    names[constant] =
        unique.get(constant->name().empty() ? "constant" : constant->name());
    order.push_back(constant);
  }
}

StringRef ConstantNames::of(const Constant *constant) const {
  auto it = names.find(constant);
  return it == names.end() ? StringRef() : StringRef(it->second);
}

} // namespace tenon::ir
