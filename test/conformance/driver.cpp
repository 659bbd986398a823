//===- driver.cpp - runs many ONNX test cases in one process -------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

/// \file
/// tenon-conformance TARGET LIST: each line of LIST is a case, with the fields
/// MODEL.onnx, INPUTS.onnx, EXPECTED.onnx, RTOL, ATOL separated by tabs. The
/// tensors are initializers that are outputs of a graph without nodes, which
/// is how ONNX stores every element type; `-` where there are none. An empty
/// line ends a batch: its cases share compiled units.
///
/// Prints for the case of each line, numbered from 0, `N begin` before it is
/// imported, and what became of it: `N pass`, or `N`, how far it came, and the
/// message, separated by tabs.

#include "ir/eval/Compare.h"
#include "ir/support/Diag.h"
#include "test/support/Cases.h"
#include "tools/tenon-run/Target.h"
#include "llvm/Support/LineIterator.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace tenon;

namespace {

using test::report;
using test::Tensors;

/// A case that was imported and awaits its run.
struct Case {
  unsigned number;
  std::unique_ptr<ir::Module> module;
  Tensors inputs, expected;
  ir::Tolerance tolerance;
};

/// Reads what a line names. Errors are the case's own, at stage "import".
llvm::Expected<Case> readCase(unsigned number,
                              llvm::ArrayRef<llvm::StringRef> fields) {
  Case result{number, nullptr, {}, {}, {}};
  if (fields.size() != 5 || fields[3].getAsDouble(result.tolerance.rtol) ||
      fields[4].getAsDouble(result.tolerance.atol))
    return userError("malformed case");
  auto module = test::importModel(fields[0]);
  if (!module)
    return module.takeError();
  result.module = std::move(*module);
  for (auto [path, tensors] : {std::pair(fields[1], &result.inputs),
                               std::pair(fields[2], &result.expected)}) {
    llvm::Expected<Tensors> read = test::readTensors(path);
    if (!read)
      return read.takeError();
    *tensors = std::move(*read);
  }
  if (llvm::Error error =
          test::checkInputs(result.module->entry(), result.inputs))
    return error;
  return result;
}

void runCase(const Case &test, run::Target &target) {
  const ir::Func &func = test.module->entry();
  llvm::Expected<Tensors> results = target.run(*test.module, func, test.inputs);
  if (!results) {
    llvm::Error error = results.takeError();
    bool noKernel = error.isA<run::NoKernel>();
    return report(test.number, noKernel ? "select" : "run", std::move(error));
  }
  for (size_t i = 0; i != test.expected.size(); ++i) {
    ir::Comparison result =
        ir::compare((*results)[i], test.expected[i], test.tolerance);
    if (!result.equal)
      return report(test.number, "differ",
                    userError("output {0}: {1}", i, result.message));
  }
  report(test.number, "pass");
}

void runBatch(std::vector<Case> &cases, llvm::StringRef targetName) {
  auto target = llvm::cantFail(run::makeTarget(targetName));
  std::vector<const ir::Module *> modules;
  for (const Case &test : cases)
    modules.push_back(test.module.get());
  target->prepare(modules);
  for (const Case &one : cases)
    test::runApart(one.number, 120, [&] { runCase(one, *target); });
  cases.clear();
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 3) {
    llvm::errs() << "usage: tenon-conformance TARGET LIST\n";
    return 2;
  }
  llvm::StringRef target = argv[1];
  if (auto known = run::makeTarget(target); !known) {
    llvm::errs() << llvm::toString(known.takeError()) << '\n';
    return 2;
  }
  auto buffer = llvm::MemoryBuffer::getFile(argv[2], /*IsText=*/true);
  if (!buffer) {
    llvm::errs() << argv[2] << ": " << buffer.getError().message() << '\n';
    return 2;
  }
  std::vector<Case> batch;
  unsigned number = 0;
  for (llvm::line_iterator line(**buffer, /*SkipBlanks=*/false);
       !line.is_at_end(); ++line) {
    if (line->empty()) {
      runBatch(batch, target);
      continue;
    }
    llvm::SmallVector<llvm::StringRef, 5> fields;
    line->split(fields, '\t');
    report(number, "begin");
    llvm::Expected<Case> read = readCase(number++, fields);
    if (!read) {
      report(number - 1, "import", read.takeError());
      continue;
    }
    if (target != "ref")
      if (llvm::Error error = test::runPasses(*read->module, target)) {
        report(number - 1, "passes", std::move(error));
        continue;
      }
    batch.push_back(std::move(*read));
  }
  runBatch(batch, target);
  return 0;
}
