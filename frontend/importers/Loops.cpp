//===- Loops.cpp - importers of Loop and Scan -----------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontend/Emitter.h"
#include "frontend/NodeView.h"
#include "frontend/OnnxOps.h"
#include "frontend/importers/Branches.h"
#include "onnx-ml.pb.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;
using namespace tenon::ir;

/// \file
/// Loops are unrolled: their iterations must be known when compiling. An
/// iteration that only data decides about runs all the same, and what it gives
/// is taken or not. The importer's budget of nodes bounds the result.

namespace tenon::frontend {

//===----------------------------------------------------------------------===//
// Loop
//===----------------------------------------------------------------------===//

namespace {

/// A condition that data decides may stop after so many iterations at most.
constexpr int64_t undecidedLimit = 1024;

class LoopImporter {
public:
  LoopImporter(NodeView &node, Emitter &emit, const onnx::GraphProto &body)
      : node(node), emit(emit), body(body),
        carried(node.allInputs().drop_front(
            std::min<size_t>(2, node.numInputs()))) {}
  Value *run();

private:
  bool begin();
  bool iterate(int64_t i);
  void decide(Value *condition);
  Value *scanned(unsigned number);

  NodeView &node;
  Emitter &emit;
  const onnx::GraphProto &body;
  Values carried;
  std::vector<Values> scans; ///< by output, then by iteration
  int64_t trips = 0;
  bool stopped = false;
  /// Whether this iteration takes place, where data decides; else null.
  Value *active = nullptr;
  Value *count = nullptr; ///< i64: how many took place, once data decides
};

/// Notes the condition of the next iteration.
void LoopImporter::decide(Value *condition) {
  if (emit.failed())
    return;
  if (std::optional<double> known = emit.constantScalar(condition)) {
    stopped |= *known == 0;
    return;
  }
  condition = emit.reshape(condition, {});
  active = active ? emit.op(OpKind::And, {active, condition}) : condition;
}

bool LoopImporter::begin() {
  Value *limit = node.input(0), *condition = node.input(1);
  trips = INT64_MAX;
  if (limit) {
    std::optional<Dim> known = emit.shapeValues.scalarOf(limit);
    std::optional<double> number = emit.constantScalar(limit);
    if (known && known->constant())
      trips = *known->constant();
    else if (number)
      trips = int64_t(*number);
    else
      return node.fail("its trip count depends on data; it must be known when "
                       "compiling");
  }
  if (condition)
    decide(condition);
  if (size_t(body.output_size()) < 1 + carried.size()) {
    node.fail("its body has {0} outputs; expected a condition and {1} values",
              body.output_size(), carried.size());
    return false;
  }
  scans.resize(body.output_size() - 1 - carried.size());
  return !emit.failed();
}

/// Gives whether there may be a next iteration.
bool LoopImporter::iterate(int64_t i) {
  if (active && trips > undecidedLimit) {
    node.fail("its condition depends on data and its trip count is not at most "
              "{0}",
              undecidedLimit);
    return false;
  }
  if (i >= unrollLimit) {
    node.fail("it runs more than {0} times, which is not supported",
              unrollLimit);
    return false;
  }
  Values inputs = {emit.dimScalar(Dim(i)),
                   active ? active : emit.scalar(ElementType::Bool, 1)};
  inputs.append(carried);
  Op *last = lastOf(emit.func.body);
  emit.branches += active != nullptr;
  Values outputs = emit.services.importSubgraph(body, inputs);
  emit.branches -= active != nullptr;
  if (emit.failed())
    return false;
  if (active) {
    guardIndices(emit, last, active);
    if (hasSideEffectAfter(emit.func.body, last)) {
      node.fail(
          "its condition depends on data and its body computes sizes from "
          "data, which is not supported");
      return false;
    }
    Value *one = emit.cast(active, ElementType::I64);
    count = count ? emit.add(count, one) : one;
  }
  for (auto [old, value] :
       llvm::zip(carried, ArrayRef(outputs).slice(1, carried.size()))) {
    if (active && old->type != value->type) {
      node.fail(
          "its condition depends on data and it carries {0} and then {1}; "
          "expected one type",
          old->type, value->type);
      return false;
    }
    old = active && old != value ? emit.where(active, value, old) : value;
  }
  for (auto [list, value] :
       llvm::zip(scans, ArrayRef(outputs).drop_front(1 + carried.size())))
    list.push_back(value);
  // What took place before data decided counts, too.
  Value *wasActive = active;
  decide(outputs[0]);
  if (!emit.failed() && active && !wasActive)
    count = emit.dimScalar(Dim(i + 1));
  return !emit.failed();
}

/// The results of all iterations, one after another.
Value *LoopImporter::scanned(unsigned number) {
  Values &list = scans[number];
  for (Value *value : list)
    if (value->type != list.front()->type)
      return node.fail("its scan output {0} is {1} and then {2}; expected one "
                       "type",
                       number, list.front()->type, value->type);
  Value *all = emit.stack(list, 0);
  if (!count || emit.failed())
    return all;
  return emit.slice(all, 0, Dim(0), emit.size(count, "iterations"));
}

Value *LoopImporter::run() {
  if (!begin())
    return nullptr;
  int64_t done = 0;
  while (done < trips && !stopped)
    if (!iterate(done++))
      return nullptr;
  Values results = carried;
  if (done == 0 && !scans.empty()) {
    // Nothing to stack; what the body would give tells the type.
    Values kept = carried;
    if (!iterate(0))
      return nullptr;
    results = kept;
    for (Values &list : scans)
      results.push_back(emit.slice(emit.stack(list, 0), 0, Dim(0), Dim(0)));
  } else {
    for (unsigned i = 0; i < scans.size(); ++i)
      results.push_back(scanned(i));
  }
  if (emit.failed())
    return nullptr;
  return giveOutputs(node, results);
}

} // namespace

Value *importLoop(NodeView &node, Emitter &emit) {
  const onnx::GraphProto *body = node.requireGraph("body");
  if (emit.failed())
    return nullptr;
  return LoopImporter(node, emit, *body).run();
}

//===----------------------------------------------------------------------===//
// Scan
//===----------------------------------------------------------------------===//

namespace {

/// How the elements of an input are taken, or those of an output put.
struct Track {
  int64_t axis = 0;
  bool reverse = false;
};

std::vector<Track> tracks(NodeView &node, StringRef axes, StringRef directions,
                          size_t count) {
  std::vector<Track> result(count);
  auto axisOf = node.version() >= 9 ? node.findInts(axes) : std::nullopt;
  auto directionOf = node.findInts(directions);
  if ((axisOf && axisOf->size() != count) ||
      (directionOf && directionOf->size() != count)) {
    node.fail("'{0}' and '{1}' must have {2} entries", axes, directions, count);
    return result;
  }
  for (size_t i = 0; i < count; ++i) {
    result[i].axis = axisOf ? (*axisOf)[i] : 0;
    result[i].reverse = directionOf && (*directionOf)[i] != 0;
  }
  return result;
}

struct ScanForm {
  const onnx::GraphProto *body;
  std::vector<Track> ins, outs;
  size_t numStates;
};

/// One walk along the scanned axes. \p inputs are the states and what is
/// scanned; gives the last states and what the body gave.
Values scanOnce(NodeView &node, Emitter &emit, const ScanForm &form,
                ArrayRef<Value *> inputs) {
  Values states(inputs.take_front(form.numStates));
  ArrayRef<Value *> scanned = inputs.drop_front(form.numStates);
  std::optional<int64_t> length;
  SmallVector<int64_t, 4> axes;
  for (auto [track, value] : llvm::zip(form.ins, scanned)) {
    axes.push_back(node.checkedAxis(track.axis, value->rank()));
    if (emit.failed())
      return {};
    std::optional<int64_t> size = value->shape()[axes.back()].constant();
    if (!size || (length && *length != *size)) {
      node.fail(
          "it scans {0} along axis {1}; expected one size for all inputs, "
          "known when compiling",
          value->type, axes.back());
      return {};
    }
    length = size;
  }
  if (length.value_or(0) > unrollLimit) {
    node.fail("it scans {0} elements; at most {1} are supported", *length,
              unrollLimit);
    return {};
  }
  std::vector<Values> outputs(form.outs.size());
  for (int64_t step = 0; step < length.value_or(0); ++step) {
    Values bodyInputs = states;
    for (auto [i, value] : llvm::enumerate(scanned))
      bodyInputs.push_back(
          emit.element(value, axes[i],
                       Dim(form.ins[i].reverse ? *length - 1 - step : step)));
    Values results = emit.services.importSubgraph(*form.body, bodyInputs);
    if (emit.failed())
      return {};
    states.assign(results.begin(), results.begin() + form.numStates);
    for (auto [list, value] :
         llvm::zip(outputs, ArrayRef(results).drop_front(form.numStates)))
      list.push_back(value);
  }
  Values all = states;
  for (auto [i, list] : llvm::enumerate(outputs)) {
    if (list.empty()) {
      node.fail("it scans nothing, so the shape of its outputs is not known");
      return {};
    }
    if (form.outs[i].reverse)
      std::reverse(list.begin(), list.end());
    all.push_back(emit.stack(
        list, node.checkedAxis(form.outs[i].axis, list.front()->rank() + 1)));
  }
  return all;
}

/// Opset 8: all inputs have a batch dimension in front.
Values scanBatches(NodeView &node, Emitter &emit, const ScanForm &form,
                   ArrayRef<Value *> inputs) {
  std::optional<int64_t> batch = inputs.empty() || inputs.front()->rank() == 0
                                     ? std::nullopt
                                     : inputs.front()->shape()[0].constant();
  if (!batch || *batch < 1 || *batch > unrollLimit) {
    node.fail("the size of its batch must be known when compiling, and at most "
              "{0}",
              unrollLimit);
    return {};
  }
  std::vector<Values> results;
  for (int64_t i = 0; i < *batch; ++i) {
    Values ofOne;
    for (Value *value : inputs)
      ofOne.push_back(emit.element(value, 0, Dim(i)));
    results.push_back(scanOnce(node, emit, form, ofOne));
    if (emit.failed())
      return {};
  }
  Values all;
  for (size_t i = 0; i < results.front().size(); ++i) {
    Values parts;
    for (Values &ofOne : results)
      parts.push_back(ofOne[i]);
    all.push_back(emit.stack(parts, 0));
  }
  return all;
}

Value *scan(NodeView &node, Emitter &emit, ArrayRef<Value *> inputs,
            bool batched) {
  ScanForm form;
  form.body = node.requireGraph("body");
  int64_t count = node.requireInt("num_scan_inputs");
  if (emit.failed())
    return nullptr;
  if (count < 1 || size_t(count) > inputs.size())
    return node.fail("attribute 'num_scan_inputs' is {0}; it has {1} inputs",
                     count, inputs.size());
  form.numStates = inputs.size() - count;
  if (size_t(form.body->output_size()) < form.numStates)
    return node.fail("its body has {0} outputs; expected at least {1}",
                     form.body->output_size(), form.numStates);
  size_t numOuts = form.body->output_size() - form.numStates;
  form.ins = tracks(node, "scan_input_axes",
                    batched ? "directions" : "scan_input_directions", count);
  form.outs =
      tracks(node, "scan_output_axes", "scan_output_directions", numOuts);
  if (emit.failed())
    return nullptr;
  Values results = batched ? scanBatches(node, emit, form, inputs)
                           : scanOnce(node, emit, form, inputs);
  if (emit.failed())
    return nullptr;
  return giveOutputs(node, results);
}

} // namespace

Value *importScan8(NodeView &node, Emitter &emit) {
  if (node.input(0))
    return node.fail("the input 'sequence_lens' is not supported");
  return scan(node, emit, node.allInputs().drop_front(), /*batched=*/true);
}

Value *importScan(NodeView &node, Emitter &emit) {
  return scan(node, emit, node.allInputs(), /*batched=*/false);
}

} // namespace tenon::frontend
