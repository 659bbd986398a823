//===- main.cpp - tenon-run: executes the text form ----------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

/// \file
/// Executes the `// run:` lines of a .tn file (RunLine.h has their grammar) on a
/// target and compares with what they expect; or, with --inputs, runs the first
/// function on tensors from a file. Exits with 1 when anything differs.

#include "Arguments.h"
#include "RunLine.h"
#include "Target.h"
#include "tools/common/TensorFile.h"
#include "ir/eval/Evaluator.h"
#include "ir/support/Diag.h"
#include "ir/text/Text.h"
#include "ir/verify/Verify.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace tenon;
using namespace tenon::run;
namespace cl = llvm::cl;

namespace {

cl::OptionCategory options("tenon-run options");
cl::opt<std::string> inputFile(cl::Positional, cl::desc("FILE.tn"),
                               cl::Required, cl::cat(options));
cl::opt<std::string> targetName("target", cl::init("ref"),
                                cl::desc("what to run on (ref)"),
                                cl::cat(options));
cl::opt<std::string> inputsPath("inputs", cl::value_desc("F.npz"),
                                cl::desc("run the first function on these"),
                                cl::cat(options));
cl::opt<int64_t> maxContext("max-context", cl::init(0), cl::value_desc("N"),
                            cl::desc("caches become state with room for N"),
                            cl::cat(options));
cl::opt<std::string> outputsPath("outputs", cl::value_desc("F.npz"),
                                 cl::desc("where its results go"),
                                 cl::cat(options));

using Tensors = std::vector<ir::Tensor>;

llvm::Error compareAll(llvm::ArrayRef<ir::Tensor> found,
                       llvm::ArrayRef<ir::Tensor> expected,
                       ir::Tolerance tolerance) {
  if (found.size() != expected.size())
    return userError("{0} results, expected {1}", found.size(),
                     expected.size());
  for (size_t i = 0; i != found.size(); ++i) {
    ir::Comparison result = compare(found[i], expected[i], tolerance);
    if (!result.equal)
      return userError("result {0}: {1}", i, result.message);
  }
  return llvm::Error::success();
}

/// An empty literal doesn't say its trailing dimensions: any empty tensor fits.
llvm::Expected<Tensors> expectedTensors(const Expectation &expectation,
                                        llvm::ArrayRef<ir::Tensor> found) {
  Tensors tensors;
  for (auto [i, literal] : llvm::enumerate(expectation.literals)) {
    bool empty = i < found.size() && found[i].numElements() == 0 &&
                 literal.elements.empty() && !literal.shape.empty();
    if (empty) {
      tensors.push_back(found[i]);
      continue;
    }
    llvm::Expected<ir::Tensor> tensor = makeTensor(
        literal,
        i < found.size() ? found[i].element : ir::ElementType::F32);
    if (!tensor)
      return tensor.takeError();
    tensors.push_back(std::move(*tensor));
  }
  return tensors;
}

llvm::Error checkError(llvm::Expected<Tensors> results,
                       llvm::StringRef expected) {
  if (results)
    return userError("no error, expected '{0}'", expected);
  std::string message = llvm::toString(results.takeError());
  // Other targets word it their way.
  if (targetName != "ref" || llvm::StringRef(message).contains(expected))
    return llvm::Error::success();
  return userError("the error is '{0}', expected '{1}'", message, expected);
}

void printAll(llvm::StringRef func, llvm::ArrayRef<ir::Tensor> results) {
  for (size_t i = 0; i != results.size(); ++i) {
    llvm::outs() << '@' << func << " result " << i << ": ";
    printTensor(results[i], llvm::outs());
    llvm::outs() << '\n';
  }
}

llvm::Error checkResults(const Run &run, const ir::Func &func,
                         llvm::ArrayRef<ir::Tensor> inputs,
                         llvm::ArrayRef<ir::Tensor> results) {
  const Expectation &expectation = run.expectation;
  if (expectation.form == Expectation::Form::Literals) {
    llvm::Expected<Tensors> expected = expectedTensors(expectation, results);
    if (!expected)
      return expected.takeError();
    return compareAll(results, *expected, expectation.tolerance);
  }
  if (expectation.form == Expectation::Form::Reference) {
    if (targetName == "ref")
      return llvm::Error::success();
    llvm::Expected<Tensors> expected = ir::evaluate(func, inputs);
    if (!expected)
      return expected.takeError();
    return compareAll(results, *expected, expectation.tolerance);
  }
  printAll(func.name, results);
  return llvm::Error::success();
}

llvm::Error execute(const ir::RunLine &line, const ir::Module &module,
                    Target &target) {
  llvm::Expected<Run> run = parseRun(line.text);
  if (!run)
    return run.takeError();
  auto it = llvm::find_if(
      module.funcs, [&](const auto &f) { return f->name == run->func; });
  if (it == module.funcs.end())
    return userError("there is no function '@{0}'", run->func);
  const ir::Func &func = **it;
  llvm::Expected<Tensors> inputs = makeArguments(*run, func);
  if (!inputs)
    return inputs.takeError();
  llvm::Expected<Tensors> results = target.run(module, func, *inputs);
  if (run->expectation.form == Expectation::Form::Error)
    return checkError(std::move(results), run->expectation.errorText);
  if (!results)
    return results.takeError();
  return checkResults(*run, func, *inputs, *results);
}

llvm::Error executeAll(const ir::ParsedFile &file, Target &target) {
  llvm::Error errors = llvm::Error::success();
  size_t leftOut = 0;
  for (const ir::RunLine &line : file.runLines) {
    llvm::Error error =
        llvm::handleErrors(execute(line, *file.module, target),
                           [&](const NoKernel &) { ++leftOut; });
    if (error)
      errors = llvm::joinErrors(
          std::move(errors),
          withPrefix(std::move(error), inputFile + ":" +
                                           llvm::Twine(line.line) +
                                           ": error: "));
  }
  if (errors)
    return errors;
  llvm::outs() << inputFile << ": " << file.runLines.size() - leftOut
               << " runs passed on " << targetName;
  if (leftOut != 0)
    llvm::outs() << ", " << leftOut << " without a kernel";
  llvm::outs() << '\n';
  return llvm::Error::success();
}

llvm::Error executeFile(const ir::ParsedFile &file, Target &target) {
  const ir::Func &func = file.module->entry();
  llvm::Expected<Tensors> inputs = tools::readInputs(inputsPath, func);
  if (!inputs)
    return inputs.takeError();
  llvm::Expected<Tensors> results = target.run(*file.module, func, *inputs);
  if (!results)
    return results.takeError();
  if (!outputsPath.empty())
    return tools::writeOutputs(outputsPath, func, *results);
  printAll(func.name, *results);
  return llvm::Error::success();
}

llvm::Error runTool() {
  llvm::Expected<std::unique_ptr<Target>> target = makeTarget(targetName);
  if (!target)
    return target.takeError();
  (*target)->maxContext = maxContext;
  auto buffer = llvm::MemoryBuffer::getFile(inputFile, /*IsText=*/true);
  if (!buffer)
    return userError("{0}: {1}", inputFile.getValue(),
                     buffer.getError().message());
  llvm::Expected<ir::ParsedFile> file = ir::parse((*buffer)->getMemBufferRef());
  if (!file)
    return file.takeError();
  if (llvm::Error error = ir::verify(*file->module))
    return withPrefix(std::move(error), inputFile + ": error: ");
  if (!inputsPath.empty())
    return executeFile(*file, **target);
  return executeAll(*file, **target);
}

} // namespace

int main(int argc, char **argv) {
  cl::HideUnrelatedOptions(options);
  cl::ParseCommandLineOptions(argc, argv,
                              "Executes Tenon's text form of a graph\n");
  llvm::Error error = runTool();
  if (!error)
    return 0;
  llvm::handleAllErrors(std::move(error), [](const llvm::ErrorInfoBase &e) {
    llvm::errs() << e.message() << '\n';
  });
  return 1;
}
