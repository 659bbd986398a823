//===- Tensor.cpp - matrix instructions of a warp ------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/emulator/exec/Access.h"
#include "runtime/emulator/exec/Decoder.h"
#include "runtime/emulator/exec/Lanes.h"
#include "runtime/emulator/exec/WarpShared.h"
#include "runtime/emulator/tensor/MatrixMove.h"
#include "runtime/emulator/tensor/Mma.h"
#include "runtime/support/Status.h"

#include <cstdio>

using namespace tenon;
using namespace tenon::emu;
using ptx::Operand;
using ptx::Type;
using tensor::Element;

namespace {

template <typename T>
void pointers(const Warp &warp, const Ref *refs, unsigned count, T **out) {
  for (unsigned i = 0; i != count; ++i)
    out[i] = lanes<T>(warp, refs[i]);
}

constexpr unsigned mostRegisters = 32;

void multiply(Warp &warp, const Op &op, uint32_t mask) {
  if (!needsWholeWarp(warp, op, mask))
    return;
  const auto &mma =
      *static_cast<const tensor::Mma *>(warp.code->objects[op.extra]);
  const Ref *refs = &warp.code->refs[op.more];
  unsigned d = mma.registersD(), a = d + mma.registersA(),
           b = a + mma.registersB(), all = b + mma.registersC();
  warp.stats[op.id].bytes += mma.work();
  if (mma.isF64()) {
    uint64_t *r[mostRegisters];
    pointers(warp, refs, all, r);
    mma.runF64(r, r + d, r + a, r + b);
    return;
  }
  uint32_t *r[mostRegisters];
  pointers(warp, refs, all, r);
  mma.run(r, r + d, r + a, r + b);
}

void loadMatrix(Warp &warp, const Op &op, uint32_t mask) {
  if (!needsWholeWarp(warp, op, mask))
    return;
  uint64_t wide[32];
  uint32_t address[32];
  addressesOf(warp, op, wide);
  for (unsigned i = 0; i != 32; ++i)
    address[i] = static_cast<uint32_t>(wide[i]);
  tensor::MatrixMove move{static_cast<uint8_t>(op.extra & 7),
                          (op.extra & 8) != 0};
  uint32_t *r[4];
  pointers(warp, &warp.code->refs[op.more], move.count, r);
  WarpShared memory(warp, op);
  if (op.extra & 16)
    tensor::storeMatrix(move, address, memory, r);
  else
    tensor::loadMatrix(move, address, memory, r);
}

void moveMatrix(Warp &warp, const Op &op, uint32_t mask) {
  if (needsWholeWarp(warp, op, mask))
    tensor::moveMatrix(lanes<uint32_t>(warp, op.a),
                       lanes<uint32_t>(warp, op.dst));
}

/// Adds the registers of a vector operand, or of a single one.
unsigned addRegisters(Decoder &d, size_t i, Type type, bool results,
                      std::vector<Ref> &refs) {
  const Operand &operand = d.operand(i);
  if (operand.kind != Operand::Vector) {
    refs.push_back(results ? d.dst(operand, type) : d.src(operand, type));
    return 1;
  }
  for (const Operand &part : operand.parts)
    refs.push_back(results ? d.dst(part, type) : d.src(part, type));
  return static_cast<unsigned>(operand.parts.size());
}

/// ldmatrix and stmatrix of 8x8 matrices of 16-bit elements.
Handler buildMatrixMove(Decoder &d, bool store) {
  if (!d.take("sync") || !d.take("aligned") || !d.take("m8n8"))
    return nullptr;
  uint32_t count = d.take("x1") ? 1 : d.take("x2") ? 2 : d.take("x4") ? 4 : 0;
  bool transposed = d.take("trans");
  if (count == 0 || (!d.take("shared") && !d.take("shared::cta")) ||
      !d.take("b16") || !d.expectOperands(2, 2))
    return nullptr;
  std::vector<Ref> refs;
  size_t registers = store ? 1 : 0;
  if (addRegisters(d, registers, Type::B32, !store, refs) != count)
    return d.refuse(rt::format("expected %u registers", count));
  d.address(store ? 0 : 1, AddressSpace::Shared);
  d.op.more = d.refs(refs);
  d.op.extra = count | (transposed ? 8 : 0) | (store ? 16 : 0);
  d.op.kind = store ? OpClass::SharedStore : OpClass::SharedLoad;
  return loadMatrix;
}
Handler buildLoadMatrix(Decoder &d) { return buildMatrixMove(d, false); }
Handler buildStoreMatrix(Decoder &d) { return buildMatrixMove(d, true); }

Handler buildMoveMatrix(Decoder &d) {
  d.op.kind = OpClass::Tensor;
  return d.take("sync") && d.take("aligned") && d.take("m8n8") &&
                 d.take("trans") && d.take("b16")
             ? d.form(moveMatrix, Type::B32, {Type::B32})
             : nullptr;
}

std::optional<Element> takeElement(Decoder &d) {
  static constexpr std::pair<std::string_view, Element> names[] = {
      {"f16", Element::F16},   {"bf16", Element::BF16}, {"tf32", Element::TF32},
      {"f32", Element::F32},   {"f64", Element::F64},   {"e4m3", Element::E4M3},
      {"e5m2", Element::E5M2}, {"e2m3", Element::E2M3}, {"e3m2", Element::E3M2},
      {"e2m1", Element::E2M1}, {"s8", Element::S8},     {"u8", Element::U8},
      {"s4", Element::S4},     {"u4", Element::U4},     {"b1", Element::B1},
      {"s32", Element::S32}};
  for (auto [name, element] : names)
    if (d.take(name))
      return element;
  return std::nullopt;
}

/// "m16n8k16".
bool takeShape(Decoder &d, tensor::MmaOp &op) {
  std::string text(d.peek());
  unsigned m, n, k;
  char rest;
  if (std::sscanf(text.c_str(), "m%3un%3uk%3u%c", &m, &n, &k, &rest) != 3)
    return false;
  op.m = static_cast<uint16_t>(m);
  op.n = static_cast<uint16_t>(n);
  op.k = static_cast<uint16_t>(k);
  d.skip();
  return true;
}

Handler buildMma(Decoder &d) {
  tensor::MmaOp shape{};
  if (!d.take("sync") || !d.take("aligned"))
    return nullptr;
  d.take("kind::f8f6f4");
  if (!takeShape(d, shape) || !d.take("row") || !d.take("col"))
    return nullptr;
  shape.saturate = d.take("satfinite");
  std::optional<Element> types[4];
  for (std::optional<Element> &type : types)
    type = takeElement(d);
  if (!types[0] || !types[1] || !types[2] || !types[3])
    return nullptr;
  shape.d = *types[0];
  shape.a = *types[1];
  shape.b = *types[2];
  shape.c = *types[3];
  if (shape.a == Element::B1) {
    shape.bitOp = d.take("and") ? tensor::BitOp::And : tensor::BitOp::Xor;
    if (shape.bitOp == tensor::BitOp::Xor)
      d.take("xor");
    if (!d.take("popc"))
      return nullptr;
  }
  std::optional<tensor::Mma> mma = tensor::Mma::find(shape);
  if (!mma || !d.expectOperands(4, 4))
    return nullptr;
  const unsigned wanted[] = {mma->registersD(), mma->registersA(),
                             mma->registersB(), mma->registersC()};
  Type type = mma->isF64() ? Type::F64 : Type::B32;
  std::vector<Ref> refs;
  for (size_t i = 0; i != 4; ++i)
    if (addRegisters(d, i, type, i == 0, refs) != wanted[i])
      return d.refuse(
          rt::format("operand %zu must have %u registers", i + 1, wanted[i]));
  d.op.more = d.refs(refs);
  d.op.extra = d.keep(std::make_shared<const tensor::Mma>(*mma));
  d.op.kind = OpClass::Tensor;
  return multiply;
}

constexpr RuleEntry rules[] = {
    {"mma", buildMma},
    {"ldmatrix", buildLoadMatrix},
    {"stmatrix", buildStoreMatrix},
    {"movmatrix", buildMoveMatrix},
};

} // namespace

std::span<const RuleEntry> emu::tensorRules() { return rules; }
