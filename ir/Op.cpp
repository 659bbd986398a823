//===- Op.cpp - values, ops, blocks --------------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ir/Op.h"
#include "ir/OpDef.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace tenon::ir {

//===----------------------------------------------------------------------===//
// Value
//===----------------------------------------------------------------------===//

Op *Value::def(OpKind kind) const {
  return definingOp && definingOp->kind() == kind ? definingOp : nullptr;
}

Block *Value::owner() const {
  return definingOp ? definingOp->block() : ownerBlock;
}

void Value::replaceAllUsesWith(Value *other) {
  if (other == this)
    return;
  SmallVector<Use, 2> uses = std::move(useList);
  useList.clear();
  for (Use use : uses) {
    use.op->operandList[use.index] = other;
    if (other)
      other->useList.push_back(use);
  }
}

void Value::removeUse(Use use) {
  // Recent uses are removed most often.
  auto it = std::find(useList.rbegin(), useList.rend(), use);
  assert(it != useList.rend() && "a use that the value does not know");
  useList.erase(std::next(it).base());
}

//===----------------------------------------------------------------------===//
// Op
//===----------------------------------------------------------------------===//

Op::Op(OpKind kind, std::unique_ptr<Attrs> attrs)
    : opKind(kind), attributes(std::move(attrs)) {}

Op::~Op() {
  body.reset();
  for (unsigned i = 0; i < operandList.size(); ++i)
    removeUse(i);
}

void Op::addUse(unsigned i) {
  if (operandList[i])
    operandList[i]->useList.push_back({this, i});
}

void Op::removeUse(unsigned i) {
  if (operandList[i])
    operandList[i]->removeUse({this, i});
}

void Op::setOperand(unsigned i, Value *value) {
  removeUse(i);
  operandList[i] = value;
  addUse(i);
}

void Op::setOperands(ArrayRef<Value *> values) {
  SmallVector<Value *, 4> next(values); // may alias operands()
  for (unsigned i = 0; i < operandList.size(); ++i)
    removeUse(i);
  operandList = std::move(next);
  for (unsigned i = 0; i < operandList.size(); ++i)
    addUse(i);
}

SmallVector<Value *, 2> Op::results() const {
  SmallVector<Value *, 2> values;
  for (const std::unique_ptr<Value> &value : resultList)
    values.push_back(value.get());
  return values;
}

bool Op::hasUses() const {
  return any_of(resultList, [](const std::unique_ptr<Value> &value) {
    return !value->uses().empty();
  });
}

Block *Op::makeRegion() {
  body = std::make_unique<Block>(this);
  return body.get();
}

void Op::setRegion(std::unique_ptr<Block> region) {
  body = std::move(region);
  if (body)
    body->parentOp = this;
}

void Op::takeRegion(Op &other) { setRegion(std::move(other.body)); }

Op *Op::next() const {
  auto it = std::next(position);
  return it == parent->ops.end() ? nullptr : it->get();
}

Op *Op::prev() const {
  return position == parent->ops.begin() ? nullptr : std::prev(position)->get();
}

bool Op::isBefore(const Op *other) const {
  assert(parent == other->parent && "ops of different blocks");
  if (!parent->ordered)
    parent->renumber();
  return order < other->order;
}

void Op::moveBefore(Op *other) {
  if (other == this)
    return;
  Block *target = other->parent;
  target->ops.splice(other->position, parent->ops, position);
  parent = target;
  target->place(this, position);
}

void Op::erase() {
  assert(!hasUses() && "erasing an op that is in use");
  parent->ops.erase(position);
}

//===----------------------------------------------------------------------===//
// Block
//===----------------------------------------------------------------------===//

Block::~Block() { dropReferences(); }

/// Forgets all uses at once, so that tearing down takes linear time and ops may
/// go in any order.
void Block::dropReferences() {
  for (const std::unique_ptr<Op> &op : ops) {
    if (op->body)
      op->body->dropReferences();
    for (const std::unique_ptr<Value> &result : op->resultList)
      result->useList.clear();
  }
  for (const std::unique_ptr<Value> &argument : arguments)
    argument->useList.clear();
  for (const std::unique_ptr<Op> &op : ops) {
    for (unsigned i = 0; i < op->operandList.size(); ++i) {
      // Only values from outside this block still know the use.
      Value *value = op->operandList[i];
      if (value && !value->useList.empty())
        value->removeUse({op.get(), i});
      op->operandList[i] = nullptr;
    }
  }
}

Value *Block::addArgument(TensorType type, StringRef name) {
  auto value = std::make_unique<Value>();
  value->type = std::move(type);
  value->name = name.str();
  value->ownerBlock = this;
  value->number = arguments.size();
  arguments.push_back(std::move(value));
  return arguments.back().get();
}

void Block::eraseArgument(unsigned i) {
  assert(arguments[i]->uses().empty() && "erasing an argument that is in use");
  arguments.erase(arguments.begin() + i);
  for (; i < arguments.size(); ++i)
    arguments[i]->number = i;
}

Op *Block::terminator() const {
  return !ops.empty() && is(*ops.back(), Terminator) ? ops.back().get()
                                                     : nullptr;
}

Op *Block::insert(OpKind kind, std::unique_ptr<Attrs> attrs,
                  ArrayRef<Value *> operands, ArrayRef<TensorType> resultTypes,
                  Op *before) {
  std::unique_ptr<Op> owned(new Op(kind, std::move(attrs)));
  Op *op = owned.get();
  op->parent = this;
  for (const TensorType &type : resultTypes) {
    auto value = std::make_unique<Value>();
    value->type = type;
    value->definingOp = op;
    value->number = op->resultList.size();
    op->resultList.push_back(std::move(value));
  }
  op->setOperands(operands);
  auto position =
      ops.insert(before ? before->position : ops.end(), std::move(owned));
  place(op, position);
  return op;
}

namespace {
/// Distance between the order numbers of neighbours after renumbering.
constexpr unsigned orderStride = 64;
} // namespace

/// Records where \p op stands and gives it an order number between its
/// neighbours' if there is room.
void Block::place(Op *op,
                  std::list<std::unique_ptr<Op>>::iterator position) const {
  op->position = position;
  const Op *prev = op->prev(), *next = op->next();
  unsigned low = prev ? prev->order : 0;
  if (!next)
    op->order = low + orderStride;
  else
    op->order = low + (next->order - low) / 2;
  bool fits = op->order > low && (!next || op->order < next->order);
  ordered = fits && (ordered || ops.size() == 1);
}

void Block::renumber() const {
  unsigned order = 0;
  for (const std::unique_ptr<Op> &op : ops)
    op->order = order += orderStride;
  ordered = true;
}

//===----------------------------------------------------------------------===//
// Copying
//===----------------------------------------------------------------------===//

void cloneBlock(const Block &from, Block &to, ValueMap &map) {
  for (unsigned i = 0; i < from.numArguments(); ++i) {
    Value *argument = from.argument(i);
    Value *&copy = map[argument];
    if (!copy)
      copy = to.addArgument(argument->type, argument->name);
  }
  auto lookup = [&](Value *value) {
    auto it = map.find(value);
    return it == map.end() ? value : it->second;
  };
  for (const Op &op : from) {
    SmallVector<Value *, 4> operands(map_range(op.operands(), lookup));
    SmallVector<TensorType, 2> types;
    for (Value *result : op.results())
      types.push_back(result->type);
    Op *copy = to.insert(op.kind(), op.rawAttrs().clone(), operands, types);
    copy->loc = op.loc;
    for (unsigned i = 0; i < op.numResults(); ++i) {
      copy->result(i)->name = op.result(i)->name;
      map[op.result(i)] = copy->result(i);
    }
    if (op.region())
      cloneBlock(*op.region(), *copy->makeRegion(), map);
  }
}

} // namespace tenon::ir
