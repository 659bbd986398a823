//===- NodeView.h - checked access to an ONNX node -----------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_FRONTEND_NODEVIEW_H
#define TENON_FRONTEND_NODEVIEW_H

#include "frontend/ErrorSink.h"
#include "ir/Op.h"
#include "onnx-ml.pb.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"
#include <optional>

namespace tenon::frontend {

/// The attributes of a function call, which its body refers to by name.
using AttributeBindings = llvm::StringMap<const onnx::AttributeProto *>;

/// A node as its importer sees it. Every getter marks what it reads; at the end
/// `finish` makes an error of an attribute or input that nobody has read, so
/// that nothing is ignored. What is wrong with an attribute goes to the error
/// sink, and the getter gives its default.
class NodeView {
public:
  /// \p bindings is null outside functions. \p version is the version of the
  /// node's operator set.
  NodeView(const onnx::NodeProto &proto, int64_t version,
           llvm::ArrayRef<ir::Value *> inputs,
           const AttributeBindings *bindings, ErrorSink &errors);

  llvm::StringRef opType() const { return proto.op_type(); }
  /// The operator set's version that the model imports.
  int64_t version() const { return opset; }

  /// The inputs up to the last that is not left out.
  unsigned numInputs() const { return inputs.size(); }
  bool hasInput(unsigned i) const { return i < inputs.size() && inputs[i]; }
  /// Null for one that is left out. Required inputs are there: the table's
  /// operand list is checked before the importer runs.
  ir::Value *input(unsigned i);
  /// All inputs of an op whose inputs are alike.
  llvm::ArrayRef<ir::Value *> allInputs();

  unsigned numOutputs() const { return outputs.size(); }
  /// Whether somebody may use the output.
  bool wantsOutput(unsigned i) const;
  llvm::StringRef outputName(unsigned i) const { return proto.output(i); }
  void setOutput(unsigned i, ir::Value *value) { outputs[i] = value; }
  ir::Value *output(unsigned i) const { return outputs[i]; }

  bool hasAttr(llvm::StringRef name) const { return attributes.count(name); }
  int64_t intAttr(llvm::StringRef name, int64_t byDefault);
  std::optional<int64_t> findInt(llvm::StringRef name);
  int64_t requireInt(llvm::StringRef name);
  /// An int that must be 0 or 1.
  bool flagAttr(llvm::StringRef name, bool byDefault);
  double floatAttr(llvm::StringRef name, double byDefault);
  std::optional<double> findFloat(llvm::StringRef name);
  llvm::StringRef strAttr(llvm::StringRef name, llvm::StringRef byDefault);
  std::optional<llvm::SmallVector<int64_t, 4>> findInts(llvm::StringRef name);
  std::optional<llvm::SmallVector<float, 4>> findFloats(llvm::StringRef name);
  std::optional<llvm::SmallVector<llvm::StringRef, 4>>
  findStrings(llvm::StringRef name);
  const onnx::TensorProto *findTensor(llvm::StringRef name);
  const onnx::GraphProto *requireGraph(llvm::StringRef name);
  /// Marks an attribute as read that has no effect on what is computed (say
  /// why where it is called).
  void ignoreAttr(llvm::StringRef name);
  /// The same for an input.
  void ignoreInput(unsigned i) {
    if (i < readInputs.size())
      readInputs.set(i);
  }

  template <class... Ts> ir::Value *fail(const char *format, Ts &&...values) {
    errors.fail(format, std::forward<Ts>(values)...);
    return nullptr;
  }
  /// Checks \p axis against \p rank (which may include one past the end) and
  /// makes it non-negative.
  int64_t checkedAxis(int64_t axis, int64_t rank,
                      llvm::StringRef what = "axis");

  /// Complains about anything unread.
  void finish();
  /// The attributes, for inlining a function.
  void bindAttributes(AttributeBindings &result);

private:
  struct Slot {
    const onnx::AttributeProto *proto;
    bool read = false;
  };
  const onnx::AttributeProto *find(llvm::StringRef name,
                                   onnx::AttributeProto::AttributeType type);
  const onnx::AttributeProto *require(llvm::StringRef name,
                                      onnx::AttributeProto::AttributeType type);

  const onnx::NodeProto &proto;
  int64_t opset;
  llvm::SmallVector<ir::Value *, 4> inputs;
  llvm::SmallVector<ir::Value *, 2> outputs;
  llvm::BitVector readInputs;
  llvm::MapVector<llvm::StringRef, Slot> attributes;
  ErrorSink &errors;
};

} // namespace tenon::frontend

#endif // TENON_FRONTEND_NODEVIEW_H
