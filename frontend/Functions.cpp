//===- Functions.cpp - operator sets, model functions, what is supported -===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontend/Functions.h"
#include "frontend/OnnxOps.h"
#include "ir/support/Diag.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace tenon::frontend {

StringRef canonicalDomain(StringRef domain) {
  return domain == "ai.onnx" ? "" : domain;
}

StringRef domainName(StringRef domain) {
  return domain.empty() ? "ai.onnx" : domain;
}

std::string nodeLabel(const onnx::NodeProto &node) {
  if (!node.name().empty())
    return node.name();
  for (const std::string &output : node.output())
    if (!output.empty())
      return output;
  return "";
}

void forEachSubgraph(const onnx::NodeProto &node,
                     function_ref<void(const onnx::GraphProto &)> visit) {
  for (const onnx::AttributeProto &attribute : node.attribute()) {
    if (attribute.has_g())
      visit(attribute.g());
    for (const onnx::GraphProto &graph : attribute.graphs())
      visit(graph);
  }
}

namespace {

/// Visits \p nodes and those of all their subgraphs. The parser limits how deep
/// they nest.
void forEachNode(const NodeList &nodes,
                 function_ref<void(const onnx::NodeProto &)> visit) {
  for (const onnx::NodeProto &node : nodes) {
    visit(node);
    forEachSubgraph(node, [&](const onnx::GraphProto &graph) {
      forEachNode(graph.node(), visit);
    });
  }
}

std::string functionKey(StringRef domain, StringRef name, StringRef overload) {
  std::string key = canonicalDomain(domain).str();
  key.push_back('\0');
  key += name;
  key.push_back('\0');
  key += overload;
  return key;
}

std::string callKey(const onnx::NodeProto &node) {
  return functionKey(node.domain(), node.op_type(), node.overload());
}

} // namespace

//===----------------------------------------------------------------------===//
// Operator sets
//===----------------------------------------------------------------------===//

Expected<Opsets> Opsets::create(const OpsetList &imports) {
  Opsets result;
  for (const onnx::OperatorSetIdProto &import : imports) {
    StringRef domain = canonicalDomain(import.domain());
    int64_t version = import.version();
    auto [it, isNew] = result.versions.insert({domain, version});
    if (!isNew && it->second != version)
      return userError("opset_import names domain '{0}' with versions {1} and "
                       "{2}",
                       domainName(domain), it->second, version);
    if (!domain.empty())
      continue;
    if (version < oldestOpset || version > newestOpset)
      return userError("opset {0} is not supported; {1} to {2} are", version,
                       oldestOpset, newestOpset);
  }
  return result;
}

std::optional<int64_t> Opsets::version(StringRef domain) const {
  auto it = versions.find(canonicalDomain(domain));
  if (it == versions.end())
    return std::nullopt;
  return it->second;
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

Expected<FunctionTable> FunctionTable::create(const onnx::ModelProto &model) {
  FunctionTable table;
  for (const onnx::FunctionProto &function : model.functions()) {
    Expected<Opsets> opsets = Opsets::create(function.opset_import());
    if (!opsets)
      return withPrefix(opsets.takeError(),
                        "function '" + Twine(function.name()) + "': ");
    std::string key =
        functionKey(function.domain(), function.name(), function.overload());
    if (!table.functions.insert({key, {&function, std::move(*opsets)}}).second)
      return userError("function '{0}' of domain '{1}' is defined twice",
                       function.name(), domainName(function.domain()));
  }
  if (Error error = table.checkCalls())
    return error;
  return table;
}

const FunctionTable::Function *
FunctionTable::find(const onnx::NodeProto &node) const {
  if (functions.empty())
    return nullptr;
  auto it = functions.find(callKey(node));
  return it == functions.end() ? nullptr : &it->second;
}

/// Removes functions that only call removed ones until nothing changes; what is
/// left calls itself.
Error FunctionTable::checkCalls() const {
  StringMap<SmallVector<std::string>> callers;
  StringMap<unsigned> openCalls;
  for (const auto &entry : functions) {
    StringMap<bool> callees;
    forEachNode(entry.second.proto->node(), [&](const onnx::NodeProto &node) {
      if (find(node))
        callees[callKey(node)] = true;
    });
    openCalls[entry.first()] = callees.size();
    for (const auto &callee : callees)
      callers[callee.first()].push_back(entry.first().str());
  }
  std::vector<std::string> ready;
  for (const auto &entry : openCalls)
    if (entry.second == 0)
      ready.push_back(entry.first().str());
  size_t done = 0;
  for (; !ready.empty(); ++done) {
    std::string key = std::move(ready.back());
    ready.pop_back();
    for (const std::string &caller : callers[key])
      if (--openCalls[caller] == 0)
        ready.push_back(caller);
  }
  if (done == functions.size())
    return Error::success();
  std::vector<std::string> names;
  for (const auto &entry : functions)
    if (openCalls[entry.first()] != 0)
      names.push_back(entry.second.proto->name());
  llvm::sort(names);
  if (names.size() > 4)
    names.resize(4);
  return userError("functions call themselves, directly or through each other "
                   "(recursion is not supported): '{0}'",
                   llvm::join(names, "', '"));
}

//===----------------------------------------------------------------------===//
// Bodies of ONNX's own ops
//===----------------------------------------------------------------------===//

namespace {

constexpr uint8_t standardBodies[] = {
#include "OnnxBodies.inc"
};

/// All versions of an op's body, oldest first.
using BodyVersions =
    SmallVector<std::pair<int64_t, FunctionTable::Function>, 2>;

const StringMap<BodyVersions> &bodiesByName() {
  static const onnx::ModelProto model = [] {
    onnx::ModelProto parsed;
    bool good = parsed.ParseFromArray(standardBodies, sizeof standardBodies);
    assert(good && "onnx_bodies.py writes a model");
    (void)good;
    return parsed;
  }();
  static const StringMap<BodyVersions> byName = [] {
    StringMap<BodyVersions> result;
    for (const onnx::FunctionProto &function : model.functions()) {
      int64_t since = 0;
      StringRef(function.overload()).getAsInteger(10, since);
      Opsets opsets = llvm::cantFail(Opsets::create(function.opset_import()));
      result[function.name()].push_back(
          {since, {&function, std::move(opsets)}});
    }
    return result;
  }();
  return byName;
}

} // namespace

const FunctionTable::Function *standardBody(const onnx::NodeProto &node,
                                            int64_t opset) {
  if (!canonicalDomain(node.domain()).empty())
    return nullptr;
  auto it = bodiesByName().find(node.op_type());
  if (it == bodiesByName().end())
    return nullptr;
  const FunctionTable::Function *best = nullptr;
  for (const auto &[since, function] : it->second)
    if (since <= opset)
      best = &function;
  return best;
}

//===----------------------------------------------------------------------===//
// What is supported
//===----------------------------------------------------------------------===//

void SupportCheck::addNode(const onnx::NodeProto &node, const Opsets &opsets,
                           const std::string &where) {
  StringRef domain = canonicalDomain(node.domain());
  std::optional<int64_t> version = opsets.version(domain);
  std::string note;
  if (!version) {
    note = formatv("the model imports no operator set of domain '{0}'",
                   domainName(domain));
  } else {
    if (functions.find(node))
      return;
    int64_t since = 0;
    if (findOnnxOp(domain, node.op_type(), *version, since) ||
        standardBody(node, *version))
      return;
    if (since != 0)
      note = formatv("it exists from opset {0}", since);
  }
  std::string label = "'" + nodeLabel(node) + "'" + where;
  std::string key =
      functionKey(domain, node.op_type(), std::to_string(version.value_or(0)));
  auto [place, isNew] = places.insert({key, unsupported.size()});
  if (!isNew) {
    unsupported[place->second].nodes.push_back(std::move(label));
    return;
  }
  unsupported.push_back({domain.str(),
                         node.op_type(),
                         version.value_or(0),
                         std::move(note),
                         {std::move(label)}});
}

void SupportCheck::add(const NodeList &nodes, const Opsets &opsets,
                       bool subgraphs) {
  struct Work {
    const NodeList *nodes;
    const Opsets *opsets;
    std::string where;
    bool subgraphs;
  };
  std::vector<Work> work = {{&nodes, &opsets, "", subgraphs}};
  while (!work.empty()) {
    Work item = std::move(work.back());
    work.pop_back();
    for (const onnx::NodeProto &node : *item.nodes) {
      addNode(node, *item.opsets, item.where);
      if (item.subgraphs)
        forEachSubgraph(node, [&](const onnx::GraphProto &graph) {
          work.push_back({&graph.node(), item.opsets, item.where, true});
        });
      const FunctionTable::Function *function = functions.find(node);
      if (function && !seenFunctions[callKey(node)]) {
        seenFunctions[callKey(node)] = true;
        work.push_back({&function->proto->node(), &function->opsets,
                        " in function '" + function->proto->name() + "'",
                        item.subgraphs});
      }
    }
  }
}

Error SupportCheck::takeError() {
  if (unsupported.empty())
    return Error::success();
  std::string text;
  raw_string_ostream os(text);
  size_t nodes = 0;
  for (const UnsupportedOp &op : unsupported)
    nodes += op.nodes.size();
  os << nodes << (nodes == 1 ? " node uses an op" : " nodes use ops")
     << " that Tenon does not support:";
  for (const UnsupportedOp &op : unsupported) {
    os << "\n  " << (op.op.empty() ? "(no op_type)" : op.op) << " of domain '"
       << domainName(op.domain) << "'";
    if (op.version != 0)
      os << ", opset " << op.version;
    if (!op.note.empty())
      os << " (" << op.note << ")";
    os << ": ";
    for (size_t i = 0; i < std::min<size_t>(op.nodes.size(), 20); ++i)
      os << (i ? ", " : "") << op.nodes[i];
    if (op.nodes.size() > 20)
      os << " and " << op.nodes.size() - 20 << " more";
  }
  return userError("{0}", text);
}

} // namespace tenon::frontend
