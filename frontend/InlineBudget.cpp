//===- InlineBudget.cpp - how much a model's functions may expand to -----===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontend/InlineBudget.h"
#include "ir/support/Diag.h"

using namespace llvm;

namespace tenon::frontend {

namespace {

template <class Attributes>
uint64_t countEntries(const Attributes &attributes) {
  uint64_t count = attributes.size();
  for (const onnx::AttributeProto &a : attributes)
    count += uint64_t(a.ints_size()) + a.floats_size() + a.strings_size();
  return count;
}

} // namespace

Error InlineBudget::addNode(const onnx::NodeProto &node) {
  ++nodes;
  parts += uint64_t(node.input_size()) + node.output_size() +
           countEntries(node.attribute());
  return check();
}

Error InlineBudget::addCall(const onnx::FunctionProto &function) {
  parts += uint64_t(function.input_size()) + function.attribute_size() +
           countEntries(function.attribute_proto());
  return check();
}

Error InlineBudget::check() const {
  if (nodes > nodeLimit)
    return userError("the model has more than {0} nodes with its functions "
                     "inlined",
                     nodeLimit);
  if (parts > partLimit)
    return userError("the model's nodes have more than {0} inputs, outputs and "
                     "entries of attributes with its functions inlined",
                     partLimit);
  return Error::success();
}

} // namespace tenon::frontend
