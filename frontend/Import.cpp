//===- Import.cpp - ONNX models to modules -------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontend/Import.h"
#include "frontend/Emitter.h"
#include "frontend/Functions.h"
#include "frontend/GraphOrder.h"
#include "frontend/InlineBudget.h"
#include "frontend/ModelFile.h"
#include "frontend/NodeView.h"
#include "frontend/OnnxOps.h"
#include "frontend/Signature.h"
#include "frontend/Weights.h"
#include "ir/support/Diag.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;
using namespace tenon::ir;

namespace tenon::frontend {

namespace {

/// Calls of functions and branches may nest this deep; no real model comes
/// near.
constexpr unsigned callDepthLimit = 400;
/// What a node is called here; inside functions the calls' names come first.
constexpr size_t labelLimit = 512;
/// An error inside nested calls names the innermost ones.
constexpr unsigned prefixLimit = 3;

/// \p label without its middle when it is very long.
std::string shortened(std::string label) {
  if (label.size() > labelLimit)
    label.replace(labelLimit / 2, label.size() - labelLimit, "...");
  return label;
}

/// The names of one graph. Functions see no enclosing scope.
struct Scope {
  Scope *parent = nullptr;
  StringMap<Value *> values;
  /// Initializers; they become ops where they are first used.
  StringMap<ConstantRef> constants;

  bool defines(StringRef name) const {
    return values.count(name) || constants.count(name);
  }
};

/// What holds for the nodes of one graph or function body.
struct Frame {
  Scope *scope;
  const Opsets *opsets;
  /// The call's attributes inside a function, else null.
  const AttributeBindings *bindings;
  /// What node names begin with inside a function: "call/".
  std::string prefix;
};

/// Sets the float fields of a plain mapping's attribute struct.
class FloatSetter final : public FieldVisitor {
public:
  FloatSetter(StringRef field, double number) : field(field), number(number) {}
  void visit(StringRef name, double &value) override {
    if (name == field)
      value = number;
  }
  void visit(StringRef, int64_t &) override {}
  void visit(StringRef, bool &) override {}
  void visit(StringRef, Ints &) override {}
  void visit(StringRef, Dim &) override {}
  void visit(StringRef, Dims &) override {}
  void visit(StringRef, ElementType &) override {}
  void visit(StringRef, ConstantRef &) override {}
  void visit(StringRef, EnumRef) override {}
  void nextIsOptional(bool) override {}

private:
  StringRef field;
  double number;
};

Value *importPlain(const OnnxOp &line, NodeView &node, Emitter &emit) {
  std::unique_ptr<Attrs> attrs = opDef(line.kind).makeAttrs();
  for (const FloatField &mapped : line.floats) {
    if (!mapped.attribute)
      continue;
    FloatSetter setter(mapped.field, node.floatAttr(mapped.attribute,
                                                    float(mapped.byDefault)));
    attrs->fields(setter);
  }
  Op *op = emit.create(line.kind, node.allInputs(), std::move(attrs));
  return op ? op->result() : nullptr;
}

/// Checks how many inputs and outputs a node has against the table's lists.
Error checkArity(const OnnxOp &line, ArrayRef<Value *> inputs,
                 unsigned numOutputs) {
  SmallVector<StringRef> names;
  line.inputs.split(names, ',', -1, /*KeepEmpty=*/false);
  bool variadic = line.inputs.contains("...");
  if (!variadic && inputs.size() > names.size())
    return userError("has {0} inputs; expected at most {1}", inputs.size(),
                     names.size());
  for (size_t i = 0; i < std::max(names.size(), inputs.size()); ++i) {
    StringRef name = names[std::min(i, names.size() - 1)].trim();
    if (name.ends_with("?") || (i < inputs.size() && inputs[i]))
      continue;
    return userError("input {0} ('{1}') is missing", i,
                     name.substr(0, name.find("...")));
  }
  names.clear();
  line.outputs.split(names, ',');
  if (!line.outputs.ends_with("...") && numOutputs > names.size())
    return userError("has {0} outputs; expected at most {1}", numOutputs,
                     names.size());
  return Error::success();
}

class Importer final : public GraphServices {
public:
  Importer(const ModelFile &model, const ImportOptions &options)
      : model(model), options(options), module(std::make_unique<Module>()),
        weights(model) {}
  Expected<std::unique_ptr<Module>> run();

  Values importSubgraph(const onnx::GraphProto &graph,
                        ArrayRef<Value *> inputs) override;
  ConstantRef loadTensor(const onnx::TensorProto &tensor) override;

private:
  void warn(const Twine &message);
  Error checkVersions();
  Error importInputs(const onnx::GraphProto &graph, Scope &scope);
  Error importOutputs(const onnx::GraphProto &graph);
  Error importInitializers(const onnx::GraphProto &graph, Scope &scope);
  Error importNodes(const NodeList &nodes);
  Error importNode(const onnx::NodeProto &node);
  Error importOp(const onnx::NodeProto &node, NodeView &view,
                 ArrayRef<Value *> inputs, int64_t version);
  Error inlineFunction(const FunctionTable::Function &function, NodeView &view,
                       ArrayRef<Value *> inputs, const std::string &label);
  Value *lookUp(StringRef name);
  /// \p error behind \p prefix, unless it has enough of them.
  Error prefixed(Error error, const Twine &prefix);

  const ModelFile &model;
  const ImportOptions &options;
  std::unique_ptr<Module> module;
  Weights weights;
  FunctionTable functions;
  Opsets opsets;
  ErrorSink errors;
  std::optional<Emitter> emit;
  Frame *frame = nullptr;
  unsigned depth = 0, prefixes = 0;
  InlineBudget budget;
};

void Importer::warn(const Twine &message) {
  if (options.warn)
    options.warn(message.str());
  else
    errs() << "warning: " << message << "\n";
}

//===----------------------------------------------------------------------===//
// The model
//===----------------------------------------------------------------------===//

Error Importer::checkVersions() {
  const onnx::ModelProto &proto = model.proto;
  if (!proto.has_graph())
    return userError("the model has no graph");
  if (!proto.has_ir_version())
    return userError("the model does not say its IR version (ir_version)");
  int64_t version = proto.ir_version();
  // A few versions ahead only add fields, as far as one can tell.
  if (version < oldestIrVersion || version > newestIrVersion + 4)
    return userError("IR version {0} is not supported; {1} to {2} are", version,
                     oldestIrVersion, newestIrVersion);
  if (version > newestIrVersion)
    warn("IR version " + Twine(version) + " is newer than " +
         Twine(newestIrVersion) + ", the newest that this version knows");
  if (proto.opset_import().empty())
    return userError("the model imports no operator set (opset_import is "
                     "empty)");
  Expected<Opsets> sets = Opsets::create(proto.opset_import());
  if (!sets)
    return sets.takeError();
  opsets = std::move(*sets);
  Expected<FunctionTable> table = FunctionTable::create(proto);
  if (!table)
    return table.takeError();
  functions = std::move(*table);
  return Error::success();
}

Expected<std::unique_ptr<Module>> Importer::run() {
  if (Error error = checkVersions())
    return error;
  const onnx::GraphProto &graph = model.proto.graph();
  module->funcs.push_back(std::make_unique<Func>("main"));
  emit.emplace(*module, module->entry(), errors, *this);

  Scope scope;
  Frame top{&scope, &opsets, nullptr, ""};
  frame = &top;
  if (Error error = importInitializers(graph, scope))
    return error;
  if (Error error = importInputs(graph, scope))
    return error;
  if (Error error = importNodes(graph.node()))
    return error;
  if (Error error = importOutputs(graph))
    return error;
  return std::move(module);
}

Error Importer::importInputs(const onnx::GraphProto &graph, Scope &scope) {
  InputSizes sizes(*module, options);
  StringMap<bool> seen;
  std::vector<const onnx::ValueInfoProto *> inputs;
  for (const onnx::ValueInfoProto &input : graph.input()) {
    if (input.name().empty())
      return userError("a graph input has no name");
    if (!seen.insert({input.name(), true}).second)
      return userError("two graph inputs are named '{0}'", input.name());
    if (scope.constants.count(input.name())) {
      // Up to IR version 3 every initializer is listed as an input.
      if (model.proto.ir_version() >= 4)
        warn("input '" + input.name() +
             "' has a default value, which is now "
             "fixed: callers cannot give another");
      continue;
    }
    sizes.collect(input);
    inputs.push_back(&input);
  }
  Func &func = module->entry();
  for (const onnx::ValueInfoProto *input : inputs) {
    Expected<TensorType> type = sizes.typeOf(*input);
    if (!type)
      return withPrefix(type.takeError(),
                        "graph input '" + input->name() + "': ");
    if (type->rank() > maxRank)
      return userError("graph input '{0}' has {1} dimensions; at most {2} are "
                       "supported",
                       input->name(), type->rank(), maxRank);
    Expected<ConstantRef> value = sizes.valueOf(input->name(), *type);
    if (!value)
      return withPrefix(value.takeError(),
                        "graph input '" + input->name() + "': ");
    if (*value) {
      scope.constants[input->name()] = *value;
      continue;
    }
    scope.values[input->name()] =
        func.body.addArgument(std::move(*type), input->name());
    func.inputs.push_back({input->name()});
  }
  return sizes.checkOptions();
}

Error Importer::importInitializers(const onnx::GraphProto &graph,
                                   Scope &scope) {
  for (const onnx::SparseTensorProto &sparse : graph.sparse_initializer())
    return userError("initializer '{0}' is a sparse tensor, which is not "
                     "supported",
                     sparse.values().name());
  for (const onnx::TensorProto &tensor : graph.initializer()) {
    if (tensor.name().empty())
      return userError("an initializer has no name");
    Expected<ConstantRef> constant = weights.load(tensor);
    if (!constant)
      return withPrefix(constant.takeError(),
                        "initializer '" + tensor.name() + "': ");
    if (!scope.constants.insert({tensor.name(), *constant}).second)
      return userError("two initializers are named '{0}'", tensor.name());
  }
  return Error::success();
}

Error Importer::importOutputs(const onnx::GraphProto &graph) {
  if (graph.output().empty())
    return userError("the graph has no outputs");
  Values results;
  StringMap<bool> seen;
  for (const onnx::ValueInfoProto &output : graph.output()) {
    const std::string &name = output.name();
    Value *value = lookUp(name);
    if (!value)
      return userError("graph output '{0}' is not defined by the graph", name);
    if (!seen.insert({name, true}).second)
      return userError("two graph outputs are named '{0}'", name);
    Expected<std::optional<ElementType>> declared = declaredElement(output);
    if (!declared)
      return withPrefix(declared.takeError(), "graph output '" + name + "': ");
    if (*declared && **declared != value->element())
      return userError("graph output '{0}' is declared as {1}, but the graph "
                       "computes {2}",
                       name, mnemonic(**declared), mnemonic(value->element()));
    const onnx::TypeProto::Tensor &type = output.type().tensor_type();
    bool differs =
        type.has_shape() && unsigned(type.shape().dim_size()) != value->rank();
    for (unsigned i = 0; type.has_shape() && !differs && i < value->rank(); ++i)
      differs = type.shape().dim(i).has_dim_value() &&
                type.shape().dim(i).dim_value() >= 0 &&
                value->shape()[i].constant().value_or(
                    type.shape().dim(i).dim_value()) !=
                    type.shape().dim(i).dim_value();
    if (differs)
      warn(formatv("graph output '{0}' is declared with another shape than the "
                   "graph computes, {1}",
                   name, value->type)
               .str());
    results.push_back(value);
    module->entry().outputs.push_back({name});
  }
  emit->setLocation(Location());
  emit->create(OpKind::Return, results);
  return errors.take();
}

//===----------------------------------------------------------------------===//
// Nodes
//===----------------------------------------------------------------------===//

Value *Importer::lookUp(StringRef name) {
  for (Scope *scope = frame->scope; scope; scope = scope->parent) {
    auto value = scope->values.find(name);
    if (value != scope->values.end())
      return value->second;
    auto constant = scope->constants.find(name);
    if (constant == scope->constants.end())
      continue;
    Location loc = emit->location();
    emit->setLocation(Location());
    Value *made = emit->constant(constant->second);
    emit->setLocation(loc);
    if (made)
      made->name = name.str();
    scope->values[name] = made;
    return made;
  }
  return nullptr;
}

Error Importer::importNodes(const NodeList &nodes) {
  SupportCheck check(functions);
  check.add(nodes, *frame->opsets, /*subgraphs=*/false);
  if (Error error = check.takeError())
    return error;

  Scope *scope = frame->scope;
  auto definedHere = [&](StringRef name) -> StringRef {
    if (scope->constants.count(name))
      return "initializer";
    return scope->values.count(name) ? "graph input" : "";
  };
  auto definedOutside = [&](StringRef name) {
    for (Scope *outer = scope->parent; outer; outer = outer->parent)
      if (outer->defines(name))
        return true;
    return false;
  };
  Expected<std::vector<int>> order =
      orderNodes(nodes, {definedHere, definedOutside});
  if (!order)
    return order.takeError();
  for (int i : *order)
    if (Error error = importNode(nodes[i]))
      return error;
  return Error::success();
}

Error Importer::prefixed(Error error, const Twine &prefix) {
  return ++prefixes > prefixLimit ? std::move(error)
                                  : withPrefix(std::move(error), prefix);
}

Error Importer::importNode(const onnx::NodeProto &node) {
  std::string label = shortened(frame->prefix + nodeLabel(node));
  auto located = [&](Error error) {
    return prefixed(std::move(error),
                    "node '" + label + "' (" + node.op_type() + "): ");
  };
  if (Error error = budget.addNode(node))
    return located(std::move(error));
  Values inputs;
  for (const std::string &name : node.input()) {
    Value *value = name.empty() ? nullptr : lookUp(name);
    // In a function, an input that the call leaves out is known but null.
    inputs.push_back(value);
  }
  while (!inputs.empty() && !inputs.back())
    inputs.pop_back();

  emit->setLocation(Location(label));
  NodeView view(node, frame->opsets->version(node.domain()).value_or(0), inputs,
                frame->bindings, errors);
  const FunctionTable::Function *function = functions.find(node);
  if (!function)
    function = standardBody(node, view.version());
  Error error = function ? inlineFunction(*function, view, inputs, label)
                         : importOp(node, view, inputs, view.version());
  // What the getters found explains the rest.
  if (errors.failed()) {
    consumeError(std::move(error));
    error = errors.take();
  }
  if (error)
    return located(std::move(error));

  for (int i = 0; i < node.output_size(); ++i) {
    const std::string &name = node.output(i);
    if (name.empty())
      continue;
    Value *value = view.output(i);
    if (!value && !function)
      return located(userError("output {0} ('{1}') is not supported", i, name));
    if (value && value->name.empty() && value->def())
      value->name = name;
    frame->scope->values[name] = value;
  }
  return Error::success();
}

Error Importer::importOp(const onnx::NodeProto &node, NodeView &view,
                         ArrayRef<Value *> inputs, int64_t version) {
  int64_t since = 0;
  const OnnxOp *line = findOnnxOp(canonicalDomain(node.domain()),
                                  node.op_type(), version, since);
  assert(line && "unsupported ops are reported before");
  unsigned numOutputs = node.output_size();
  while (numOutputs > 0 && node.output(numOutputs - 1).empty())
    --numOutputs;
  if (Error error = checkArity(*line, inputs, numOutputs))
    return error;
  if (errors.failed())
    return Error::success();
  Value *first = line->importer ? line->importer(view, *emit)
                                : importPlain(*line, view, *emit);
  if (errors.failed())
    return Error::success();
  view.finish();
  if (first && view.numOutputs() > 0)
    view.setOutput(0, first);
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Functions and subgraphs
//===----------------------------------------------------------------------===//

Error Importer::inlineFunction(const FunctionTable::Function &function,
                               NodeView &view, ArrayRef<Value *> inputs,
                               const std::string &label) {
  const onnx::FunctionProto &proto = *function.proto;
  if (depth >= callDepthLimit)
    return userError("functions call each other more than {0} deep",
                     callDepthLimit);
  if (inputs.size() > size_t(proto.input_size()))
    return userError("has {0} inputs; the function '{1}' takes {2}",
                     inputs.size(), proto.name(), proto.input_size());
  if (view.numOutputs() > unsigned(proto.output_size()))
    return userError("has {0} outputs; the function '{1}' gives {2}",
                     view.numOutputs(), proto.name(), proto.output_size());
  if (errors.failed())
    return Error::success();
  if (Error error = budget.addCall(proto))
    return error;

  AttributeBindings bindings;
  for (const onnx::AttributeProto &byDefault : proto.attribute_proto())
    bindings[byDefault.name()] = &byDefault;
  AttributeBindings given;
  view.bindAttributes(given);
  for (const auto &entry : given) {
    if (!bindings.count(entry.first()) &&
        !llvm::is_contained(proto.attribute(), entry.first()))
      return userError("attribute '{0}' is not one of the function '{1}'",
                       entry.first(), proto.name());
    bindings[entry.first()] = entry.second;
  }

  Scope scope;
  for (int i = 0; i < proto.input_size(); ++i)
    scope.values[proto.input(i)] = i < int(inputs.size()) ? inputs[i] : nullptr;
  Frame inner{&scope, &function.opsets, &bindings, label + "/"};
  Frame *outer = std::exchange(frame, &inner);
  ++depth;
  auto restore = make_scope_exit([&] {
    frame = outer;
    --depth;
  });
  if (Error error = importNodes(proto.node()))
    return prefixed(std::move(error),
                    "in function '" + Twine(proto.name()) + "': ");
  for (unsigned i = 0; i < view.numOutputs(); ++i) {
    if (!view.wantsOutput(i))
      continue;
    Value *value = lookUp(proto.output(i));
    if (!value)
      return userError("function '{0}' does not define its output '{1}'",
                       proto.name(), proto.output(i));
    view.setOutput(i, value);
  }
  return Error::success();
}

Values Importer::importSubgraph(const onnx::GraphProto &graph,
                                ArrayRef<Value *> inputs) {
  if (errors.failed())
    return {};
  if (depth >= callDepthLimit) {
    errors.fail("subgraphs are nested more than {0} deep", callDepthLimit);
    return {};
  }
  if (size_t(graph.input_size()) != inputs.size()) {
    errors.fail("its subgraph '{0}' has {1} inputs; expected {2}", graph.name(),
                graph.input_size(), inputs.size());
    return {};
  }
  Scope scope;
  scope.parent = frame->scope;
  for (auto [proto, value] : llvm::zip(graph.input(), inputs))
    scope.values[proto.name()] = value;
  Frame inner{&scope, frame->opsets, frame->bindings, frame->prefix};
  Frame *outer = std::exchange(frame, &inner);
  Location loc = emit->location();
  ++depth;
  Values results;
  Error error = importInitializers(graph, scope);
  if (!error)
    error = importNodes(graph.node());
  if (!error) {
    for (const onnx::ValueInfoProto &output : graph.output()) {
      Value *value = lookUp(output.name());
      if (!value) {
        error = userError("its subgraph does not define its output '{0}'",
                          output.name());
        break;
      }
      results.push_back(value);
    }
  }
  --depth;
  emit->setLocation(loc);
  frame = outer;
  if (!error)
    return results;
  errors.fail(std::move(error));
  return {};
}

ConstantRef Importer::loadTensor(const onnx::TensorProto &tensor) {
  Expected<ConstantRef> constant = weights.load(tensor);
  if (constant)
    return *constant;
  errors.fail(withPrefix(constant.takeError(), "its tensor "));
  return nullptr;
}

} // namespace

Expected<std::unique_ptr<Module>> importOnnx(StringRef path,
                                             const ImportOptions &options) {
  std::string prefix = (path + ": error: ").str();
  Expected<std::unique_ptr<ModelFile>> model = ModelFile::open(path);
  if (!model)
    return withPrefix(model.takeError(), prefix);
  (*model)->followLinks = options.followLinks;
  Expected<std::unique_ptr<Module>> module = Importer(**model, options).run();
  if (!module)
    return withPrefix(module.takeError(), prefix);
  return module;
}

Expected<std::unique_ptr<Module>>
importOnnxBytes(ArrayRef<uint8_t> bytes, const ImportOptions &options) {
  auto copy =
      std::make_shared<std::vector<uint8_t>>(bytes.begin(), bytes.end());
  Expected<std::unique_ptr<ModelFile>> model = ModelFile::parse(*copy, copy);
  if (!model)
    return model.takeError();
  return Importer(**model, options).run();
}

} // namespace tenon::frontend
