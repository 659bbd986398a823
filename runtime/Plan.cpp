//===- Plan.cpp - loads and checks a plan -------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/Plan.h"

#include "runtime/Sources.h"
#include "runtime/format/DType.h"
#include "runtime/support/Checksum.h"

#include <cstddef>

namespace tenon::rt {

/// Fills a Plan and checks it table by table.
class PlanChecker {
public:
  PlanChecker(Bytes bytes, Plan &plan) : bytes(bytes), plan(plan) {}

  Status run() {
    if (Status status = openTables(); !status.ok())
      return status;
    bool good = checkHeader() && checkSymbols() && checkExprs() &&
                checkSegments() && checkBuffers() && checkViews() &&
                checkPorts() && checkStates() && checkLaunches() && checkRest();
    return good ? Status() : TN_ERROR("damaged plan: %s", why.c_str());
  }

private:
  bool fail(const char *table, size_t index, const char *what) {
    why = format("%s %zu: %s", table, index, what);
    return false;
  }

  template <typename T>
  bool open(const char *name, const Table &table, std::span<T> &out) {
    uint64_t size = uint64_t(table.count) * sizeof(T);
    if (table.count > 0 &&
        (table.recordSize != sizeof(T) || table.offset % alignof(T) != 0 ||
         !inRange(table.offset, size, bytes.size()))) {
      why = format("table of %s is out of range", name);
      return false;
    }
    if (table.count > 0)
      out = {reinterpret_cast<T *>(bytes.data() + table.offset), table.count};
    return true;
  }

  Status openTables() {
    if (bytes.size() < sizeof(PlanHeader) ||
        std::memcmp(bytes.data(), planMagic, sizeof(planMagic)) != 0)
      return TN_ERROR("damaged plan: no header");
    const auto &head = *reinterpret_cast<const PlanHeader *>(bytes.data());
    if (head.version != planVersion)
      return TN_ERROR("plan has version %u, this runtime reads version %u",
                      head.version, planVersion);
    if (head.headerBytes != sizeof(PlanHeader) ||
        head.totalBytes != bytes.size())
      return TN_ERROR("damaged plan: %zu bytes found, %llu expected",
                      bytes.size(),
                      static_cast<unsigned long long>(head.totalBytes));
    if (planChecksum(bytes) != head.planChecksum)
      return TN_ERROR("damaged plan: its checksum differs");
    plan.head = &head;
    bool good = open("strings", head.strings, plan.stringTable) &&
                open("indices", head.indices, plan.indexTable) &&
                open("symbols", head.symbols, plan.symbolTable) &&
                open("expressions", head.exprs, plan.exprTable) &&
                open("inputs", head.inputs, plan.inputTable) &&
                open("outputs", head.outputs, plan.outputTable) &&
                open("checks", head.checks, plan.checkTable) &&
                open("buffers", head.buffers, plan.bufferTable) &&
                open("views", head.views, plan.viewTable) &&
                open("launches", head.launches, plan.launchTable) &&
                open("segments", head.segments, plan.segmentTable) &&
                open("weights", head.weights, plan.weightTable) &&
                open("states", head.states, plan.stateTable) &&
                open("variants", head.variants, plan.variantTable) &&
                open("tensor maps", head.tensorMaps, plan.mapTable);
    return good ? Status() : TN_ERROR("damaged plan: %s", why.c_str());
  }

  bool isString(StringId id) const { return id < plan.stringTable.size(); }
  bool isExpr(ExprId id) const { return id < plan.exprTable.size(); }
  bool isExprOrNone(ExprId id) const { return id == none || isExpr(id); }
  /// `id` is an expression that is known in segment `segment`.
  bool known(ExprId id, uint32_t segment) const {
    return isExpr(id) && plan.exprTable[id].segment <= segment;
  }
  /// The run is in the table, and holds indices below `limit`.
  bool isRun(IndexRun first, size_t count, size_t limit) const {
    if (!inRange(first, count, plan.indexTable.size()))
      return false;
    for (uint32_t index : plan.run(first, count))
      if (index >= limit)
        return false;
    return true;
  }
  /// The number of segments, one at least: sizes exist without launches too.
  uint32_t numSegments() const {
    size_t count = plan.segmentTable.size();
    return count == 0 ? 1 : uint32_t(count);
  }

  bool checkHeader() {
    const PlanHeader &head = *plan.head;
    if (plan.stringTable.empty() || plan.stringTable.back() != '\0')
      return fail("table", 0, "strings do not end");
    if (!isString(head.peakFormula) || !isString(head.manifest) ||
        !isExprOrNone(head.peakBytes) || head.padding > Padding::Anywhere)
      return fail("table", 0, "header is out of range");
    return true;
  }

  bool checkSymbols() {
    for (size_t i = 0; i < plan.symbolTable.size(); ++i) {
      const Symbol &symbol = plan.symbolTable[i];
      bool chosen = symbol.most != none;
      if (!isString(symbol.name) || symbol.low > symbol.high ||
          (chosen && (symbol.most >= plan.symbolTable.size() ||
                      plan.symbolTable[symbol.most].most != none)))
        return fail("symbol", i, "is out of range");
    }
    // When each symbol becomes known; those that data define, after their
    // segment.
    definedIn.assign(plan.symbolTable.size(), 0);
    for (size_t s = 0; s < plan.segmentTable.size(); ++s) {
      const Segment &segment = plan.segmentTable[s];
      if (!inRange(segment.firstLaunch, segment.numLaunches,
                   plan.launchTable.size()))
        return fail("segment", s, "launches out of range");
      for (size_t l = 0; l < segment.numLaunches; ++l)
        if (!defineFromData(segment.firstLaunch + l, uint32_t(s)))
          return false;
    }
    return true;
  }

  bool defineFromData(size_t index, uint32_t segment) {
    const Launch &launch = plan.launchTable[index];
    if (launch.kind != LaunchKind::BindSymbols)
      return true;
    if (!isRun(launch.params, launch.numParams, plan.symbolTable.size()))
      return fail("launch", index, "binds unknown symbols");
    for (uint32_t symbol : plan.run(launch.params, launch.numParams)) {
      if (definedIn[symbol] != 0)
        return fail("launch", index, "binds a symbol again");
      definedIn[symbol] = segment + 1;
    }
    return true;
  }

  bool checkExprs() {
    for (size_t i = 0; i < plan.exprTable.size(); ++i) {
      const Expr &expr = plan.exprTable[i];
      if (expr.op > ExprOp::Broadcast || expr.segment >= numSegments())
        return fail("expression", i, "is malformed");
      if (arity(expr.op) == 2) {
        if (expr.a >= i || expr.b >= i)
          return fail("expression", i, "uses a later one");
        if (!known(expr.a, expr.segment) || !known(expr.b, expr.segment))
          return fail("expression", i, "is known before its operands");
      } else if (expr.op == ExprOp::Symbol) {
        if (uint64_t(expr.value) >= plan.symbolTable.size())
          return fail("expression", i, "names an unknown symbol");
        if (expr.segment < definedIn[size_t(expr.value)])
          return fail("expression", i, "is known before its symbol");
      }
    }
    return true;
  }

  bool checkSegments() {
    uint64_t next = 0;
    for (size_t s = 0; s < plan.segmentTable.size(); ++s) {
      const Segment &segment = plan.segmentTable[s];
      if (segment.firstLaunch != next)
        return fail("segment", s, "does not follow the one before");
      next += segment.numLaunches;
      if (!known(segment.arenaBytes, uint32_t(s)))
        return fail("segment", s, "arena's size is unknown");
    }
    return next == plan.launchTable.size() ||
           fail("segment", plan.segmentTable.size(), "launches are left over");
  }

  bool checkBuffers() {
    for (size_t i = 0; i < plan.bufferTable.size(); ++i) {
      const Buffer &buffer = plan.bufferTable[i];
      if (buffer.kind > BufferKind::State || !isExpr(buffer.bytes))
        return fail("buffer", i, "is malformed");
      bool good = true;
      switch (buffer.kind) {
      case BufferKind::Arena:
        good = buffer.segment < plan.segmentTable.size() &&
               buffer.offset < plan.exprTable.size() &&
               known(buffer.bytes, buffer.segment) &&
               known(ExprId(buffer.offset), buffer.segment);
        break;
      case BufferKind::Weight:
        good =
            plan.exprTable[buffer.bytes].op == ExprOp::Constant &&
            plan.exprTable[buffer.bytes].value >= 0 &&
            buffer.offset % bufferAlignment == 0 &&
            inRange(buffer.offset, uint64_t(plan.exprTable[buffer.bytes].value),
                    plan.head->weightBytes);
        break;
      case BufferKind::Input:
        good = buffer.offset < plan.inputTable.size() && known(buffer.bytes, 0);
        break;
      case BufferKind::Output:
        good = buffer.offset < plan.outputTable.size();
        break;
      case BufferKind::State:
        good = buffer.offset < plan.stateTable.size() &&
               plan.stateTable[buffer.offset].buffer == i &&
               known(buffer.bytes, 0);
        break;
      }
      if (!good)
        return fail("buffer", i, "is out of range");
    }
    return true;
  }

  bool checkViews() {
    for (size_t i = 0; i < plan.viewTable.size(); ++i) {
      const View &view = plan.viewTable[i];
      if (view.buffer >= plan.bufferTable.size() || !isDType(view.dtype) ||
          view.rank > maxRank || !isExpr(view.offset) ||
          !isRun(view.shape, view.rank, plan.exprTable.size()) ||
          !isRun(view.strides, view.rank, plan.exprTable.size()))
        return fail("view", i, "is malformed");
    }
    return true;
  }

  /// Everything that `view` needs is known in `segment`.
  bool viewKnown(const View &view, uint32_t segment) const {
    const Buffer &buffer = plan.bufferTable[view.buffer];
    if (!known(view.offset, segment) || !known(buffer.bytes, segment) ||
        (buffer.kind == BufferKind::Arena && buffer.segment > segment))
      return false;
    for (IndexRun first : {view.shape, view.strides})
      for (ExprId id : plan.run(first, view.rank))
        if (!known(id, segment))
          return false;
    return true;
  }

  bool checkPorts() {
    for (bool input : {true, false}) {
      const char *kind = input ? "input" : "output";
      auto ports = input ? plan.inputTable : plan.outputTable;
      for (size_t i = 0; i < ports.size(); ++i) {
        const Port &port = ports[i];
        if (!isString(port.name) || !isDType(port.dtype) ||
            port.rank > maxRank ||
            !isRun(port.shape, port.rank, plan.exprTable.size()))
          return fail(kind, i, "is malformed");
        if (!(input ? checkInput(port, i) : checkOutput(port)))
          return fail(kind, i, "is out of range");
      }
    }
    return true;
  }

  bool checkInput(const Port &port, size_t index) const {
    for (ExprId id : plan.run(port.shape, port.rank))
      if (!known(id, 0))
        return false;
    if (port.target >= plan.bufferTable.size())
      return false;
    const Buffer &buffer = plan.bufferTable[port.target];
    const State *state = plan.stateOfInput(index);
    return state ? state->buffer == port.target
                 : buffer.kind == BufferKind::Input && buffer.offset == index;
  }

  bool checkStates() {
    for (size_t i = 0; i < plan.stateTable.size(); ++i) {
      const State &state = plan.stateTable[i];
      if (!checkState(state, i))
        return fail("state", i, "is malformed");
      for (size_t j = 0; j < i; ++j)
        if (plan.stateTable[j].input == state.input ||
            plan.stateTable[j].output == state.output)
          return fail("state", i, "shares its input or output");
    }
    return true;
  }

  bool checkState(const State &state, size_t index) const {
    if (state.input >= plan.inputTable.size() ||
        state.output >= plan.outputTable.size() ||
        state.buffer >= plan.bufferTable.size() || state.capacity < 1)
      return false;
    const Buffer &buffer = plan.bufferTable[state.buffer];
    const Port &before = plan.inputTable[state.input],
               &after = plan.outputTable[state.output];
    if (buffer.kind != BufferKind::State || buffer.offset != index ||
        before.rank != after.rank || before.dtype != after.dtype ||
        state.axis >= before.rank || before.target != state.buffer ||
        plan.viewTable[after.target].buffer != state.buffer)
      return false;
    auto from = plan.run(before.shape, before.rank),
         to = plan.run(after.shape, after.rank);
    for (size_t d = 0; d < from.size(); ++d)
      if (d != state.axis && from[d] != to[d])
        return false;
    // Its length is a symbol of its own.
    return plan.exprTable[from[state.axis]].op == ExprOp::Symbol &&
           known(to[state.axis], 0) && dtypeInfo(before.dtype).bits % 8 == 0;
  }

  bool checkOutput(const Port &port) const {
    if (port.target >= plan.viewTable.size())
      return false;
    const View &view = plan.viewTable[port.target];
    return view.dtype == port.dtype && view.rank == port.rank &&
           viewKnown(view, numSegments() - 1);
  }

  bool checkLaunches() {
    for (size_t s = 0; s < plan.segmentTable.size(); ++s) {
      const Segment &segment = plan.segmentTable[s];
      for (size_t l = 0; l < segment.numLaunches; ++l)
        if (!checkLaunch(segment.firstLaunch + l, uint32_t(s),
                         l + 1 == segment.numLaunches))
          return fail("launch", segment.firstLaunch + l, "is malformed");
    }
    return true;
  }

  bool checkLaunch(size_t index, uint32_t segment, bool last) const {
    const Launch &launch = plan.launchTable[index];
    if (launch.kind > LaunchKind::BindSymbols || !isString(launch.kernel) ||
        !isString(launch.location) || !isExprOrNone(launch.flops) ||
        !isExprOrNone(launch.bytes) ||
        !isRun(launch.views, launch.numViews, plan.viewTable.size()) ||
        !checkScratch(launch, segment) || !checkGrid(launch, segment) ||
        !checkVariants(launch, segment))
      return false;
    for (uint32_t view : plan.run(launch.views, launch.numViews))
      if (!viewKnown(plan.viewTable[view], segment))
        return false;
    for (ExprId id : {launch.flops, launch.bytes})
      if (id != none && !known(id, segment))
        return false;
    if (launch.kind == LaunchKind::BindSymbols)
      return last && segment + 1 < numSegments() && launch.numViews == 1 &&
             isIntegral(plan.viewTable[plan.run(launch.views, 1)[0]].dtype);
    if (!isRun(launch.params, launch.numParams, plan.exprTable.size()))
      return false;
    for (ExprId id : plan.run(launch.params, launch.numParams))
      if (!known(id, segment))
        return false;
    if (launch.kind == LaunchKind::WriteExprs)
      return launch.numViews == 1 &&
             plan.viewTable[plan.run(launch.views, 1)[0]].dtype == DType::I64;
    return launch.unit < plan.head->numUnits;
  }

  /// Of a launch or a variant.
  template <class Record>
  bool checkGrid(const Record &launch, uint32_t segment) const {
    if (launch.threads == 0)
      return true;
    for (ExprId id : launch.grid)
      if (!known(id, segment))
        return false;
    return known(launch.sharedBytes, segment) && launch.threads <= 1024;
  }

  bool checkVariants(const Launch &launch, uint32_t segment) const {
    if (!inRange(launch.firstVariant, launch.numVariants,
                 plan.variantTable.size()))
      return false;
    for (const Variant &variant : plan.variantsOf(launch)) {
      if (variant.unit >= plan.head->numUnits || !isString(variant.kernel) ||
          !known(variant.when, segment) || variant.threads == 0 ||
          !checkGrid(variant, segment) || variant.numMaps > maxTensorMaps ||
          !inRange(variant.firstMap, variant.numMaps, plan.mapTable.size()))
        return false;
      for (const TensorMap &map : plan.mapsOf(variant))
        if (map.view >= launch.numViews ||
            plan.viewTable[plan.run(launch.views, launch.numViews)[map.view]]
                    .rank < 2)
          return false;
    }
    return true;
  }

  bool checkScratch(const Launch &launch, uint32_t segment) const {
    if (launch.scratchBytes == none || launch.scratchBuffer == none)
      return launch.scratchBytes == launch.scratchBuffer;
    return known(launch.scratchBytes, segment) &&
           launch.scratchBuffer < plan.bufferTable.size() &&
           plan.bufferTable[launch.scratchBuffer].kind == BufferKind::Arena &&
           plan.bufferTable[launch.scratchBuffer].segment <= segment;
  }

  static bool isIntegral(DType type) {
    return type == DType::I64 || type == DType::I32;
  }

  bool checkRest() {
    for (size_t i = 0; i < plan.checkTable.size(); ++i) {
      const Check &check = plan.checkTable[i];
      if (!isExpr(check.a) || !isExpr(check.b) || !isString(check.why))
        return fail("check", i, "is malformed");
    }
    for (size_t i = 0; i < plan.weightTable.size(); ++i) {
      const Weight &weight = plan.weightTable[i];
      if (!isString(weight.name) || !isString(weight.layout) ||
          !isDType(weight.dtype) ||
          !inRange(weight.offset, weight.bytes, plan.head->weightBytes))
        return fail("weight", i, "is malformed");
    }
    return checkBound();
  }

  /// Each symbol comes from data, from the shape of an input or is chosen.
  bool checkBound() {
    std::vector<bool> bound(plan.symbolTable.size());
    plan.sources = symbolSources(plan);
    for (const SymbolSource &source : plan.sources)
      bound[source.symbol] = true;
    for (size_t i = 0; i < bound.size(); ++i) {
      // What a session chooses has its bound from a shape.
      uint32_t most = plan.symbolTable[i].most;
      bool chosen = most != none && bound[most] && !bound[i];
      if (most != none ? !chosen || definedIn[i] != 0
                       : !bound[i] && definedIn[i] == 0)
        return fail("symbol", i, "is never given a value");
    }
    return true;
  }

  Bytes bytes;
  Plan &plan;
  std::string why;
  std::vector<uint32_t> definedIn;
};

const State *Plan::stateOfInput(size_t index) const {
  for (const State &state : stateTable)
    if (state.input == index)
      return &state;
  return nullptr;
}

const State *Plan::stateOfOutput(size_t index) const {
  for (const State &state : stateTable)
    if (state.output == index)
      return &state;
  return nullptr;
}

unsigned arity(ExprOp op) {
  return op == ExprOp::Constant || op == ExprOp::Symbol ? 0 : 2;
}

uint64_t planChecksum(Bytes plan) {
  // The header with the checksum as zero, then the rest.
  uint8_t head[sizeof(PlanHeader)];
  std::memcpy(head, plan.data(), sizeof(head));
  std::memset(head + offsetof(PlanHeader, planChecksum), 0, sizeof(uint64_t));
  return checksum(plan.subspan(sizeof(head)), checksum(head));
}

Result<Plan> Plan::load(Bytes bytes) {
  if (reinterpret_cast<uintptr_t>(bytes.data()) % alignof(PlanHeader) != 0)
    return TN_ERROR("damaged plan: not aligned");
  Plan plan;
  Status status = PlanChecker(bytes, plan).run();
  if (!status.ok())
    return status;
  return plan;
}

} // namespace tenon::rt
