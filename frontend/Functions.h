//===- Functions.h - operator sets, model functions, what is supported ---===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_FRONTEND_FUNCTIONS_H
#define TENON_FRONTEND_FUNCTIONS_H

#include "frontend/Import.h"
#include "onnx-ml.pb.h"
#include "llvm/ADT/StringMap.h"
#include <optional>

namespace tenon::frontend {

using NodeList = google::protobuf::RepeatedPtrField<onnx::NodeProto>;
using OpsetList = google::protobuf::RepeatedPtrField<onnx::OperatorSetIdProto>;

/// The domain with its aliases made one: "ai.onnx" is "".
llvm::StringRef canonicalDomain(llvm::StringRef domain);
/// The domain as people write it: "ai.onnx" for "".
llvm::StringRef domainName(llvm::StringRef domain);

/// What identifies a node in messages: its name, or that of its first output.
std::string nodeLabel(const onnx::NodeProto &node);

/// The operator sets that a model or function imports.
class Opsets {
public:
  static llvm::Expected<Opsets> create(const OpsetList &imports);
  /// The version of \p domain, if it is imported.
  std::optional<int64_t> version(llvm::StringRef domain) const;

private:
  llvm::StringMap<int64_t> versions;
};

/// ModelProto.functions by what calls them.
class FunctionTable {
public:
  struct Function {
    const onnx::FunctionProto *proto;
    Opsets opsets;
  };
  /// Refuses functions defined twice and functions that call themselves,
  /// through others or not.
  static llvm::Expected<FunctionTable> create(const onnx::ModelProto &model);
  /// Null when the node does not call a function of the model.
  const Function *find(const onnx::NodeProto &node) const;

private:
  llvm::Error checkCalls() const;
  llvm::StringMap<Function> functions;
};

/// The body that ONNX's own schemas give for the node's op at version \p opset
/// of its operator set; null where there is none or OnnxOps.def has the op.
const FunctionTable::Function *standardBody(const onnx::NodeProto &node,
                                            int64_t opset);

/// Collects what Tenon cannot import among nodes and the functions they call.
class SupportCheck {
public:
  explicit SupportCheck(const FunctionTable &functions)
      : functions(functions) {}
  /// Looks at \p nodes, and into the subgraphs of nodes if \p subgraphs.
  void add(const NodeList &nodes, const Opsets &opsets, bool subgraphs);
  std::vector<UnsupportedOp> take() { return std::move(unsupported); }
  /// One error that lists everything, or success.
  llvm::Error takeError();

private:
  void addNode(const onnx::NodeProto &node, const Opsets &opsets,
               const std::string &where);
  const FunctionTable &functions;
  llvm::StringMap<bool> seenFunctions;
  std::vector<UnsupportedOp> unsupported;
  /// Where each op and version is in `unsupported`.
  llvm::StringMap<size_t> places;
};

/// Calls \p visit for each subgraph that \p node holds.
void forEachSubgraph(const onnx::NodeProto &node,
                     llvm::function_ref<void(const onnx::GraphProto &)> visit);

} // namespace tenon::frontend

#endif // TENON_FRONTEND_FUNCTIONS_H
