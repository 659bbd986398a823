//===- Overlay.cpp - lifetimes of buffers, and computing in place --------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/plan/Overlay.h"
#include "llvm/ADT/STLExtras.h"

namespace tenon::codegen {

using kernel::Buffer;
using kernel::BufferKind;
using kernel::Launch;
using kernel::Program;
using kernel::View;

std::vector<Lifetime> lifetimesOf(const Program &program) {
  std::vector<Lifetime> lifetimes(program.buffers.size());
  auto touch = [&](unsigned buffer, unsigned launch) {
    Lifetime &life = lifetimes[buffer];
    life.first = std::min(life.first, launch);
    life.last = std::max(life.last, launch);
  };
  for (const auto &[i, launch] : llvm::enumerate(program.launches)) {
    for (const View &view : launch.views)
      touch(view.buffer, i);
    if (launch.scratchBuffer != kernel::none)
      touch(launch.scratchBuffer, i);
  }
  return lifetimes;
}

namespace {

bool sameWindow(View a, const View &b) {
  a.buffer = b.buffer;
  return ir::bitWidth(a.element) == ir::bitWidth(b.element) &&
         a.offset == b.offset && a.shape == b.shape && a.strides == b.strides;
}

/// The buffer whose memory result 0 of launch \p number may take, or none.
unsigned overlaidBuffer(const Program &program, unsigned number,
                        llvm::ArrayRef<Lifetime> lifetimes) {
  const Launch &launch = program.launches[number];
  if (launch.numResults == 0)
    return kernel::none;
  const View &result = launch.results()[0];
  const Buffer &target = program.buffers[result.buffer];
  if (target.kind != BufferKind::Arena ||
      lifetimes[result.buffer].first != number)
    return kernel::none;
  for (unsigned i : launch.overlays) {
    const View &operand = launch.views[i];
    const Buffer &source = program.buffers[operand.buffer];
    bool free = source.kind == BufferKind::Arena &&
                operand.buffer != result.buffer &&
                source.segment == target.segment &&
                source.bytes == target.bytes &&
                lifetimes[operand.buffer].last == number;
    if (!free || !sameWindow(operand, result))
      continue;
    // Every look at the operand's buffer must be this very window.
    bool alone = llvm::all_of(launch.views, [&](const View &view) {
      return view.buffer != operand.buffer || sameWindow(view, operand);
    });
    bool onlyResult = llvm::count_if(launch.results(), [&](const View &view) {
                        return view.buffer == result.buffer;
                      }) == 1;
    if (alone && onlyResult)
      return operand.buffer;
  }
  return kernel::none;
}

} // namespace

void overlay(Program &program) {
  std::vector<Lifetime> lifetimes = lifetimesOf(program);
  std::vector<unsigned> now(program.buffers.size());
  for (unsigned i = 0; i < now.size(); ++i)
    now[i] = i;
  for (unsigned i = 0; i < program.launches.size(); ++i) {
    for (View &view : program.launches[i].views)
      view.buffer = now[view.buffer];
    unsigned source = overlaidBuffer(program, i, lifetimes);
    if (source == kernel::none)
      continue;
    unsigned target = program.launches[i].results()[0].buffer;
    now[target] = source;
    lifetimes[source].last = lifetimes[target].last;
    lifetimes[target] = {};
    for (View &view : program.launches[i].views)
      view.buffer = now[view.buffer];
  }
}

} // namespace tenon::codegen
