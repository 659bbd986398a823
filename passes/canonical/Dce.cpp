//===- Dce.cpp - dead code ---------------------------------------------------===//
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

/// Collects the symbols in an attribute struct.
class SymbolCollector final : public FieldVisitor {
public:
  explicit SymbolCollector(llvm::StringSet<> &symbols) : symbols(symbols) {}
  void add(Dim dim) {
    dim.collectSymbols([&](llvm::StringRef name) { symbols.insert(name); });
  }
  void visit(llvm::StringRef, Dim &value) override { add(value); }
  void visit(llvm::StringRef, Dims &value) override {
    llvm::for_each(value, [&](Dim dim) { add(dim); });
  }
  void visit(llvm::StringRef, int64_t &) override {}
  void visit(llvm::StringRef, bool &) override {}
  void visit(llvm::StringRef, double &) override {}
  void visit(llvm::StringRef, Ints &) override {}
  void visit(llvm::StringRef, ElementType &) override {}
  void visit(llvm::StringRef, ConstantRef &) override {}
  void visit(llvm::StringRef, EnumRef) override {}
  void nextIsOptional(bool) override {}

private:
  llvm::StringSet<> &symbols;
};

/// The symbols that \p op, a SideEffect op, gives values to.
llvm::StringSet<> definedSymbols(Op &op) {
  llvm::StringSet<> symbols;
  SymbolCollector collector(symbols);
  op.rawAttrs().fields(collector);
  return symbols;
}

/// The symbols that anything but \p except needs.
llvm::StringSet<> usedSymbols(const Module &module, const Op *except) {
  llvm::StringSet<> symbols;
  SymbolCollector collector(symbols);
  auto addType = [&](const TensorType &type) {
    llvm::for_each(type.shape, [&](Dim dim) { collector.add(dim); });
  };
  for (const std::unique_ptr<Func> &func : module.funcs) {
    for (unsigned i = 0; i != func->body.numArguments(); ++i)
      addType(func->body.argument(i)->type);
    for (const DimConstraint &constraint : func->constraints) {
      collector.add(constraint.a);
      collector.add(constraint.b);
    }
    for (Op &op : func->body) {
      if (&op == except)
        continue;
      op.rawAttrs().fields(collector);
      for (Value *result : op.results())
        addType(result->type);
    }
  }
  return symbols;
}

/// Erases ops without uses from the end, and then ops that define symbols which
/// nothing mentions.
class Dce final : public FuncPass {
public:
  llvm::Expected<bool> runOnFunc(Module &module, Func &func,
                                 PassContext &context) override {
    bool changed = false;
    while (eraseUnused(func) || eraseUnusedSymbols(module, func))
      changed = true;
    return changed;
  }

private:
  static bool eraseUnused(Func &func) {
    bool changed = false;
    // Backwards, so that one sweep sees operands after their users are gone.
    Op *op = func.body.empty() ? nullptr : &func.body.back();
    while (op) {
      Op *previous = op->prev();
      if (!op->hasUses() && !is(*op, Terminator) && !is(*op, SideEffect)) {
        op->erase();
        changed = true;
      }
      op = previous;
    }
    return changed;
  }

  static bool eraseUnusedSymbols(Module &module, Func &func) {
    for (Op &op : func.body) {
      if (!is(op, SideEffect) || op.hasUses())
        continue;
      llvm::StringSet<> defined = definedSymbols(op);
      llvm::StringSet<> used = usedSymbols(module, &op);
      if (llvm::any_of(defined.keys(),
                       [&](llvm::StringRef s) { return used.contains(s); }))
        continue;
      op.erase();
      llvm::erase_if(module.symbols, [&](const Module::Symbol &symbol) {
        return defined.contains(symbol.name);
      });
      return true;
    }
    return false;
  }
};

} // namespace

std::unique_ptr<Pass> passes::createDce() { return std::make_unique<Dce>(); }
