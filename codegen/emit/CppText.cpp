//===- CppText.cpp - C++ spellings ---------------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/emit/CppText.h"
#include "ir/OpDef.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>

namespace tenon::codegen {

using ir::ElementType;
using ir::OpKind;
using kernel::Functor;

llvm::StringRef cppType(ElementType element) {
  switch (element) {
  case ElementType::F64:
    return "double";
  case ElementType::F32:
    return "float";
  case ElementType::I64:
    return "int64_t";
  case ElementType::I32:
    return "int32_t";
  case ElementType::I16:
    return "int16_t";
  case ElementType::I8:
    return "int8_t";
  case ElementType::U64:
    return "uint64_t";
  case ElementType::U32:
    return "uint32_t";
  case ElementType::U16:
    return "uint16_t";
  case ElementType::U8:
    return "uint8_t";
  case ElementType::Bool:
    return "tn_bool";
  default:
    return "";
  }
}

llvm::StringRef storageType(ElementType element) {
  switch (element) {
  case ElementType::F16:
    return "tn_f16";
  case ElementType::BF16:
    return "tn_bf16";
  default:
    return cppType(element);
  }
}

std::string floatLiteral(double value, bool isDouble) {
  const char *suffix = isDouble ? "" : "f";
  if (std::isnan(value))
    return llvm::formatv("__builtin_nan{0}(\"\")", suffix);
  if (std::isinf(value))
    return llvm::formatv("{0}__builtin_inf{1}()", value < 0 ? "-" : "", suffix);
  // The shortest decimal that reads back as the same number.
  char text[64];
  for (int digits = isDouble ? 15 : 6; digits <= 17; ++digits) {
    snprintf(text, sizeof text, "%.*g", digits, value);
    bool exact = isDouble ? strtod(text, nullptr) == value
                          : strtof(text, nullptr) == float(value);
    if (exact)
      break;
  }
  std::string result = text;
  if (result.find_first_of(".e") == std::string::npos)
    result += ".0";
  return result + suffix;
}

std::string literal(ElementType element, const ir::Constant &scalar) {
  if (element == ElementType::F32 || element == ElementType::F64)
    return floatLiteral(scalar.floatAt(0), element == ElementType::F64);
  if (element == ElementType::F16 || element == ElementType::BF16)
    return llvm::formatv("tn_cast<{0}>({1})", storageType(element),
                         floatLiteral(scalar.floatAt(0), /*isDouble=*/false));
  int64_t value = scalar.intAt(0);
  if (element == ElementType::I64 || element == ElementType::I32) {
    const char *suffix = element == ElementType::I64 ? "L" : "";
    int64_t lowest = element == ElementType::I64 ? INT64_MIN : INT32_MIN;
    // The most negative number has no literal of its own type.
    if (value == lowest)
      return llvm::formatv("({0}{1} - 1)", value + 1, suffix);
    return llvm::formatv("{0}{1}", value, suffix);
  }
  if (element == ElementType::U64)
    return llvm::formatv("{0}UL", uint64_t(value));
  if (element == ElementType::U32)
    return llvm::formatv("{0}U", uint32_t(value));
  return llvm::formatv("{0}({1})", cppType(element), value);
}

namespace {

/// Adds the attributes of scalar ops to a call as C++ arguments, and the type
/// that a cast names.
class AttrText final : public ir::FieldVisitor {
public:
  explicit AttrText(ElementType element) : element(element) {}
  void visit(llvm::StringRef, int64_t &v) override { add(std::to_string(v)); }
  void visit(llvm::StringRef, bool &v) override { add(v ? "true" : "false"); }
  void visit(llvm::StringRef, double &v) override {
    add(floatLiteral(v, element == ElementType::F64));
  }
  void visit(llvm::StringRef, ir::Ints &) override {}
  void visit(llvm::StringRef, ir::Dim &) override {}
  void visit(llvm::StringRef, ir::Dims &) override {}
  void visit(llvm::StringRef, ElementType &) override {}
  void visit(llvm::StringRef, ir::ConstantRef &) override {}
  void visit(llvm::StringRef, ir::EnumRef) override {}
  void nextIsOptional(bool) override {}
  std::string text;

private:
  void add(const std::string &value) { text += ", " + value; }
  ElementType element;
};

std::string callText(const Functor &functor, const Functor::Node &node,
                     llvm::ArrayRef<std::string> operands) {
  std::string name = ("tn_" + ir::opDef(node.kind).mnemonic).str();
  if (node.kind == OpKind::Cast) {
    bool toBool = node.element == ElementType::Bool;
    name = toBool ? "tn_to_bool"
                  : ("tn_cast<" + storageType(node.element) + ">").str();
    return name + "(" + operands[0] + ")";
  }
  AttrText attrs(functor.elementOf(node.operands[0]));
  std::unique_ptr<ir::Attrs> copy = node.attrs->clone();
  copy->fields(attrs);
  return name + "(" + llvm::join(operands, ", ") + attrs.text + ")";
}

} // namespace

FunctorText functorText(const Functor &functor,
                        llvm::ArrayRef<std::string> arguments) {
  size_t first = arguments.size();
  std::vector<unsigned> uses(first + functor.nodes.size(), 0);
  for (const Functor::Node &node : functor.nodes)
    for (unsigned operand : node.operands)
      ++uses[operand];
  for (unsigned result : functor.results)
    ++uses[result];
  FunctorText out;
  std::vector<std::string> text(arguments.begin(), arguments.end());
  std::vector<std::string> formula;
  for (size_t i = 0; i < first; ++i)
    formula.push_back("x" + std::to_string(i));
  for (const auto &[i, node] : llvm::enumerate(functor.nodes)) {
    if (node.kind == OpKind::Const) {
      const auto &attrs = static_cast<const ir::ConstAttrs &>(*node.attrs);
      text.push_back(literal(node.element, *attrs.value));
      formula.push_back(text.back());
      continue;
    }
    std::vector<std::string> operands, terms;
    for (unsigned operand : node.operands) {
      operands.push_back(text[operand]);
      terms.push_back(formula[operand]);
    }
    text.push_back(callText(functor, node, operands));
    formula.push_back((ir::opDef(node.kind).mnemonic + "(" +
                       llvm::join(terms, ", ") + ")")
                          .str());
    // A long formula says less than its pieces.
    if (uses[first + i] > 1 || text.back().size() > 300) {
      std::string local = "v" + std::to_string(i);
      out.lines.push_back("auto " + local + " = " + text.back() + ";");
      text.back() = formula.back() = local;
    }
  }
  std::vector<std::string> terms;
  for (unsigned result : functor.results) {
    out.results.push_back(text[result]);
    terms.push_back(formula[result]);
  }
  out.formula = llvm::join(terms, "; ");
  return out;
}

std::vector<bool> literalValues(const Functor &functor) {
  std::vector<bool> literal(functor.arguments.size(), false);
  for (const Functor::Node &node : functor.nodes)
    literal.push_back(llvm::all_of(
        node.operands, [&](unsigned operand) { return literal[operand]; }));
  return literal;
}

} // namespace tenon::codegen
