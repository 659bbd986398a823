//===- PlanBuilder.h - lays out a plan's tables -------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_CODEGEN_ARTIFACT_PLANBUILDER_H
#define TENON_CODEGEN_ARTIFACT_PLANBUILDER_H

#include "runtime/format/plan.h"

#include <map>
#include <span>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

namespace tenon::codegen {

/// Collects the tables of a plan and lays them out as one block of bytes.
/// Strings and expressions are stored once; an expression's segment follows
/// from its symbols'.
class PlanBuilder {
public:
  PlanBuilder();

  rt::StringId string(const std::string &text);
  /// A symbol that becomes known in the prologue of `segment`: 0 for those of
  /// the inputs. Gives its number.
  uint32_t symbol(const std::string &name, int64_t low, int64_t high,
                  uint32_t segment = 0);

  rt::ExprId constant(int64_t value);
  rt::ExprId symbolValue(uint32_t symbol);
  /// What `symbol` is unless a session asks for less.
  void setMost(uint32_t symbol, uint32_t most) { symbols[symbol].most = most; }
  /// Folds what is constant.
  rt::ExprId apply(rt::ExprOp op, rt::ExprId a, rt::ExprId b);
  uint32_t segmentOf(rt::ExprId id) const { return exprs[id].segment; }

  rt::IndexRun run(std::span<const uint32_t> indices);

  /// The tables that need no help; records are kept as they are given.
  std::vector<rt::Port> inputs, outputs;
  std::vector<rt::Check> checks;
  std::vector<rt::Buffer> buffers;
  std::vector<rt::View> views;
  std::vector<rt::Launch> launches;
  std::vector<rt::Segment> segments;
  std::vector<rt::Weight> weights;
  std::vector<rt::State> states;
  std::vector<rt::Variant> variants;
  std::vector<rt::TensorMap> tensorMaps;
  /// Sizes, checksum of the weights, formulas. Tables, magic, sizes and the
  /// plan's own checksum are filled in by finish().
  rt::PlanHeader header = {};

  std::vector<uint8_t> finish() const;

private:
  rt::ExprId expr(const rt::Expr &expr);

  std::string strings;
  std::unordered_map<std::string, rt::StringId> stringIds;
  std::vector<uint32_t> indices;
  std::map<std::vector<uint32_t>, rt::IndexRun> runs;
  std::vector<rt::Symbol> symbols;
  std::vector<uint32_t> symbolSegments;
  std::vector<rt::Expr> exprs;
  using ExprKey = std::tuple<rt::ExprOp, rt::ExprId, rt::ExprId, int64_t>;
  std::map<ExprKey, rt::ExprId> exprIds;
};

/// Sets the checksum of the finished plan `bytes`.
void sealPlan(std::vector<uint8_t> &bytes);

} // namespace tenon::codegen

#endif // TENON_CODEGEN_ARTIFACT_PLANBUILDER_H
