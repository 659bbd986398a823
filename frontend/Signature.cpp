//===- Signature.cpp - types and sizes of a model's inputs ---------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontend/Signature.h"
#include "frontend/Weights.h"
#include "ir/support/Diag.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace tenon::ir;

namespace tenon::frontend {

namespace {

/// Whether a minus sign is part of a name ("batch-size") and no operator.
bool hasHyphen(StringRef text) {
  for (size_t i = 0; i < text.size(); ++i)
    if (text[i] == '-' && (i == 0 || i + 1 == text.size() ||
                           text[i - 1] != ' ' || text[i + 1] != ' '))
      return true;
  return false;
}

/// The text as an expression, if it is one that is more than a number.
std::optional<Dim> expression(StringRef text) {
  if (hasHyphen(text))
    return std::nullopt;
  std::optional<Dim> dim = parseDim(text);
  if (!dim || dim->constant())
    return std::nullopt;
  return dim;
}

/// What the model calls a size; empty where it says nothing of it. "?" is no
/// name: some exporters write it for every size that they don't know.
StringRef nameOf(const onnx::TensorShapeProto::Dimension &dim) {
  StringRef text = StringRef(dim.dim_param()).trim();
  return any_of(text, [](char c) { return isAlnum(c) || (c & 0x80); }) ? text
                                                                       : "";
}

} // namespace

Expected<std::optional<ElementType>>
declaredElement(const onnx::ValueInfoProto &value) {
  const onnx::TypeProto &type = value.type();
  switch (type.value_case()) {
  case onnx::TypeProto::kTensorType: {
    Expected<ElementType> element =
        elementTypeOf(type.tensor_type().elem_type());
    if (!element)
      return element.takeError();
    return *element;
  }
  case onnx::TypeProto::VALUE_NOT_SET:
    return std::nullopt;
  case onnx::TypeProto::kSequenceType:
    return userError("it is a sequence; only tensors are supported");
  case onnx::TypeProto::kMapType:
    return userError("it is a map; only tensors are supported");
  case onnx::TypeProto::kOptionalType:
    return userError("it is an optional; only tensors are supported");
  case onnx::TypeProto::kSparseTensorType:
    return userError("it is a sparse tensor; only dense ones are supported");
  default:
    return userError("it is of an opaque type; only tensors are supported");
  }
}

void InputSizes::collect(const onnx::ValueInfoProto &input) {
  for (const auto &dim : input.type().tensor_type().shape().dim()) {
    StringRef text = nameOf(dim);
    if (text.empty())
      continue;
    std::optional<Dim> parsed = expression(text);
    if (!parsed || parsed->symbolName())
      plain[parsed ? *parsed->symbolName() : text] = true;
  }
}

Dim InputSizes::symbol(StringRef name) {
  auto it = symbols.find(name);
  if (it != symbols.end())
    return it->second;
  Dim result = Dim::symbol(name);
  auto option = options.dims.find(name);
  DimRange range = option == options.dims.end() ? DimRange() : option->second;
  if (range.low == range.high)
    result = Dim(range.low);
  else
    module.declare(name, range);
  symbols[name] = result;
  names.push_back(name.str());
  return result;
}

Dim InputSizes::parameter(StringRef text) {
  std::optional<Dim> parsed = expression(text);
  bool known = parsed.has_value();
  if (parsed)
    parsed->collectSymbols([&](StringRef name) { known &= plain.count(name); });
  if (!known)
    return symbol(text);
  return parsed->substitute(
      [&](StringRef name) { return std::optional<Dim>(symbol(name)); });
}

Expected<TensorType> InputSizes::typeOf(const onnx::ValueInfoProto &input) {
  Expected<std::optional<ElementType>> element = declaredElement(input);
  if (!element)
    return element.takeError();
  if (!*element)
    return userError("it has no type; expected a tensor type");
  const onnx::TypeProto::Tensor &tensor = input.type().tensor_type();
  if (!tensor.has_shape())
    return userError("its rank is not known: the model gives it no shape");
  TensorType type{**element, {}};
  uint64_t bytes = 16;
  for (const auto &dim : tensor.shape().dim()) {
    unsigned axis = type.rank();
    StringRef text = nameOf(dim);
    std::string unnamed = (input.name() + "_" + Twine(axis)).str();
    // Some exporters write -1 for a size that they don't know.
    if (dim.has_dim_value() && dim.dim_value() < -1)
      return userError("dimension {0} is {1}", axis, dim.dim_value());
    if (dim.has_dim_value() && dim.dim_value() >= 0) {
      type.shape.push_back(Dim(dim.dim_value()));
    } else if (!text.empty()) {
      type.shape.push_back(parameter(text));
    } else {
      // Not to be mixed up with a size that the model itself names so.
      while (plain.count(unnamed) || symbols.contains(unnamed))
        unnamed += "_";
      type.shape.push_back(symbol(unnamed));
    }
    int64_t fixed = type.shape.back().constant().value_or(1);
    if (fixed > 0 && bytes > uint64_t(INT64_MAX) / fixed)
      return userError("its size overflows: {0}", type);
    bytes *= std::max<int64_t>(fixed, 1);
  }
  return type;
}

Expected<ConstantRef> InputSizes::valueOf(StringRef input,
                                          const TensorType &type) {
  auto option = options.values.find(input);
  if (option == options.values.end())
    return nullptr;
  fixed[input] = true;
  std::optional<SmallVector<int64_t>> shape = constantShape(type.shape);
  if (!shape)
    return userError(
        "it is {0}; to be a constant its sizes must be known (give "
        "them with --dim)",
        type);
  StringRef text = option->second;
  double number = text == "true";
  int64_t integer;
  bool fits = isFloat(type.element) ? !text.getAsDouble(number)
              : type.element == ElementType::Bool
                  ? text == "true" || text == "false"
                  : !text.getAsInteger(10, integer);
  if (!fits)
    return userError("'{0}' is no value of {1}", text, mnemonic(type.element));
  if (isFloat(type.element) || type.element == ElementType::Bool)
    return Constant::splat(type.element, *shape, number);
  return Constant::splat(type.element, *shape, double(integer));
}

Error InputSizes::checkOptions() const {
  for (const auto &option : options.values)
    if (!fixed.contains(option.first()))
      return userError("--set: the model has no input '{0}'", option.first());
  for (const auto &option : options.dims) {
    if (symbols.contains(option.first()))
      continue;
    return userError("no input has a size named '{0}'; the model has {1}",
                     option.first(),
                     names.empty() ? "none" : "'" + join(names, "', '") + "'");
  }
  return Error::success();
}

Error parseDimOption(StringRef text, ImportOptions &options) {
  auto [name, value] = text.rsplit('=');
  name = name.trim();
  value = value.trim();
  DimRange range;
  auto [low, high] = value.split("..");
  bool isRange = value.contains("..");
  bool good = !name.empty() && !value.empty();
  if (!low.empty())
    good &= !low.getAsInteger(10, range.low);
  if (isRange && !high.empty())
    good &= !high.getAsInteger(10, range.high);
  if (!isRange)
    range.high = range.low;
  if (!good || range.low < 0 || range.high < range.low)
    return userError("'{0}' is no size; expected NAME=N or NAME=LOW..HIGH",
                     text);
  if (!options.dims.insert({name, range}).second)
    return userError("dimension '{0}' is given twice", name);
  return Error::success();
}

Error parseValueOption(StringRef text, ImportOptions &options) {
  auto [name, value] = text.rsplit('=');
  if (name.trim().empty() || value.trim().empty())
    return userError("'{0}' is no value; expected INPUT=NUMBER", text);
  if (!options.values.insert({name.trim(), value.trim().str()}).second)
    return userError("input '{0}' is given twice", name.trim());
  return Error::success();
}

} // namespace tenon::frontend
