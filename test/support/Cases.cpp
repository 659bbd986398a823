//===- Cases.cpp - running many models in one process --------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/support/Cases.h"

#include "frontend/Import.h"
#include "ir/eval/Evaluator.h"
#include "ir/support/Diag.h"
#include "ir/verify/Verify.h"
#include "passes/Pipelines.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <algorithm>
#include <csignal>
#include <cstring>
#include <sys/wait.h>
#include <unistd.h>

using namespace tenon;

llvm::Expected<std::unique_ptr<ir::Module>>
test::importModel(llvm::StringRef path) {
  frontend::ImportOptions options;
  options.warn = [](llvm::StringRef) {};
  auto module = frontend::importOnnx(path, options);
  if (!module)
    return module.takeError();
  if (llvm::Error error = ir::verify(**module))
    return withPrefix(std::move(error), "verifier: ");
  return module;
}

llvm::Expected<test::Tensors> test::readTensors(llvm::StringRef path) {
  if (path == "-")
    return Tensors();
  auto module = importModel(path);
  if (!module)
    return module.takeError();
  return ir::evaluate((*module)->entry(), {});
}

llvm::Error test::checkInputs(const ir::Func &func, const Tensors &inputs) {
  if (inputs.size() != func.body.numArguments())
    return userError("{0} inputs given, expected {1}", inputs.size(),
                     func.body.numArguments());
  for (auto [i, input] : llvm::enumerate(inputs))
    if (input.element != func.body.argument(i)->element())
      return userError("input {0} is {1}, expected {2}", i,
                       mnemonic(input.element), func.body.argument(i)->type);
  return llvm::Error::success();
}

llvm::Error test::runPasses(ir::Module &module, llvm::StringRef target) {
  passes::PassOptions options;
  options.halves =
      target == "cpu" ? passes::Halves::Weights : passes::Halves::Everywhere;
  passes::Remarks remarks;
  auto result = passes::runPipeline(module, ir::Stage::Fused, options, remarks,
                                    llvm::nulls());
  return result ? llvm::Error::success() : result.takeError();
}

void test::report(unsigned number, llvm::StringRef status, llvm::Error error) {
  std::string message = llvm::toString(std::move(error));
  std::replace(message.begin(), message.end(), '\n', ' ');
  llvm::outs() << number << '\t' << status;
  if (!message.empty())
    llvm::outs() << '\t' << message;
  llvm::outs() << '\n';
  llvm::outs().flush();
}

void test::runApart(unsigned number, unsigned seconds,
                    llvm::function_ref<void()> body) {
  llvm::outs().flush();
  pid_t child = fork();
  if (child == 0) {
    alarm(seconds);
    body();
    _exit(0);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child)
    report(number, "crash", userError("no process for it"));
  else if (WIFSIGNALED(status))
    report(number, "crash", userError("{0}", strsignal(WTERMSIG(status))));
  else if (WEXITSTATUS(status) != 0)
    report(number, "crash", userError("exit status {0}", WEXITSTATUS(status)));
}
