//===- Evaluator.cpp - the reference evaluator ---------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ir/eval/Evaluator.h"

#include "ir/OpDef.h"
#include "ir/eval/Loops.h"
#include "ir/support/Diag.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringSet.h"

using namespace tenon;
using namespace tenon::ir;

namespace {

using Operands = llvm::SmallVector<const Tensor *, 4>;

/// Above this a tensor is refused instead of asking the system for it.
constexpr uint64_t maxTensorBytes = uint64_t(1) << 34;

std::optional<int64_t> valueOf(Dim dim, const DimEnv &env) {
  return dim.evaluate([&](llvm::StringRef name) -> std::optional<int64_t> {
    auto it = env.find(name);
    if (it == env.end())
      return std::nullopt;
    return it->second;
  });
}

std::string dimText(Dim dim) {
  std::string text;
  llvm::raw_string_ostream(text) << dim;
  return text;
}

std::string typeText(const TensorType &type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

std::string typeText(const Tensor &tensor) {
  TensorType type{tensor.element,
                  Shape(tensor.shape.begin(), tensor.shape.end())};
  return typeText(type);
}

llvm::Expected<Extents> evaluateShape(ShapeRef shape, const DimEnv &env) {
  Extents result;
  for (Dim dim : shape) {
    std::optional<int64_t> value = valueOf(dim, env);
    if (!value)
      return userError("the size '{0}' has no value: one of its symbols isn't "
                       "bound by any input",
                       dimText(dim));
    if (*value < 0)
      return userError("the size '{0}' is {1}, which is negative", dimText(dim),
                       *value);
    result.push_back(*value);
  }
  return result;
}

llvm::Expected<Tensor> allocate(ElementType element,
                                llvm::ArrayRef<int64_t> shape) {
  uint64_t count = 1;
  bool overflow = false;
  for (int64_t dim : shape)
    overflow |= __builtin_mul_overflow(count, uint64_t(dim), &count);
  std::optional<uint64_t> size;
  if (!overflow)
    size = byteSize(element, count);
  if (llvm::is_contained(shape, 0))
    size = 0;
  if (!size || *size > maxTensorBytes)
    return userError("a tensor of shape {0} is too large for the reference "
                     "evaluator",
                     extentsText(shape));
  return Tensor(element, shape);
}

/// The broadcast of all operands that are there.
llvm::Expected<Extents> broadcastOf(llvm::ArrayRef<const Tensor *> operands) {
  Extents shape;
  for (const Tensor *operand : operands) {
    if (!operand)
      continue;
    std::optional<Extents> wider = broadcastExtents(shape, operand->shape);
    if (!wider)
      return userError("operands do not broadcast: {0} and {1}",
                       extentsText(shape), extentsText(operand->shape));
    shape = *wider;
  }
  return shape;
}

/// Calls the op's reference semantics; \p results have their types and shapes.
llvm::Error invoke(const Op &op, llvm::ArrayRef<const Tensor *> operands,
                   std::vector<Tensor> &results, DimEnv &env) {
  EvalContext context{op, operands, results, env};
  return opDef(op).eval(context);
}

/// Runs \p op outside of a region, its result shapes given by its types.
llvm::Expected<std::vector<Tensor>>
runOp(const Op &op, llvm::ArrayRef<const Tensor *> operands, DimEnv &env) {
  bool definesSymbols = is(op, Trait::SideEffect);
  std::vector<Tensor> results;
  for (Value *result : op.results()) {
    if (definesSymbols) {
      results.emplace_back();
      results.back().element = result->element();
      continue;
    }
    llvm::Expected<Extents> shape = evaluateShape(result->shape(), env);
    if (!shape)
      return shape.takeError();
    llvm::Expected<Tensor> tensor = allocate(result->element(), *shape);
    if (!tensor)
      return tensor.takeError();
    results.push_back(std::move(*tensor));
  }
  if (is(op, Trait::ElementwiseOp) || is(op, Trait::HasBody)) {
    llvm::Expected<Extents> shape = broadcastOf(operands);
    if (!shape)
      return shape.takeError();
    if (!results.empty() && *shape != results[0].shape)
      return userError("operands broadcast to {0}, but the result is {1}",
                       extentsText(*shape), extentsText(results[0].shape));
  }
  if (llvm::Error error = invoke(op, operands, results, env))
    return error;
  for (size_t i = 0; i != results.size(); ++i) {
    llvm::Expected<Extents> shape = evaluateShape(op.result(i)->shape(), env);
    if (!shape)
      return shape.takeError();
    if (*shape != results[i].shape ||
        results[i].element != op.result(i)->element())
      return userError("result {0} is {1}, but its type {2} says {3}", i,
                       typeText(results[i]), typeText(op.result(i)->type),
                       extentsText(*shape));
  }
  return results;
}

llvm::Error located(llvm::Error error, const Location &loc,
                    llvm::StringRef what) {
  if (!error)
    return error;
  if (loc.empty())
    return withPrefix(std::move(error), what + ": ");
  return withPrefix(std::move(error),
                    "node '" + loc.name() + "' (" + what + "): ");
}

/// One run of a function.
class Machine {
public:
  using Observer =
      llvm::function_ref<void(const Op &, llvm::MutableArrayRef<Tensor>)>;

  Machine(const Func &func, Observer observe)
      : func(func), observe(observe), constraints(func.constraints) {}

  llvm::Expected<std::vector<Tensor>> run(llvm::ArrayRef<Tensor> inputs);

private:
  llvm::Error bindInputs(llvm::ArrayRef<Tensor> inputs);
  llvm::Error checkType(unsigned i, const Tensor &input);
  bool bindFrom(const Value &argument, const Tensor &input);
  llvm::Error checkConstraints();
  void countUses();
  llvm::Expected<const Tensor *> fetch(Value *value);
  void release(Value *value);
  llvm::Error runAndKeep(const Op &op, llvm::ArrayRef<const Tensor *> operands);
  llvm::Error step(const Op &op);
  llvm::Expected<std::vector<Tensor>> collect(const Op &terminator);

  std::string inputName(unsigned i) const {
    return i < func.inputs.size() ? func.inputs[i].name : std::to_string(i);
  }

  const Func &func;
  Observer observe;
  DimEnv env;
  /// Those that have not been checked yet.
  std::vector<DimConstraint> constraints;
  llvm::DenseMap<const Value *, unsigned> usesLeft;
  llvm::DenseMap<const Value *, const Tensor *> arguments;
  llvm::DenseMap<const Value *, std::unique_ptr<Tensor>> tensors;
};

llvm::Error Machine::checkType(unsigned i, const Tensor &input) {
  const TensorType &type = func.body.argument(i)->type;
  if (type.element == input.element && type.rank() == input.rank())
    return llvm::Error::success();
  return userError("input '{0}': expected {1}, found {2}", inputName(i),
                   typeText(type), typeText(input));
}

/// Binds symbols that the shape of \p input determines, each from an expression
/// where it is the only unknown; whether any was.
bool Machine::bindFrom(const Value &argument, const Tensor &input) {
  bool bound = false;
  for (auto [dim, actual] : llvm::zip(argument.shape(), input.shape)) {
    llvm::StringSet<> unknown;
    dim.collectSymbols([&](llvm::StringRef name) {
      if (!env.contains(name))
        unknown.insert(name);
    });
    if (unknown.size() != 1)
      continue;
    // An expression that is linear in the symbol has one solution; others are
    // tried as if they were and the result is checked.
    llvm::StringRef name = unknown.begin()->getKey();
    auto with = [&](int64_t value) {
      env[name] = value;
      return valueOf(dim, env);
    };
    std::optional<int64_t> at0 = with(0), at1 = with(1);
    bool solved = false;
    if (at0 && at1 && *at0 != *at1) {
      int64_t slope = *at1 - *at0;
      int64_t solution = (actual - *at0) / slope;
      solved = solution >= 0 && with(solution) == actual;
    }
    if (!solved)
      env.erase(name);
    bound |= solved;
  }
  return bound;
}

llvm::Error Machine::bindInputs(llvm::ArrayRef<Tensor> inputs) {
  if (inputs.size() != func.body.numArguments())
    return userError("'{0}' takes {1} inputs, found {2}", func.name,
                     func.body.numArguments(), inputs.size());
  for (unsigned i = 0; i != inputs.size(); ++i) {
    if (llvm::Error error = checkType(i, inputs[i]))
      return error;
    arguments[func.body.argument(i)] = &inputs[i];
  }
  for (bool progress = true; progress;) {
    progress = false;
    for (unsigned i = 0; i != inputs.size(); ++i)
      progress |= bindFrom(*func.body.argument(i), inputs[i]);
  }
  for (unsigned i = 0; i != inputs.size(); ++i) {
    ShapeRef shape = func.body.argument(i)->shape();
    for (unsigned d = 0; d != shape.size(); ++d) {
      std::optional<int64_t> expected = valueOf(shape[d], env);
      if (!expected)
        return userError("input '{0}': no value of the symbols in '{1}' gives "
                         "dimension {2}, which is {3}",
                         inputName(i), dimText(shape[d]), d,
                         inputs[i].shape[d]);
      if (*expected == inputs[i].shape[d])
        continue;
      if (shape[d].constant())
        return userError("input '{0}': dimension {1} is {2}, expected {3}",
                         inputName(i), d, inputs[i].shape[d], *expected);
      return userError("input '{0}': dimension {1} ('{2}') is {3}, but other "
                       "inputs make it {4}",
                       inputName(i), d, dimText(shape[d]), inputs[i].shape[d],
                       *expected);
    }
  }
  return llvm::Error::success();
}

/// Checks every constraint whose symbols are all known by now.
llvm::Error Machine::checkConstraints() {
  std::vector<DimConstraint> open;
  for (DimConstraint &constraint : constraints) {
    std::optional<int64_t> a = valueOf(constraint.a, env),
                           b = valueOf(constraint.b, env);
    if (a && b && *a != *b)
      return located(userError("dimensions differ: '{0}' is {1}, '{2}' is {3}",
                               dimText(constraint.a), *a, dimText(constraint.b),
                               *b),
                     constraint.loc, "dimensions");
    if (!a || !b)
      open.push_back(std::move(constraint));
  }
  constraints = std::move(open);
  return llvm::Error::success();
}

void Machine::countUses() {
  for (const Op &op : func.body)
    for (Value *operand : op.operands())
      if (operand)
        ++usesLeft[operand];
}

/// The tensor of a value; constants are made when first asked for, so that a
/// model's weights are not all in memory at once.
llvm::Expected<const Tensor *> Machine::fetch(Value *value) {
  if (const Tensor *argument = arguments.lookup(value))
    return argument;
  if (!tensors.contains(value)) {
    assert(value->def(OpKind::Const) && "use of a value before its definition");
    if (llvm::Error error = runAndKeep(*value->def(), {}))
      return error;
  }
  return tensors.find(value)->second.get();
}

void Machine::release(Value *value) {
  unsigned &left = usesLeft[value];
  if (left && --left == 0)
    tensors.erase(value);
}

llvm::Error Machine::runAndKeep(const Op &op,
                                llvm::ArrayRef<const Tensor *> operands) {
  llvm::Expected<std::vector<Tensor>> results = runOp(op, operands, env);
  if (!results)
    return located(results.takeError(), op.loc, opDef(op).mnemonic);
  if (observe)
    observe(op, *results);
  for (unsigned i = 0; i != results->size(); ++i)
    if (usesLeft.lookup(op.result(i)))
      tensors[op.result(i)] =
          std::make_unique<Tensor>(std::move((*results)[i]));
  return llvm::Error::success();
}

llvm::Error Machine::step(const Op &op) {
  Operands operands;
  for (Value *operand : op.operands()) {
    if (!operand) {
      operands.push_back(nullptr);
      continue;
    }
    llvm::Expected<const Tensor *> tensor = fetch(operand);
    if (!tensor)
      return tensor.takeError();
    operands.push_back(*tensor);
  }
  if (llvm::Error error = runAndKeep(op, operands))
    return error;
  for (Value *operand : op.operands())
    if (operand)
      release(operand);
  if (!is(op, Trait::SideEffect))
    return llvm::Error::success();
  return checkConstraints();
}

llvm::Expected<std::vector<Tensor>> Machine::collect(const Op &terminator) {
  std::vector<Tensor> outputs;
  for (Value *value : terminator.operands()) {
    llvm::Expected<const Tensor *> tensor = fetch(value);
    if (!tensor)
      return tensor.takeError();
    outputs.push_back(**tensor);
    release(value);
  }
  return outputs;
}

llvm::Expected<std::vector<Tensor>>
Machine::run(llvm::ArrayRef<Tensor> inputs) {
  if (llvm::Error error = bindInputs(inputs))
    return error;
  if (llvm::Error error = checkConstraints())
    return error;
  countUses();
  for (const Op &op : func.body) {
    if (is(op, Trait::Terminator))
      return collect(op);
    if (op.kind() == OpKind::Const)
      continue;
    if (llvm::Error error = step(op))
      return error;
  }
  llvm_unreachable("a verified function ends in a return");
}

} // namespace

llvm::Expected<std::vector<Tensor>> tenon::ir::evaluate(
    const Func &func, llvm::ArrayRef<Tensor> inputs,
    llvm::function_ref<void(const Op &, llvm::MutableArrayRef<Tensor>)>
        observe) {
  return Machine(func, observe).run(inputs);
}

llvm::Expected<std::vector<Tensor>>
tenon::ir::evaluateRegion(const Block &region, std::vector<Tensor> arguments) {
  assert(arguments.size() == region.numArguments());
  llvm::DenseMap<const Value *, std::vector<Tensor>> results;
  auto tensorOf = [&](Value *value) -> const Tensor * {
    if (!value)
      return nullptr;
    if (!value->def())
      return &arguments[value->index()];
    return &results.find(value->def()->result(0))->second[value->index()];
  };
  DimEnv env;
  for (const Op &op : region) {
    Operands operands;
    for (Value *operand : op.operands())
      operands.push_back(tensorOf(operand));
    if (is(op, Trait::Terminator)) {
      std::vector<Tensor> yielded;
      for (const Tensor *tensor : operands)
        yielded.push_back(*tensor);
      return yielded;
    }
    llvm::Expected<Extents> shape = broadcastOf(operands);
    if (!shape)
      return located(shape.takeError(), op.loc, opDef(op).mnemonic);
    std::vector<Tensor> outputs;
    for (Value *result : op.results()) {
      llvm::Expected<Tensor> tensor = allocate(result->element(), *shape);
      if (!tensor)
        return located(tensor.takeError(), op.loc, opDef(op).mnemonic);
      outputs.push_back(std::move(*tensor));
    }
    if (llvm::Error error = invoke(op, operands, outputs, env))
      return located(std::move(error), op.loc, opDef(op).mnemonic);
    results[op.result(0)] = std::move(outputs);
  }
  llvm_unreachable("a verified region ends in a yield");
}

llvm::Expected<std::vector<Tensor>>
tenon::ir::evaluateOp(const Op &op, llvm::ArrayRef<const Tensor *> operands,
                      DimEnv &env) {
  llvm::Expected<std::vector<Tensor>> results = runOp(op, operands, env);
  if (!results)
    return located(results.takeError(), op.loc, opDef(op).mnemonic);
  return results;
}
