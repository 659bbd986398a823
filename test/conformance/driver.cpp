//===- driver.cpp - runs many ONNX test cases in one process -------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

/// \file
/// tenon-conformance LIST: each line of LIST is a case, with the fields
/// MODEL.onnx, INPUTS.npz, EXPECTED.npz, RTOL, ATOL separated by tabs. Prints
/// one line for each, in order: `pass`, or `import`, `run` or `differ` and after
/// a tab the message.

#include "frontend/Import.h"
#include "ir/eval/Compare.h"
#include "ir/eval/Evaluator.h"
#include "ir/support/Diag.h"
#include "ir/verify/Verify.h"
#include "tools/common/TensorFile.h"
#include "llvm/Support/LineIterator.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace tenon;

namespace {

/// How far a case came.
struct Outcome {
  llvm::StringRef status = "pass";
  llvm::Error error = llvm::Error::success();
};

Outcome compareAll(llvm::ArrayRef<ir::Tensor> found,
                   llvm::ArrayRef<ir::Tensor> expected,
                   ir::Tolerance tolerance) {
  for (size_t i = 0; i != expected.size(); ++i) {
    ir::Comparison result = ir::compare(found[i], expected[i], tolerance);
    if (!result.equal)
      return {"differ", userError("output {0}: {1}", i, result.message)};
  }
  return {};
}

Outcome runCase(llvm::ArrayRef<llvm::StringRef> fields) {
  ir::Tolerance tolerance;
  if (fields.size() != 5 || fields[3].getAsDouble(tolerance.rtol) ||
      fields[4].getAsDouble(tolerance.atol))
    return {"run", userError("malformed case")};
  frontend::ImportOptions options;
  options.warn = [](llvm::StringRef) {};
  auto module = frontend::importOnnx(fields[0], options);
  if (!module)
    return {"import", module.takeError()};
  if (llvm::Error error = ir::verify(**module))
    return {"import", withPrefix(std::move(error), "verifier: ")};
  const ir::Func &func = (*module)->entry();
  auto inputs = tools::readInputs(fields[1].str(), func);
  if (!inputs)
    return {"run", inputs.takeError()};
  auto expected = tools::readOutputs(fields[2].str(), func);
  if (!expected)
    return {"differ", expected.takeError()};
  auto results = ir::evaluate(func, *inputs);
  if (!results)
    return {"run", results.takeError()};
  return compareAll(*results, *expected, tolerance);
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 2) {
    llvm::errs() << "usage: tenon-conformance LIST\n";
    return 2;
  }
  auto buffer = llvm::MemoryBuffer::getFile(argv[1], /*IsText=*/true);
  if (!buffer) {
    llvm::errs() << argv[1] << ": " << buffer.getError().message() << '\n';
    return 2;
  }
  for (llvm::line_iterator line(**buffer); !line.is_at_end(); ++line) {
    llvm::SmallVector<llvm::StringRef, 5> fields;
    line->split(fields, '\t');
    Outcome outcome = runCase(fields);
    std::string message = llvm::toString(std::move(outcome.error));
    std::replace(message.begin(), message.end(), '\n', ' ');
    llvm::outs() << outcome.status;
    if (!message.empty())
      llvm::outs() << '\t' << message;
    llvm::outs() << '\n';
    llvm::outs().flush();
  }
  return 0;
}
