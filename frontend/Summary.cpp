//===- Summary.cpp - what a model holds, for `tenon check` ---------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontend/Functions.h"
#include "frontend/Import.h"
#include "frontend/ModelFile.h"
#include "frontend/Signature.h"
#include "frontend/Weights.h"
#include "ir/support/Diag.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/raw_ostream.h"
#include <map>

using namespace llvm;

namespace tenon::frontend {

namespace {

/// `name: f32[batch, 128]`, or what is wrong with the type.
std::string describe(const onnx::ValueInfoProto &value) {
  std::string text;
  raw_string_ostream os(text);
  os << value.name() << ": ";
  Expected<std::optional<ir::ElementType>> element = declaredElement(value);
  if (!element) {
    os << "(" << toString(element.takeError()) << ")";
    return text;
  }
  if (!*element) {
    os << "(no type)";
    return text;
  }
  os << ir::mnemonic(**element);
  const onnx::TypeProto::Tensor &tensor = value.type().tensor_type();
  if (!tensor.has_shape()) {
    os << "[...]";
    return text;
  }
  if (tensor.shape().dim().empty())
    return text;
  os << "[";
  for (int i = 0; i < tensor.shape().dim_size(); ++i) {
    const auto &dim = tensor.shape().dim(i);
    os << (i ? ", " : "");
    if (dim.has_dim_value())
      os << dim.dim_value();
    else
      os << (dim.dim_param().empty() ? "?" : dim.dim_param());
  }
  os << "]";
  return text;
}

class Summarizer {
public:
  Summarizer(ModelSummary &summary) : summary(summary) {}
  void addGraph(const onnx::GraphProto &graph);
  void addNodes(const NodeList &nodes);
  void finish() {
    for (const auto &[name, count] : ops)
      summary.ops.push_back({name, count});
  }

private:
  void addTensor(const onnx::TensorProto &tensor);
  ModelSummary &summary;
  std::map<std::string, uint64_t> ops;
};

void Summarizer::addTensor(const onnx::TensorProto &tensor) {
  uint64_t count = 1;
  for (int64_t dim : tensor.dims())
    count *= std::max<int64_t>(dim, 0);
  ++summary.weights;
  if (Expected<ir::ElementType> element = elementTypeOf(tensor.data_type()))
    summary.weightBytes += ir::byteSize(*element, count).value_or(0);
  else
    consumeError(element.takeError());
}

void Summarizer::addNodes(const NodeList &nodes) {
  for (const onnx::NodeProto &node : nodes) {
    ++summary.nodes;
    StringRef domain = canonicalDomain(node.domain());
    std::string name = domain.empty() ? "" : domain.str() + ".";
    ++ops[name + node.op_type()];
    forEachSubgraph(node,
                    [&](const onnx::GraphProto &graph) { addGraph(graph); });
  }
}

void Summarizer::addGraph(const onnx::GraphProto &graph) {
  for (const onnx::TensorProto &tensor : graph.initializer())
    addTensor(tensor);
  addNodes(graph.node());
}

} // namespace

Expected<ModelSummary> summarizeOnnx(StringRef path) {
  std::string prefix = (path + ": error: ").str();
  Expected<std::unique_ptr<ModelFile>> model = ModelFile::open(path);
  if (!model)
    return withPrefix(model.takeError(), prefix);
  const onnx::ModelProto &proto = (*model)->proto;
  if (!proto.has_graph())
    return withPrefix(userError("the model has no graph"), prefix);
  ModelSummary summary;
  summary.producer = proto.producer_name();
  if (!proto.producer_version().empty())
    summary.producer += " " + proto.producer_version();
  summary.graphName = proto.graph().name();
  summary.irVersion = proto.ir_version();
  for (const onnx::OperatorSetIdProto &set : proto.opset_import())
    summary.opsets.push_back(
        {canonicalDomain(set.domain()).str(), set.version()});
  StringSet<> initializers;
  for (const onnx::TensorProto &tensor : proto.graph().initializer())
    initializers.insert(tensor.name());
  for (const onnx::ValueInfoProto &input : proto.graph().input())
    if (!initializers.contains(input.name()))
      summary.inputs.push_back(describe(input));
  for (const onnx::ValueInfoProto &output : proto.graph().output())
    summary.outputs.push_back(describe(output));
  Summarizer sum(summary);
  sum.addGraph(proto.graph());
  for (const onnx::FunctionProto &function : proto.functions())
    sum.addNodes(function.node());
  sum.finish();

  Expected<Opsets> opsets = Opsets::create(proto.opset_import());
  if (!opsets)
    return withPrefix(opsets.takeError(), prefix);
  Expected<FunctionTable> functions = FunctionTable::create(proto);
  if (!functions)
    return withPrefix(functions.takeError(), prefix);
  SupportCheck check(*functions);
  check.add(proto.graph().node(), *opsets, /*subgraphs=*/true);
  summary.unsupported = check.take();
  return summary;
}

void print(const ModelSummary &s, raw_ostream &os) {
  os << "producer: " << (s.producer.empty() ? "(not said)" : s.producer)
     << "\nIR version: " << s.irVersion << "\noperator sets:";
  for (const ModelSummary::Opset &set : s.opsets)
    os << " " << domainName(set.domain) << " " << set.version;
  os << "\ninputs:\n";
  for (const std::string &input : s.inputs)
    os << "  " << input << "\n";
  os << "outputs:\n";
  for (const std::string &output : s.outputs)
    os << "  " << output << "\n";
  os << "weights: " << s.weights << " tensors, " << s.weightBytes
     << " bytes\nnodes: " << s.nodes << "\n";
  for (const auto &[name, count] : s.ops)
    os << "  " << count << " " << name << "\n";
  os << "unsupported:" << (s.unsupported.empty() ? " nothing" : "") << "\n";
  for (const UnsupportedOp &op : s.unsupported) {
    os << "  " << op.op << " of domain '" << domainName(op.domain)
       << "', opset " << op.version << ", " << op.nodes.size()
       << (op.nodes.size() == 1 ? " node" : " nodes");
    if (!op.note.empty())
      os << " (" << op.note << ")";
    os << ":";
    for (const std::string &node : op.nodes)
      os << " " << node;
    os << "\n";
  }
}

} // namespace tenon::frontend
