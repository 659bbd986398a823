//===- Module.cpp - functions and symbols --------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ir/Op.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"

using namespace llvm;

namespace tenon::ir {

StringRef stageName(Stage stage) {
  static constexpr StringLiteral names[] = {"imported", "canonical", "fused"};
  return names[unsigned(stage)];
}

DimRange Module::rangeOf(StringRef symbol) const {
  for (const Symbol &known : symbols)
    if (known.name == symbol)
      return known.range;
  return {};
}

void Module::declare(StringRef symbol, DimRange range) {
  for (Symbol &known : symbols) {
    if (known.name == symbol) {
      known.range = range;
      return;
    }
  }
  symbols.push_back({symbol.str(), range});
}

Dim Module::freshSymbol(StringRef hint, DimRange range) {
  auto isTaken = [&](StringRef name) {
    return any_of(symbols, [&](const Symbol &s) { return s.name == name; });
  };
  std::string name = hint.str();
  for (unsigned n = 1; name.empty() || isTaken(name); ++n)
    name = (hint + "_" + Twine(n)).str();
  declare(name, range);
  return Dim::symbol(name);
}

namespace {

/// Rewrites every dimension in attribute structs.
class SubstituteInAttrs final : public FieldVisitor {
public:
  explicit SubstituteInAttrs(function_ref<Dim(Dim)> rewrite)
      : rewrite(rewrite) {}

  void nextIsOptional(bool) override {}
  void visit(StringRef, int64_t &) override {}
  void visit(StringRef, bool &) override {}
  void visit(StringRef, double &) override {}
  void visit(StringRef, Ints &) override {}
  void visit(StringRef, Dim &value) override { value = rewrite(value); }
  void visit(StringRef, Dims &value) override {
    for (Dim &dim : value)
      dim = rewrite(dim);
  }
  void visit(StringRef, ElementType &) override {}
  void visit(StringRef, ConstantRef &) override {}
  void visit(StringRef, EnumRef) override {}

private:
  function_ref<Dim(Dim)> rewrite;
};

void rewriteDims(Block &block, function_ref<Dim(Dim)> rewrite) {
  auto rewriteType = [&](TensorType &type) {
    for (Dim &dim : type.shape)
      dim = rewrite(dim);
  };
  SubstituteInAttrs visitor(rewrite);
  for (unsigned i = 0; i < block.numArguments(); ++i)
    rewriteType(block.argument(i)->type);
  for (Op &op : block) {
    op.rawAttrs().fields(visitor);
    for (Value *result : op.results())
      rewriteType(result->type);
    if (op.region())
      rewriteDims(*op.region(), rewrite);
  }
}

} // namespace

void Module::substituteSymbol(StringRef symbol, Dim value) {
  // The text may belong to the declaration that goes away.
  std::string name = symbol.str();
  auto rewrite = [&](Dim dim) {
    return dim.substitute([&](StringRef s) {
      return s == name ? std::optional(value) : std::nullopt;
    });
  };
  for (std::unique_ptr<Func> &func : funcs) {
    rewriteDims(func->body, rewrite);
    for (DimConstraint &constraint : func->constraints) {
      constraint.a = rewrite(constraint.a);
      constraint.b = rewrite(constraint.b);
    }
    erase_if(func->constraints,
             [](const DimConstraint &c) { return c.a == c.b; });
  }
  erase_if(symbols, [&](const Symbol &s) { return s.name == name; });
}

std::unique_ptr<Module> Module::clone() const {
  auto copy = std::make_unique<Module>();
  copy->stage = stage;
  copy->symbols = symbols;
  for (const std::unique_ptr<Func> &func : funcs) {
    auto next = std::make_unique<Func>(func->name);
    ValueMap map;
    cloneBlock(func->body, next->body, map);
    next->inputs = func->inputs;
    next->outputs = func->outputs;
    next->constraints = func->constraints;
    copy->funcs.push_back(std::move(next));
  }
  return copy;
}

} // namespace tenon::ir
