//===- NodeView.cpp - checked access to an ONNX node ---------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontend/NodeView.h"

using namespace llvm;
using onnx::AttributeProto;
using tenon::ir::Value;

namespace tenon::frontend {

namespace {

StringRef typeName(int type) {
  switch (type) {
  case AttributeProto::FLOAT:
    return "float";
  case AttributeProto::INT:
    return "int";
  case AttributeProto::STRING:
    return "string";
  case AttributeProto::TENSOR:
    return "tensor";
  case AttributeProto::GRAPH:
    return "graph";
  case AttributeProto::FLOATS:
    return "floats";
  case AttributeProto::INTS:
    return "ints";
  case AttributeProto::STRINGS:
    return "strings";
  default:
    return "another type";
  }
}

/// The type of the field that is filled, or UNDEFINED. A proto3 writer leaves
/// out zeros, so none may be filled.
int filledType(const AttributeProto &a) {
  if (a.has_f())
    return AttributeProto::FLOAT;
  if (a.has_i())
    return AttributeProto::INT;
  if (a.has_s())
    return AttributeProto::STRING;
  if (a.has_t())
    return AttributeProto::TENSOR;
  if (a.has_g())
    return AttributeProto::GRAPH;
  if (a.floats_size())
    return AttributeProto::FLOATS;
  if (a.ints_size())
    return AttributeProto::INTS;
  if (a.strings_size())
    return AttributeProto::STRINGS;
  return AttributeProto::UNDEFINED;
}

} // namespace

NodeView::NodeView(const onnx::NodeProto &proto, int64_t version,
                   ArrayRef<Value *> inputs, const AttributeBindings *bindings,
                   ErrorSink &errors)
    : proto(proto), opset(version), inputs(inputs.begin(), inputs.end()),
      outputs(proto.output_size()), readInputs(inputs.size()), errors(errors) {
  for (const AttributeProto &attribute : proto.attribute()) {
    const AttributeProto *actual = &attribute;
    if (!attribute.ref_attr_name().empty()) {
      if (!bindings) {
        fail("attribute '{0}' refers to '{1}' outside a function",
             attribute.name(), attribute.ref_attr_name());
        return;
      }
      actual = bindings->lookup(attribute.ref_attr_name());
      if (!actual)
        continue; // The call leaves it out, so the op's default holds.
    }
    if (!attributes.insert({attribute.name(), {actual}}).second)
      fail("attribute '{0}' is given twice", attribute.name());
  }
}

Value *NodeView::input(unsigned i) {
  if (!hasInput(i))
    return nullptr;
  readInputs.set(i);
  return inputs[i];
}

ArrayRef<Value *> NodeView::allInputs() {
  readInputs.set();
  return inputs;
}

bool NodeView::wantsOutput(unsigned i) const {
  return i < outputs.size() && !proto.output(i).empty();
}

const AttributeProto *NodeView::find(StringRef name,
                                     AttributeProto::AttributeType type) {
  auto it = attributes.find(name);
  if (it == attributes.end())
    return nullptr;
  it->second.read = true;
  const AttributeProto *attribute = it->second.proto;
  int filled = filledType(*attribute);
  // Files of IR version 1 and 2 don't say the type.
  int declared = attribute->type() == AttributeProto::UNDEFINED
                     ? filled
                     : int(attribute->type());
  if (declared != type) {
    fail("attribute '{0}' is of type {1}; expected {2}", name,
         typeName(declared), typeName(type));
    return nullptr;
  }
  if (filled != AttributeProto::UNDEFINED && filled != type) {
    fail("attribute '{0}' is declared as {1} but holds {2}", name,
         typeName(declared), typeName(filled));
    return nullptr;
  }
  return attribute;
}

const AttributeProto *NodeView::require(StringRef name,
                                        AttributeProto::AttributeType type) {
  if (!hasAttr(name))
    fail("required attribute '{0}' is missing", name);
  return find(name, type);
}

std::optional<int64_t> NodeView::findInt(StringRef name) {
  if (const AttributeProto *a = find(name, AttributeProto::INT))
    return a->i();
  return std::nullopt;
}

int64_t NodeView::intAttr(StringRef name, int64_t byDefault) {
  return findInt(name).value_or(byDefault);
}

int64_t NodeView::requireInt(StringRef name) {
  const AttributeProto *a = require(name, AttributeProto::INT);
  return a ? a->i() : 0;
}

bool NodeView::flagAttr(StringRef name, bool byDefault) {
  std::optional<int64_t> value = findInt(name);
  if (value && *value != 0 && *value != 1)
    fail("attribute '{0}' is {1}; expected 0 or 1", name, *value);
  return value ? *value != 0 : byDefault;
}

std::optional<double> NodeView::findFloat(StringRef name) {
  if (const AttributeProto *a = find(name, AttributeProto::FLOAT))
    return a->f();
  return std::nullopt;
}

double NodeView::floatAttr(StringRef name, double byDefault) {
  return findFloat(name).value_or(byDefault);
}

StringRef NodeView::strAttr(StringRef name, StringRef byDefault) {
  if (const AttributeProto *a = find(name, AttributeProto::STRING))
    return a->s();
  return byDefault;
}

std::optional<SmallVector<int64_t, 4>> NodeView::findInts(StringRef name) {
  if (const AttributeProto *a = find(name, AttributeProto::INTS))
    return SmallVector<int64_t, 4>(a->ints().begin(), a->ints().end());
  return std::nullopt;
}

std::optional<SmallVector<float, 4>> NodeView::findFloats(StringRef name) {
  if (const AttributeProto *a = find(name, AttributeProto::FLOATS))
    return SmallVector<float, 4>(a->floats().begin(), a->floats().end());
  return std::nullopt;
}

std::optional<SmallVector<StringRef, 4>> NodeView::findStrings(StringRef name) {
  if (const AttributeProto *a = find(name, AttributeProto::STRINGS))
    return SmallVector<StringRef, 4>(a->strings().begin(), a->strings().end());
  return std::nullopt;
}

const onnx::TensorProto *NodeView::findTensor(StringRef name) {
  const AttributeProto *a = find(name, AttributeProto::TENSOR);
  return a ? &a->t() : nullptr;
}

const onnx::GraphProto *NodeView::requireGraph(StringRef name) {
  const AttributeProto *a = require(name, AttributeProto::GRAPH);
  return a ? &a->g() : nullptr;
}

void NodeView::ignoreAttr(StringRef name) {
  auto it = attributes.find(name);
  if (it != attributes.end())
    it->second.read = true;
}

int64_t NodeView::checkedAxis(int64_t axis, int64_t rank, StringRef what) {
  if (axis >= -rank && axis < rank)
    return axis < 0 ? axis + rank : axis;
  if (rank == 0)
    fail("{0} {1} is out of range: the tensor has rank 0", what, axis);
  else
    fail("{0} {1} is out of range; expected {2} to {3}", what, axis, -rank,
         rank - 1);
  return 0;
}

void NodeView::finish() {
  for (auto &[name, slot] : attributes)
    if (!slot.read)
      fail("attribute '{0}' is not one of {1} at opset {2}", name, opType(),
           opset);
  for (unsigned i = 0; i < inputs.size(); ++i)
    if (inputs[i] && !readInputs.test(i))
      fail("input {0} ('{1}') is not used by {2} with these attributes", i,
           proto.input(i), opType());
}

void NodeView::bindAttributes(AttributeBindings &result) {
  for (auto &[name, slot] : attributes) {
    slot.read = true;
    result[name] = slot.proto;
  }
}

} // namespace tenon::frontend
