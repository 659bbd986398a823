//===- PlanWriter.cpp - a program as the plan an artifact carries -------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/artifact/PlanWriter.h"

#include "codegen/artifact/PlanBuilder.h"
#include "ir/support/Diag.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/MathExtras.h"
#include <unordered_map>

namespace tenon::codegen {

using ir::Dim;
using ir::DimFunc;

namespace {

struct DimHash {
  size_t operator()(Dim dim) const { return hash_value(dim); }
};

class Writer {
public:
  explicit Writer(const kernel::Program &program) : program(program) {}

  llvm::Expected<PlanImage> run(llvm::StringRef manifest) {
    writeSymbols();
    writeBuffers();
    writePorts();
    for (const ir::DimConstraint &check : program.checks)
      builder.checks.push_back(
          {expr(check.a), expr(check.b), builder.string(name(check.loc))});
    for (const kernel::Launch &launch : program.launches)
      writeLaunch(launch);
    for (const kernel::Segment &segment : program.segments)
      builder.segments.push_back({segment.firstLaunch, segment.numLaunches,
                                  expr(segment.arenaBytes), 0});
    writeWeights();
    rt::PlanHeader &header = builder.header;
    header.numUnits = program.units.size();
    header.padding = rt::Padding(program.padding);
    header.weightBytes = image.weightBytes;
    header.peakBytes = costExpr(program.peakBytes);
    header.peakFormula = builder.string(program.peakFormula);
    header.manifest = builder.string(manifest.str());
    if (overflowed)
      return userError("sizes of this model do not fit 64 bits");
    image.bytes = builder.finish();
    return std::move(image);
  }

private:
  static rt::DType dtype(ir::ElementType element) { return rt::DType(element); }

  static std::string name(const ir::Location &loc) {
    return loc.empty() ? "the model" : llvm::join(loc.nodes, ", ");
  }

  void writeSymbols() {
    for (const kernel::Symbol &symbol : program.symbols) {
      uint32_t segment =
          symbol.definedBy == kernel::none ? 0 : symbol.definedBy + 1;
      symbols[symbol.name] = builder.symbol(symbol.name, symbol.range.low,
                                            symbol.range.high, segment);
    }
    for (const kernel::Symbol &symbol : program.symbols)
      if (!symbol.most.empty())
        builder.setMost(symbols.lookup(symbol.name),
                        symbols.lookup(symbol.most));
  }

  static rt::ExprOp exprOp(DimFunc func) {
    switch (func) {
    case DimFunc::FloorDiv:
      return rt::ExprOp::FloorDiv;
    case DimFunc::CeilDiv:
      return rt::ExprOp::CeilDiv;
    case DimFunc::Mod:
      return rt::ExprOp::Mod;
    case DimFunc::Min:
      return rt::ExprOp::Min;
    case DimFunc::Max:
      return rt::ExprOp::Max;
    case DimFunc::Broadcast:
      return rt::ExprOp::Broadcast;
    }
    llvm_unreachable("a function of dimensions");
  }

  rt::ExprId atom(const Dim::Atom &atom) {
    if (!atom.symbol)
      return builder.apply(exprOp(atom.func), expr(atom.lhs()),
                           expr(atom.rhs()));
    auto found = symbols.find(*atom.symbol);
    assert(found != symbols.end() && "a symbol that the program lacks");
    return builder.symbolValue(found->second);
  }

  /// \p dim as an expression; the depth of a Dim is limited.
  rt::ExprId expr(Dim dim) {
    if (dim.isOverflow()) {
      overflowed = true;
      return builder.constant(0);
    }
    auto known = exprs.find(dim);
    if (known != exprs.end())
      return known->second;
    rt::ExprId sum = builder.constant(0);
    for (const Dim::Term &term : dim.terms()) {
      bool subtract = term.coefficient < 0 && term.coefficient != INT64_MIN;
      rt::ExprId product =
          builder.constant(subtract ? -term.coefficient : term.coefficient);
      for (const Dim::Atom *factor : term.atoms)
        product = builder.apply(rt::ExprOp::Mul, product, atom(*factor));
      sum = builder.apply(subtract ? rt::ExprOp::Sub : rt::ExprOp::Add, sum,
                          product);
    }
    exprs.emplace(dim, sum);
    return sum;
  }

  /// For figures that only inform: an overflow means there is none.
  rt::ExprId costExpr(Dim dim) {
    return dim.isOverflow() ? rt::none : expr(dim);
  }

  rt::IndexRun dimRun(llvm::ArrayRef<Dim> dims) {
    std::vector<uint32_t> ids;
    for (Dim dim : dims)
      ids.push_back(expr(dim));
    return builder.run(ids);
  }

  void writeBuffers() {
    inputBuffers.assign(program.inputs.size(), rt::none);
    outputBuffers.assign(program.outputs.size(), rt::none);
    image.weightOffsets = offsets();
    for (const kernel::Buffer &buffer : program.buffers) {
      rt::Buffer out = {};
      out.kind = rt::BufferKind(buffer.kind);
      out.bytes = expr(buffer.bytes);
      out.offset = buffer.index;
      uint32_t number = builder.buffers.size();
      switch (buffer.kind) {
      case kernel::BufferKind::Arena:
        // One that nothing uses has no place.
        if (buffer.slot == kernel::none)
          out.bytes = builder.constant(0);
        out.segment = buffer.segment;
        out.offset = expr(buffer.slot == kernel::none ? Dim(0) : buffer.offset);
        break;
      case kernel::BufferKind::Weight:
        out.bytes = builder.constant(program.weights[buffer.index].bytes);
        out.offset = image.weightOffsets[buffer.index];
        break;
      case kernel::BufferKind::Input:
        inputBuffers[buffer.index] = number;
        break;
      case kernel::BufferKind::Output:
        outputBuffers[buffer.index] = number;
        break;
      case kernel::BufferKind::State:
        writeState(program.states[buffer.index], number);
        out.offset = builder.states.size() - 1;
        break;
      }
      builder.buffers.push_back(out);
    }
  }

  void writeState(const kernel::State &state, uint32_t buffer) {
    inputBuffers[state.input] = outputBuffers[state.output] = buffer;
    stateOfOutput[state.output] = &state;
    builder.states.push_back({state.input, state.output, buffer,
                              uint32_t(state.axis), state.capacity});
  }

  std::vector<uint64_t> offsets() {
    std::vector<uint64_t> out;
    for (const kernel::Weight &weight : program.weights) {
      out.push_back(image.weightBytes);
      image.weightBytes =
          llvm::alignTo(image.weightBytes + weight.bytes, rt::bufferAlignment);
    }
    return out;
  }

  uint32_t view(const kernel::View &view) {
    rt::View out = {
        view.buffer,       dtype(view.element), uint8_t(view.rank()), 0,
        expr(view.offset), dimRun(view.shape),  dimRun(view.strides)};
    auto [found, added] = views.try_emplace(
        std::make_tuple(out.buffer, unsigned(out.dtype), unsigned(out.rank),
                        out.offset, out.shape, out.strides),
        builder.views.size());
    if (added)
      builder.views.push_back(out);
    return found->second;
  }

  /// The buffer of a port; one that nothing uses is made here.
  uint32_t portBuffer(std::vector<uint32_t> &known, unsigned index,
                      rt::BufferKind kind) {
    if (known[index] == rt::none) {
      known[index] = builder.buffers.size();
      builder.buffers.push_back({kind, {}, 0, builder.constant(0), 0, index});
    }
    return known[index];
  }

  rt::Port port(const kernel::Port &port) {
    rt::Port out = {};
    out.name = builder.string(port.name);
    out.dtype = dtype(port.type.element);
    out.rank = port.type.shape.size();
    out.shape = dimRun(port.type.shape);
    return out;
  }

  void writePorts() {
    for (const auto &[i, input] : llvm::enumerate(program.inputs)) {
      rt::Port out = port(input);
      out.target = portBuffer(inputBuffers, i, rt::BufferKind::Input);
      builder.inputs.push_back(out);
    }
    for (const auto &[i, output] : llvm::enumerate(program.outputs)) {
      rt::Port out = port(output);
      uint32_t buffer = portBuffer(outputBuffers, i, rt::BufferKind::Output);
      const kernel::State *state = stateOfOutput.lookup(i);
      out.target =
          view(state ? kernel::Program::window(buffer, output.type, *state)
                     : kernel::Program::contiguous(buffer, output.type));
      builder.outputs.push_back(out);
    }
  }

  template <class Record>
  void writeGeometry(const kernel::Geometry &geometry, Record &out) {
    for (unsigned d = 0; d < 3; ++d)
      out.grid[d] = expr(geometry.grid[d]);
    out.sharedBytes = expr(geometry.sharedBytes);
    out.threads = geometry.threads;
  }

  void writeVariant(const kernel::Variant &variant) {
    rt::Variant out = {};
    out.unit = variant.unit;
    out.kernel = builder.string(program.units[variant.unit].kernel);
    out.when = expr(variant.when);
    out.arch = variant.arch;
    writeGeometry(variant.geometry, out);
    out.firstMap = builder.tensorMaps.size();
    out.numMaps = variant.maps.size();
    for (const kernel::TensorMap &map : variant.maps)
      builder.tensorMaps.push_back(
          {map.view, map.transposed, map.shared, 0, {map.box[0], map.box[1]}});
    builder.variants.push_back(out);
  }

  void writeLaunch(const kernel::Launch &launch) {
    rt::Launch out = {};
    out.unit = launch.unit;
    out.location = builder.string(name(launch.loc));
    std::vector<uint32_t> ids;
    for (const kernel::View &operand : launch.views)
      ids.push_back(view(operand));
    out.views = builder.run(ids);
    out.numViews = ids.size();
    ids.clear();
    switch (launch.kind) {
    case kernel::LaunchKind::Kernel:
      out.kind = rt::LaunchKind::Kernel;
      out.kernel = builder.string(program.units[launch.unit].kernel);
      break;
    case kernel::LaunchKind::WriteDims:
      out.kind = rt::LaunchKind::WriteExprs;
      out.kernel = builder.string("write_dims");
      break;
    case kernel::LaunchKind::BindSymbols:
      out.kind = rt::LaunchKind::BindSymbols;
      out.kernel = builder.string("bind_symbols");
      for (const std::string &symbol : launch.symbols)
        ids.push_back(symbols.lookup(symbol));
      break;
    }
    if (launch.kind != kernel::LaunchKind::BindSymbols)
      for (Dim param : launch.params)
        ids.push_back(expr(param));
    out.params = builder.run(ids);
    out.numParams = ids.size();
    out.scratchBytes = out.scratchBuffer = rt::none;
    if (launch.scratchBytes && launch.scratchBuffer != kernel::none) {
      out.scratchBytes = expr(*launch.scratchBytes);
      out.scratchBuffer = launch.scratchBuffer;
    }
    for (rt::ExprId &size : out.grid)
      size = rt::none;
    out.sharedBytes = rt::none;
    if (launch.geometry)
      writeGeometry(*launch.geometry, out);
    out.firstVariant = builder.variants.size();
    out.numVariants = launch.variants.size();
    for (const kernel::Variant &variant : launch.variants)
      writeVariant(variant);
    out.flops = costExpr(launch.flops);
    out.bytes = costExpr(launch.bytes);
    builder.launches.push_back(out);
  }

  void writeWeights() {
    for (const auto &[i, weight] : llvm::enumerate(program.weights)) {
      rt::Weight out = {};
      out.name = builder.string(weight.value->name().str());
      out.dtype = dtype(weight.value->element());
      out.offset = image.weightOffsets[i];
      out.bytes = weight.bytes;
      out.layout = builder.string(kernel::layoutName(weight.layout).str());
      builder.weights.push_back(out);
    }
  }

  const kernel::Program &program;
  PlanBuilder builder;
  PlanImage image;
  bool overflowed = false;
  llvm::StringMap<uint32_t> symbols;
  std::unordered_map<Dim, rt::ExprId, DimHash> exprs;
  std::map<
      std::tuple<uint32_t, unsigned, unsigned, uint32_t, uint32_t, uint32_t>,
      uint32_t>
      views;
  std::vector<uint32_t> inputBuffers, outputBuffers;
  llvm::DenseMap<unsigned, const kernel::State *> stateOfOutput;
};

} // namespace

void PlanImage::setWeightChecksum(uint64_t checksum) {
  reinterpret_cast<rt::PlanHeader *>(bytes.data())->weightChecksum = checksum;
  sealPlan(bytes);
}

llvm::Expected<PlanImage> writePlan(const kernel::Program &program,
                                    llvm::StringRef manifest) {
  return Writer(program).run(manifest);
}

} // namespace tenon::codegen
