//===- driver.cpp - runs many graphs in every way that there is ----------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

/// \file
/// tenon-differential passes|cpu|cuda LIST [ORDERS]: each line of LIST is a
/// graph, with the fields SEED MODEL.onnx and then, for each data set,
/// INPUTS.onnx EXPECTED.onnx, separated by tabs; `-` for EXPECTED where another
/// runtime refuses. An empty line ends a batch: its graphs share compiled
/// units.
///
/// `passes` compares the reference's results with what is expected, then with
/// its results after each pass of the pipelines and after ORDERS random orders
/// of passes. `cpu` and `cuda` (on the emulator) compare compiled code, made
/// with and without passes.
///
/// Prints, for the graph of each line numbered from 0, `N begin` before it is
/// imported, and what became of it: `N pass COUNTS`, or `N`, what it is
/// (`import`, `refused`, `runtime`, `differ`, `error`, `crash`), and the
/// message, separated by tabs.

#include "ir/eval/Evaluator.h"
#include "ir/support/Diag.h"
#include "ir/verify/Verify.h"
#include "passes/Pipelines.h"
#include "test/differential/Oracle.h"
#include "test/support/Cases.h"
#include "tools/tenon-run/Target.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/LineIterator.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace tenon;
using test::Evaluation;
using test::Oracle;
using test::report;
using test::Tensors;

namespace {

/// A graph with its data, and what the reference makes of it.
struct Graph {
  unsigned number;
  uint64_t seed = 0;
  std::unique_ptr<ir::Module> imported;
  /// For each data set that the reference accepts.
  std::vector<Oracle> oracles;
};

/// How a graph was brought to what is evaluated, for messages: flags of
/// tenon-opt.
using Order = std::vector<llvm::StringRef>;

std::string orderText(llvm::ArrayRef<llvm::StringRef> order) {
  std::string text;
  for (llvm::StringRef pass : order)
    text += (text.empty() ? "--" : " --") + pass.str();
  return text;
}

/// Reports and gives an error once for all: what was reported is not a pass.
bool fail(const Graph &graph, llvm::StringRef status, llvm::Error error) {
  report(graph.number, status, std::move(error));
  return false;
}

llvm::Error differ(llvm::StringRef how, llvm::StringRef message) {
  return userError("{0}: {1}", how, message);
}

/// Evaluates \p module on all data of \p graph; what differs, or "".
std::string evaluateAll(Graph &graph, const ir::Module &module) {
  for (Oracle &oracle : graph.oracles) {
    llvm::Expected<Tensors> found =
        ir::evaluate(module.entry(), oracle.inputs());
    if (!found)
      return "does not evaluate: " + llvm::toString(found.takeError());
    if (std::string message = oracle.compare(*found); !message.empty())
      return message;
  }
  return "";
}

/// Runs passes one by one on a clone of a graph.
class PassRunner {
public:
  PassRunner(Graph &graph, bool paranoid)
      : graph(graph), module(graph.imported->clone()),
        manager(options, remarks, llvm::nulls()) {
    options.paranoid = paranoid;
  }

  /// Runs \p order, and evaluates after each pass that changed something, or at
  /// the end alone. False after a report.
  bool run(const Order &order, bool evaluateEach) {
    bool changedSince = false;
    for (size_t i = 0; i != order.size(); ++i) {
      llvm::Expected<bool> changed =
          manager.run(*module, *passes::findPass(order[i]));
      Order done(order.begin(), order.begin() + i + 1);
      if (!changed)
        return fail(graph, "error",
                    withPrefix(changed.takeError(), orderText(done) + ": "));
      changedSince |= *changed;
      if (!changedSince || !(evaluateEach || i + 1 == order.size()))
        continue;
      changedSince = false;
      std::string message = evaluateAll(graph, *module);
      if (message.empty())
        continue;
      // The first wrong pass says more than the last.
      if (!evaluateEach && PassRunner(graph, false).run(order, true) == false)
        return false;
      return fail(graph, "differ", differ(orderText(done), message));
    }
    return true;
  }

private:
  Graph &graph;
  passes::PassOptions options;
  passes::Remarks remarks;
  std::unique_ptr<ir::Module> module;
  passes::PassManager manager;
};

/// Passes that do what an option asks for, and change results on purpose.
bool isOptional(llvm::StringRef pass) {
  static constexpr llvm::StringLiteral names[] = {
      "derive-kv-cache", "assign-precision", "quantise-weights",
      "narrow-weights"};
  return llvm::is_contained(names, pass);
}

Order pipelineOrder() {
  Order order;
  for (ir::Stage stage : {ir::Stage::Canonical, ir::Stage::Fused})
    for (llvm::StringRef pass : passes::pipeline(stage))
      if (!isOptional(pass) && pass != "widen-half")
        order.push_back(pass);
  return order;
}

/// Any pass may follow any other; what a graph has had before it is what makes
/// one apply.
Order randomOrder(std::mt19937_64 &random) {
  Order all, canonical;
  for (const passes::PassInfo &pass : passes::allPasses())
    if (!isOptional(pass.name))
      all.push_back(pass.name);
  llvm::append_range(canonical, passes::pipeline(ir::Stage::Canonical));
  Order order;
  size_t length = 6 + random() % 20, prepared = random() % (length / 2);
  for (size_t i = 0; i != length; ++i) {
    const Order &from = i < prepared ? canonical : all;
    order.push_back(from[random() % from.size()]);
  }
  return order;
}

void runPasses(Graph &graph, unsigned orders) {
  if (!PassRunner(graph, true).run(pipelineOrder(), true))
    return;
  std::mt19937_64 random(graph.seed);
  for (unsigned i = 0; i != orders; ++i)
    if (!PassRunner(graph, i == 0).run(randomOrder(random), false))
      return;
  Oracle::Counts sum;
  for (const Oracle &oracle : graph.oracles) {
    Oracle::Counts counts = oracle.count();
    sum.elements += counts.elements;
    sum.unstable += counts.unstable;
    sum.nans += counts.nans;
  }
  report(graph.number, "pass",
         userError("{0} {1} {2}", sum.elements, sum.unstable, sum.nans));
}

/// A graph as compiled code runs it.
struct Compiled {
  Graph *graph;
  std::string how;
  std::unique_ptr<ir::Module> module;
};

/// Runs one form of a graph on all its data. False after a report.
bool runCompiled(const Compiled &form, run::Target &target) {
  for (Oracle &oracle : form.graph->oracles) {
    llvm::Expected<Tensors> found =
        target.run(*form.module, form.module->entry(), oracle.inputs());
    if (!found) {
      llvm::Error error = found.takeError();
      bool noKernel = error.isA<run::NoKernel>();
      return fail(*form.graph, noKernel ? "select" : "error",
                  withPrefix(std::move(error), form.how + ": "));
    }
    if (std::string message = oracle.compare(*found, Evaluation::Kernels);
        !message.empty())
      return fail(*form.graph, "differ", differ(form.how, message));
  }
  return true;
}

void runBatch(std::vector<Graph> &graphs, llvm::StringRef targetName) {
  auto target = llvm::cantFail(run::makeTarget(targetName));
  std::vector<Compiled> forms;
  for (Graph &graph : graphs) {
    Compiled passed{&graph, "with passes", graph.imported->clone()};
    if (llvm::Error error = test::runPasses(*passed.module, targetName)) {
      fail(graph, "error", std::move(error));
      continue;
    }
    forms.push_back(std::move(passed));
    forms.push_back({&graph, "without passes", graph.imported->clone()});
  }
  std::vector<const ir::Module *> modules;
  for (const Compiled &form : forms)
    modules.push_back(form.module.get());
  target->prepare(modules);
  for (size_t i = 0; i != forms.size(); i += 2)
    test::runApart(forms[i].graph->number, 300, [&] {
      if (runCompiled(forms[i], *target) && runCompiled(forms[i + 1], *target))
        report(forms[i].graph->number, "pass");
    });
  graphs.clear();
}

/// Reads what a line names. False after a report.
bool readGraph(Graph &graph, llvm::ArrayRef<llvm::StringRef> fields) {
  if (fields.size() < 4 || fields.size() % 2 != 0 ||
      fields[0].getAsInteger(10, graph.seed))
    return fail(graph, "import", userError("malformed line"));
  auto module = test::importModel(fields[1]);
  if (!module)
    return fail(graph, "import", module.takeError());
  graph.imported = std::move(*module);
  for (size_t i = 2; i != fields.size(); i += 2) {
    llvm::Expected<Tensors> inputs = test::readTensors(fields[i]);
    if (!inputs)
      return fail(graph, "import", inputs.takeError());
    if (llvm::Error error = test::checkInputs(graph.imported->entry(), *inputs))
      return fail(graph, "import", std::move(error));
    llvm::Expected<Oracle> oracle = Oracle::create(
        graph.imported->entry(), std::move(*inputs), graph.seed + i);
    if (!oracle)
      return fail(graph, "refused", oracle.takeError());
    if (fields[i + 1] != "-") {
      llvm::Expected<Tensors> expected = test::readTensors(fields[i + 1]);
      if (!expected)
        return fail(graph, "import", expected.takeError());
      if (std::string message =
              oracle->compare(*expected, Evaluation::OtherRuntime);
          !message.empty())
        return fail(graph, "runtime",
                    differ("the other runtime's results", message));
    }
    graph.oracles.push_back(std::move(*oracle));
  }
  return true;
}

int runList(llvm::StringRef mode, const llvm::MemoryBuffer &list,
            unsigned orders) {
  std::vector<Graph> batch;
  unsigned number = 0;
  for (llvm::line_iterator line(list, /*SkipBlanks=*/false); !line.is_at_end();
       ++line) {
    if (line->empty()) {
      if (mode != "passes")
        runBatch(batch, mode);
      continue;
    }
    llvm::SmallVector<llvm::StringRef, 6> fields;
    line->split(fields, '\t');
    Graph graph{number++};
    report(graph.number, "begin");
    if (!readGraph(graph, fields))
      continue;
    if (mode == "passes")
      runPasses(graph, orders);
    else
      batch.push_back(std::move(graph));
  }
  if (!batch.empty())
    runBatch(batch, mode);
  return 0;
}

} // namespace

int main(int argc, char **argv) {
  llvm::StringRef mode = argc > 1 ? argv[1] : "";
  unsigned orders = 2;
  if (argc < 3 || argc > 4 ||
      (argc == 4 && llvm::StringRef(argv[3]).getAsInteger(10, orders)) ||
      (mode != "passes" && mode != "cpu" && mode != "cuda")) {
    llvm::errs() << "usage: tenon-differential passes|cpu|cuda LIST [ORDERS]\n";
    return 2;
  }
  auto buffer = llvm::MemoryBuffer::getFile(argv[2], /*IsText=*/true);
  if (!buffer) {
    llvm::errs() << argv[2] << ": " << buffer.getError().message() << '\n';
    return 2;
  }
  return runList(mode, **buffer, orders);
}
