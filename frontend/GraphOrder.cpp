//===- GraphOrder.cpp - checking and sorting a graph's nodes -------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontend/GraphOrder.h"
#include "ir/support/Diag.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"
#include <numeric>
#include <queue>

using namespace llvm;

namespace tenon::frontend {

namespace {

std::string describe(const onnx::NodeProto &node) {
  return "node '" + nodeLabel(node) + "' (" + node.op_type() + ")";
}

/// Adds to \p names what \p graph reads and does not define.
void addCaptured(const onnx::GraphProto &graph,
                 SmallVectorImpl<StringRef> &names) {
  StringSet<> own;
  for (const onnx::ValueInfoProto &input : graph.input())
    own.insert(input.name());
  for (const onnx::TensorProto &tensor : graph.initializer())
    own.insert(tensor.name());
  for (const onnx::NodeProto &node : graph.node())
    for (const std::string &output : node.output())
      own.insert(output);
  SmallVector<StringRef> read;
  for (const onnx::NodeProto &node : graph.node()) {
    read.append(node.input().begin(), node.input().end());
    forEachSubgraph(
        node, [&](const onnx::GraphProto &inner) { addCaptured(inner, read); });
  }
  for (const onnx::ValueInfoProto &output : graph.output())
    read.push_back(output.name());
  for (StringRef name : read)
    if (!name.empty() && !own.contains(name))
      names.push_back(name);
}

/// Follows nodes that wait for each other until one comes again.
std::string describeCycle(const NodeList &nodes,
                          ArrayRef<SmallVector<int, 4>> needs,
                          ArrayRef<int> open) {
  int at = 0;
  while (open[at] == 0)
    ++at;
  std::vector<int> path, place(nodes.size(), -1);
  while (place[at] < 0) {
    place[at] = path.size();
    path.push_back(at);
    at = *llvm::find_if(needs[at], [&](int other) { return open[other] != 0; });
  }
  path.erase(path.begin(), path.begin() + place[at]);
  std::string text = describe(nodes[path.front()]);
  size_t shown = std::min<size_t>(path.size(), 6);
  for (size_t i = 1; i < shown; ++i)
    text += " needs " + describe(nodes[path[i]]);
  if (shown < path.size())
    text += " needs " + std::to_string(path.size() - shown) + " more, which";
  return text + " needs " + describe(nodes[path.front()]);
}

} // namespace

Expected<std::vector<int>> orderNodes(const NodeList &nodes,
                                      const Surroundings &around) {
  StringMap<int> producer;
  for (int i = 0; i < nodes.size(); ++i) {
    for (const std::string &output : nodes[i].output()) {
      if (output.empty())
        continue;
      StringRef other = around.definedHere(output);
      if (!other.empty())
        return userError("value '{0}' is defined twice: by a {1} and by {2}",
                         output, other, describe(nodes[i]));
      auto [it, isNew] = producer.insert({output, i});
      if (!isNew)
        return userError("value '{0}' is defined twice: by {1} and by {2}",
                         output, describe(nodes[it->second]),
                         describe(nodes[i]));
    }
  }

  std::vector<SmallVector<int, 4>> needs(nodes.size());
  bool sorted = true;
  for (int i = 0; i < nodes.size(); ++i) {
    SmallVector<StringRef> read(nodes[i].input().begin(),
                                nodes[i].input().end());
    size_t direct = read.size();
    forEachSubgraph(nodes[i], [&](const onnx::GraphProto &graph) {
      addCaptured(graph, read);
    });
    for (size_t j = 0; j < read.size(); ++j) {
      StringRef name = read[j];
      if (name.empty())
        continue;
      auto it = producer.find(name);
      if (it != producer.end()) {
        needs[i].push_back(it->second);
        sorted &= it->second < i;
      } else if (around.definedHere(name).empty() &&
                 !around.definedOutside(name)) {
        return userError("{0}: {1} '{2}', which is not defined",
                         describe(nodes[i]),
                         j < direct ? "reads" : "its subgraph reads", name);
      }
    }
  }

  std::vector<int> order(nodes.size());
  std::iota(order.begin(), order.end(), 0);
  if (sorted)
    return order;

  std::vector<SmallVector<int, 4>> users(nodes.size());
  std::vector<int> open(nodes.size());
  std::priority_queue<int, std::vector<int>, std::greater<int>> ready;
  for (int i = 0; i < nodes.size(); ++i) {
    open[i] = needs[i].size();
    for (int other : needs[i])
      users[other].push_back(i);
    if (open[i] == 0)
      ready.push(i);
  }
  order.clear();
  while (!ready.empty()) {
    int i = ready.top();
    ready.pop();
    order.push_back(i);
    for (int user : users[i])
      if (--open[user] == 0)
        ready.push(user);
  }
  if (int(order.size()) != nodes.size())
    return userError("nodes form a cycle: {0}",
                     describeCycle(nodes, needs, open));
  return order;
}

} // namespace tenon::frontend
