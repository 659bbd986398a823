//===- Functors.cpp - functors of scalars from regions and ops -----------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/select/Functors.h"
#include "codegen/emit/CppText.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"

namespace tenon::codegen {

using ir::ElementType;
using ir::OpKind;
using kernel::Functor;

namespace {

std::shared_ptr<const ir::Attrs> shareAttrs(const ir::Op &op) {
  return std::shared_ptr<const ir::Attrs>(op.rawAttrs().clone());
}

Functor::Node literalNode(ir::ConstantRef value) {
  auto attrs = std::make_shared<ir::ConstAttrs>();
  attrs->value = std::move(value);
  ElementType element = attrs->value->element();
  return {OpKind::Const, element, {}, std::move(attrs)};
}

} // namespace

Functor functorOf(const ir::Block &body) {
  Functor functor;
  llvm::DenseMap<const ir::Value *, unsigned> number;
  for (unsigned i = 0; i < body.numArguments(); ++i) {
    number[body.argument(i)] = i;
    functor.arguments.push_back({body.argument(i)->element()});
  }
  for (const ir::Op &op : body) {
    if (op.kind() == OpKind::Yield) {
      for (const ir::Value *value : op.operands())
        functor.results.push_back(number[value]);
      break;
    }
    Functor::Node node{op.kind(), op.result()->element(), {}, shareAttrs(op)};
    for (const ir::Value *value : op.operands())
      node.operands.push_back(number[value]);
    number[op.result()] = functor.arguments.size() + functor.nodes.size();
    functor.nodes.push_back(std::move(node));
  }
  return functor;
}

Functor functorOf(const Lowering &lowering, const ir::Op &op,
                  llvm::SmallVectorImpl<const ir::Value *> &arguments) {
  Functor functor;
  llvm::SmallVector<ir::ConstantRef> literals;
  for (const ir::Value *value : op.operands()) {
    functor.arguments.push_back({value->element()});
    literals.push_back(literalOf(lowering, lowering.view(value)));
    if (!literals.back())
      arguments.push_back(value);
  }
  Functor::Node node{op.kind(), op.result()->element(), {}, shareAttrs(op)};
  for (unsigned i = 0; i < op.numOperands(); ++i)
    node.operands.push_back(i);
  functor.nodes.push_back(std::move(node));
  functor.results.push_back(op.numOperands());
  return bindLiterals(functor, literals);
}

Functor identity(ElementType element) {
  Functor functor;
  functor.arguments.push_back({element});
  functor.results.push_back(0);
  return functor;
}

Functor bindLiterals(const Functor &functor,
                     llvm::ArrayRef<ir::ConstantRef> literals) {
  Functor bound;
  std::vector<unsigned> number;
  unsigned kept = llvm::count(literals, nullptr);
  for (const auto &[i, argument] : llvm::enumerate(functor.arguments)) {
    if (!literals[i]) {
      number.push_back(bound.arguments.size());
      bound.arguments.push_back(argument);
      continue;
    }
    number.push_back(kept + bound.nodes.size());
    bound.nodes.push_back(literalNode(literals[i]));
  }
  for (Functor::Node node : functor.nodes) {
    for (unsigned &operand : node.operands)
      operand = number[operand];
    number.push_back(kept + bound.nodes.size());
    bound.nodes.push_back(std::move(node));
  }
  for (unsigned result : functor.results)
    bound.results.push_back(number[result]);
  return bound;
}

Functor compose(const Functor &first, const Functor &second) {
  Functor both;
  llvm::append_range(both.arguments, first.arguments);
  both.arguments.append(second.arguments.begin() + 1, second.arguments.end());
  unsigned inserted = second.arguments.size() - 1;
  unsigned firstArguments = first.arguments.size();
  auto ofFirst = [&](unsigned value) {
    return value < firstArguments ? value : value + inserted;
  };
  for (Functor::Node node : first.nodes) {
    for (unsigned &operand : node.operands)
      operand = ofFirst(operand);
    both.nodes.push_back(std::move(node));
  }
  auto ofSecond = [&](unsigned value) -> unsigned {
    if (value == 0)
      return ofFirst(first.results[0]);
    if (value < second.arguments.size())
      return firstArguments + value - 1;
    return both.arguments.size() + first.nodes.size() + value -
           second.arguments.size();
  };
  for (Functor::Node node : second.nodes) {
    for (unsigned &operand : node.operands)
      operand = ofSecond(operand);
    both.nodes.push_back(std::move(node));
  }
  for (unsigned result : second.results)
    both.results.push_back(ofSecond(result));
  return both;
}

ir::ConstantRef literalOf(const Lowering &lowering, const View &view) {
  ir::ConstantRef value = lowering.constantOf(view);
  if (!value || cppType(value->element()).empty())
    return nullptr;
  if (value->numElements() == 1)
    return value;
  std::optional<double> splat = value->splatValue();
  // Integers past 2^53 would lose bits on the way through a double.
  if (!splat ||
      (!ir::isFloat(value->element()) && (*splat > 9e15 || *splat < -9e15)))
    return nullptr;
  return ir::Constant::scalar(value->element(), *splat);
}

bool isVectorizable(const Functor &functor) {
  auto fits = [](ElementType element) {
    return element == ElementType::F32 || element == ElementType::Bool;
  };
  for (const Functor::Argument &argument : functor.arguments)
    if (!fits(argument.element))
      return false;
  auto isByte = [&](unsigned value) {
    return functor.elementOf(value) == ElementType::U8;
  };
  for (const Functor::Node &node : functor.nodes) {
    bool boolLiteral =
        node.kind == OpKind::Const && node.element == ElementType::Bool;
    bool byte = node.kind == OpKind::Cast && node.element == ElementType::U8 &&
                functor.elementOf(node.operands[0]) == ElementType::F32;
    if ((!fits(node.element) && !byte) || boolLiteral ||
        llvm::any_of(node.operands, isByte))
      return false;
  }
  std::vector<bool> literal = literalValues(functor);
  return llvm::none_of(functor.results,
                       [&](unsigned result) { return literal[result]; });
}

std::optional<ElementType> unsupportedElement(const Functor &functor) {
  for (const Functor::Argument &argument : functor.arguments)
    if (storageType(argument.element).empty())
      return argument.element;
  for (const Functor::Node &node : functor.nodes) {
    if (storageType(node.element).empty())
      return node.element;
    // What is only stored is cast and chosen between, nothing else.
    bool computes = node.kind != OpKind::Const && node.kind != OpKind::Cast &&
                    node.kind != OpKind::Where;
    for (unsigned operand : node.operands)
      if (computes && cppType(functor.elementOf(operand)).empty())
        return functor.elementOf(operand);
  }
  return std::nullopt;
}

} // namespace tenon::codegen
