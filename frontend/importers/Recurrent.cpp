//===- Recurrent.cpp - importers of RNN, GRU and LSTM ---------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontend/Emitter.h"
#include "frontend/NodeView.h"
#include "frontend/OnnxOps.h"
#include "frontend/importers/Branches.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <functional>

using namespace llvm;
using namespace tenon::ir;

/// \file
/// Recurrent nets are unrolled: the number of steps must be known when
/// compiling. What does not depend on the state is one product for all steps.

namespace tenon::frontend {

namespace {

//===----------------------------------------------------------------------===//
// Activations
//===----------------------------------------------------------------------===//

struct Activation {
  StringRef name;
  double alpha = 0, beta = 0;
};

struct KnownActivation {
  StringLiteral name;
  /// How many numbers it takes, and ONNX's defaults for them.
  unsigned count;
  double alpha, beta;
  Value *(*apply)(Emitter &emit, Value *x, const Activation &self);
};

template <OpKind Kind>
Value *plain(Emitter &emit, Value *x, const Activation &) {
  return emit.op(Kind, {x});
}

template <OpKind Kind>
Value *withAlpha(Emitter &emit, Value *x, const Activation &self) {
  AlphaAttrs attrs;
  attrs.alpha = self.alpha;
  return emit.op(Kind, {x}, attrs);
}

Value *affine(Emitter &emit, Value *x, const Activation &self) {
  return emit.addScalar(emit.mulScalar(x, self.alpha), self.beta);
}

Value *scaledTanh(Emitter &emit, Value *x, const Activation &self) {
  return emit.mulScalar(emit.op(OpKind::Tanh, {emit.mulScalar(x, self.beta)}),
                        self.alpha);
}

Value *hardSigmoid(Emitter &emit, Value *x, const Activation &self) {
  AlphaBetaAttrs attrs;
  attrs.alpha = self.alpha;
  attrs.beta = self.beta;
  return emit.op(OpKind::HardSigmoid, {x}, attrs);
}

constexpr KnownActivation knownActivations[] = {
    {"sigmoid", 0, 0, 0, plain<OpKind::Sigmoid>},
    {"tanh", 0, 0, 0, plain<OpKind::Tanh>},
    {"relu", 0, 0, 0, plain<OpKind::Relu>},
    {"softsign", 0, 0, 0, plain<OpKind::Softsign>},
    {"softplus", 0, 0, 0, plain<OpKind::Softplus>},
    {"affine", 2, 1, 0, affine},
    {"leakyrelu", 1, 0.01f, 0, withAlpha<OpKind::LeakyRelu>},
    {"thresholdedrelu", 1, 1, 0, withAlpha<OpKind::ThresholdedRelu>},
    {"elu", 1, 1, 0, withAlpha<OpKind::Elu>},
    {"scaledtanh", 2, 1, 1, scaledTanh},
    {"hardsigmoid", 2, 0.2f, 0.5f, hardSigmoid},
};

//===----------------------------------------------------------------------===//
// What the three have in common
//===----------------------------------------------------------------------===//

/// The state between steps, each [batch, hidden]; RNN and GRU have no cell.
struct State {
  Value *hidden = nullptr, *cell = nullptr;
};

/// The weights of one direction.
struct Direction {
  Value *r;             ///< [hidden, gates * hidden]
  Value *recurrentBias; ///< [gates * hidden], or null
  Value *inputs;        ///< x W^T + bias for all steps: [steps, batch, ...]
  Value *peepholes;     ///< [3 * hidden], or null
  ArrayRef<Activation> functions;
};

struct Kind {
  unsigned gates, activations;
  ArrayRef<StringLiteral> defaults;
  bool hasCell;
  /// One step: gates [batch, gates * hidden] from the input, and the state.
  State (*step)(class Recurrent &self, const Direction &, Value *gates,
                State state);
};

class Recurrent {
public:
  Recurrent(NodeView &node, Emitter &emit, const Kind &kind)
      : node(node), emit(emit), kind(kind) {}
  Value *run();

  Value *activate(const Direction &direction, unsigned number, Value *x);
  /// Gate \p number of what lies beside each other in the last dimension.
  Value *gate(Value *x, unsigned number, unsigned count = 1) {
    return emit.slice(x, int64_t(x->rank()) - 1, hidden * Dim(number),
                      hidden * Dim(count));
  }

  NodeView &node;
  Emitter &emit;
  const Kind &kind;
  Dim hidden;
  bool linearBeforeReset = false, inputForget = false;

private:
  bool readShapes();
  bool readActivations();
  Value *ofDirection(unsigned input, unsigned direction);
  Value *start(unsigned input, unsigned direction);
  Direction direction(unsigned number);
  void walk(unsigned number, bool reverse);

  Value *x = nullptr, *lengths = nullptr;
  int64_t steps = 0;
  Dim batch;
  unsigned numDirections = 1;
  bool batchFirst = false;
  std::optional<double> clip;
  std::vector<Activation> functions;
  Values all, lastHidden, lastCell;
};

Value *Recurrent::activate(const Direction &direction, unsigned number,
                           Value *x) {
  const Activation &function = direction.functions[number];
  if (clip && !emit.failed()) {
    x = emit.op(OpKind::Min, {x, emit.scalar(x->element(), *clip)});
    x = emit.op(OpKind::Max, {x, emit.scalar(x->element(), -*clip)});
  }
  for (const KnownActivation &known : knownActivations)
    if (function.name.equals_insensitive(known.name))
      return known.apply(emit, x, function);
  return nullptr;
}

bool Recurrent::readActivations() {
  auto names = node.findStrings("activations");
  auto alphas = node.findFloats("activation_alpha"),
       betas = node.findFloats("activation_beta");
  unsigned count = kind.activations * numDirections;
  size_t alphaPlace = 0, betaPlace = 0;
  if (names && names->size() != count) {
    node.fail("attribute 'activations' has {0} entries; expected {1}",
              names->size(), count);
    return false;
  }
  for (unsigned i = 0; i < count; ++i) {
    Activation function{names ? (*names)[i]
                              : StringRef(kind.defaults[i % kind.activations])};
    const auto *known = llvm::find_if(knownActivations, [&](const auto &k) {
      return function.name.equals_insensitive(k.name);
    });
    if (known == std::end(knownActivations)) {
      node.fail("the activation '{0}' is not known", function.name);
      return false;
    }
    // The lists are used up in order, by those that take numbers.
    auto next = [](const auto &list, size_t &place, bool takes, double other) {
      return takes && list && place < list->size() ? double((*list)[place++])
                                                   : other;
    };
    function.alpha = next(alphas, alphaPlace, known->count >= 1, known->alpha);
    function.beta = next(betas, betaPlace, known->count >= 2, known->beta);
    functions.push_back(function);
  }
  return !emit.failed();
}

bool Recurrent::readShapes() {
  x = node.input(0);
  Value *w = node.input(1), *r = node.input(2);
  batchFirst = node.version() >= 14 && node.flagAttr("layout", false);
  StringRef way = node.strAttr("direction", "forward");
  if (way != "forward" && way != "reverse" && way != "bidirectional") {
    node.fail("attribute 'direction' is '{0}'; expected forward, reverse or "
              "bidirectional",
              way);
    return false;
  }
  numDirections = way == "bidirectional" ? 2 : 1;
  if (x->rank() != 3 || w->rank() != 3 || r->rank() != 3 ||
      r->shape()[0] != Dim(numDirections) ||
      w->shape()[0] != Dim(numDirections)) {
    node.fail("'X', 'W' and 'R' are {0}, {1} and {2}; expected rank 3 and {3} "
              "directions",
              x->type, w->type, r->type, numDirections);
    return false;
  }
  if (batchFirst)
    x = emit.transpose(x, {1, 0, 2});
  hidden = r->shape()[2];
  if (std::optional<int64_t> size = node.findInt("hidden_size"))
    emit.require(hidden, Dim(*size), "attribute 'hidden_size'");
  if (emit.failed())
    return false;
  batch = x->shape()[1];
  if (!x->shape()[0].constant()) {
    node.fail("its sequence length is {0}; it must be known when compiling "
              "(give it a value with --dim)",
              x->shape()[0]);
    return false;
  }
  steps = *x->shape()[0].constant();
  if (steps < 1 || steps > unrollLimit) {
    node.fail("its sequence length is {0}; expected 1 to {1}", steps,
              unrollLimit);
    return false;
  }
  lengths = node.input(4);
  clip = node.findFloat("clip");
  return readActivations();
}

/// A weight of one direction; null where the input is left out.
Value *Recurrent::ofDirection(unsigned input, unsigned direction) {
  Value *value = node.input(input);
  return value ? emit.element(value, 0, Dim(direction)) : nullptr;
}

/// An initial state: [batch, hidden].
Value *Recurrent::start(unsigned input, unsigned direction) {
  if (Value *given = node.input(input))
    return emit.element(given, batchFirst ? 1 : 0, Dim(direction));
  return emit.filled(x->element(), 0, {batch, hidden});
}

Direction Recurrent::direction(unsigned number) {
  Direction result{};
  Value *w = emit.transposeLast(ofDirection(1, number));
  result.r = emit.transposeLast(ofDirection(2, number));
  result.functions =
      ArrayRef(functions).slice(number * kind.activations, kind.activations);
  result.inputs = emit.matmul(x, w);
  if (Value *bias = ofDirection(3, number)) {
    Dim width = hidden * Dim(kind.gates);
    result.inputs = emit.add(result.inputs, emit.slice(bias, 0, Dim(0), width));
    result.recurrentBias = emit.slice(bias, 0, width, width);
  }
  if (kind.hasCell)
    result.peepholes = ofDirection(7, number);
  return result;
}

/// Runs one direction and notes what it gives.
void Recurrent::walk(unsigned number, bool reverse) {
  Direction weights = direction(number);
  State state{start(5, number), kind.hasCell ? start(6, number) : nullptr};
  Values outputs(steps);
  for (int64_t i = 0; i < steps && !emit.failed(); ++i) {
    int64_t at = reverse ? steps - 1 - i : i;
    State next = kind.step(*this, weights,
                           emit.element(weights.inputs, 0, Dim(at)), state);
    outputs[at] = next.hidden;
    if (lengths && !emit.failed()) {
      // Past a sequence's end nothing happens.
      Value *within =
          emit.op(OpKind::Greater,
                  {lengths, emit.scalar(lengths->element(), double(at))});
      within = emit.reshape(within, {batch, Dim(1)});
      outputs[at] =
          emit.where(within, next.hidden, emit.scalar(x->element(), 0));
      next.hidden = emit.where(within, next.hidden, state.hidden);
      if (next.cell)
        next.cell = emit.where(within, next.cell, state.cell);
    }
    state = next;
  }
  all.push_back(emit.stack(outputs, 0));
  lastHidden.push_back(state.hidden);
  lastCell.push_back(state.cell);
}

Value *Recurrent::run() {
  if (!readShapes())
    return nullptr;
  bool reverse = node.strAttr("direction", "forward") == "reverse";
  for (unsigned i = 0; i < numDirections && !emit.failed(); ++i)
    walk(i, reverse || i == 1);
  if (emit.failed())
    return nullptr;
  // [steps, directions, batch, hidden], or the batch first.
  Value *y = emit.stack(all, 1);
  if (batchFirst)
    y = emit.transpose(y, {2, 0, 1, 3});
  if (node.wantsOutput(1))
    node.setOutput(1, emit.stack(lastHidden, batchFirst ? 1 : 0));
  if (node.wantsOutput(2))
    node.setOutput(2, emit.stack(lastCell, batchFirst ? 1 : 0));
  return y;
}

//===----------------------------------------------------------------------===//
// The steps
//===----------------------------------------------------------------------===//

Value *addBias(Emitter &emit, Value *x, Value *bias) {
  return bias ? emit.add(x, bias) : x;
}

/// h = f(x W^T + h R^T + bias)
State rnnStep(Recurrent &self, const Direction &d, Value *gates, State state) {
  Emitter &emit = self.emit;
  Value *recurrent =
      addBias(emit, emit.matmul(state.hidden, d.r), d.recurrentBias);
  return {self.activate(d, 0, emit.add(gates, recurrent)), nullptr};
}

/// z, r = f(..); n = g(..), with the reset before or behind the product;
/// h = (1 - z) * n + z * h
State gruStep(Recurrent &self, const Direction &d, Value *gates, State state) {
  Emitter &emit = self.emit;
  Value *h = state.hidden, *bias = d.recurrentBias;
  auto product = [&](Value *x, unsigned first, unsigned count) {
    return addBias(emit, emit.matmul(x, self.gate(d.r, first, count)),
                   bias ? self.gate(bias, first, count) : nullptr);
  };
  Value *zr =
      self.activate(d, 0, emit.add(self.gate(gates, 0, 2), product(h, 0, 2)));
  if (emit.failed())
    return {};
  Value *z = self.gate(zr, 0), *r = self.gate(zr, 1);
  Value *recurrent = self.linearBeforeReset ? emit.mul(r, product(h, 2, 1))
                                            : product(emit.mul(r, h), 2, 1);
  Value *n = self.activate(d, 1, emit.add(self.gate(gates, 2), recurrent));
  // n + z * (h - n)
  return {emit.add(n, emit.mul(z, emit.sub(h, n))), nullptr};
}

/// c = f * c + i * g; h = o * act(c), gates in the order i, o, f, g.
State lstmStep(Recurrent &self, const Direction &d, Value *gates, State state) {
  Emitter &emit = self.emit;
  Value *sum = emit.add(
      gates, addBias(emit, emit.matmul(state.hidden, d.r), d.recurrentBias));
  if (emit.failed())
    return {};
  auto peek = [&](Value *x, unsigned number, Value *cell) {
    return d.peepholes
               ? emit.add(x, emit.mul(self.gate(d.peepholes, number), cell))
               : x;
  };
  Value *i = self.activate(d, 0, peek(self.gate(sum, 0), 0, state.cell));
  Value *f = self.inputForget
                 ? emit.sub(emit.scalar(sum->element(), 1), i)
                 : self.activate(d, 0, peek(self.gate(sum, 2), 2, state.cell));
  Value *g = self.activate(d, 1, self.gate(sum, 3));
  Value *cell = emit.add(emit.mul(f, state.cell), emit.mul(i, g));
  Value *o = self.activate(d, 0, peek(self.gate(sum, 1), 1, cell));
  return {emit.mul(o, self.activate(d, 2, cell)), cell};
}

} // namespace

Value *importRnn(NodeView &node, Emitter &emit) {
  static constexpr StringLiteral defaults[] = {"Tanh"};
  static constexpr Kind kind = {1, 1, defaults, false, rnnStep};
  return Recurrent(node, emit, kind).run();
}

Value *importGru(NodeView &node, Emitter &emit) {
  static constexpr StringLiteral defaults[] = {"Sigmoid", "Tanh"};
  static constexpr Kind kind = {3, 2, defaults, false, gruStep};
  Recurrent recurrent(node, emit, kind);
  recurrent.linearBeforeReset = node.flagAttr("linear_before_reset", false);
  return recurrent.run();
}

Value *importLstm(NodeView &node, Emitter &emit) {
  static constexpr StringLiteral defaults[] = {"Sigmoid", "Tanh", "Tanh"};
  static constexpr Kind kind = {4, 3, defaults, true, lstmStep};
  Recurrent recurrent(node, emit, kind);
  recurrent.inputForget = node.flagAttr("input_forget", false);
  return recurrent.run();
}

} // namespace tenon::frontend
