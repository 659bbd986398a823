//===- Printer.cpp - writing the text form -------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ir/OpDef.h"
#include "ir/support/Quote.h"
#include "ir/text/Literals.h"
#include "ir/text/Names.h"
#include "ir/text/Text.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace tenon::ir {

namespace {

/// Prints `{axis = 1, k = 4}`; nothing when every member has its default.
class AttrsPrinter final : public FieldVisitor {
public:
  explicit AttrsPrinter(raw_ostream &os) : os(os) {}

  void print(const Attrs &attrs) {
    // Visiting is not const because parsing shares it; this visitor only reads.
    const_cast<Attrs &>(attrs).fields(*this);
    if (!first)
      os << '}';
  }

  void nextIsOptional(bool isDefault) override { skip = isDefault; }
  void visit(StringRef name, int64_t &value) override {
    if (begin(name))
      os << value;
  }
  void visit(StringRef name, bool &value) override {
    if (begin(name))
      os << (value ? "true" : "false");
  }
  void visit(StringRef name, double &value) override {
    if (begin(name))
      printDouble(os, value);
  }
  void visit(StringRef name, Ints &value) override { list(name, value); }
  void visit(StringRef name, Dim &value) override {
    if (begin(name))
      os << value;
  }
  void visit(StringRef name, Dims &value) override { list(name, value); }
  void visit(StringRef name, ElementType &value) override {
    if (begin(name))
      os << mnemonic(value);
  }
  /// A constant has its own place in the text.
  void visit(StringRef, ConstantRef &) override {}
  void visit(StringRef name, EnumRef value) override {
    if (begin(name))
      os << value.names[*value.value];
  }

private:
  bool begin(StringRef name) {
    if (std::exchange(skip, false))
      return false;
    os << (first ? " {" : ", ") << name << " = ";
    first = false;
    return true;
  }
  template <class T> void list(StringRef name, const T &values) {
    if (!begin(name))
      return;
    os << '[';
    interleaveComma(values, os);
    os << ']';
  }

  raw_ostream &os;
  bool first = true, skip = false;
};

void printLocation(raw_ostream &os, const Location &loc) {
  os << "loc(";
  interleaveComma(loc.nodes, os,
                  [&](StringRef node) { printQuoted(os, node); });
  os << ')';
}

class Printer {
public:
  Printer(raw_ostream &os, const PrintOptions &options,
          const ConstantNames *constants)
      : os(os), options(options), constants(constants) {}

  void print(const Module &module);
  void print(const Func &func);
  void print(const Op &op, const ValueNames &names, unsigned indent);

private:
  void printSymbols(const Module &module);
  void printSignature(const Func &func, const ValueNames &names);
  void printConstraints(const Func &func);
  void printRegion(const Op &op, unsigned indent);
  void printBlock(const Block &block, const ValueNames &names, unsigned indent);

  raw_ostream &os;
  const PrintOptions &options;
  const ConstantNames *constants;
};

void Printer::print(const Module &module) {
  if (module.stage != Stage::Imported)
    os << "stage " << stageName(module.stage) << "\n";
  printSymbols(module);
  for (const std::unique_ptr<Func> &func : module.funcs) {
    os << "\n";
    print(*func);
  }
}

void Printer::printSymbols(const Module &module) {
  if (module.symbols.empty())
    return;
  os << "dims { ";
  interleaveComma(module.symbols, os, [&](const Module::Symbol &symbol) {
    // The name alone, printed as it is in expressions.
    os << Dim::symbol(symbol.name);
    if (symbol.range == DimRange{})
      return;
    os << ": " << symbol.range.low;
    if (symbol.range.high == INT64_MAX)
      os << "...";
    else
      os << ".." << symbol.range.high;
  });
  os << " }\n";
}

void Printer::print(const Func &func) {
  ValueNames names(func.body, func.inputs);
  printSignature(func, names);
  printConstraints(func);
  os << " {\n";
  printBlock(func.body, names, 2);
  os << "}\n";
}

void Printer::printSignature(const Func &func, const ValueNames &names) {
  os << "func @";
  printIdentifier(os, func.name);
  os << '(';
  ListSeparator comma;
  for (unsigned i = 0; i < func.body.numArguments(); ++i) {
    const Value *argument = func.body.argument(i);
    StringRef name = names.of(argument);
    os << comma << '%' << name;
    if (i < func.inputs.size() && func.inputs[i].name != name) {
      os << ' ';
      printQuoted(os, func.inputs[i].name);
    }
    os << ": " << argument->type;
  }
  os << ") -> (";
  const Op *terminator = func.body.terminator();
  ArrayRef<Value *> values =
      terminator ? terminator->operands() : ArrayRef<Value *>();
  interleaveComma(enumerate(values), os, [&](const auto &entry) {
    auto [i, value] = entry;
    printIdentifier(os, i < func.outputs.size() ? func.outputs[i].name : "");
    os << ": " << value->type;
  });
  os << ')';
}

void Printer::printConstraints(const Func &func) {
  StringRef lead = " where ";
  for (const DimConstraint &constraint : func.constraints) {
    os << lead << constraint.a << " == " << constraint.b;
    if (options.locations && !constraint.loc.empty()) {
      os << ' ';
      printLocation(os, constraint.loc);
    }
    lead = ", ";
  }
}

void Printer::printBlock(const Block &block, const ValueNames &names,
                         unsigned indent) {
  for (const Op &op : block) {
    os.indent(indent);
    print(op, names, indent);
    os << '\n';
  }
}

/// ` (%s: f32) {`, the ops, `}`.
void Printer::printRegion(const Op &op, unsigned indent) {
  const Block &region = *op.region();
  ValueNames names(region);
  os << (is(op, HasEpilogue) ? " epilogue(" : " (");
  ListSeparator comma;
  for (unsigned i = 0; i < region.numArguments(); ++i)
    os << comma << '%' << names.of(region.argument(i)) << ": "
       << region.argument(i)->type;
  os << ") {\n";
  printBlock(region, names, indent + 2);
  os.indent(indent) << '}';
}

void Printer::print(const Op &op, const ValueNames &names, unsigned indent) {
  interleaveComma(op.results(), os,
                  [&](const Value *value) { os << '%' << names.of(value); });
  if (op.numResults() != 0)
    os << " = ";
  os << opDef(op).mnemonic;
  if (op.kind() == OpKind::Const) {
    const ConstantRef &value = op.attrs<ConstAttrs>().value;
    os << ' ';
    if (value)
      printConstant(os, *value, options.maxInlineElements,
                    constants ? constants->of(value.get()) : value->name());
    else
      os << "<nothing>";
  }
  for (const auto &[i, operand] : enumerate(op.operands())) {
    os << (i == 0 ? " " : ", ");
    if (operand)
      os << '%' << names.of(operand);
    else
      os << '_';
  }
  AttrsPrinter(os).print(op.rawAttrs());
  if (op.region())
    printRegion(op, indent);
  if (op.numResults() != 0) {
    os << " : ";
    interleaveComma(op.results(), os,
                    [&](const Value *value) { os << value->type; });
  }
  if (options.locations && !op.loc.empty()) {
    os << ' ';
    printLocation(os, op.loc);
  }
}

} // namespace

void print(const Module &module, raw_ostream &os, const PrintOptions &options) {
  ConstantNames constants(module, options.maxInlineElements);
  Printer(os, options, &constants).print(module);
}

void print(const Op &op, raw_ostream &os, const PrintOptions &options) {
  Printer printer(os, options, nullptr);
  if (op.block())
    printer.print(op, ValueNames(*op.block()), 0);
  else
    printer.print(op, ValueNames(Block()), 0);
}

} // namespace tenon::ir
