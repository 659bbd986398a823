//===- Emit.cpp - units as C++ source ------------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/Codegen.h"
#include "codegen/emit/CppText.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FormatVariadic.h"
#include <algorithm>

namespace tenon::codegen {

using ir::ElementType;
using kernel::Access;
using kernel::Functor;
using kernel::Unit;

namespace {

enum class FunctorKind { None, Loop, Epilogue };
/// Units that share templates share a translation unit.
enum class Group { Contraction, Attention, Other, Bulk };
constexpr llvm::StringLiteral groupNames[] = {"contraction", "attention",
                                              "other", "bulk"};
/// So many units are one source at most: a big model compiles in parallel.
constexpr size_t maxUnits[] = {16, 8, 48, 8};

struct KernelInfo {
  llvm::StringLiteral name, target, header, entry;
  FunctorKind functor;
  Group group;
};

constexpr KernelInfo kernels[] = {
#define TN_KERNEL(name, target, header, entry, functor, group, ops)            \
  {#name, #target, header, entry, FunctorKind::functor, Group::group},
#include "codegen/kernels/Kernels.def"
};

const KernelInfo &kernelInfo(llvm::StringRef name, Target target) {
  llvm::StringRef wanted = target == Target::Cuda ? "cuda" : "cpu";
  const KernelInfo *found = llvm::find_if(kernels, [&](const KernelInfo &info) {
    return info.name == name && (info.target == wanted || info.target == "any");
  });
  assert(found != std::end(kernels) && "a kernel that Kernels.def lacks");
  return *found;
}

/// "x86-64-v4" as the end of a C++ name: "v4".
std::string suffixOf(const CpuForm &form) {
  llvm::StringRef name = form.name;
  if (!name.consume_front("x86-64-"))
    return "v1";
  std::string suffix = name.str();
  std::replace(suffix.begin(), suffix.end(), '-', '_');
  return suffix;
}

std::string entryName(unsigned unit, const CpuForm &form) {
  return llvm::formatv("tn_unit_{0}_{1}", unit, suffixOf(form));
}

/// How an epilogue's functor reads argument \p i, operand i - 1 of the launch:
/// on a GPU one element as it lies in memory, else a vector.
std::string loadText(const Functor &functor, unsigned i, Target target) {
  const Functor::Argument &argument = functor.arguments[i];
  if (argument.access == Access::Value)
    return "x" + std::to_string(i);
  static constexpr llvm::StringLiteral names[] = {
      "", "load_row", "load_col", "load_scalar", "load_full", "load_any"};
  if (target == Target::Cuda)
    return llvm::formatv("tn::{0}<{1}>(e, {2}, row, col)",
                         names[unsigned(argument.access)],
                         storageType(argument.element), i - 1);
  bool mask = argument.element == ElementType::Bool;
  return llvm::formatv("tn::{0}<{1}>(e, {2}, row, col)",
                       names[unsigned(argument.access)],
                       mask ? "tn::mask_type<V>" : "V", i - 1);
}

void writeLines(llvm::raw_ostream &os, const FunctorText &text) {
  for (const std::string &line : text.lines)
    os << "    " << line << '\n';
}

void writeEpilogue(llvm::raw_ostream &os, unsigned unit, const Functor &functor,
                   Target target) {
  std::vector<std::string> arguments;
  for (unsigned i = 0; i < functor.arguments.size(); ++i)
    arguments.push_back(loadText(functor, i, target));
  FunctorText text = functorText(functor, arguments);
  os << "// " << text.formula << "\nstruct Functor" << unit << " {\n"
     << (target == Target::Cuda
             ? "  template <class V, class A>\n"
               "  static TN_FN auto apply(V x0, const A &e, int64_t row,\n"
               "                          int64_t col) {\n"
             : "  template <class V>\n"
               "  static TN_FN V apply(V x0, const tn::EpilogueArgs &e, "
               "int64_t row,\n"
               "                       int64_t col) {\n");
  writeLines(os, text);
  os << "    return " << text.results[0] << ";\n  }\n};\n\n";
}

void writeLoopBody(llvm::raw_ostream &os, unsigned unit,
                   const Functor &functor) {
  std::vector<std::string> arguments, declared;
  for (unsigned i = 0; i < functor.arguments.size(); ++i) {
    arguments.push_back("x" + std::to_string(i));
    declared.push_back("auto " + arguments.back());
  }
  FunctorText text = functorText(functor, arguments);
  os << "// " << text.formula << "\nstruct Functor" << unit << " {\n"
     << "  static TN_FN auto apply(" << llvm::join(declared, ", ") << ") {\n";
  writeLines(os, text);
  std::string results = llvm::join(text.results, ", ");
  if (text.results.size() > 1)
    results = "tn::results(" + results + ")";
  os << "    return " << results << ";\n  }\n};\n\n";
}

void writeConfig(llvm::raw_ostream &os, unsigned number, const Unit &unit) {
  os << "struct Cfg" << number << " {\n";
  for (const kernel::ConfigMember &member : unit.config) {
    if (member.type == "using")
      os << "  using " << member.name << " = " << member.value << ";\n";
    else
      os << "  static constexpr " << member.type << ' ' << member.name << " = "
         << member.value << ";\n";
  }
  os << "};\n\n";
}

/// One unit: its Cfg, its functor and the entry point; of a CPU \p form or, if
/// that is null, for CUDA.
void writeUnit(llvm::raw_ostream &os, unsigned number, const Unit &unit,
               const CpuForm *form) {
  Target target = form ? Target::Cpu : Target::Cuda;
  const KernelInfo &info = kernelInfo(unit.kernel, target);
  os << "// Unit " << number << ": " << unit.kernel << "\nnamespace {\n\n";
  writeConfig(os, number, unit);
  std::string functor;
  if (info.functor == FunctorKind::Epilogue && unit.functors[0].nodes.empty()) {
    functor = ", tn::Identity";
  } else if (info.functor != FunctorKind::None) {
    functor = ", Functor" + std::to_string(number);
    if (info.functor == FunctorKind::Loop)
      writeLoopBody(os, number, unit.functors[0]);
    else
      writeEpilogue(os, number, unit.functors[0], target);
  }
  os << "} // namespace\n\n";
  if (!form) {
    bool maps = info.group == Group::Bulk;
    os << (maps ? "TN_UNIT_MAPS(" : "TN_UNIT(") << number << ", " << info.entry
       << "<Cfg" << number << functor << ">)\n\n";
    return;
  }
  os << "extern \"C\" void " << entryName(number, *form)
     << "(const tn_args *args) {\n  " << info.entry << "<Cfg" << number
     << functor << ">(args);\n}\n\n";
}

Source writeSource(llvm::ArrayRef<Unit> units, llvm::ArrayRef<unsigned> chosen,
                   llvm::StringRef name, const CpuForm *form) {
  Source source;
  source.form = form;
  llvm::SetVector<llvm::StringRef> headers;
  if (form) {
    source.name = llvm::formatv("{0}.{1}.cpp", name, form->name);
  } else {
    source.name = (name + ".cu").str();
    source.target = Target::Cuda;
    source.units = chosen.vec();
    headers.insert("kernels/cuda/common.cuh");
  }
  llvm::raw_string_ostream os(source.text);
  for (unsigned unit : chosen)
    headers.insert(kernelInfo(units[unit].kernel, source.target).header);
  for (llvm::StringRef header : headers)
    os << "#include \"" << header << "\"\n";
  os << '\n';
  for (unsigned unit : chosen)
    writeUnit(os, unit, units[unit], form);
  return source;
}

/// The tables that the runtime finds the units by.
Source writeForms(size_t numUnits, llvm::ArrayRef<const CpuForm *> forms) {
  Source source;
  source.name = "forms.cpp";
  source.form = nullptr;
  llvm::raw_string_ostream os(source.text);
  os << "#pragma GCC visibility push(default)\n"
        "#include \"runtime/format/units.h\"\n"
        "#pragma GCC visibility pop\n\nextern \"C\" {\n\n";
  for (const CpuForm *form : forms)
    for (unsigned i = 0; i < numUnits; ++i)
      os << "void " << entryName(i, *form) << "(const tn_args *args);\n";
  os << "\n}\n\nnamespace {\n\n";
  for (const CpuForm *form : forms) {
    os << "const tn_unit units_" << suffixOf(*form) << "[] = {\n";
    for (unsigned i = 0; i < numUnits; ++i)
      os << "    " << entryName(i, *form) << ",\n";
    os << "    nullptr,\n};\n\n";
  }
  os << "const tn_form forms[" << forms.size() + 1 << "] = {\n";
  for (const CpuForm *form : forms)
    os << "    {\"" << form->name << "\", " << form->features << "u, "
       << numUnits << "u, units_" << suffixOf(*form) << "},\n";
  os << "};\n\n} // namespace\n\nextern \"C\" {\n\n"
     << "const tn_form *const tenon_forms = forms;\n"
     << "const uint32_t tenon_num_forms = " << forms.size() << ";\n\n}\n";
  return source;
}

} // namespace

std::vector<Source> emitUnits(llvm::ArrayRef<Unit> units,
                              const TargetOptions &options) {
  bool cuda = options.target == Target::Cuda;
  std::vector<const CpuForm *> forms = options.forms;
  if (cuda)
    forms.clear();
  else if (forms.empty())
    forms = llvm::cantFail(parseCpuForms("native"));
  std::vector<unsigned> groups[std::size(groupNames)];
  for (const auto &[i, unit] : llvm::enumerate(units))
    groups[unsigned(kernelInfo(unit.kernel, options.target).group)].push_back(
        i);
  std::vector<Source> sources;
  for (const CpuForm *form :
       cuda ? std::vector<const CpuForm *>{nullptr} : forms) {
    for (const auto &[g, members] : llvm::enumerate(groups)) {
      llvm::ArrayRef<unsigned> rest = members;
      for (unsigned n = 0; !rest.empty(); ++n) {
        size_t count = std::min(rest.size(), maxUnits[g]);
        std::string name = llvm::formatv("{0}-{1}", groupNames[g], n);
        sources.push_back(
            writeSource(units, rest.take_front(count), name, form));
        rest = rest.drop_front(count);
      }
    }
  }
  sources.push_back(writeForms(units.size(), forms));
  return sources;
}

std::vector<Unit> shareUnits(llvm::ArrayRef<kernel::Program *> programs) {
  std::vector<Unit> shared;
  llvm::StringMap<unsigned> numbers;
  for (kernel::Program *program : programs) {
    std::vector<unsigned> number;
    for (Unit &unit : program->units) {
      std::string text;
      llvm::raw_string_ostream os(text);
      kernel::print(unit, os);
      auto [entry, isNew] = numbers.try_emplace(text, shared.size());
      if (isNew)
        shared.push_back(unit);
      number.push_back(entry->second);
    }
    for (kernel::Launch &launch : program->launches) {
      if (launch.unit != kernel::none)
        launch.unit = number[launch.unit];
      for (kernel::Variant &variant : launch.variants)
        variant.unit = number[variant.unit];
    }
  }
  for (kernel::Program *program : programs)
    program->units = shared;
  return shared;
}

} // namespace tenon::codegen
