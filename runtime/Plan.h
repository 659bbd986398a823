//===- Plan.h - a checked, read-only view of a plan ---------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_RUNTIME_PLAN_H
#define TENON_RUNTIME_PLAN_H

#include "runtime/format/plan.h"
#include "runtime/support/Bytes.h"
#include "runtime/support/Status.h"

#include <memory>
#include <string>
#include <vector>

namespace tenon::rt {

/// Dimension `dim` of input `input`, which gives symbol `symbol` its value.
struct SymbolSource {
  uint32_t symbol, input, dim;
};

/// A plan whose every index, range and checksum has been checked, so that its
/// users need not. What depends on the symbols' values (a view inside its
/// buffer, say) is checked when a session learns them.
class Plan {
public:
  /// Checks the plan in `bytes`, which must outlive the result and start at a
  /// multiple of 8.
  static Result<Plan> load(Bytes bytes);

  const PlanHeader &header() const { return *head; }
  std::span<const Symbol> symbols() const { return symbolTable; }
  std::span<const Expr> exprs() const { return exprTable; }
  std::span<const Port> inputs() const { return inputTable; }
  std::span<const Port> outputs() const { return outputTable; }
  std::span<const Check> checks() const { return checkTable; }
  std::span<const Buffer> buffers() const { return bufferTable; }
  std::span<const View> views() const { return viewTable; }
  std::span<const Launch> launches() const { return launchTable; }
  std::span<const Segment> segments() const { return segmentTable; }
  std::span<const Weight> weights() const { return weightTable; }
  std::span<const State> states() const { return stateTable; }
  std::span<const Variant> variantsOf(const Launch &launch) const {
    return variantTable.subspan(launch.firstVariant, launch.numVariants);
  }
  std::span<const TensorMap> mapsOf(const Variant &variant) const {
    return mapTable.subspan(variant.firstMap, variant.numMaps);
  }

  /// Where the symbols that the inputs define get their values (Sources.h).
  std::span<const SymbolSource> symbolSources() const { return sources; }

  const char *string(StringId id) const { return stringTable.data() + id; }
  /// `count` indices from `first`.
  std::span<const uint32_t> run(IndexRun first, size_t count) const {
    return indexTable.subspan(first, count);
  }
  /// The segment in whose prologue `id` becomes known; 0 for `none`.
  uint32_t segmentOf(ExprId id) const {
    return id == none ? 0 : exprTable[id].segment;
  }

  /// The state that input `index` reads, or null.
  const State *stateOfInput(size_t index) const;
  /// The state that output `index` is, or null.
  const State *stateOfOutput(size_t index) const;

  /// "batch * seq"; cut short where it is long.
  std::string text(ExprId id) const;
  /// "f32[batch, seq, 768]".
  std::string text(const Port &port) const;

private:
  Plan() = default;
  friend class PlanChecker;

  const PlanHeader *head = nullptr;
  std::span<const char> stringTable;
  std::span<const uint32_t> indexTable;
  std::span<const Symbol> symbolTable;
  std::span<const Expr> exprTable;
  std::span<const Port> inputTable, outputTable;
  std::span<const Check> checkTable;
  std::span<const Buffer> bufferTable;
  std::span<const View> viewTable;
  std::span<const Launch> launchTable;
  std::span<const Segment> segmentTable;
  std::span<const Weight> weightTable;
  std::vector<SymbolSource> sources;
  std::span<const State> stateTable;
  std::span<const Variant> variantTable;
  std::span<const TensorMap> mapTable;
};

/// `a op b`, for an op with two operands; false when the result does not exist
/// or does not fit.
bool apply(ExprOp op, int64_t a, int64_t b, int64_t &out);

/// Operands that `op` has: 0 or 2.
unsigned arity(ExprOp op);

/// Evaluates every expression of `plan` that is known when segment `segment`
/// starts and was not before. `symbols` and `values` have an entry each.
/// Fails on overflow and division by zero, and on broadcasts that do not match.
Status evaluate(const Plan &plan, uint32_t segment,
                std::span<const int64_t> symbols, std::span<int64_t> values);

/// Same, with every symbol given and all segments at once: for formulas.
Result<std::vector<int64_t>> evaluateAll(const Plan &plan,
                                         std::span<const int64_t> symbols);

/// The checksum that `header.planChecksum` must have.
uint64_t planChecksum(Bytes plan);

} // namespace tenon::rt

#endif // TENON_RUNTIME_PLAN_H
