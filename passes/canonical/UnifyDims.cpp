//===- UnifyDims.cpp - symbols that must be equal ----------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Pass.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace tenon;
using namespace tenon::ir;
using namespace tenon::passes;

namespace {

/// A constraint `total == past + seq` makes `total` another name of that
/// expression: the symbol goes, and the types of the inputs say what is checked
/// at run time.
class UnifyDims final : public FuncPass {
public:
  llvm::Expected<bool> runOnFunc(Module &module, Func &func,
                                 PassContext &context) override {
    bool changed = dropProved(func) | divideOut(module, func);
    while (unifyOne(module, func)) {
      dropProved(func);
      changed = true;
    }
    return changed;
  }

private:
  static bool dropProved(Func &func) {
    size_t before = func.constraints.size();
    llvm::erase_if(func.constraints,
                   [](const DimConstraint &c) { return c.a == c.b; });
    return func.constraints.size() != before;
  }

  /// batch * total == batch * seq says total == seq, as a batch is never empty.
  static bool divideOut(Module &module, Func &func) {
    bool changed = false;
    for (DimConstraint &constraint : func.constraints)
      for (const Module::Symbol &symbol : module.symbols) {
        if (symbol.range.low < 1)
          continue;
        Dim by = Dim::symbol(symbol.name);
        std::optional<Dim> a = Dim::divideExactly(constraint.a, by),
                           b = Dim::divideExactly(constraint.b, by);
        if (!a || !b)
          continue;
        constraint.a = *a;
        constraint.b = *b;
        changed = true;
      }
    return changed;
  }

  static bool unifyOne(Module &module, Func &func) {
    for (const DimConstraint &constraint : func.constraints)
      for (auto [symbol, by] : {std::pair(constraint.b, constraint.a),
                                std::pair(constraint.a, constraint.b)}) {
        std::optional<llvm::StringRef> name = symbol.symbolName();
        if (!name || !mayReplace(module, func, *name, by))
          continue;
        // The name lives as long as the process; the constraint doesn't.
        narrow(module, *name, by);
        module.substituteSymbol(*name, by);
        return true;
      }
    return false;
  }

  /// Whether every call still binds all symbols without \p symbol, and nothing
  /// that is known about its range is lost.
  static bool mayReplace(Module &module, Func &func, llvm::StringRef symbol,
                         Dim by) {
    bool possible = true;
    by.collectSymbols([&](llvm::StringRef other) {
      possible &= other != symbol && isBoundByInput(func, other);
    });
    // A symbol that data defines stays: its op has to define something.
    if (!possible || !isBoundByInput(func, symbol))
      return false;
    if (by.symbolName())
      return true;
    DimRange range = module.rangeOf(symbol);
    if (std::optional<int64_t> size = by.constant())
      return *size >= range.low && *size <= range.high;
    return range.low <= 1 && range.high == INT64_MAX;
  }

  static bool isBoundByInput(Func &func, llvm::StringRef symbol) {
    for (unsigned i = 0; i != func.body.numArguments(); ++i)
      for (Dim dim : func.body.argument(i)->shape())
        if (dim.symbolName() == symbol)
          return true;
    return false;
  }

  /// The replacement must be in the range of both.
  static void narrow(Module &module, llvm::StringRef symbol, Dim by) {
    std::optional<llvm::StringRef> other = by.symbolName();
    if (!other)
      return;
    DimRange a = module.rangeOf(symbol);
    for (Module::Symbol &entry : module.symbols)
      if (entry.name == *other) {
        entry.range.low = std::max(entry.range.low, a.low);
        entry.range.high = std::min(entry.range.high, a.high);
      }
  }
};

} // namespace

std::unique_ptr<Pass> passes::createUnifyDims() {
  return std::make_unique<UnifyDims>();
}
