//===- Lowering.cpp - the state of turning a graph into launches ---------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/select/Lowering.h"
#include "codegen/Codegen.h"
#include "codegen/kernels/cpu/codes_pack.h"
#include "codegen/select/FewRows.h"
#include "codegen/select/JoinParts.h"
#include "codegen/select/Padding.h"
#include "codegen/select/ShareWeights.h"
#include "codegen/select/States.h"
#include "ir/support/Diag.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

namespace tenon::codegen {

using kernel::BufferKind;

namespace {

/// The symbol that an input's size \p dim tells once those in \p known are: the
/// only other one, in which \p dim is linear. As runtime/Sources.h has it.
std::optional<llvm::StringRef> symbolToldBy(Dim dim,
                                            const llvm::StringSet<> &known) {
  llvm::SmallVector<llvm::StringRef, 2> unknown;
  dim.collectSymbols([&](llvm::StringRef name) {
    if (!known.contains(name))
      unknown.push_back(name);
  });
  if (unknown.size() != 1)
    return std::nullopt;
  for (const Dim::Term &term : dim.terms()) {
    unsigned factors = 0;
    for (const Dim::Atom *atom : term.atoms) {
      bool within = false; // a function
      if (atom->symbol)
        factors += *atom->symbol == unknown[0];
      else
        for (Dim part : {atom->lhs(), atom->rhs()})
          part.collectSymbols(
              [&](llvm::StringRef name) { within |= name == unknown[0]; });
      if (within)
        return std::nullopt;
    }
    if (factors > 1)
      return std::nullopt;
  }
  return unknown[0];
}

/// The symbols that the shapes of the function's inputs tell.
llvm::StringSet<> symbolsOfInputs(const ir::Func &func) {
  llvm::StringSet<> known;
  for (bool progress = true; progress;) {
    progress = false;
    for (unsigned i = 0; i < func.body.numArguments(); ++i)
      for (Dim dim : func.body.argument(i)->shape())
        if (std::optional<llvm::StringRef> name = symbolToldBy(dim, known))
          progress |= known.insert(*name).second;
  }
  return known;
}

} // namespace

llvm::Error atNode(const ir::Op &op, llvm::Error error) {
  std::string where = llvm::formatv("node '{0}' ({1}): ", op.loc.name(),
                                    ir::opDef(op).mnemonic);
  return withPrefix(std::move(error), where);
}

llvm::Error unsupportedType(const ir::Op &op, ir::ElementType element,
                            llvm::StringRef supported) {
  return userError("no kernel of {0} for element type {1}; there are {2}",
                   ir::opDef(op).mnemonic, ir::mnemonic(element), supported);
}

ir::ElementType movedAs(ir::ElementType element) {
  switch (ir::bitWidth(element)) {
  case 64:
    return ir::ElementType::I64;
  case 32:
    return ir::ElementType::F32; // copies of f32 have vectors
  case 16:
    return ir::ElementType::I16;
  default:
    return ir::ElementType::U8;
  }
}

Dim byteCount(ir::ElementType element, Dim count) {
  unsigned bits = ir::bitWidth(element);
  if (bits % 8 == 0)
    return count * Dim(bits / 8);
  return Dim::ceilDiv(count * Dim(bits), 8);
}

bool satisfies(const View &view, Strides strides) {
  if (strides == Strides::Any)
    return true;
  if (strides == Strides::Contiguous)
    return isContiguous(view);
  return view.rank() == 0 || view.strides.back().isConstant(1) ||
         view.shape.back().isConstant(1);
}

Lowering::Lowering(const ir::Module &module, const ir::Func &func,
                   const TargetOptions &options, LastRows last)
    : module(module), func(func), options(options), last(std::move(last)) {
  for (auto add :
       {addContractions, addAttention, addNorms, addLoops, addViews,
        addMovement, addIndexing, addReductions, addWindows, addShapes})
    add(table);
}

//===----------------------------------------------------------------------===//
// The whole function
//===----------------------------------------------------------------------===//

llvm::Error Lowering::prepare() {
  program.name = func.name;
  program.padding = paddingAllowed(func);
  if (options.maxContext > 0) {
    llvm::Expected<std::vector<kernel::State>> states =
        findStates(module, func, options.maxContext);
    if (!states)
      return states.takeError();
    program.states = std::move(*states);
  }
  llvm::DenseMap<unsigned, unsigned> stateOfInput;
  for (const auto &[i, state] : llvm::enumerate(program.states)) {
    stateOfInput[state.input] = i;
    stateOfOutput[state.output] = i;
  }
  for (unsigned i = 0; i < func.body.numArguments(); ++i) {
    const ir::Value *argument = func.body.argument(i);
    program.inputs.push_back({func.inputs[i].name, argument->type});
    if (auto state = stateOfInput.find(i); state != stateOfInput.end())
      define(argument, stateView(state->second, argument->type));
    else
      define(argument, kernel::Program::contiguous(
                           addBuffer(BufferKind::Input, i,
                                     byteCount(argument->element(),
                                               numElements(argument->shape()))),
                           argument->type));
  }
  known = symbolsOfInputs(func);
  for (const ir::Module::Symbol &symbol : module.symbols)
    program.symbols.push_back({symbol.name, symbol.range});
  if (!last.rows.empty()) {
    program.symbols.back().most = last.tokens;
    known.insert(last.rows);
  }
  program.checks = func.constraints;
  const ir::Op *end = func.body.terminator();
  for (unsigned i = 0; i < end->numOperands(); ++i) {
    const ir::TensorType &type = end->operand(i)->type;
    program.outputs.push_back({func.outputs[i].name, type});
    outputBuffers.push_back(
        stateOfOutput.count(i)
            ? kernel::none
            : addBuffer(BufferKind::Output, i,
                        byteCount(type.element, numElements(type.shape))));
  }
  for (const ir::Op &op : func.body) {
    if (std::optional<QuantisedMatrix> matrix = quantised(op))
      absorbed.insert(matrix->steps.begin(), matrix->steps.end());
    if (std::optional<HalfMatrix> matrix =
            isCuda() ? std::nullopt : halfMatrix(op))
      absorbed.insert(matrix->cast);
  }
  for (const ir::Op *step : byteProductSteps(func, isCuda()))
    absorbed.insert(step);
  startSegment();
  for (const auto &[i, state] : llvm::enumerate(program.states))
    if (const ir::Op *pad = padOf(func, state)) {
      // The room behind the past is there already.
      define(pad->result(), stateView(i, pad->result()->type));
      absorbed.insert(pad);
    }
  collectWishes();
  if (isCuda()) {
    absorbCasts();
    isDecoder = findsDecoder();
  }
  return llvm::Error::success();
}

namespace {

/// Kernels step by whole bytes, so elements below a byte are cast and handed
/// on, no more.
llvm::Error checkElements(const ir::Op &op) {
  if (op.kind() == ir::OpKind::Cast || op.kind() == ir::OpKind::Reshape ||
      op.kind() == ir::OpKind::Return)
    return llvm::Error::success();
  for (const ir::Value *value : op.operands())
    if (value && ir::bitWidth(value->element()) < 8)
      return unsupportedType(op, value->element(), "types of at least 8 bits");
  return llvm::Error::success();
}

} // namespace

llvm::Error Lowering::selectOp(const ir::Op &op) {
  if (absorbed.contains(&op))
    return llvm::Error::success();
  if (absorbedCasts.contains(&op)) {
    if (!views.count(op.result()))
      define(op.result(), view(op.operand(0)));
    return llvm::Error::success();
  }
  if (llvm::Error error = checkElements(op))
    return error;
  if (op.kind() == ir::OpKind::Return)
    return lowerReturn(op);
  if (SelectFn select = table[unsigned(op.kind())])
    return select(*this, op);
  return userError("no {0} kernel of this op", targetText(options.target));
}

llvm::Expected<kernel::Program> Lowering::run() {
  if (llvm::Error error = prepare())
    return joinErrors(std::move(errors), std::move(error));
  for (const ir::Op &op : func.body) {
    llvm::Error error = selectOp(op);
    if (!error)
      continue;
    errors = llvm::joinErrors(std::move(errors), atNode(op, std::move(error)));
    // Go on with something of the right type, to report every problem at once.
    for (const ir::Value *value : op.results())
      if (!views.count(value))
        define(value, temporary(value->element(), value->shape()));
  }
  if (errors)
    return std::move(errors);
  program.segments.back().numLaunches =
      program.launches.size() - program.segments.back().firstLaunch;
  if (isCuda()) {
    restrictNorms();
    joinParts(program);
  } else {
    shareWeights(program);
  }
  kernel::dropUnused(program);
  for (const kernel::Symbol &symbol : program.symbols)
    if (!known.contains(symbol.name))
      return userError("the size '{0}' has no value: no input has it as a "
                       "dimension, alone or in a linear formula such as 2 * n; "
                       "name it with --dim",
                       symbol.name);
  return std::move(program);
}

llvm::Error Lowering::lowerReturn(const ir::Op &op) {
  for (unsigned i = 0; i < op.numOperands(); ++i) {
    View to = outputView(i);
    if (!isKnown(to.shape))
      return userError("the size of output '{0}' isn't known when it is "
                       "written",
                       func.outputs[i].name);
    if (view(op.operand(i)) != to)
      copy(op, view(op.operand(i)), to);
  }
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Operands and results
//===----------------------------------------------------------------------===//

View Lowering::view(const ir::Value *value) const {
  auto found = views.find(value);
  assert(found != views.end() && "a value before its definition");
  return found->second;
}

View Lowering::operand(const ir::Op &op, const ir::Value *value,
                       Strides strides) {
  return fit(op, view(value), strides);
}

View Lowering::fit(const ir::Op &op, const View &view, Strides strides) {
  if (satisfies(view, strides))
    return view;
  if (std::optional<View> constant = denseConstant(view))
    return *constant;
  View dense = temporary(view.element, view.shape);
  copy(op, view, dense);
  return dense;
}

View Lowering::broadcast(const View &view, ir::ShapeRef shape) const {
  return broadcastView(view, shape,
                       [&](Dim a, Dim b) { return provedEqual(a, b); });
}

bool Lowering::provedEqual(Dim a, Dim b) const {
  return a == b || llvm::any_of(func.constraints, [&](const auto &c) {
           return (c.a == a && c.b == b) || (c.a == b && c.b == a);
         });
}

ir::ConstantRef Lowering::constantOf(const View &view) const {
  const kernel::Buffer &buffer = program.buffers[view.buffer];
  if (buffer.kind != BufferKind::Weight)
    return nullptr;
  const kernel::Weight &weight = program.weights[buffer.index];
  return weight.layout == kernel::WeightLayout::RowMajor ? weight.value
                                                         : nullptr;
}

View Lowering::weight(ir::ConstantRef value) {
  // One element stands for all of a splat.
  bool splat = value->form() == ir::Constant::Form::Splat;
  ir::TensorType type{value->element(), {}};
  for (int64_t size : value->shape())
    type.shape.push_back(size);
  if (splat && value->numElements() != 0) {
    ir::ConstantRef one =
        ir::Constant::copy(value->element(), {}, value->bytes(), value->name());
    View view = weight(one);
    return broadcastView(view, type.shape, [](Dim, Dim) { return false; });
  }
  kernel::Weight stored;
  stored.value = value;
  std::optional<uint64_t> bytes =
      ir::byteSize(value->element(), value->numElements());
  stored.bytes = bytes ? *bytes : 0;
  return kernel::Program::contiguous(addWeight(std::move(stored)), type);
}

/// A window into a constant, copied now rather than in every run.
std::optional<View> Lowering::denseConstant(const View &view) {
  ir::ConstantRef whole = constantOf(view);
  std::optional<llvm::SmallVector<int64_t>> shape =
      ir::constantShape(view.shape);
  std::optional<llvm::SmallVector<int64_t>> strides =
      ir::constantShape(view.strides);
  std::optional<int64_t> offset = view.offset.constant();
  unsigned bits = ir::bitWidth(view.element);
  if (!whole || !shape || !strides || !offset || bits % 8 != 0)
    return std::nullopt;
  std::vector<uint8_t> from = whole->materialize();
  std::vector<uint8_t> to;
  ir::forEachIndex(*shape, [&](llvm::ArrayRef<int64_t> index) {
    int64_t at = *offset;
    for (const auto &[i, stride] : llvm::zip_equal(index, *strides))
      at += i * stride;
    auto *element = from.data() + at * (bits / 8);
    to.insert(to.end(), element, element + bits / 8);
  });
  return weight(ir::Constant::copy(view.element, *shape, to, whole->name()));
}

View Lowering::packed(const View &view, const kernel::Weight::Matrix &matrix) {
  return packed(constantOf(view), kernel::WeightLayout::Panels16, matrix);
}

View Lowering::packed(ir::ConstantRef value, kernel::WeightLayout layout,
                      const kernel::Weight::Matrix &matrix) {
  kernel::Weight stored;
  stored.value = std::move(value);
  stored.layout = layout;
  stored.matrix = matrix;
  bool codes = layout == kernel::WeightLayout::Panels16Codes;
  int64_t panels = matrix.batch * llvm::divideCeil(matrix.n, tn::panel_columns);
  int64_t elements =
      panels *
      (codes ? tn::panel_bytes(matrix.k, ir::bitWidth(stored.value->element()))
             : matrix.k * tn::panel_columns);
  ir::ElementType element =
      codes ? ir::ElementType::U8 : stored.value->element();
  stored.bytes = elements * (ir::bitWidth(element) / 8);
  return kernel::Program::contiguous(addWeight(std::move(stored)),
                                     {element, {Dim(elements)}});
}

unsigned Lowering::addWeight(kernel::Weight weight) {
  const kernel::Weight::Matrix &m = weight.matrix;
  std::string key = llvm::formatv(
      "{0} {1} {2} {3} {4} {5} {6} {7}", kernel::layoutName(weight.layout),
      m.batch, m.k, m.n, m.offset, m.batchStride, m.rowStride, m.columnStride);
  // Small constants are the same if their contents are; of big ones it is
  // enough to see one object as one.
  if (weight.bytes <= 4096)
    key += llvm::formatv("{0:x} {1}", weight.value->contentHash(),
                         ir::mnemonic(weight.value->element()));
  const ir::Constant *object =
      weight.bytes <= 4096 ? nullptr : weight.value.get();
  auto [entry, isNew] = weightBuffers.try_emplace({object, key}, 0);
  if (!isNew)
    return entry->second;
  unsigned buffer = addBuffer(BufferKind::Weight, program.weights.size(),
                              int64_t(weight.bytes));
  program.weights.push_back(std::move(weight));
  return entry->second = buffer;
}

namespace {

/// Rows that are a whole number of pages apart all fall into one set of the L1
/// cache, and a matmul reads a line of a dozen rows of its left operand at a
/// time. Values that only such reads want are kept a line further apart.
bool wantsRowsApart(const ir::Value *value) {
  constexpr int64_t page = 4096;
  if (value->rank() < 2 || value->element() != ir::ElementType::F32)
    return false;
  std::optional<int64_t> columns = value->shape().back().constant();
  return columns && *columns > 0 && *columns % (page / 4) == 0 &&
         !value->uses().empty() &&
         llvm::all_of(value->uses(), [](const ir::Use &use) {
           return use.op->kind() == ir::OpKind::MatMul && use.index == 0;
         });
}

} // namespace

View Lowering::result(const ir::Value *value, Strides strides) {
  if (const ir::Value *stored = storedAs.lookup(value)) {
    View chosen = result(stored, strides);
    define(value, chosen);
    return chosen;
  }
  std::optional<View> place = granted(value);
  View chosen;
  if (place && satisfies(*place, strides))
    chosen = *place;
  else if (!isCuda() && strides != Strides::Contiguous && wantsRowsApart(value))
    chosen = rowsApart(value->element(), value->shape());
  else
    chosen = temporary(value->element(), value->shape());
  define(value, chosen);
  return chosen;
}

View Lowering::temporary(ir::ElementType element, ir::ShapeRef shape) {
  unsigned buffer = addBuffer(BufferKind::Arena, 0,
                              byteCount(element, ir::numElements(shape)));
  return kernel::Program::contiguous(
      buffer, {element, ir::Shape(shape.begin(), shape.end())});
}

void Lowering::define(const ir::Value *value, View view) {
  views[value] = std::move(view);
}

unsigned Lowering::addBuffer(BufferKind kind, unsigned index, Dim bytes) {
  kernel::Buffer buffer;
  buffer.kind = kind;
  buffer.index = index;
  buffer.bytes = bytes;
  buffer.segment = program.segments.empty() ? 0 : program.segments.size() - 1;
  program.buffers.push_back(buffer);
  return program.buffers.size() - 1;
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

unsigned Lowering::addUnit(kernel::Unit unit) {
  std::string text;
  llvm::raw_string_ostream os(text);
  kernel::print(unit, os);
  auto [entry, isNew] = unitByText.try_emplace(text, program.units.size());
  if (isNew)
    program.units.push_back(std::move(unit));
  return entry->second;
}

namespace {

/// Bytes that a view touches at least: broadcast dimensions count once.
Dim touchedBytes(const View &view) {
  Dim count = 1;
  for (unsigned i = 0; i < view.rank(); ++i)
    if (!view.strides[i].isConstant(0))
      count = count * view.shape[i];
  return byteCount(view.element, count);
}

} // namespace

void Lowering::launch(const ir::Op &op, LaunchSpec spec) {
  if (condition.isConstant(0))
    return;
  if (isCuda())
    placeOnGrid(spec);
  kernel::Launch launch;
  launch.geometry = spec.geometry;
  for (VariantSpec &variant : spec.variants)
    launch.variants.push_back(
        {addUnit({variant.kernel.str(), std::move(variant.config.members),
                  spec.functors}),
         variant.geometry, variant.when, variant.arch,
         std::move(variant.maps)});
  launch.unit = addUnit({spec.kernel.str(), std::move(spec.config.members),
                         std::move(spec.functors)});
  launch.numResults = spec.results.size();
  launch.views = std::move(spec.operands);
  llvm::append_range(launch.views, spec.results);
  launch.params = std::move(spec.params);
  launch.scratchBytes = spec.scratchBytes;
  launch.overlays = std::move(spec.overlays);
  launch.flops = spec.flops;
  for (const View &view : launch.views)
    launch.bytes = launch.bytes + touchedBytes(view);
  if (spec.bytes)
    launch.bytes = *spec.bytes;
  restrict(launch, condition);
  launch.loc = op.loc;
  program.launches.push_back(std::move(launch));
}

void Lowering::writeDims(const ir::Op &op, llvm::ArrayRef<Dim> values,
                         const View &to) {
  if (isCuda()) {
    LaunchSpec spec;
    spec.kernel = "write_dims";
    spec.results = {to};
    spec.params.assign(values.begin(), values.end());
    return launch(op, std::move(spec));
  }
  kernel::Launch launch;
  launch.kind = kernel::LaunchKind::WriteDims;
  launch.views = {to};
  launch.numResults = 1;
  launch.params.assign(values.begin(), values.end());
  launch.loc = op.loc;
  program.launches.push_back(std::move(launch));
}

void Lowering::bindSymbols(const ir::Op &op, const View &from,
                           llvm::ArrayRef<Dim> symbols) {
  kernel::Launch launch;
  launch.kind = kernel::LaunchKind::BindSymbols;
  launch.views = {from};
  for (Dim dim : symbols) {
    llvm::StringRef name = dim.symbolName().value_or("");
    launch.symbols.push_back(name.str());
    known.insert(name);
    for (kernel::Symbol &symbol : program.symbols)
      if (symbol.name == name)
        symbol.definedBy = program.segments.size() - 1;
  }
  launch.loc = op.loc;
  program.launches.push_back(std::move(launch));
  startSegment();
}

void Lowering::startSegment() {
  if (!program.segments.empty())
    program.segments.back().numLaunches =
        program.launches.size() - program.segments.back().firstLaunch;
  kernel::Segment segment;
  segment.firstLaunch = program.launches.size();
  program.segments.push_back(segment);
}

llvm::Expected<kernel::Program> select(const ir::Module &module,
                                       const ir::Func &func,
                                       const TargetOptions &options) {
  // Names of sizes stay as they are where nothing else changes.
  std::unique_ptr<ir::Module> narrowed = module.clone();
  size_t number = 0;
  while (module.funcs[number].get() != &func)
    ++number;
  ir::Func &copy = *narrowed->funcs[number];
  std::optional<LastRows> last =
      narrowLogits(*narrowed, copy, options.lastLogitsOnly);
  if (!last && options.lastLogitsOnly)
    return userError("--last-logits-only: the model has no output 'logits' "
                     "[batch, n, vocabulary] for an input 'input_ids' "
                     "[batch, n]");
  return Lowering(*narrowed, copy, options, last.value_or(LastRows())).run();
}

llvm::Expected<kernel::Program> lower(const ir::Module &module,
                                      const ir::Func &func,
                                      const TargetOptions &options) {
  llvm::Expected<kernel::Program> program = select(module, func, options);
  if (!program)
    return program.takeError();
  plan(*program);
  if (llvm::Error error = kernel::verify(*program))
    return error;
  return program;
}

} // namespace tenon::codegen
