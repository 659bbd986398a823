//===- Target.h - what tenon-run executes on -----------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_TOOLS_TENON_RUN_TARGET_H
#define TENON_TOOLS_TENON_RUN_TARGET_H

#include "ir/Op.h"
#include "ir/eval/Tensor.h"
#include "llvm/Support/Error.h"
#include <memory>
#include <string>
#include <vector>

namespace tenon::run {

/// A target has no kernel for something in a function. That is not a failure of
/// a test: the run is counted as left out.
class NoKernel final : public llvm::ErrorInfo<NoKernel> {
public:
  static char ID;
  explicit NoKernel(std::string text) : text(std::move(text)) {}
  void log(llvm::raw_ostream &os) const override { os << text; }
  std::error_code convertToErrorCode() const override {
    return llvm::inconvertibleErrorCode();
  }

private:
  std::string text;
};

/// Executes functions of the graph IR. A target that compiles may keep what it
/// made for a function until the module changes, which it doesn't.
class Target {
public:
  virtual ~Target() = default;
  /// Makes all functions of \p modules ready at once, where that is cheaper:
  /// they share compiled units. They must outlive their runs.
  virtual void prepare(llvm::ArrayRef<const ir::Module *> modules) {}
  virtual llvm::Expected<std::vector<ir::Tensor>>
  run(const ir::Module &module, const ir::Func &func,
      llvm::ArrayRef<ir::Tensor> inputs) = 0;
  /// --max-context, for targets that compile.
  int64_t maxContext = 0;
};

/// The target called \p name; an error lists those there are. To add one, add a
/// line to the table in Target.cpp.
llvm::Expected<std::unique_ptr<Target>> makeTarget(llvm::StringRef name);

} // namespace tenon::run

#endif // TENON_TOOLS_TENON_RUN_TARGET_H
