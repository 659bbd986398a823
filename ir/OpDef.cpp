//===- OpDef.cpp - what is known about each op kind ----------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ir/OpDef.h"
#include "ir/support/Diag.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include <array>

using namespace llvm;

namespace tenon::ir {

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

namespace {

/// Checks a spec when Tenon is compiled: names `[a-z_]+` separated by ", ", `?`
/// only at the end, `...` once and last.
constexpr bool isValidSpec(std::string_view spec) {
  bool sawOptional = false, sawVariadic = false;
  while (!spec.empty()) {
    size_t length = 0;
    while (
        length < spec.size() &&
        ((spec[length] >= 'a' && spec[length] <= 'z') || spec[length] == '_'))
      ++length;
    if (length == 0 || sawVariadic)
      return false;
    spec.remove_prefix(length);
    if (spec.starts_with("...")) {
      sawVariadic = true;
      spec.remove_prefix(3);
    } else if (spec.starts_with("?")) {
      sawOptional = true;
      spec.remove_prefix(1);
    } else if (sawOptional) {
      return false;
    }
    if (!spec.empty()) {
      if (!spec.starts_with(", "))
        return false;
      spec.remove_prefix(2);
      if (spec.empty())
        return false;
    }
  }
  return true;
}

#define TN_OP(Name, mnemonic, operands, results, ...)                          \
  static_assert(isValidSpec(operands), "operands of " mnemonic);               \
  static_assert(isValidSpec(results), "results of " mnemonic);
#include "ir/ops/Ops.def"

template <class T> std::unique_ptr<Attrs> makeDefault() {
  return std::make_unique<T>();
}

// Ops that are never evaluated say so by this name.
#define evalNone nullptr
const OpDef opTable[] = {
#define TN_OP(Name, mnemonic, operands, results, Attributes, inferFn, evalFn,  \
              traits, doc)                                                     \
  {#Name,                                                                      \
   mnemonic,                                                                   \
   operands,                                                                   \
   results,                                                                    \
   makeDefault<Attributes>,                                                    \
   attrsId<Attributes>(),                                                      \
   inferFn,                                                                    \
   static_cast<EvalFn>(evalFn),                                                \
   traits,                                                                     \
   doc},
#include "ir/ops/Ops.def"
};
#undef evalNone

struct Specs {
  SmallVector<PortSpec, 4> operands, results;
};

SmallVector<PortSpec, 4> parseSpec(StringRef spec) {
  SmallVector<PortSpec, 4> ports;
  SmallVector<StringRef, 4> parts;
  spec.split(parts, ", ", -1, /*KeepEmpty=*/false);
  for (StringRef part : parts) {
    PortSpec port;
    port.variadic = part.consume_back("...");
    port.optional = part.consume_back("?");
    port.name = part;
    ports.push_back(port);
  }
  return ports;
}

const Specs &specsOf(OpKind kind) {
  static const std::array<Specs, numOpKinds> specs = [] {
    std::array<Specs, numOpKinds> result;
    for (auto [spec, def] : zip_equal(result, opTable))
      spec = {parseSpec(def.operands), parseSpec(def.results)};
    return result;
  }();
  return specs[unsigned(kind)];
}

} // namespace

const OpDef &opDef(OpKind kind) { return opTable[unsigned(kind)]; }

std::optional<OpKind> parseMnemonic(StringRef mnemonic) {
  static const StringMap<OpKind> kinds = [] {
    StringMap<OpKind> map;
    for (const auto &[i, def] : enumerate(opTable))
      map[def.mnemonic] = OpKind(i);
    return map;
  }();
  auto it = kinds.find(mnemonic);
  return it == kinds.end() ? std::nullopt : std::optional(it->second);
}

ArrayRef<PortSpec> operandSpecs(OpKind kind) { return specsOf(kind).operands; }
ArrayRef<PortSpec> resultSpecs(OpKind kind) { return specsOf(kind).results; }

std::string operandName(OpKind kind, unsigned i) {
  ArrayRef<PortSpec> specs = operandSpecs(kind);
  if (specs.empty())
    return ("#" + Twine(i)).str();
  if (i < specs.size() && !specs[i].variadic)
    return specs[i].name.str();
  unsigned first = specs.size() - 1;
  return (specs.back().name + " #" + Twine(i - first)).str();
}

//===----------------------------------------------------------------------===//
// Inference
//===----------------------------------------------------------------------===//

namespace {

Error checkArity(const OpView &op) {
  ArrayRef<PortSpec> specs = operandSpecs(op.kind);
  size_t given = op.operands.size();
  size_t required = count_if(
      specs, [](const PortSpec &p) { return !p.optional && !p.variadic; });
  bool variadic = !specs.empty() && specs.back().variadic;
  if (given < required || (!variadic && given > specs.size())) {
    const char *atLeast =
        variadic || required < specs.size() ? "at least " : "";
    if (given > specs.size())
      return userError("expected at most {0} operands, found {1}", specs.size(),
                       given);
    return userError("expected {0}{1} operands, found {2}", atLeast, required,
                     given);
  }
  for (size_t i = 0; i < given; ++i)
    if (!op.operands[i] && !(i < specs.size() && specs[i].optional))
      return userError("operand '{0}' is required and was left out",
                       operandName(op.kind, i));
  return Error::success();
}

} // namespace

Error infer(const OpView &op, InferContext &context) {
  const OpDef &def = opDef(op.kind);
  if (op.rawAttrs.id() != def.attrsId)
    return userError("the attributes are another op's");
  if (Error error = checkArity(op))
    return error;
  if (Error error = def.infer(op, context))
    return error;
  for (const auto &[i, type] : enumerate(context.results))
    if (is_contained(type.shape, Dim::overflow()))
      return userError("a dimension of result #{0} is too large or too complex",
                       i);
  return Error::success();
}

Error inferOp(const Op &op, InferContext &context) {
  SmallVector<const TensorType *, 4> types;
  for (Value *value : op.operands())
    types.push_back(value ? &value->type : nullptr);
  return infer({op.kind(), types, op.rawAttrs(), op.region()}, context);
}

} // namespace tenon::ir
