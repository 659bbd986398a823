//===- Target.cpp - what tenon-run executes on ---------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Target.h"

#include "CompiledTarget.h"
#include "ir/eval/Evaluator.h"
#include "ir/support/Diag.h"

using namespace tenon;
using namespace tenon::run;

char NoKernel::ID = 0;

namespace {

class ReferenceTarget final : public Target {
public:
  llvm::Expected<std::vector<ir::Tensor>>
  run(const ir::Module &, const ir::Func &func,
      llvm::ArrayRef<ir::Tensor> inputs) override {
    return ir::evaluate(func, inputs);
  }
};

template <class T> std::unique_ptr<Target> make() {
  return std::make_unique<T>();
}

struct Entry {
  llvm::StringLiteral name;
  std::unique_ptr<Target> (*make)();
};

template <codegen::Target Which> std::unique_ptr<Target> makeCompiled() {
  return std::make_unique<CompiledTarget>(Which);
}

constexpr Entry targets[] = {
    {"ref", make<ReferenceTarget>},
    {"cpu", makeCompiled<codegen::Target::Cpu>},
    {"cuda", makeCompiled<codegen::Target::Cuda>}, // on the emulator
};

} // namespace

llvm::Expected<std::unique_ptr<Target>>
tenon::run::makeTarget(llvm::StringRef name) {
  std::string known;
  for (const Entry &entry : targets) {
    if (entry.name == name)
      return entry.make();
    known += (known.empty() ? "" : ", ") + entry.name.str();
  }
  return userError("there is no target '{0}', only {1}", name, known);
}
