//===- Printer.cpp - writes .tnk
//-------------------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ir/OpDef.h"
#include "ir/kernel/Program.h"
#include "ir/text/Literals.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <utility>

namespace tenon::kernel {

namespace {

constexpr uint64_t maxInlineElements = 16;

class Printer {
public:
  Printer(const Program &p, llvm::raw_ostream &os) : p(p), os(os) {}
  void print();

private:
  void quoted(llvm::StringRef text) {
    os << '"';
    llvm::printEscapedString(text, os);
    os << '"';
  }
  template <class Range> void list(const Range &range) {
    os << '[';
    llvm::interleaveComma(range, os, [&](const auto &item) { os << item; });
    os << ']';
  }
  void location(const ir::Location &loc);
  void constant(const ir::Constant &value);
  void weight(unsigned i);
  void buffer(unsigned i);
  void view(const View &view);
  void views(llvm::ArrayRef<View> range);
  void geometry(const Geometry &geometry);
  void variant(const Variant &variant);
  void launch(const Launch &launch);
  void header();

  const Program &p;
  llvm::raw_ostream &os;
};

/// Prints the attributes that scalar ops have: `{alpha = 0.5, to = i64}`.
class AttrPrinter final : public ir::FieldVisitor {
public:
  explicit AttrPrinter(llvm::raw_ostream &os) : os(os) {}
  ~AttrPrinter() override {
    if (any)
      os << '}';
  }
  void visit(llvm::StringRef name, int64_t &v) override { start(name) << v; }
  void visit(llvm::StringRef name, bool &v) override {
    start(name) << (v ? "true" : "false");
  }
  void visit(llvm::StringRef name, double &v) override {
    ir::printDouble(start(name), v);
  }
  void visit(llvm::StringRef name, ir::Ints &v) override {
    llvm::raw_ostream &out = start(name) << '[';
    llvm::interleaveComma(v, out);
    out << ']';
  }
  void visit(llvm::StringRef name, Dim &v) override { start(name) << v; }
  void visit(llvm::StringRef name, Dims &v) override {
    llvm::raw_ostream &out = start(name) << '[';
    llvm::interleaveComma(v, out);
    out << ']';
  }
  void visit(llvm::StringRef name, ElementType &v) override {
    start(name) << ir::mnemonic(v);
  }
  void visit(llvm::StringRef name, ir::ConstantRef &v) override {
    // Literals print their bits, so that they are exact in every type.
    std::vector<uint8_t> bytes = v->materialize();
    start(name) << "0x" << llvm::toHex(bytes, /*LowerCase=*/true);
  }
  void visit(llvm::StringRef name, ir::EnumRef v) override {
    start(name) << v.names[*v.value];
  }
  void nextIsOptional(bool isDefault) override { skip = isDefault; }

private:
  llvm::raw_ostream &start(llvm::StringRef name) {
    if (std::exchange(skip, false))
      return llvm::nulls();
    os << (any ? ", " : " {") << name << " = ";
    any = true;
    return os;
  }
  llvm::raw_ostream &os;
  bool any = false, skip = false;
};

void print(const Functor &f, llvm::raw_ostream &os) {
  os << " fn (";
  for (const auto &[i, argument] : llvm::enumerate(f.arguments)) {
    os << (i ? ", %" : "%") << i << ": " << ir::mnemonic(argument.element);
    if (argument.access != Access::Value)
      os << ' ' << accessName(argument.access);
  }
  os << ") {";
  for (const auto &[i, node] : llvm::enumerate(f.nodes)) {
    os << " %" << f.arguments.size() + i << " = "
       << ir::opDef(node.kind).mnemonic;
    for (const auto &[j, operand] : llvm::enumerate(node.operands))
      os << (j ? ", %" : " %") << operand;
    {
      AttrPrinter printer(os);
      node.attrs->clone()->fields(printer);
    }
    os << " : " << ir::mnemonic(node.element);
  }
  os << " yield";
  for (const auto &[j, result] : llvm::enumerate(f.results))
    os << (j ? ", %" : " %") << result;
  os << " }";
}

void Printer::location(const ir::Location &loc) {
  if (loc.empty())
    return;
  os << " loc(";
  llvm::interleaveComma(loc.nodes, os, [&](const auto &name) { quoted(name); });
  os << ')';
}

void Printer::constant(const ir::Constant &value) {
  uint64_t count = value.numElements();
  if (value.form() == ir::Constant::Form::Splat) {
    os << " splat 0x" << llvm::toHex(value.bytes(), true);
    return;
  }
  if (count <= maxInlineElements)
    os << " bytes 0x" << llvm::toHex(value.materialize(), true);
}

void Printer::weight(unsigned i) {
  const Weight &w = p.weights[i];
  os << "weight " << i << ' ';
  quoted(w.value->name());
  os << " : " << ir::mnemonic(w.value->element());
  list(w.value->shape());
  os << ' ' << layoutName(w.layout);
  if (w.layout != WeightLayout::RowMajor) {
    const Weight::Matrix &m = w.matrix;
    list(llvm::ArrayRef<int64_t>{m.batch, m.k, m.n, m.offset, m.batchStride,
                                 m.rowStride, m.columnStride});
  }
  os << ", " << w.bytes << " bytes";
  constant(*w.value);
  os << '\n';
}

void Printer::buffer(unsigned i) {
  const Buffer &b = p.buffers[i];
  static const char *const names[] = {"arena", "weight", "input", "output",
                                      "state"};
  os << "buffer " << i << " : " << names[unsigned(b.kind)] << ' ';
  if (b.kind == BufferKind::Arena)
    os << b.segment;
  else
    os << b.index;
  os << ", " << b.bytes << " bytes";
  if (b.slot != none)
    os << ", slot " << b.slot << " at " << b.offset;
  os << '\n';
}

void Printer::view(const View &v) {
  static const char *const prefixes[] = {"%b", "%w", "%in", "%out", "%state"};
  os << prefixes[unsigned(p.buffers[v.buffer].kind)] << v.buffer;
  if (!v.offset.isConstant(0))
    os << " + " << v.offset;
  os << " : " << ir::mnemonic(v.element);
  if (v.rank())
    list(v.shape);
  if (v.strides != contiguousStrides(v.shape)) {
    os << " strides ";
    list(v.strides);
  }
}

void Printer::views(llvm::ArrayRef<View> range) {
  os << '(';
  llvm::interleaveComma(range, os, [&](const View &v) { view(v); });
  os << ')';
}

void Printer::geometry(const Geometry &geometry) {
  os << " grid ";
  list(llvm::ArrayRef(geometry.grid));
  os << " threads " << geometry.threads;
  if (!geometry.sharedBytes.isConstant(0))
    os << " shared " << geometry.sharedBytes << " bytes";
}

void Printer::variant(const Variant &v) {
  os << " or " << p.units[v.unit].kernel << " #" << v.unit << " when " << v.when
     << " arch " << v.arch;
  geometry(v.geometry);
  for (const TensorMap &m : v.maps)
    os << " map " << m.view << (m.transposed ? " transposed" : "")
       << (m.shared ? " shared" : "") << " box " << m.box[0] << " x "
       << m.box[1];
}

void Printer::launch(const Launch &l) {
  os << "  ";
  if (l.kind == LaunchKind::Kernel)
    os << "launch " << p.units[l.unit].kernel << " #" << l.unit << ' ';
  else
    os << (l.kind == LaunchKind::WriteDims ? "write_dims " : "bind_symbols ");
  views(l.operands());
  os << " -> ";
  views(l.results());
  if (!l.params.empty()) {
    os << " params ";
    list(l.params);
  }
  if (!l.symbols.empty()) {
    os << " symbols [";
    llvm::interleaveComma(l.symbols, os, [&](const auto &s) { quoted(s); });
    os << ']';
  }
  if (!l.overlays.empty()) {
    os << " overlays ";
    list(l.overlays);
  }
  if (l.scratchBytes) {
    os << " scratch " << *l.scratchBytes << " bytes";
    if (l.scratchBuffer != none)
      os << " in %b" << l.scratchBuffer;
  }
  if (l.geometry)
    geometry(*l.geometry);
  for (const Variant &v : l.variants)
    variant(v);
  if (!l.flops.isConstant(0))
    os << " flops " << l.flops;
  if (!l.bytes.isConstant(0))
    os << " moves " << l.bytes;
  location(l.loc);
  os << '\n';
}

void Printer::header() {
  os << "program @" << p.name << '\n';
  for (const Symbol &s : p.symbols) {
    os << "symbol ";
    quoted(s.name);
    os << " : " << s.range.low << "..";
    if (s.range.high != INT64_MAX)
      os << s.range.high;
    if (s.definedBy != none)
      os << " from segment " << s.definedBy;
    if (!s.most.empty()) {
      os << " up to ";
      quoted(s.most);
    }
    os << '\n';
  }
  auto ports = [&](llvm::StringRef what, llvm::ArrayRef<Port> list) {
    for (const Port &port : list) {
      os << what << ' ';
      quoted(port.name);
      os << " : " << port.type << '\n';
    }
  };
  ports("input", p.inputs);
  ports("output", p.outputs);
  if (p.padding != Padding::Nowhere)
    os << "padding " << paddingName(p.padding) << '\n';
  for (const State &s : p.states)
    os << "state input " << s.input << " output " << s.output << " axis "
       << s.axis << " capacity " << s.capacity << '\n';
  for (const ir::DimConstraint &c : p.checks) {
    os << "check " << c.a << " == " << c.b;
    location(c.loc);
    os << '\n';
  }
}

void Printer::print() {
  header();
  for (unsigned i = 0; i < p.weights.size(); ++i)
    weight(i);
  for (unsigned i = 0; i < p.buffers.size(); ++i)
    buffer(i);
  for (unsigned i = 0; i < p.units.size(); ++i)
    kernel::print(p.units[i], os << "unit " << i << ' ');
  for (const auto &[i, segment] : llvm::enumerate(p.segments)) {
    os << "segment " << i << " arena " << segment.arenaBytes << " bytes {\n";
    for (unsigned l = 0; l < segment.numLaunches; ++l)
      launch(p.launches[segment.firstLaunch + l]);
    os << "}\n";
  }
  if (p.peakFormula.empty())
    return;
  os << "arena " << p.arenaBytes << " bytes\n";
  os << "peak " << p.peakBytes << " bytes ";
  quoted(p.peakFormula);
  os << '\n';
}

} // namespace

void print(const Unit &unit, llvm::raw_ostream &os) {
  os << unit.kernel << " {";
  for (const auto &[j, m] : llvm::enumerate(unit.config))
    os << (j ? ", " : "") << m.type << ' ' << m.name << " = " << m.value;
  os << '}';
  for (const Functor &functor : unit.functors)
    print(functor, os);
  os << '\n';
}

void print(const Program &program, llvm::raw_ostream &os) {
  Printer(program, os).print();
}

} // namespace tenon::kernel
