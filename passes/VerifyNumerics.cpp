//===- VerifyNumerics.cpp - the same results before and after ------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/VerifyNumerics.h"
#include "ir/eval/Evaluator.h"
#include "ir/support/Diag.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>
#include <random>

using namespace tenon;
using namespace tenon::passes;
using ir::DimEnv;
using ir::Tensor;

namespace {

/// Multiplications that the reference may do for one evaluation.
constexpr double maxWork = 3e8;
/// Elements that one tensor may have.
constexpr double maxElements = 1 << 26;

/// How the elements of the inputs are chosen.
enum class Fill { Random, Zeros, Ones, Large };

std::optional<int64_t> valueOf(ir::Dim dim, const DimEnv &env) {
  return dim.evaluate([&](llvm::StringRef name) -> std::optional<int64_t> {
    auto found = env.find(name);
    if (found == env.end())
      return std::nullopt;
    return found->second;
  });
}

std::optional<double> elements(ir::ShapeRef shape, const DimEnv &env) {
  double product = 1;
  for (ir::Dim dim : shape) {
    std::optional<int64_t> size = valueOf(dim, env);
    // What data decides is small in the cases that are tried.
    product *= size ? static_cast<double>(*size) : 8.0;
  }
  return product;
}

/// Roughly how much work the reference evaluator has with \p func.
double estimateWork(const ir::Func &func, const DimEnv &env) {
  double work = 0;
  for (ir::Op &op : func.body) {
    if (op.kind() == ir::OpKind::Const || !op.numResults())
      continue;
    double each = 1;
    if (op.kind() == ir::OpKind::MatMul)
      each = *elements(op.operand(0)->shape().take_back(1), env);
    else if (op.kind() == ir::OpKind::Conv)
      each = *elements(op.operand(1)->shape().drop_front(1), env);
    else if (op.kind() == ir::OpKind::Attention)
      each = 2 * *elements(op.operand(1)->shape().drop_front(1), env);
    double count = *elements(op.result(0)->shape(), env);
    if (count > maxElements)
      return INFINITY;
    work += count * each;
  }
  return work;
}

std::optional<Tensor> makeInput(const ir::TensorType &type, const DimEnv &env,
                                Fill fill, std::mt19937 &random) {
  llvm::SmallVector<int64_t, 4> shape;
  for (ir::Dim dim : type.shape) {
    std::optional<int64_t> size =
        dim.evaluate([&](llvm::StringRef name) -> std::optional<int64_t> {
          auto found = env.find(name);
          return found == env.end() ? 2 : found->second;
        });
    if (!size || *size < 0)
      return std::nullopt;
    shape.push_back(*size);
  }
  Tensor tensor(type.element, shape);
  // mt19937's own numbers are the same everywhere; distributions are not.
  auto uniform = [&] { return static_cast<double>(random()) / 4294967296.0; };
  for (uint64_t i = 0, n = tensor.numElements(); i != n; ++i) {
    bool real = ir::isFloat(type.element);
    double value = 0;
    if (fill == Fill::Ones)
      value = 1;
    else if (fill == Fill::Random)
      value = real ? 4 * uniform() - 2
                   : std::floor(uniform() *
                                (type.element == ir::ElementType::Bool ? 2
                                                                       : 4));
    else if (fill == Fill::Large && real)
      value = (uniform() < 0.5 ? -1 : 1) * std::exp(8 * uniform() - 2);
    else if (fill == Fill::Large)
      value = i % 2;
    tensor.set(i, value);
  }
  return tensor;
}

/// The fewest bits of a floating-point type on the way to a result.
unsigned narrowestFloat(const ir::Func &func) {
  unsigned bits = 64;
  for (ir::Op &op : func.body)
    for (ir::Value *result : op.results())
      if (ir::isFloat(result->element()))
        bits = std::min(bits, ir::bitWidth(result->element()));
  return bits;
}

double tolerance(unsigned bits) {
  switch (bits) {
  case 64:
    return 1e-9;
  case 32:
    return 2e-4;
  default:
    return 3e-2;
  }
}

llvm::Error compare(const Tensor &want, const Tensor &got,
                    llvm::StringRef name, unsigned bits) {
  if (want.element != got.element || want.shape != got.shape)
    return userError("output '{0}' changed its type or shape", name);
  uint64_t n = want.numElements();
  if (!want.isFloatTensor()) {
    for (uint64_t i = 0; i != n; ++i)
      if (want.intAt(i) != got.intAt(i))
        return userError("output '{0}' differs at element {1}: {2} before, "
                         "{3} after",
                         name, i, want.intAt(i), got.intAt(i));
    return llvm::Error::success();
  }
  double largest = 1;
  for (uint64_t i = 0; i != n; ++i)
    if (std::isfinite(want.at(i)))
      largest = std::max(largest, std::abs(want.at(i)));
  double limit = tolerance(bits) * largest;
  for (uint64_t i = 0; i != n; ++i) {
    double a = want.at(i), b = got.at(i);
    bool same = std::isnan(a)   ? std::isnan(b)
                : std::isinf(a) ? a == b
                                : std::abs(a - b) <= limit;
    if (!same)
      return userError("output '{0}' differs at element {1}: {2} before, {3} "
                       "after",
                       name, i, a, b);
  }
  return llvm::Error::success();
}

/// Whether \p func accepts inputs of these sizes: a pass may find that two
/// sizes must agree.
bool accepts(const ir::Func &func, llvm::ArrayRef<Tensor> inputs,
             const DimEnv &env) {
  for (const ir::DimConstraint &constraint : func.constraints) {
    std::optional<int64_t> a = valueOf(constraint.a, env),
                           b = valueOf(constraint.b, env);
    if (a && b && *a != *b)
      return false;
  }
  for (auto [i, input] : llvm::enumerate(inputs))
    for (auto [dim, size] :
         llvm::zip(func.body.argument(i)->shape(), input.shape))
      if (valueOf(dim, env).value_or(size) != size)
        return false;
  return true;
}

/// How many choices of sizes are tried, and with how many it is enough to have
/// succeeded: where sizes depend on each other most choices don't fit.
constexpr unsigned maxVariants = 24, enoughVariants = 3;

/// Sizes for the symbols: all different, all 1, then small ones at random.
DimEnv chooseSizes(const ir::Module &module, unsigned variant) {
  static constexpr int64_t primes[] = {2, 3, 5, 7, 4, 6};
  DimEnv env;
  unsigned i = 0;
  std::mt19937 random(variant);
  for (const ir::Module::Symbol &symbol : module.symbols) {
    int64_t size = variant == 0   ? primes[i++ % std::size(primes)]
                   : variant == 1 ? 1
                                  : 1 + random() % 4;
    env[symbol.name] =
        std::clamp(size, symbol.range.low,
                   std::max(symbol.range.low, symbol.range.high));
  }
  return env;
}

} // namespace

llvm::Error passes::verifyNumerics(const ir::Module &before,
                                   const ir::Module &after,
                                   llvm::raw_ostream &log) {
  std::mt19937 random(1);
  unsigned compared = 0;
  bool tooBig = false;
  const ir::Func &func = before.entry();
  unsigned bits = std::min(narrowestFloat(func), narrowestFloat(after.entry()));
  unsigned succeeded = 0;
  for (unsigned variant = 0;
       variant != maxVariants && succeeded != enoughVariants; ++variant) {
    unsigned comparedBefore = compared;
    DimEnv env = chooseSizes(before, variant);
    if (estimateWork(func, env) > maxWork ||
        estimateWork(after.entry(), env) > maxWork) {
      tooBig = true;
      continue;
    }
    for (Fill fill : {Fill::Random, Fill::Zeros, Fill::Ones, Fill::Large}) {
      std::vector<Tensor> inputs;
      for (unsigned i = 0; i != func.body.numArguments(); ++i)
        if (std::optional<Tensor> input =
                makeInput(func.body.argument(i)->type, env, fill, random))
          inputs.push_back(std::move(*input));
      if (inputs.size() != func.body.numArguments() ||
          !accepts(after.entry(), inputs, env))
        continue;
      llvm::Expected<std::vector<Tensor>> want = ir::evaluate(func, inputs);
      if (!want) {
        llvm::consumeError(want.takeError());
        continue;
      }
      llvm::Expected<std::vector<Tensor>> got =
          ir::evaluate(after.entry(), inputs);
      if (!got)
        return withPrefix(got.takeError(), "the result does not evaluate: ");
      for (auto [i, pair] : llvm::enumerate(llvm::zip(*want, *got)))
        if (llvm::Error error = compare(std::get<0>(pair), std::get<1>(pair),
                                        func.outputs[i].name, bits))
          return withPrefix(std::move(error), "wrong numbers: ");
      ++compared;
    }
    succeeded += compared != comparedBefore;
  }
  if (!compared)
    log << "note: --verify-numerics compared nothing: "
        << (tooBig ? "the model is too big for the reference evaluator"
                   : "the reference evaluator refused every input")
        << '\n';
  return llvm::Error::success();
}
