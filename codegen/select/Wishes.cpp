//===- Wishes.cpp - writing a value where it is wanted in the end --------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/select/Lowering.h"
#include "llvm/ADT/STLExtras.h"

namespace tenon::codegen {

using kernel::BufferKind;

void Lowering::collectWishes() {
  const ir::Op *end = func.body.terminator();
  for (unsigned i = 0; i < end->numOperands(); ++i)
    wish(end->operand(i), {nullptr, i});
  for (const ir::Op &op : func.body)
    if (op.kind() == ir::OpKind::Concat)
      for (unsigned i = 0; i < op.numOperands(); ++i)
        wish(op.operand(i), {&op, i});
}

/// Hands a wish on through reshapes and transposes to the value that is really
/// computed.
void Lowering::wish(const ir::Value *value, Wish wish) {
  while (value && value->def() && wishes.try_emplace(value, wish).second) {
    ir::OpKind kind = value->def()->kind();
    if (kind != ir::OpKind::Reshape && kind != ir::OpKind::Transpose)
      return;
    value = value->def()->operand(0);
    wish.concat = nullptr;
    wish.number = kernel::none; // means: where the user's result should be
  }
}

/// A tensor in the memory of state \p number, which is made at first.
View Lowering::stateView(unsigned number, const ir::TensorType &type) {
  const kernel::State &state = program.states[number];
  auto [entry, isNew] = stateBuffers.try_emplace(number, 0);
  if (isNew) {
    ir::Shape room = type.shape;
    room[state.axis] = state.capacity;
    entry->second = addBuffer(BufferKind::State, number,
                              byteCount(type.element, numElements(room)));
  }
  return kernel::Program::window(entry->second, type, state);
}

View Lowering::outputView(unsigned number) {
  auto state = stateOfOutput.find(number);
  if (state != stateOfOutput.end())
    return stateView(state->second, program.outputs[number].type);
  return kernel::Program::contiguous(outputBuffers[number],
                                     program.outputs[number].type);
}

View Lowering::rowsApart(ir::ElementType element, ir::ShapeRef shape) {
  constexpr int64_t line = 16;
  ir::Shape apart(shape.begin(), shape.end());
  apart.back() = shape.back() + Dim(line);
  View view = temporary(element, apart);
  view.shape.assign(shape.begin(), shape.end());
  return view;
}

View Lowering::concatWhole(const ir::Op &concat) {
  auto found = concats.find(&concat);
  if (found != concats.end())
    return found->second;
  const ir::Value *value = concat.result();
  std::optional<View> place = granted(value);
  View whole = place ? *place : temporary(value->element(), value->shape());
  concats[&concat] = whole;
  return whole;
}

View Lowering::concatPart(const ir::Op &concat, unsigned number) {
  View part = concatWhole(concat);
  int64_t axis = concat.attrs<ir::AxisAttrs>().axis;
  std::vector<Dim> &starts = concatStarts[&concat];
  if (starts.empty()) {
    starts.push_back(0);
    for (ir::Value *operand : concat.operands())
      starts.push_back(starts.back() + operand->shape()[axis]);
  }
  part.offset = part.offset + starts[number] * part.strides[axis];
  part.shape[axis] = concat.operand(number)->shape()[axis];
  return part;
}

std::optional<View> Lowering::granted(const ir::Value *value) {
  auto found = wishes.find(value);
  if (found == wishes.end())
    return std::nullopt;
  Wish wish = found->second;
  if (wish.concat) {
    if (!isKnown(wish.concat->result()->shape()))
      return std::nullopt;
    return concatPart(*wish.concat, wish.number);
  }
  if (wish.number != kernel::none) {
    if (!isKnown(program.outputs[wish.number].type.shape))
      return std::nullopt;
    return outputView(wish.number);
  }
  // Wanted by the reshape or transpose that uses it.
  for (const ir::Use &use : value->uses()) {
    const ir::Op *user = use.op;
    bool movable = user->kind() == ir::OpKind::Reshape ||
                   user->kind() == ir::OpKind::Transpose;
    if (!movable || !wishes.count(user->result()))
      continue;
    std::optional<View> place = granted(user->result());
    if (!place)
      return std::nullopt;
    if (user->kind() == ir::OpKind::Reshape)
      return reshapeView(*place, value->shape());
    llvm::ArrayRef<int64_t> perm = user->attrs<ir::TransposeAttrs>().perm;
    llvm::SmallVector<int64_t> inverse(perm.size());
    for (const auto &[i, from] : llvm::enumerate(perm))
      inverse[from] = i;
    return transposeView(*place, inverse);
  }
  return std::nullopt;
}

bool Lowering::isKnown(ir::ShapeRef shape) const {
  bool all = true;
  for (Dim dim : shape)
    dim.collectSymbols(
        [&](llvm::StringRef name) { all &= known.contains(name); });
  return all;
}

} // namespace tenon::codegen
