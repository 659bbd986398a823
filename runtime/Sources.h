//===- Sources.h - where symbols get their values from ------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_RUNTIME_SOURCES_H
#define TENON_RUNTIME_SOURCES_H

#include "runtime/Plan.h"

#include <optional>

namespace tenon::rt {

/// An expression as a function of one symbol: factor * symbol + rest.
struct Linear {
  int64_t factor = 0, rest = 0;
};

/// The dimensions of inputs that give symbols their values, in an order in
/// which each needs only what those before it give: first the dimensions that
/// are a symbol and nothing else, then formulas that are linear in one symbol
/// that is not known yet (`2 * n`, `past + m`).
std::vector<SymbolSource> symbolSources(const Plan &plan);

/// `id`, a formula of symbolSources(), as a function of `symbol`, with the
/// other symbols' values; nothing if sizes in it do not fit 64 bits.
std::optional<Linear> linearIn(const Plan &plan, ExprId id, uint32_t symbol,
                               std::span<const int64_t> symbols);

} // namespace tenon::rt

#endif // TENON_RUNTIME_SOURCES_H
