//===- PlanBuilder.cpp - lays out a plan's tables -----------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/artifact/PlanBuilder.h"

#include "runtime/Plan.h"

#include <algorithm>
#include <cstring>

namespace tenon::codegen {

using namespace rt;

PlanBuilder::PlanBuilder() {
  header.peakBytes = none;
  header.peakFormula = header.manifest = string("");
}

StringId PlanBuilder::string(const std::string &text) {
  // The string table's strings end at a NUL; a name that holds one is cut.
  std::string key = text.substr(0, text.find('\0'));
  auto [found, added] = stringIds.try_emplace(key, StringId(strings.size()));
  if (added)
    strings.append(key.c_str(), key.size() + 1);
  return found->second;
}

uint32_t PlanBuilder::symbol(const std::string &name, int64_t low, int64_t high,
                             uint32_t segment) {
  symbols.push_back({string(name), rt::none, low, high});
  symbolSegments.push_back(segment);
  return uint32_t(symbols.size() - 1);
}

ExprId PlanBuilder::expr(const Expr &expr) {
  auto [found, added] = exprIds.try_emplace(
      ExprKey{expr.op, expr.a, expr.b, expr.value}, ExprId(exprs.size()));
  if (added)
    exprs.push_back(expr);
  return found->second;
}

ExprId PlanBuilder::constant(int64_t value) {
  return expr({ExprOp::Constant, {}, 0, none, none, value});
}

ExprId PlanBuilder::symbolValue(uint32_t symbol) {
  return expr({ExprOp::Symbol, {}, symbolSegments[symbol], none, none, symbol});
}

ExprId PlanBuilder::apply(ExprOp op, ExprId a, ExprId b) {
  auto isConstant = [&](ExprId id, int64_t value) {
    return exprs[id].op == ExprOp::Constant && exprs[id].value == value;
  };
  if (op == ExprOp::Mul && isConstant(a, 1))
    return b;
  if ((op == ExprOp::Mul && isConstant(b, 1)) ||
      (op == ExprOp::Add && isConstant(b, 0)))
    return a;
  if (op == ExprOp::Add && isConstant(a, 0))
    return b;
  uint32_t segment = std::max(exprs[a].segment, exprs[b].segment);
  return expr({op, {}, segment, a, b, 0});
}

IndexRun PlanBuilder::run(std::span<const uint32_t> list) {
  auto [found, added] =
      runs.try_emplace(std::vector<uint32_t>(list.begin(), list.end()),
                       IndexRun(indices.size()));
  if (added)
    indices.insert(indices.end(), list.begin(), list.end());
  return found->second;
}

std::vector<uint8_t> PlanBuilder::finish() const {
  std::vector<uint8_t> out(sizeof(PlanHeader));
  PlanHeader head = header;
  std::memcpy(head.magic, planMagic, sizeof(planMagic));
  head.version = planVersion;
  head.headerBytes = sizeof(PlanHeader);
  auto store = [&](Table &table, const auto &records) {
    using Record = std::remove_cvref_t<decltype(records[0])>;
    out.resize((out.size() + 7) / 8 * 8);
    table = {out.size(), uint32_t(records.size()), sizeof(Record)};
    out.resize(out.size() + records.size() * sizeof(Record));
    if (!records.empty())
      std::memcpy(out.data() + table.offset, records.data(),
                  records.size() * sizeof(Record));
  };
  store(head.strings, strings);
  store(head.indices, indices);
  store(head.symbols, symbols);
  store(head.exprs, exprs);
  store(head.inputs, inputs);
  store(head.outputs, outputs);
  store(head.checks, checks);
  store(head.buffers, buffers);
  store(head.views, views);
  store(head.launches, launches);
  store(head.segments, segments);
  store(head.weights, weights);
  store(head.states, states);
  store(head.variants, variants);
  store(head.tensorMaps, tensorMaps);
  head.totalBytes = out.size();
  std::memcpy(out.data(), &head, sizeof(head));
  sealPlan(out);
  return out;
}

void sealPlan(std::vector<uint8_t> &bytes) {
  auto *head = reinterpret_cast<PlanHeader *>(bytes.data());
  head->planChecksum = planChecksum(bytes);
}

} // namespace tenon::codegen
