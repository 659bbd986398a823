//===- Arguments.cpp - tensors from a run line ---------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Arguments.h"

#include "ir/eval/Loops.h"
#include "ir/support/Diag.h"
#include "llvm/Support/Format.h"
#include <cmath>

using namespace tenon;
using namespace tenon::run;

namespace {

/// Keeps a mistyped size from asking for all memory.
constexpr int64_t maxElements = int64_t(1) << 30;

void setElement(ir::Tensor &tensor, uint64_t i, const Number &value) {
  if (!tensor.isFloatTensor() && value.isInteger)
    tensor.setInt(i, value.integer);
  else
    tensor.set(i, value.real);
}

/// Symbols that are a whole dimension of an argument written as a literal.
void bindLiterals(const Run &run, const ir::Func &func, ir::DimEnv &symbols) {
  for (unsigned i = 0; i != run.arguments.size(); ++i) {
    if (run.arguments[i].form != Argument::Form::Literal)
      continue;
    for (auto [dim, size] : llvm::zip(func.body.argument(i)->shape(),
                                      run.arguments[i].literal.shape))
      if (std::optional<llvm::StringRef> name = dim.symbolName())
        symbols.try_emplace(*name, size);
  }
}

llvm::Expected<ir::Extents> shapeOf(const ir::TensorType &type,
                                    const ir::DimEnv &symbols) {
  ir::Extents shape;
  int64_t count = 1;
  for (ir::Dim dim : type.shape) {
    std::string unknown;
    std::optional<int64_t> size = dim.evaluate(
        [&](llvm::StringRef name) -> std::optional<int64_t> {
          auto it = symbols.find(name);
          if (it != symbols.end())
            return it->second;
          unknown = name.str();
          return std::nullopt;
        });
    if (!size)
      return userError("the symbol '{0}' has no value: give it one as in "
                       "`random(seed=1, {0}=3)`",
                       unknown);
    if (*size < 0 || __builtin_mul_overflow(count, *size, &count) ||
        count > maxElements)
      return userError("a size of {0} is not possible", *size);
    shape.push_back(*size);
  }
  return shape;
}

/// An empty list doesn't show the dimensions behind it: they are the type's,
/// or 0.
ir::Extents completedShape(const Literal &literal, const ir::TensorType &type) {
  ir::Extents shape(literal.shape.begin(), literal.shape.end());
  if (literal.elements.empty())
    while (shape.size() < type.rank())
      shape.push_back(type.shape[shape.size()].constant().value_or(0));
  return shape;
}

ir::Tensor randomTensor(const Argument &argument, ir::ElementType element,
                        llvm::ArrayRef<int64_t> shape) {
  ir::Tensor tensor = ir::Tensor::fromConstant(*ir::Constant::generated(
      ir::Constant::Form::Random, element, shape, argument.seed));
  if (!argument.low && !argument.high)
    return tensor;
  double low = argument.low ? argument.low->real : 0;
  double high = argument.high ? argument.high->real : low + 1;
  for (uint64_t i = 0, n = tensor.numElements(); i != n; ++i) {
    double value = tensor.at(i);
    if (tensor.isFloatTensor())
      tensor.set(i, low + (high - low) * (value + 1) / 2);
    else
      tensor.set(i, low + std::fmod(value, std::max(high - low, 1.0)));
  }
  return tensor;
}

llvm::Expected<ir::Tensor> makeArgument(const Argument &argument,
                                        const ir::TensorType &type,
                                        const ir::DimEnv &symbols) {
  if (argument.form == Argument::Form::Literal) {
    Literal literal = argument.literal;
    literal.shape = completedShape(literal, type);
    return makeTensor(literal, type.element);
  }
  llvm::Expected<ir::Extents> shape = shapeOf(type, symbols);
  if (!shape)
    return shape.takeError();
  if (argument.form == Argument::Form::Random)
    return randomTensor(argument, type.element, *shape);
  ir::Tensor tensor(type.element, *shape);
  for (uint64_t i = 0, n = tensor.numElements(); i != n; ++i)
    if (argument.form == Argument::Form::Iota)
      tensor.set(i, static_cast<double>(i));
    else
      setElement(tensor, i, argument.literal.elements.front());
  return tensor;
}

void printElement(const ir::Tensor &tensor, uint64_t i,
                  llvm::raw_ostream &os) {
  if (tensor.element == ir::ElementType::Bool)
    os << (tensor.intAt(i) ? "true" : "false");
  else if (!tensor.isFloatTensor())
    os << tensor.intAt(i);
  else
    os << llvm::format(tensor.element == ir::ElementType::F64 ? "%.17g"
                                                              : "%.9g",
                       tensor.at(i));
}

} // namespace

llvm::Expected<ir::Tensor> tenon::run::makeTensor(const Literal &literal,
                                                  ir::ElementType element) {
  ir::Tensor tensor(element, literal.shape);
  if (tensor.numElements() != literal.elements.size())
    return userError("a literal has {0} elements, expected {1}",
                     literal.elements.size(), tensor.numElements());
  for (uint64_t i = 0; i != literal.elements.size(); ++i)
    setElement(tensor, i, literal.elements[i]);
  return tensor;
}

llvm::Expected<std::vector<ir::Tensor>>
tenon::run::makeArguments(const Run &run, const ir::Func &func) {
  if (run.arguments.size() != func.body.numArguments())
    return userError("'@{0}' takes {1} arguments, found {2}", func.name,
                     func.body.numArguments(), run.arguments.size());
  ir::DimEnv symbols = run.symbols;
  bindLiterals(run, func, symbols);
  std::vector<ir::Tensor> tensors;
  for (unsigned i = 0; i != run.arguments.size(); ++i) {
    llvm::Expected<ir::Tensor> tensor = makeArgument(
        run.arguments[i], func.body.argument(i)->type, symbols);
    if (!tensor)
      return withPrefix(tensor.takeError(),
                        "argument " + llvm::Twine(i) + ": ");
    tensors.push_back(std::move(*tensor));
  }
  return tensors;
}

void tenon::run::printTensor(const ir::Tensor &tensor, llvm::raw_ostream &os) {
  os << mnemonic(tensor.element);
  if (tensor.rank() != 0)
    os << ir::extentsText(tensor.shape);
  os << " = ";
  if (tensor.numElements() == 0) {
    os << "[]";
    return;
  }
  // An element opens a bracket for each dimension that it is the first of, and
  // closes one for each that it is the last of.
  for (uint64_t i = 0, n = tensor.numElements(); i != n; ++i) {
    os << (i == 0 ? "" : ", ");
    uint64_t block = 1;
    unsigned opens = 0, closes = 0;
    for (unsigned d = tensor.rank(); d-- > 0;) {
      block *= tensor.shape[d];
      opens += i % block == 0;
      closes += (i + 1) % block == 0;
    }
    os << std::string(opens, '[');
    printElement(tensor, i, os);
    os << std::string(closes, ']');
  }
}
