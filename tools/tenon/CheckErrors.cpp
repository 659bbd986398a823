//===- CheckErrors.cpp - what a way of storing numbers costs in accuracy --===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/tenon/CheckErrors.h"
#include "codegen/Codegen.h"
#include "codegen/artifact/Artifact.h"
#include "ir/eval/Tensor.h"
#include "ir/support/Diag.h"
#include "passes/Pipelines.h"
#include "runtime/Cpu.h"
#include "runtime/Session.h"
#include "runtime/device/Device.h"
#include "tools/common/LoadModule.h"
#include "tools/common/TensorFile.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>
#include <cstring>
#include <random>

using namespace llvm;
using namespace tenon;
using namespace tenon::tools;

namespace {

Error toError(const rt::Status &status) {
  return status.ok() ? Error::success() : userError("{0}", status.message());
}

//===----------------------------------------------------------------------===//
// Inputs that nobody gave
//===----------------------------------------------------------------------===//

/// Makes up an input for each argument of a function: one sequence of 16, with
/// nothing before it, as far as the ranges of sizes allow.
class Inputs {
public:
  Inputs(const ir::Module &module, const ir::Func &func)
      : module(module), func(func) {}

  Expected<std::vector<ir::Tensor>> make() {
    std::vector<ir::Tensor> all;
    for (unsigned i = 0; i < func.body.numArguments(); ++i) {
      const ir::Value *argument = func.body.argument(i);
      SmallVector<int64_t, 4> shape;
      for (ir::Dim dim : argument->shape()) {
        std::optional<int64_t> size = dim.evaluate(
            [&](StringRef name) { return std::optional(sizeOf(name)); });
        if (!size || *size < 0 || *size > (1 << 24))
          return userError("no inputs can be made up for '{0}', which is {1}; "
                           "give some with --inputs",
                           func.inputs[i].name, argument->type);
        shape.push_back(*size);
      }
      all.push_back(fill(*argument, func.inputs[i].name, shape));
    }
    return all;
  }

private:
  int64_t sizeOf(StringRef symbol) const {
    int64_t wanted = symbol.contains("past") ? 0 : 16;
    if (symbol.contains("batch"))
      wanted = 1;
    ir::DimRange range = module.rangeOf(symbol);
    return std::max(range.low, std::min(range.high, wanted));
  }

  ir::Tensor fill(const ir::Value &argument, StringRef name,
                  ArrayRef<int64_t> shape) {
    ir::Tensor tensor(argument.element(), shape);
    int64_t last = shape.empty() ? 1 : shape.back();
    int64_t limit = isFloat(tensor.element) ? 0 : rowsOf(argument);
    std::uniform_real_distribution<double> real(-1, 1);
    for (uint64_t i = 0; i < tensor.numElements(); ++i) {
      if (isFloat(tensor.element))
        tensor.set(i, real(random));
      else if (name.contains("mask") || tensor.element == ir::ElementType::Bool)
        tensor.setInt(i, 1);
      else if (name.contains("position"))
        tensor.setInt(i, int64_t(i) % last);
      else if (name.contains("type") || limit < 2)
        tensor.setInt(i, 0);
      else
        tensor.setInt(i, int64_t(random() % uint64_t(limit)));
    }
    return tensor;
  }

  /// The rows of the least table that \p indices choose from, 0 if none.
  static int64_t rowsOf(const ir::Value &indices) {
    int64_t rows = 0;
    for (const ir::Use &use : indices.uses()) {
      if (use.op->kind() != ir::OpKind::Gather || use.index != 1)
        continue;
      int64_t axis = use.op->attrs<ir::AxisAttrs>().axis;
      std::optional<int64_t> size =
          use.op->operand(0)->shape()[axis].constant();
      if (size && (rows == 0 || *size < rows))
        rows = *size;
    }
    return rows;
  }

  const ir::Module &module;
  const ir::Func &func;
  std::mt19937_64 random{1};
};

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

/// A model, compiled in one way, and what it gives.
struct Run {
  uint64_t weightBytes = 0;
  std::vector<std::string> names;
  std::vector<ir::Tensor> outputs;
};

Error execute(const kernel::Program &program,
              const codegen::LoadedProgram &loaded, ArrayRef<ir::Tensor> inputs,
              Run &run) {
  auto device =
      rt::createCpuDevice(loaded.model(), unsigned(rt::availableCpus()));
  if (!device.ok())
    return userError("{0}", device.message());
  std::unique_ptr<rt::Session> session =
      rt::Session::create(loaded.model(), std::move(*device));
  for (const auto &[i, input] : enumerate(inputs))
    if (Error error = toError(session->setInput(
            i, rt::DType(input.element), input.shape, input.bytes.data())))
      return error;
  if (Error error = toError(session->run()))
    return error;
  for (const auto &[i, port] : enumerate(program.outputs)) {
    const rt::OutputValue &value = session->output(i);
    ir::Tensor tensor(ir::ElementType(value.dtype),
                      ArrayRef(value.shape.data(), value.shape.size()));
    if (size_t size = std::min<size_t>(tensor.bytes.size(), value.bytes))
      std::memcpy(tensor.bytes.data(), value.data, size);
    run.names.push_back(port.name);
    run.outputs.push_back(std::move(tensor));
  }
  return Error::success();
}

/// \p inputs are made or read at the first run.
Expected<Run> compileAndRun(const ErrorCheck &check,
                            const passes::PassOptions &options,
                            std::optional<std::vector<ir::Tensor>> &inputs) {
  Expected<std::unique_ptr<ir::Module>> module =
      loadModule(check.model, check.import);
  if (!module)
    return module.takeError();
  if (!inputs) {
    const ir::Func &func = (*module)->entry();
    Expected<std::vector<ir::Tensor>> made =
        check.inputs.empty() ? Inputs(**module, func).make()
                             : readInputs(check.inputs, func);
    if (!made)
      return made.takeError();
    inputs = std::move(*made);
  }
  passes::Remarks remarks;
  Expected<passes::PipelineResult> fused =
      passes::runPipeline(**module, ir::Stage::Fused, options, remarks, errs());
  if (!fused)
    return fused.takeError();
  codegen::TargetOptions target;
  Expected<kernel::Program> program =
      codegen::lower(**module, (*module)->entry(), target);
  if (!program)
    return program.takeError();
  auto units = codegen::LoadedUnits::compile(
      codegen::emitUnits(program->units, target), {});
  if (!units)
    return units.takeError();
  auto loaded = codegen::LoadedProgram::create(*program, *units);
  if (!loaded)
    return loaded.takeError();
  Run run;
  run.weightBytes = program->weightBytes();
  if (Error error = execute(*program, **loaded, *inputs, run)) {
    if (!check.inputs.empty())
      return error;
    return userError("{0} (on inputs made up; give some with --inputs)",
                     toString(std::move(error)));
  }
  return run;
}

//===----------------------------------------------------------------------===//
// Comparing
//===----------------------------------------------------------------------===//

/// How far one tensor is from another.
struct Difference {
  double most = 0, relative = 0;
  uint64_t rows = 0, agreeing = 0;
};

Difference compare(const ir::Tensor &found, const ir::Tensor &right) {
  Difference d;
  double squares = 0, whole = 0;
  uint64_t columns = right.shape.empty() ? 1 : uint64_t(right.shape.back());
  uint64_t best = 0, bestRight = 0;
  for (uint64_t i = 0; i < right.numElements(); ++i) {
    double a = found.at(i), b = right.at(i);
    // Equal infinities are no difference.
    double delta = a == b || (std::isnan(a) && std::isnan(b)) ? 0 : a - b;
    if (!(std::fabs(delta) <= d.most))
      d.most = std::fabs(delta);
    squares += delta * delta;
    if (std::isfinite(b))
      whole += b * b;
    if (columns < 2)
      continue;
    if (i % columns == 0)
      best = bestRight = i;
    if (a > found.at(best))
      best = i;
    if (b > right.at(bestRight))
      bestRight = i;
    if (i % columns == columns - 1) {
      ++d.rows;
      d.agreeing += best == bestRight;
    }
  }
  d.relative = squares == 0 ? 0 : std::sqrt(squares / whole);
  return d;
}

/// The outputs that people look at: logits if there are any, else all floats
/// but caches.
std::vector<unsigned> interesting(const Run &run) {
  std::vector<unsigned> chosen;
  for (unsigned i = 0; i < run.outputs.size(); ++i) {
    if (run.names[i] == "logits")
      return {i};
    if (isFloat(run.outputs[i].element) &&
        !StringRef(run.names[i]).starts_with("present"))
      chosen.push_back(i);
  }
  return chosen;
}

void printRow(StringRef flags, StringRef output, const Run &run,
              const Difference &d, raw_ostream &os) {
  os << "  " << left_justify(flags, 38) << left_justify(output, 20)
     << format("%9.1f MB  %9.2e  %9.2e  ", run.weightBytes / 1e6, d.most,
               d.relative);
  if (d.rows)
    os << format("%5.1f %% of ", 100.0 * d.agreeing / d.rows) << d.rows << "\n";
  else
    os << "-\n";
}

} // namespace

Error tools::printErrors(const ErrorCheck &check, raw_ostream &os) {
  std::optional<std::vector<ir::Tensor>> inputs;
  passes::PassOptions single;
  single.precision = passes::Precision::F32;
  single.halves = passes::Halves::Weights;
  Expected<Run> right = compileAndRun(check, single, inputs);
  if (!right)
    return right.takeError();
  os << "error against f32 (weights "
     << format("%.1f MB", right->weightBytes / 1e6) << ") on "
     << (check.inputs.empty() ? std::string("inputs made up") : check.inputs)
     << ":\n  " << left_justify("", 38) << left_justify("output", 20)
     << "     weights    max abs    rel rms  top-1 agrees\n";
  for (const Choice &choice : check.choices) {
    Expected<Run> run = compileAndRun(check, choice.options, inputs);
    if (!run)
      return withPrefix(run.takeError(), choice.flags + ": ");
    for (unsigned i : interesting(*right)) {
      if (run->outputs[i].shape != right->outputs[i].shape)
        return userError("{0}: output '{1}' has another shape", choice.flags,
                         right->names[i]);
      printRow(choice.flags, right->names[i], *run,
               compare(run->outputs[i], right->outputs[i]), os);
    }
  }
  return Error::success();
}
