//===- Verify.cpp - the invariants of the IR -----------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The invariants; comments below cite them by number.
///
/// Module
///   M1  There is a function; functions have different names, none empty.
///   M2  A symbol is declared once, with 0 <= low <= high.
///   M3  Every symbol in a type, an attribute or a constraint is declared.
///   M4  No dimension is Dim::overflow(), and none of a type is provably
///       negative.
/// Function
///   F1  There is a port for each argument and for each operand of `return`.
///   F2  Inputs have different names, outputs too, none empty.
///   F3  A symbol that an op defines (`bind_dims`, `non_zero`) is defined once,
///       is in no input's type, and appears in types and attributes of later
///       ops only.
/// Block
///   B1  The last op is a terminator and no other op is: `return` in a
///       function, `yield` in a region.
///   B2  Parents and positions agree: each op and argument knows its block.
/// Op
///   O1  The attribute struct is the op kind's, enums hold a named value, a
///       constant is there.
///   O2  Each operand is an argument of the same block or a result of an
///       earlier op in it. So regions use nothing from outside.
///   O3  A value's use list has each use of it once, and nothing else.
///   O4  Result types equal what inference computes from the operands, and each
///       equality that inference asks for holds or is a constraint of the
///       function.
/// Region
///   R1  Only ops with a body (`map`, which must have one) or an epilogue have
///   a
///       region.
///   R2  Every value in a region is a scalar; every op is elementwise, a
///       constant or the `yield`.
///
/// A stage adds no rule: every op is legal at each, so that a pass can be run
/// and tested on its own. What a stage promises is in passes/Pipelines.cpp.
///
//===----------------------------------------------------------------------===//

#include "ir/verify/Verify.h"
#include "ir/OpDef.h"
#include "ir/support/Diag.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"
#include <functional>

using namespace llvm;

namespace tenon::ir {

namespace {

/// Calls \p visit with every dimension among the members; finds O1's faults.
class AttrsCheck final : public FieldVisitor {
public:
  explicit AttrsCheck(std::function<void(Dim)> visitDim)
      : visitDim(std::move(visitDim)) {}

  std::string problem;

  void nextIsOptional(bool) override {}
  void visit(StringRef, int64_t &) override {}
  void visit(StringRef, bool &) override {}
  void visit(StringRef, double &) override {}
  void visit(StringRef, Ints &) override {}
  void visit(StringRef, Dim &value) override { visitDim(value); }
  void visit(StringRef, Dims &value) override { for_each(value, visitDim); }
  void visit(StringRef name, ElementType &value) override {
    if (unsigned(value) >= numElementTypes)
      problem = ("attribute '" + name + "' is no element type").str();
  }
  void visit(StringRef name, ConstantRef &value) override {
    if (!value)
      problem = ("attribute '" + name + "' has no constant").str();
  }
  void visit(StringRef name, EnumRef value) override {
    if (*value.value < 0 || size_t(*value.value) >= value.names.size())
      problem = ("attribute '" + name + "' has no named value").str();
  }

private:
  std::function<void(Dim)> visitDim;
};

/// The symbols that \p op gives a value.
SmallVector<Dim, 4> definedSymbols(const Op &op) {
  if (op.rawAttrs().id() != opDef(op).attrsId)
    return {};
  if (op.kind() == OpKind::BindDims)
    return op.attrs<BindDimsAttrs>().symbols;
  if (op.kind() == OpKind::NonZero)
    return {op.attrs<CountAttrs>().count};
  return {};
}

std::string describe(const Op &op) {
  std::string text = ("'" + opDef(op).mnemonic + "'").str();
  if (!op.loc.empty())
    text = ("node '" + op.loc.name() + "' (" + opDef(op).mnemonic + ")").str();
  return text;
}

class Verifier {
public:
  Verifier(const Module &module, const Func &func)
      : module(module), func(func) {}
  Error run();

private:
  Error checkPorts();
  Error checkNames(ArrayRef<Port> ports, StringRef what);
  Error findDefinedSymbols();
  Error checkDim(Dim dim) const;
  Error checkType(const TensorType &type) const;
  Error checkBlock(const Block &block, const Op *parent);
  Error checkOp(const Op &op, const Block &block);
  Error checkAttrs(const Op &op);
  Error checkOperands(const Op &op, const Block &block);
  Error checkResults(const Op &op);
  Error checkInference(const Op &op);
  Error checkRegion(const Op &op);
  Error checkUses(const Value &value) const;
  Error checkUsesIn(const Block &block) const;

  const Module &module;
  const Func &func;
  StringSet<> declared;
  /// Symbols that an op further down defines (F3).
  StringSet<> notYetDefined;
  /// How often each value really is an operand (O3).
  DenseMap<const Value *, size_t> useCounts;
};

//===----------------------------------------------------------------------===//
// Dimensions
//===----------------------------------------------------------------------===//

/// M3, M4, F3.
Error Verifier::checkDim(Dim dim) const {
  if (dim.isOverflow())
    return userError("a dimension is too large or too complex");
  std::string undeclared, early;
  dim.collectSymbols([&](StringRef symbol) {
    if (!declared.contains(symbol))
      undeclared = symbol.str();
    if (notYetDefined.contains(symbol))
      early = symbol.str();
  });
  if (!undeclared.empty())
    return userError("dimension '{0}' is not declared", undeclared);
  if (!early.empty())
    return userError("dimension '{0}' is used before the op that defines it",
                     early);
  return Error::success();
}

Error Verifier::checkType(const TensorType &type) const {
  for (Dim dim : type.shape) {
    if (Error error = checkDim(dim))
      return error;
    if (dim.upperBound().value_or(0) < 0)
      return userError("the dimension {0} is negative", dim);
  }
  return Error::success();
}

/// F3: once, and not an input's.
Error Verifier::findDefinedSymbols() {
  StringSet<> inputs;
  for (unsigned i = 0; i < func.body.numArguments(); ++i)
    for (Dim dim : func.body.argument(i)->shape())
      dim.collectSymbols([&](StringRef symbol) { inputs.insert(symbol); });
  for (const Op &op : func.body) {
    for (Dim dim : definedSymbols(op)) {
      std::optional<StringRef> symbol = dim.symbolName();
      if (!symbol)
        return userError("{0}: defines {1}, which is not a symbol",
                         describe(op), dim);
      if (inputs.contains(*symbol))
        return userError("{0}: defines '{1}', which an input's shape defines",
                         describe(op), *symbol);
      if (!notYetDefined.insert(*symbol).second)
        return userError("{0}: defines '{1}', which another op defines",
                         describe(op), *symbol);
    }
  }
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Functions and blocks
//===----------------------------------------------------------------------===//

/// F2.
Error Verifier::checkNames(ArrayRef<Port> ports, StringRef what) {
  StringSet<> names;
  for (const Port &port : ports) {
    if (port.name.empty())
      return userError("an {0} has no name", what);
    if (!names.insert(port.name).second)
      return userError("two {0}s are called '{1}'", what, port.name);
  }
  return Error::success();
}

/// F1.
Error Verifier::checkPorts() {
  if (func.inputs.size() != func.body.numArguments())
    return userError("{0} input names for {1} arguments", func.inputs.size(),
                     func.body.numArguments());
  const Op *terminator = func.body.terminator();
  if (!terminator || terminator->kind() != OpKind::Return)
    return userError("it does not end in a return");
  if (func.outputs.size() != terminator->numOperands())
    return userError("{0} output names for {1} returned values",
                     func.outputs.size(), terminator->numOperands());
  if (Error error = checkNames(func.inputs, "input"))
    return error;
  return checkNames(func.outputs, "output");
}

/// B1, B2, and each op's own.
Error Verifier::checkBlock(const Block &block, const Op *parent) {
  if (block.parent() != parent)
    return userError("a block does not know its op");
  for (unsigned i = 0; i < block.numArguments(); ++i) {
    const Value &argument = *block.argument(i);
    if (argument.def() || argument.owner() != &block || argument.index() != i)
      return userError("argument #{0} does not know its block", i);
    if (Error error = checkType(argument.type))
      return withPrefix(std::move(error), "argument #" + Twine(i) + ": ");
  }
  OpKind last = parent ? OpKind::Yield : OpKind::Return;
  if (block.empty() || block.back().kind() != last)
    return userError("a block does not end in '{0}'", opDef(last).mnemonic);
  for (const Op &op : block) {
    if (is(op, Terminator) && &op != &block.back())
      return userError("{0} is not the last op of its block", describe(op));
    if (Error error = checkOp(op, block))
      return withPrefix(std::move(error), describe(op) + ": ");
  }
  return checkUsesIn(block);
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

/// O1.
Error Verifier::checkAttrs(const Op &op) {
  if (op.rawAttrs().id() != opDef(op).attrsId)
    return userError("its attributes are another op's");
  Error error = Error::success();
  auto visitDim = [&](Dim dim) {
    if (!error)
      error = checkDim(dim);
  };
  AttrsCheck check(visitDim);
  // Visiting is not const because parsing shares it; this visitor only reads.
  const_cast<Op &>(op).rawAttrs().fields(check);
  if (!error && !check.problem.empty())
    error = userError("{0}", check.problem);
  return error;
}

/// O2.
Error Verifier::checkOperands(const Op &op, const Block &block) {
  for (unsigned i = 0; i < op.numOperands(); ++i) {
    const Value *operand = op.operand(i);
    if (!operand)
      continue;
    std::string name = operandName(op.kind(), i);
    if (operand->owner() != &block)
      return userError("operand '{0}' is from outside its block", name);
    if (operand->def() && !operand->def()->isBefore(&op))
      return userError("operand '{0}' is defined after its use", name);
    ++useCounts[operand];
  }
  return Error::success();
}

/// O3: what is listed is there, and as much is listed as there is.
Error Verifier::checkUses(const Value &value) const {
  SmallVector<std::pair<const Op *, unsigned>, 4> listed;
  for (const Use &use : value.uses()) {
    if (use.op->operand(use.index) != &value)
      return userError("it lists a use that is none");
    listed.push_back({use.op, use.index});
  }
  llvm::sort(listed);
  if (std::adjacent_find(listed.begin(), listed.end()) != listed.end())
    return userError("it lists a use twice");
  if (size_t found = useCounts.lookup(&value); found != listed.size())
    return userError("it lists {0} uses of {1}", listed.size(), found);
  return Error::success();
}

Error Verifier::checkUsesIn(const Block &block) const {
  for (unsigned i = 0; i < block.numArguments(); ++i)
    if (Error error = checkUses(*block.argument(i)))
      return withPrefix(std::move(error), "argument #" + Twine(i) + ": ");
  for (const Op &op : block)
    for (const Value *result : op.results())
      if (Error error = checkUses(*result))
        return withPrefix(std::move(error), describe(op) + ": ");
  return Error::success();
}

Error Verifier::checkResults(const Op &op) {
  for (unsigned i = 0; i < op.numResults(); ++i) {
    const Value &result = *op.result(i);
    if (result.def() != &op || result.index() != i)
      return userError("result #{0} does not know its op", i);
    if (Error error = checkType(result.type))
      return error;
  }
  return Error::success();
}

/// O4.
Error Verifier::checkInference(const Op &op) {
  InferContext context;
  if (Error error = inferOp(op, context))
    return error;
  if (context.results.size() != op.numResults())
    return userError("has {0} results, expected {1}", op.numResults(),
                     context.results.size());
  for (unsigned i = 0; i < op.numResults(); ++i)
    if (op.result(i)->type != context.results[i])
      return userError("result #{0} is {1}, expected {2}", i,
                       op.result(i)->type, context.results[i]);
  for (auto [a, b] : context.constraints) {
    auto same = [a = a, b = b](const DimConstraint &c) {
      return (c.a == a && c.b == b) || (c.a == b && c.b == a);
    };
    if (a != b && none_of(func.constraints, same))
      return userError("needs {0} == {1}, which is not among the function's "
                       "constraints",
                       a, b);
  }
  return Error::success();
}

/// R1, R2.
Error Verifier::checkRegion(const Op &op) {
  const Block *region = op.region();
  if (!region)
    return is(op, HasBody) ? userError("has no body") : Error::success();
  if (!is(op, HasBody) && !is(op, HasEpilogue))
    return userError("may not have a region");
  for (unsigned i = 0; i < region->numArguments(); ++i)
    if (!region->argument(i)->type.isScalar())
      return userError("argument #{0} of its region is not a scalar", i);
  for (const Op &inner : *region) {
    bool allowed = is(inner, ElementwiseOp) || inner.kind() == OpKind::Const ||
                   inner.kind() == OpKind::Yield;
    if (!allowed || inner.region())
      return userError("{0} may not be in a region", describe(inner));
    for (const Value *result : inner.results())
      if (!result->type.isScalar())
        return userError("{0} in its region is not a scalar", describe(inner));
  }
  return withPrefix(checkBlock(*region, &op), "in its region: ");
}

Error Verifier::checkOp(const Op &op, const Block &block) {
  if (op.block() != &block)
    return userError("does not know its block");
  if (Error error = checkOperands(op, block))
    return error;
  for (Dim dim : definedSymbols(op))
    notYetDefined.erase(*dim.symbolName());
  if (Error error = checkAttrs(op))
    return error;
  if (Error error = checkRegion(op))
    return error;
  if (Error error = checkInference(op))
    return error;
  return checkResults(op);
}

Error Verifier::run() {
  for (const Module::Symbol &symbol : module.symbols)
    declared.insert(symbol.name);
  if (Error error = findDefinedSymbols())
    return error;
  if (Error error = checkBlock(func.body, nullptr))
    return error;
  if (Error error = checkPorts())
    return error;
  for (const DimConstraint &constraint : func.constraints)
    for (Dim side : {constraint.a, constraint.b})
      if (Error error = checkDim(side))
        return withPrefix(std::move(error), "in a constraint: ");
  return Error::success();
}

/// M1, M2.
Error checkModule(const Module &module) {
  if (module.funcs.empty())
    return userError("the module has no function");
  StringSet<> names, symbols;
  for (const std::unique_ptr<Func> &func : module.funcs)
    if (func->name.empty() || !names.insert(func->name).second)
      return userError("two functions are called '{0}', or one has no name",
                       func->name);
  for (const Module::Symbol &symbol : module.symbols) {
    if (!symbols.insert(symbol.name).second)
      return userError("dimension '{0}' is declared twice", symbol.name);
    if (symbol.range.low < 0 || symbol.range.high < symbol.range.low)
      return userError("the range {0}..{1} of dimension '{2}' is not one",
                       symbol.range.low, symbol.range.high, symbol.name);
  }
  return Error::success();
}

} // namespace

Error verify(const Module &module, const Func &func) {
  return withPrefix(Verifier(module, func).run(), "@" + func.name + ": ");
}

Error verify(const Module &module) {
  if (Error error = checkModule(module))
    return error;
  for (const std::unique_ptr<Func> &func : module.funcs)
    if (Error error = verify(module, *func))
      return error;
  return Error::success();
}

} // namespace tenon::ir
