//===- Program.cpp - the second IR: helpers and invariants ----------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ir/kernel/Program.h"
#include "ir/support/Diag.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/MathExtras.h"

namespace tenon::kernel {

llvm::StringRef paddingName(Padding padding) {
  switch (padding) {
  case Padding::Nowhere:
    return "nowhere";
  case Padding::InFront:
    return "in_front";
  case Padding::Anywhere:
    return "anywhere";
  }
  llvm_unreachable("all places are covered");
}

llvm::StringRef layoutName(WeightLayout layout) {
  static constexpr llvm::StringLiteral names[] = {"row-major", "panels16",
                                                  "panels16-codes", "columns"};
  return names[unsigned(layout)];
}

llvm::StringRef accessName(Access access) {
  static constexpr llvm::StringLiteral names[] = {"value",  "row",  "column",
                                                  "scalar", "full", "any"};
  return names[unsigned(access)];
}

Dims contiguousStrides(ir::ShapeRef shape) {
  Dims strides(shape.size(), Dim(1));
  for (size_t i = shape.size(); i-- > 1;)
    strides[i - 1] = strides[i] * shape[i];
  return strides;
}

View Program::contiguous(unsigned buffer, const ir::TensorType &type) {
  View view;
  view.buffer = buffer;
  view.element = type.element;
  view.shape.assign(type.shape.begin(), type.shape.end());
  view.strides = contiguousStrides(type.shape);
  return view;
}

View Program::window(unsigned buffer, const ir::TensorType &type,
                     const State &state) {
  View view = contiguous(buffer, type);
  Dims room = view.shape;
  room[state.axis] = state.capacity;
  view.strides = contiguousStrides(room);
  return view;
}

uint64_t Program::weightBytes() const {
  uint64_t total = 0;
  for (const Weight &weight : weights)
    total += llvm::alignTo(weight.bytes, 64);
  return total;
}

void forEachDim(const Program &program, llvm::function_ref<void(Dim)> visit) {
  for (const auto *ports : {&program.inputs, &program.outputs})
    for (const Port &port : *ports)
      llvm::for_each(port.type.shape, visit);
  for (const ir::DimConstraint &check : program.checks) {
    visit(check.a);
    visit(check.b);
  }
  for (const Buffer &buffer : program.buffers) {
    visit(buffer.bytes);
    visit(buffer.offset);
  }
  for (const Launch &launch : program.launches) {
    for (const View &view : launch.views) {
      visit(view.offset);
      llvm::for_each(view.shape, visit);
      llvm::for_each(view.strides, visit);
    }
    llvm::for_each(launch.params, visit);
    if (launch.scratchBytes)
      visit(*launch.scratchBytes);
    auto visitGeometry = [&](const Geometry &geometry) {
      llvm::for_each(geometry.grid, visit);
      visit(geometry.sharedBytes);
    };
    if (launch.geometry)
      visitGeometry(*launch.geometry);
    for (const Variant &variant : launch.variants) {
      visit(variant.when);
      visitGeometry(variant.geometry);
    }
    visit(launch.flops);
    visit(launch.bytes);
  }
}

namespace {

void dropUnusedSymbols(Program &program) {
  llvm::StringSet<> used;
  forEachDim(program, [&](Dim dim) {
    dim.collectSymbols([&](llvm::StringRef name) { used.insert(name); });
  });
  for (const Launch &launch : program.launches)
    for (const std::string &symbol : launch.symbols)
      used.insert(symbol);
  llvm::erase_if(program.symbols, [&](const Symbol &symbol) {
    return !used.contains(symbol.name);
  });
}

} // namespace

void dropUnused(Program &program) {
  dropUnusedSymbols(program);
  std::vector<unsigned> number(program.buffers.size(), none);
  for (const Launch &launch : program.launches)
    for (const View &view : launch.views)
      number[view.buffer] = 0;
  std::vector<Buffer> buffers;
  std::vector<Weight> weights;
  for (const auto &[i, buffer] : llvm::enumerate(program.buffers)) {
    bool port = buffer.kind == BufferKind::Input ||
                buffer.kind == BufferKind::Output ||
                buffer.kind == BufferKind::State;
    if (number[i] == none && !port)
      continue;
    number[i] = buffers.size();
    buffers.push_back(buffer);
    if (buffer.kind == BufferKind::Weight) {
      buffers.back().index = weights.size();
      weights.push_back(std::move(program.weights[buffer.index]));
    }
  }
  program.buffers = std::move(buffers);
  program.weights = std::move(weights);
  for (Launch &launch : program.launches)
    for (View &view : launch.views)
      view.buffer = number[view.buffer];
}

namespace {

llvm::Error verifyBuffer(const Program &p, const Buffer &buffer) {
  size_t limit = ~size_t(0);
  if (buffer.kind == BufferKind::Weight)
    limit = p.weights.size();
  if (buffer.kind == BufferKind::Input)
    limit = p.inputs.size();
  if (buffer.kind == BufferKind::Output)
    limit = p.outputs.size();
  if (buffer.kind == BufferKind::State)
    limit = p.states.size();
  if (buffer.index >= limit)
    return userError("refers to number {0} of {1}", buffer.index, limit);
  if (buffer.kind == BufferKind::Arena && buffer.segment >= p.segments.size())
    return userError("segment {0} does not exist", buffer.segment);
  return llvm::Error::success();
}

llvm::Error verifyLaunch(const Program &p, const Launch &launch) {
  for (const View &view : launch.views) {
    if (view.buffer >= p.buffers.size())
      return userError("a view of buffer {0}, which does not exist",
                       view.buffer);
    if (view.shape.size() != view.strides.size())
      return userError("{0} dimensions but {1} strides", view.shape.size(),
                       view.strides.size());
  }
  if (launch.numResults > launch.views.size())
    return userError("more results than views");
  for (const View &view : launch.results()) {
    BufferKind kind = p.buffers[view.buffer].kind;
    if (kind == BufferKind::Weight || kind == BufferKind::Input)
      return userError("writes to a weight or an input");
  }
  if (launch.kind == LaunchKind::Kernel && launch.unit >= p.units.size())
    return userError("unit {0} does not exist", launch.unit);
  for (const Variant &variant : launch.variants) {
    if (variant.unit >= p.units.size())
      return userError("unit {0} does not exist", variant.unit);
    for (const TensorMap &map : variant.maps)
      if (map.view >= launch.views.size() || launch.views[map.view].rank() < 2)
        return userError("view {0} is no matrix", map.view);
  }
  if (launch.kind != LaunchKind::Kernel && launch.views.size() != 1)
    return userError("expected one view, found {0}", launch.views.size());
  return llvm::Error::success();
}

} // namespace

llvm::Error verify(const Program &program) {
  for (const State &state : program.states)
    if (state.input >= program.inputs.size() ||
        state.output >= program.outputs.size() || state.axis < 0 ||
        size_t(state.axis) >= program.inputs[state.input].type.shape.size())
      return userError("a state's input, output or axis does not exist");
  for (const auto &[i, buffer] : llvm::enumerate(program.buffers))
    if (llvm::Error error = verifyBuffer(program, buffer))
      return withPrefix(std::move(error), "buffer " + llvm::Twine(i) + ": ");
  unsigned next = 0;
  for (const auto &[i, segment] : llvm::enumerate(program.segments)) {
    if (segment.firstLaunch != next)
      return userError("segment {0} starts at launch {1}, expected {2}", i,
                       segment.firstLaunch, next);
    next += segment.numLaunches;
  }
  if (next != program.launches.size())
    return userError("segments cover {0} of {1} launches", next,
                     program.launches.size());
  for (const auto &[i, launch] : llvm::enumerate(program.launches))
    if (llvm::Error error = verifyLaunch(program, launch))
      return withPrefix(std::move(error), "launch " + llvm::Twine(i) + ": ");
  return llvm::Error::success();
}

} // namespace tenon::kernel
