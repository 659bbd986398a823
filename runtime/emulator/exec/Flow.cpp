//===- Flow.cpp - where divergent branches meet again ---------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

/// \file
/// The lanes of a divergent branch meet at the branch's immediate
/// post-dominator, found by the algorithm of Cooper, Harvey and Kennedy ("A
/// simple, fast dominance algorithm") on the reversed graph. An operation that
/// makes waiting lanes continue is put before each such place.

#include "runtime/emulator/exec/Control.h"
#include "runtime/emulator/exec/Decoder.h"

#include <algorithm>

using namespace tenon::emu;

namespace {

class FlowGraph {
public:
  explicit FlowGraph(Code &code) : code(code) {
    findBlocks();
    findEdges();
    findPostdominators();
  }
  void layOut();

private:
  static constexpr uint32_t None = ~0u;

  void findBlocks();
  void findEdges();
  void addEdge(uint32_t from, uint32_t toOp);
  void findPostdominators();
  void order(std::vector<uint32_t> &postorder);
  uint32_t intersect(uint32_t a, uint32_t b) const;
  bool conditional(const Op &op) const { return op.guard != ConstantRef; }

  Code &code;
  std::vector<uint32_t> starts;  // of blocks; the last is the exit alone
  std::vector<uint32_t> blockOf; // by operation
  std::vector<std::vector<uint32_t>> successors, predecessors;
  std::vector<uint32_t> number; // in the reversed graph's postorder
  std::vector<uint32_t> ipdom;
};

void FlowGraph::findBlocks() {
  std::vector<bool> leader(code.ops.size());
  leader[0] = leader.back() = true;
  for (size_t i = 0; i + 1 < code.ops.size(); ++i) {
    const Op &op = code.ops[i];
    if (op.flow == Flow::Next)
      continue;
    leader[i + 1] = true;
    if (op.flow == Flow::Branch)
      leader[op.target] = true;
    if (op.flow == Flow::Table)
      for (uint32_t target : code.tables[op.extra])
        leader[target] = true;
  }
  blockOf.resize(code.ops.size());
  for (size_t i = 0; i != code.ops.size(); ++i) {
    if (leader[i])
      starts.push_back(static_cast<uint32_t>(i));
    blockOf[i] = static_cast<uint32_t>(starts.size() - 1);
  }
}

void FlowGraph::addEdge(uint32_t from, uint32_t toOp) {
  uint32_t to = blockOf[toOp];
  successors[from].push_back(to);
  predecessors[to].push_back(from);
}

void FlowGraph::findEdges() {
  successors.resize(starts.size());
  predecessors.resize(starts.size());
  auto exit = static_cast<uint32_t>(code.ops.size() - 1);
  for (uint32_t b = 0; b + 1 != starts.size(); ++b) {
    uint32_t last = starts[b + 1] - 1;
    const Op &op = code.ops[last];
    if (op.flow == Flow::Branch)
      addEdge(b, op.target);
    if (op.flow == Flow::Table)
      for (uint32_t target : code.tables[op.extra])
        addEdge(b, target);
    if (op.flow == Flow::Return || op.flow == Flow::Exit)
      addEdge(b, exit);
    if (op.flow == Flow::Next || op.flow == Flow::Call || conditional(op))
      addEdge(b, last + 1);
  }
}

/// Postorder of the reversed graph from the exit. Blocks from which the exit
/// cannot be reached (endless loops) are given an edge to it.
void FlowGraph::order(std::vector<uint32_t> &postorder) {
  auto exit = static_cast<uint32_t>(starts.size() - 1);
  std::vector<bool> seen(starts.size());
  std::vector<std::pair<uint32_t, size_t>> stack;
  auto walk = [&](uint32_t root) {
    seen[root] = true;
    stack.emplace_back(root, 0);
    while (!stack.empty()) {
      auto &[block, next] = stack.back();
      if (next == predecessors[block].size()) {
        postorder.push_back(block);
        stack.pop_back();
        continue;
      }
      uint32_t to = predecessors[block][next++];
      if (!seen[to]) {
        seen[to] = true;
        stack.emplace_back(to, 0);
      }
    }
  };
  // What the exit does not reach comes first, so that the exit is last.
  std::vector<uint32_t> reached;
  walk(exit);
  reached.swap(postorder);
  for (uint32_t b = exit; b-- > 0;)
    if (!seen[b]) {
      successors[b].push_back(exit);
      predecessors[exit].push_back(b);
      walk(b);
    }
  postorder.insert(postorder.end(), reached.begin(), reached.end());
}

uint32_t FlowGraph::intersect(uint32_t a, uint32_t b) const {
  while (a != b) {
    while (number[a] < number[b])
      a = ipdom[a];
    while (number[b] < number[a])
      b = ipdom[b];
  }
  return a;
}

void FlowGraph::findPostdominators() {
  std::vector<uint32_t> postorder;
  order(postorder);
  number.resize(starts.size());
  for (uint32_t i = 0; i != postorder.size(); ++i)
    number[postorder[i]] = i;
  auto exit = static_cast<uint32_t>(starts.size() - 1);
  ipdom.assign(starts.size(), None);
  ipdom[exit] = exit;
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t i = postorder.size() - 1; i-- > 0;) {
      uint32_t b = postorder[i], found = None;
      for (uint32_t s : successors[b])
        if (ipdom[s] != None)
          found = found == None ? s : intersect(found, s);
      if (found != ipdom[b]) {
        ipdom[b] = found;
        changed = true;
      }
    }
  }
}

void FlowGraph::layOut() {
  std::vector<bool> joins(starts.size());
  for (uint32_t b = 0; b + 1 != starts.size(); ++b) {
    Op &op = code.ops[starts[b + 1] - 1];
    if (op.flow == Flow::Next || op.flow == Flow::Exit)
      continue;
    uint32_t join = ipdom[b] == None ? uint32_t(starts.size() - 1) : ipdom[b];
    joins[join] = true;
    op.join = starts[join];
    if (op.flow == Flow::Return)
      op.target = starts.back();
  }
  std::vector<uint32_t> moved(code.ops.size());
  std::vector<Op> ops;
  std::vector<Where> where;
  for (size_t i = 0; i != code.ops.size(); ++i) {
    moved[i] = static_cast<uint32_t>(ops.size());
    uint32_t block = blockOf[i];
    if (starts[block] == i && joins[block]) {
      ops.push_back(joinOp());
      where.push_back(code.where[i]);
    }
    ops.push_back(code.ops[i]);
    where.push_back(code.where[i]);
  }
  for (Op &op : ops)
    if (op.flow != Flow::Next && op.flow != Flow::Exit) {
      op.target = moved[op.target];
      op.join = moved[op.join];
    }
  for (std::vector<uint32_t> &table : code.tables)
    for (uint32_t &target : table)
      target = moved[target];
  code.ops = std::move(ops);
  code.where = std::move(where);
}

} // namespace

void tenon::emu::finishFlow(Code &code) {
  code.ops.push_back(endOp(code.entry));
  code.where.push_back({"the end of the function", code.source->line, 0, 0});
  FlowGraph(code).layOut();
}
