//===- Predicate.cpp - whether a graph still shows a fault ---------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "tools/tenon-reduce/Predicate.h"

#include "ir/support/Diag.h"
#include "ir/text/SideFile.h"
#include "passes/Pipelines.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Program.h"
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace tenon;
using namespace tenon::reduce;

llvm::Error reduce::runPasses(ir::Module &module, const Passes &passes,
                              llvm::raw_ostream &log) {
  passes::Remarks remarks;
  passes::PassManager manager(passes.options, remarks, log);
  for (const std::string &name : passes.names) {
    const passes::PassInfo *pass = passes::findPass(name);
    if (!pass)
      return userError("there is no pass '{0}'", name);
    llvm::Expected<bool> changed = manager.run(module, *pass);
    if (!changed)
      return changed.takeError();
  }
  if (passes.pipeline == ir::Stage::Imported)
    return llvm::Error::success();
  auto result = passes::runPipeline(module, passes.pipeline, passes.options,
                                    remarks, log);
  return result ? llvm::Error::success() : result.takeError();
}

std::optional<int> reduce::runApart(llvm::function_ref<int()> body,
                                    unsigned seconds) {
  llvm::outs().flush();
  pid_t child = fork();
  if (child == 0) {
    int nowhere = open("/dev/null", O_WRONLY);
    dup2(nowhere, STDOUT_FILENO);
    dup2(nowhere, STDERR_FILENO);
    alarm(seconds);
    _exit(body());
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status))
    return std::nullopt;
  return WEXITSTATUS(status);
}

bool Command::isInteresting(const ir::Module &module) const {
  std::string path = folder + "/candidate.tn";
  // From the last candidate; this one may have none.
  llvm::sys::fs::remove(ir::sideFilePath(path));
  ir::PrintOptions print;
  print.locations = false;
  if (llvm::Error error = ir::writeFile(module, path, print)) {
    llvm::consumeError(std::move(error));
    return false;
  }
  // The file's name is an argument, not part of what the shell reads.
  std::string script = text + " \"$@\"";
  std::optional<llvm::StringRef> silent[] = {std::nullopt, llvm::StringRef(),
                                             llvm::StringRef()};
  return llvm::sys::ExecuteAndWait("/bin/sh", {"sh", "-c", script, "sh", path},
                                   std::nullopt, silent, seconds) == 0;
}
