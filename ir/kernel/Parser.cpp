//===- Parser.cpp - reads .tnk -------------------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ir/OpDef.h"
#include "ir/kernel/Cursor.h"
#include "ir/kernel/Program.h"
#include "ir/support/Diag.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>

namespace tenon::kernel {

namespace {

/// Reads `{alpha = 0.5, to = i64}` into the attributes of a scalar op.
class AttrReader final : public ir::FieldVisitor {
public:
  explicit AttrReader(Cursor &c, ElementType element)
      : c(c), element(element) {}
  void visit(llvm::StringRef name, int64_t &v) override {
    if (take(name))
      v = c.integer();
  }
  void visit(llvm::StringRef name, bool &v) override {
    if (take(name))
      v = c.word() == "true";
  }
  void visit(llvm::StringRef name, double &v) override {
    if (take(name))
      v = std::strtod(c.until({",", "}"}).str().c_str(), nullptr);
  }
  void visit(llvm::StringRef name, ir::Ints &) override { refuse(name); }
  void visit(llvm::StringRef name, Dim &) override { refuse(name); }
  void visit(llvm::StringRef name, Dims &) override { refuse(name); }
  void visit(llvm::StringRef name, ElementType &v) override {
    if (take(name))
      v = c.element();
  }
  void visit(llvm::StringRef name, ir::ConstantRef &v) override {
    if (!take(name))
      return;
    c.expect("0x");
    std::string bytes;
    if (!llvm::tryGetFromHex(c.word(), bytes))
      return c.fail("expected hexadecimal bytes");
    if (bytes.size() != ir::byteSize(element, 1))
      return c.fail("expected the bytes of one element");
    v = ir::Constant::copy(element, {}, llvm::arrayRefFromStringRef(bytes));
  }
  void visit(llvm::StringRef name, ir::EnumRef v) override {
    if (!take(name))
      return;
    llvm::StringRef word = c.word();
    const auto *found = llvm::find(v.names, word);
    if (found == v.names.end())
      return c.fail("'" + word + "' is no value of '" + name + "'");
    *v.value = found - v.names.begin();
  }
  void nextIsOptional(bool) override {}

private:
  bool take(llvm::StringRef name) {
    if (!c.rest.starts_with((name + " = ").str()))
      return false; // left out: the default
    c.expect(name);
    c.expect("=");
    return true;
  }
  void refuse(llvm::StringRef name) {
    if (take(name))
      c.fail("no scalar op has '" + name + "'");
  }
  Cursor &c;
  ElementType element;
};

/// Stands for contents that the text leaves out: zeros, whose pages are never
/// touched.
ir::ConstantRef absentContents(ElementType element,
                               llvm::ArrayRef<int64_t> shape,
                               llvm::StringRef name) {
  std::optional<uint64_t> bytes =
      ir::byteSize(element, *ir::elementCount(shape));
  if (!bytes)
    return nullptr;
  size_t size = std::max<uint64_t>(*bytes, 1);
  void *pages = mmap(nullptr, size, PROT_READ,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pages == MAP_FAILED)
    return nullptr;
  std::shared_ptr<uint8_t> zeros(static_cast<uint8_t *>(pages),
                                 [size](uint8_t *p) { munmap(p, size); });
  return ir::Constant::dense(element, shape, {zeros.get(), size_t(*bytes)},
                             zeros, name);
}

class Parser {
public:
  llvm::Expected<Program> run(llvm::MemoryBufferRef buffer);

private:
  void line(Cursor &c);
  void symbol(Cursor &c);
  void port(Cursor &c, std::vector<Port> &ports);
  void check(Cursor &c);
  void padding(Cursor &c);
  void weight(Cursor &c);
  void buffer(Cursor &c);
  void unit(Cursor &c);
  Functor functor(Cursor &c);
  void node(Cursor &c, Functor &functor);
  void launch(Cursor &c, LaunchKind kind);
  void launchTail(Cursor &c, Launch &launch);
  Geometry geometry(Cursor &c);
  Variant variant(Cursor &c);
  std::vector<View> views(Cursor &c);
  View view(Cursor &c);
  ir::Location location(Cursor &c);

  Program p;
};

ir::Location Parser::location(Cursor &c) {
  ir::Location loc;
  if (!c.eat("loc("))
    return loc;
  while (!c.failed() && !c.eat(")")) {
    loc.nodes.push_back(c.quoted());
    c.eat(",");
  }
  return loc;
}

void Parser::symbol(Cursor &c) {
  Symbol symbol;
  symbol.name = c.quoted();
  c.expect(":");
  symbol.range.low = c.integer();
  c.expect("..");
  if (!c.atEnd() && !c.rest.starts_with("from") && !c.rest.starts_with("up"))
    symbol.range.high = c.integer();
  if (c.eat("from segment"))
    symbol.definedBy = c.integer();
  if (c.eat("up to"))
    symbol.most = c.quoted();
  p.symbols.push_back(std::move(symbol));
}

void Parser::port(Cursor &c, std::vector<Port> &ports) {
  Port port;
  port.name = c.quoted();
  c.expect(":");
  port.type.element = c.element();
  if (!c.atEnd()) {
    Dims shape = c.dims();
    port.type.shape.assign(shape.begin(), shape.end());
  }
  ports.push_back(std::move(port));
}

void Parser::check(Cursor &c) {
  ir::DimConstraint check;
  check.a = c.dim({" == "});
  c.expect("==");
  check.b = c.dim({" loc("});
  check.loc = location(c);
  p.checks.push_back(std::move(check));
}

void Parser::weight(Cursor &c) {
  Weight w;
  c.integer();
  std::string name = c.quoted();
  c.expect(":");
  ElementType element = c.element();
  llvm::SmallVector<int64_t> shape;
  for (Dim dim : c.dims())
    shape.push_back(dim.constant().value_or(-1));
  std::optional<uint64_t> count = ir::elementCount(shape);
  if (!count)
    return c.fail("not the shape of a weight");
  for (WeightLayout layout : {WeightLayout::Panels16Codes,
                              WeightLayout::Panels16, WeightLayout::Columns})
    if (w.layout == WeightLayout::RowMajor && c.eat(layoutName(layout)))
      w.layout = layout;
  if (w.layout != WeightLayout::RowMajor) {
    Dims m = c.dims();
    if (m.size() != 7)
      return c.fail("expected 7 numbers");
    int64_t n[7];
    for (const auto &[i, dim] : llvm::enumerate(m))
      n[i] = dim.constant().value_or(0);
    w.matrix = {n[0], n[1], n[2], n[3], n[4], n[5], n[6]};
  } else {
    c.expect("row-major");
  }
  c.expect(",");
  w.bytes = c.integer();
  c.expect("bytes");
  bool splat = c.eat("splat");
  if (!splat && !c.eat("bytes")) {
    w.value = absentContents(element, shape, name);
    if (!w.value)
      return c.fail("no memory for the weight");
    return p.weights.push_back(std::move(w));
  }
  c.expect("0x");
  std::string bytes;
  if (!llvm::tryGetFromHex(c.atEnd() ? "" : c.word(), bytes))
    return c.fail("expected hexadecimal bytes");
  llvm::ArrayRef<uint8_t> data = llvm::arrayRefFromStringRef(bytes);
  if (data.size() != ir::byteSize(element, splat ? 1 : *count))
    return c.fail("not as many bytes as the weight's type has");
  w.value = splat ? ir::Constant::splatBytes(element, shape, data)
                  : ir::Constant::copy(element, shape, data, name);
  p.weights.push_back(std::move(w));
}

void Parser::buffer(Cursor &c) {
  Buffer b;
  c.integer();
  c.expect(":");
  llvm::StringRef kind = c.word();
  auto found = llvm::StringSwitch<std::optional<BufferKind>>(kind)
                   .Case("arena", BufferKind::Arena)
                   .Case("weight", BufferKind::Weight)
                   .Case("input", BufferKind::Input)
                   .Case("output", BufferKind::Output)
                   .Case("state", BufferKind::State)
                   .Default(std::nullopt);
  if (!found)
    return c.fail("'" + kind + "' is no kind of buffer");
  b.kind = *found;
  (b.kind == BufferKind::Arena ? b.segment : b.index) = c.integer();
  c.expect(",");
  b.bytes = c.dim({" bytes"});
  c.expect("bytes");
  if (c.eat(", slot")) {
    b.slot = c.integer();
    c.expect("at");
    b.offset = c.dim({});
  }
  p.buffers.push_back(b);
}

void Parser::node(Cursor &c, Functor &functor) {
  c.expect("%");
  c.integer();
  c.expect("=");
  llvm::StringRef mnemonic = c.word();
  std::optional<ir::OpKind> kind = ir::parseMnemonic(mnemonic);
  if (!kind)
    return c.fail("'" + mnemonic + "' is not an op");
  Functor::Node node{*kind, ElementType::F32, {}, nullptr};
  while (c.eat("%")) {
    node.operands.push_back(c.integer());
    c.eat(",");
  }
  // The type follows the attributes, but a literal's bytes need it.
  llvm::StringRef typeText = c.rest.substr(c.rest.find(" : ") + 3);
  if (c.rest.starts_with(": "))
    typeText = c.rest.substr(2);
  std::optional<ElementType> element =
      ir::parseElementType(typeText.take_while(llvm::isAlnum));
  node.element = element.value_or(ElementType::F32);
  std::unique_ptr<ir::Attrs> attrs = ir::opDef(*kind).makeAttrs();
  if (c.eat("{")) {
    AttrReader reader(c, node.element);
    while (!c.failed() && !c.eat("}")) {
      size_t before = c.rest.size();
      attrs->fields(reader);
      c.eat(",");
      if (c.rest.size() == before)
        c.fail("unknown attribute before '" + c.rest.take_front(20) + "'");
    }
  }
  node.attrs = std::move(attrs);
  c.expect(":");
  node.element = c.element();
  functor.nodes.push_back(std::move(node));
}

Functor Parser::functor(Cursor &c) {
  Functor f;
  c.expect("(");
  while (!c.failed() && !c.eat(")")) {
    c.expect("%");
    c.integer();
    c.expect(":");
    Functor::Argument argument{c.element()};
    for (unsigned i = 1; i <= unsigned(Access::Any); ++i)
      if (c.eat(accessName(Access(i))))
        argument.access = Access(i);
    f.arguments.push_back(argument);
    c.eat(",");
  }
  c.expect("{");
  while (!c.failed() && !c.eat("yield"))
    node(c, f);
  while (c.eat("%")) {
    f.results.push_back(c.integer());
    c.eat(",");
  }
  c.expect("}");
  size_t limit = f.arguments.size();
  auto inRange = [&](unsigned value) { return value < limit; };
  for (const Functor::Node &n : f.nodes) {
    if (!llvm::all_of(n.operands, inRange))
      c.fail("a value before its definition");
    ++limit;
  }
  if (!llvm::all_of(f.results, inRange))
    c.fail("a value that isn't defined");
  return f;
}

void Parser::unit(Cursor &c) {
  Unit u;
  c.integer();
  u.kernel = c.word().str();
  c.expect("{");
  while (!c.failed() && !c.eat("}")) {
    ConfigMember member;
    llvm::StringRef left = c.until({" = "});
    std::tie(member.type, member.name) = [&] {
      auto [type, name] = left.rsplit(' ');
      return std::pair(type.str(), name.str());
    }();
    c.expect("=");
    // Lists of types and numbers have commas of their own.
    bool types = c.rest.starts_with("tn::types<");
    if (types || c.rest.starts_with("{")) {
      size_t end = c.rest.find(types ? '>' : '}');
      member.value = c.rest.take_front(end + 1).str();
      c.expect(member.value);
    } else {
      member.value = c.until({",", "}"}).str();
    }
    c.eat(",");
    u.config.push_back(std::move(member));
  }
  while (c.eat("fn"))
    u.functors.push_back(functor(c));
  p.units.push_back(std::move(u));
}

View Parser::view(Cursor &c) {
  View v;
  c.expect("%");
  for (llvm::StringRef prefix : {"b", "w", "in", "out", "state"})
    if (c.eat(prefix))
      break;
  v.buffer = c.integer();
  if (c.eat("+"))
    v.offset = c.dim({" : "});
  c.expect(":");
  v.element = c.element();
  if (c.rest.starts_with("["))
    v.shape = c.dims();
  v.strides = c.eat("strides") ? c.dims() : contiguousStrides(v.shape);
  return v;
}

std::vector<View> Parser::views(Cursor &c) {
  std::vector<View> list;
  c.expect("(");
  while (!c.failed() && !c.eat(")")) {
    list.push_back(view(c));
    c.eat(",");
  }
  return list;
}

Geometry Parser::geometry(Cursor &c) {
  Geometry geometry;
  c.expect("grid");
  for (auto [to, from] : llvm::zip(geometry.grid, c.dims()))
    to = from;
  c.expect("threads");
  geometry.threads = c.integer();
  if (c.eat("shared")) {
    geometry.sharedBytes = c.dim({" bytes"});
    c.expect("bytes");
  }
  return geometry;
}

Variant Parser::variant(Cursor &c) {
  Variant v;
  c.word();
  c.expect("#");
  v.unit = c.integer();
  c.expect("when");
  v.when = c.dim({" arch "});
  c.expect("arch");
  v.arch = c.integer();
  v.geometry = geometry(c);
  while (!c.failed() && c.eat("map ")) {
    TensorMap &map = v.maps.emplace_back();
    map.view = c.integer();
    map.transposed = c.eat("transposed");
    map.shared = c.eat("shared");
    c.expect("box");
    map.box[0] = c.integer();
    c.expect("x");
    map.box[1] = c.integer();
  }
  return v;
}

void Parser::launchTail(Cursor &c, Launch &l) {
  if (c.eat("params")) {
    Dims params = c.dims();
    l.params.assign(params.begin(), params.end());
  }
  if (c.eat("symbols [")) {
    while (!c.failed() && !c.eat("]")) {
      l.symbols.push_back(c.quoted());
      c.eat(",");
    }
  }
  if (c.eat("overlays"))
    for (Dim dim : c.dims())
      l.overlays.push_back(dim.constant().value_or(0));
  if (c.eat("scratch")) {
    l.scratchBytes = c.dim({" bytes"});
    c.expect("bytes");
    if (c.eat("in %b"))
      l.scratchBuffer = c.integer();
  }
  if (c.rest.starts_with("grid"))
    l.geometry = geometry(c);
  while (!c.failed() && c.eat("or "))
    l.variants.push_back(variant(c));
  if (c.eat("flops"))
    l.flops = c.dim({" moves ", " loc("});
  if (c.eat("moves"))
    l.bytes = c.dim({" loc("});
  l.loc = location(c);
}

void Parser::launch(Cursor &c, LaunchKind kind) {
  Launch l;
  l.kind = kind;
  if (kind == LaunchKind::Kernel) {
    c.word();
    c.expect("#");
    l.unit = c.integer();
  }
  l.views = views(c);
  c.expect("->");
  std::vector<View> results = views(c);
  l.numResults = results.size();
  llvm::append_range(l.views, results);
  launchTail(c, l);
  if (p.segments.empty())
    return c.fail("a launch outside of a segment");
  ++p.segments.back().numLaunches;
  p.launches.push_back(std::move(l));
}

void Parser::padding(Cursor &c) {
  llvm::StringRef found = c.word();
  for (Padding place : {Padding::InFront, Padding::Anywhere})
    if (found == paddingName(place))
      p.padding = place;
  if (p.padding == Padding::Nowhere)
    c.fail("'" + found + "' is no place of padding");
}

void Parser::line(Cursor &c) {
  if (c.atEnd() || c.eat("//") || c.eat("}"))
    return (void)(c.rest = "");
  llvm::StringRef keyword = c.word();
  if (keyword == "program") {
    c.expect("@");
    p.name = c.rest.str();
    c.rest = "";
  } else if (keyword == "symbol") {
    symbol(c);
  } else if (keyword == "input") {
    port(c, p.inputs);
  } else if (keyword == "output") {
    port(c, p.outputs);
  } else if (keyword == "state") {
    State state;
    c.expect("input");
    state.input = c.integer();
    c.expect("output");
    state.output = c.integer();
    c.expect("axis");
    state.axis = c.integer();
    c.expect("capacity");
    state.capacity = c.integer();
    p.states.push_back(state);
  } else if (keyword == "padding") {
    padding(c);
  } else if (keyword == "check") {
    check(c);
  } else if (keyword == "weight") {
    weight(c);
  } else if (keyword == "buffer") {
    buffer(c);
  } else if (keyword == "unit") {
    unit(c);
  } else if (keyword == "launch") {
    launch(c, LaunchKind::Kernel);
  } else if (keyword == "write_dims") {
    launch(c, LaunchKind::WriteDims);
  } else if (keyword == "bind_symbols") {
    launch(c, LaunchKind::BindSymbols);
  } else if (keyword == "segment") {
    Segment segment;
    c.integer();
    c.expect("arena");
    segment.arenaBytes = c.dim({" bytes"});
    segment.firstLaunch = p.launches.size();
    p.segments.push_back(segment);
    c.rest = "";
  } else if (keyword == "arena") {
    p.arenaBytes = c.dim({" bytes"});
    c.rest = "";
  } else if (keyword == "peak") {
    p.peakBytes = c.dim({" bytes"});
    c.expect("bytes");
    p.peakFormula = c.quoted();
  } else {
    c.fail("'" + keyword + "' doesn't start a line of a program");
  }
}

llvm::Expected<Program> Parser::run(llvm::MemoryBufferRef buffer) {
  llvm::StringRef text = buffer.getBuffer();
  for (unsigned number = 1; !text.empty(); ++number) {
    auto [first, others] = text.split('\n');
    text = others;
    Cursor c(first);
    line(c);
    if (!c.failed() && !c.atEnd())
      c.fail("unexpected '" + c.rest.take_front(20) + "'");
    if (c.failed())
      return userError("{0}:{1}: error: {2}", buffer.getBufferIdentifier(),
                       number, c.message);
  }
  if (llvm::Error error = verify(p))
    return error;
  return std::move(p);
}

} // namespace

llvm::Expected<Program> parse(llvm::MemoryBufferRef buffer) {
  return Parser().run(buffer);
}

} // namespace tenon::kernel
