//===- Main.cpp - what an artifact does when it is run ------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/Cpu.h"
#include "runtime/Npz.h"
#include "runtime/Payload.h"
#include "runtime/Session.h"
#include "runtime/device/Cuda.h"
#include "runtime/device/DeviceCode.h"
#include "runtime/main/Devices.h"
#include "runtime/main/Generate.h"
#include "runtime/main/Options.h"
#include "runtime/main/Profile.h"
#include "runtime/main/Report.h"
#include "runtime/main/SelfTest.h"

#include <cstdio>
#include <ctime>
#include <sys/stat.h>

using namespace tenon::rt;

namespace {

/// The artifact opened for running: file, model, session.
struct Runner {
  Payload payload;
  std::optional<Model> model;
  std::unique_ptr<Session> session;
  std::vector<NpyArray> inputs;
};

std::span<const tn_form> forms() { return {tenon_forms, tenon_num_forms}; }

double milliseconds() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return double(time.tv_sec) * 1e3 + double(time.tv_nsec) / 1e6;
}

Status startModel(Runner &runner, const Options &options) {
  auto model = openModel(runner.payload, forms(), options.cpu);
  if (!model.ok())
    return model.status();
  runner.model = std::move(*model);
  return {};
}

Status startSession(Runner &runner, const Options &options) {
  if (Status status = startModel(runner, options); !status.ok())
    return status;
  auto device = makeDevice(*runner.model, options);
  if (!device.ok())
    return device.status();
  runner.session = Session::create(*runner.model, std::move(*device));
  return {};
}

Status readInputs(Runner &runner, const std::string &path) {
  auto arrays = readNpzFile(path);
  if (!arrays.ok())
    return arrays.status();
  runner.inputs = std::move(*arrays);
  Status status = setInputs(*runner.session, runner.inputs);
  if (!status.ok())
    return TN_ERROR("%s: %s", path.c_str(), status.message().c_str());
  // Bind once here, so that wrong sizes are reported with the file's name.
  status = runner.session->bind();
  return status.ok()
             ? status
             : TN_ERROR("%s: %s", path.c_str(), status.message().c_str());
}

/// With what the workers keep, if sizes do not depend on data.
std::optional<int64_t> peakBytes(const Session &session) {
  auto peak = session.peakBytes();
  if (peak)
    *peak += session.device().workers() * session.device().workerBytes();
  return peak;
}

void printPeak(const Session &session) {
  auto peak = peakBytes(session);
  const Plan &plan = session.model().plan();
  const Device &device = session.device();
  std::string own;
  if (uint64_t bytes = device.workerBytes())
    own = format(" + %u workers * %s", device.workers(),
                 describeBytes(double(bytes)).c_str());
  if (int64_t bytes = session.copiedBytes())
    own += format(" + copies of the caches %s",
                  describeBytes(double(bytes)).c_str());
  std::fprintf(stderr, "peak memory: %s (%s%s)\n",
               peak ? describeBytes(double(*peak)).c_str()
                    : "known once sizes are computed from the data",
               plan.string(plan.header().peakFormula), own.c_str());
}

void printMemoryNote(const Session &session) {
  if (std::string note = session.device().memoryNote(); !note.empty())
    std::fprintf(stderr, "%s\n", note.c_str());
}

/// The trace to `path`, the table to the standard error stream.
Status writeProfile(const Runner &runner, const std::string &path) {
  const Session &session = *runner.session;
  if (path.empty())
    return {};
  std::fputs(profileText(session, runner.payload.weights()).c_str(), stderr);
  auto file = OutputFile::create(path);
  if (!file.ok())
    return file.status();
  std::string trace = traceJson(session);
  Status status = file->write(trace.data(), trace.size());
  return status.ok() ? file->commit() : status;
}

Status info(Runner &runner, const Options &options) {
  auto form = chooseForm(forms(), cpuFeatures(), options.cpu);
  ArtifactFacts facts = {runner.payload.fileBytes(), forms(),
                         form.ok() ? *form : nullptr, "",
                         runner.payload.text().size()};
  if (Bytes bytes = runner.payload.deviceCode(); !bytes.empty()) {
    auto code = DeviceCode::load(bytes);
    if (!code.ok())
      return code.status();
    facts.gpus = code->archNames();
  }
  const Plan &plan = runner.payload.plan();
  std::string text =
      options.json ? infoJson(plan, facts) : infoText(plan, facts);
  std::fputs(text.c_str(), stdout);
  return {};
}

/// What is written must not replace the program that runs.
Status checkOutput(const char *flag, const std::string &path) {
  struct stat self, there;
  if (stat(path.c_str(), &there) != 0 || stat("/proc/self/exe", &self) != 0 ||
      there.st_dev != self.st_dev || there.st_ino != self.st_ino)
    return {};
  return TN_ERROR("%s=%s: is this program itself; give another file", flag,
                  path.c_str());
}

Status run(Runner &runner, const Options &options) {
  if (Status status = checkOutput("--outputs", options.outputs); !status.ok())
    return status;
  if (Status status = startSession(runner, options); !status.ok())
    return status;
  if (Status status = readInputs(runner, options.inputs); !status.ok())
    return status;
  Session &session = *runner.session;
  printPeak(session);
  if (!options.profile.empty())
    session.enableProfile();
  if (Status status = session.run(); !status.ok())
    return status;
  printMemoryNote(session);
  const Plan &plan = runner.payload.plan();
  std::vector<NpyView> outputs;
  for (size_t i = 0; i < plan.outputs().size(); ++i) {
    const OutputValue &value = session.output(i);
    outputs.push_back({plan.string(plan.outputs()[i].name),
                       value.dtype,
                       {value.shape.begin(), value.shape.end()},
                       value.data});
  }
  if (Status status = writeNpzFile(options.outputs, outputs); !status.ok())
    return status;
  return writeProfile(runner, options.profile);
}

Status bench(Runner &runner, const Options &options) {
  if (Status status = startSession(runner, options); !status.ok())
    return status;
  if (Status status = readInputs(runner, options.inputs); !status.ok())
    return status;
  Session &session = *runner.session;
  session.copyStates(false); // nobody looks at them
  printPeak(session);
  // Warm up for a tenth of the time: pages are touched, clocks rise.
  double begin = milliseconds(), limit = options.seconds * 1e3;
  do {
    session.reset();
    if (Status status = session.run(); !status.ok())
      return status;
  } while (milliseconds() - begin < limit / 10);
  printMemoryNote(session);
  BenchResult result;
  begin = milliseconds();
  for (double last = begin; last - begin < limit || result.times.size() < 3;) {
    session.reset();
    if (Status status = session.run(); !status.ok())
      return status;
    double end = milliseconds();
    result.times.push_back(end - last);
    last = end;
  }
  result.flops = session.flops();
  result.bytes = session.bytes();
  result.peakBytes = peakBytes(session).value_or(0);
  result.threads = session.threads();
  result.device = session.device().name();
  if (const tn_form *form = runner.model->form())
    result.form = form->name;
  if (!options.profile.empty()) {
    session.enableProfile();
    if (Status status = session.run(); !status.ok())
      return status;
    if (Status status = writeProfile(runner, options.profile); !status.ok())
      return status;
  }
  std::fputs((options.json ? benchJson(result) : benchText(result)).c_str(),
             stdout);
  return {};
}

Status selfTest(Runner &runner, const Options &options) {
  unsigned threads = options.threads ? options.threads : defaultThreads();
  if (Status status = runner.payload.verifyWeights(threads); !status.ok())
    return status;
  std::fprintf(stderr, "checksums: right\n");
  if (runner.payload.golden().empty()) {
    std::fprintf(stderr, "no stored answers in this artifact\n");
    return {};
  }
  if (Status status = startSession(runner, options); !status.ok())
    return status;
  auto worst = compareGolden(*runner.session, runner.payload.golden());
  if (!worst.ok())
    return worst.status();
  std::fprintf(stderr, "answers: right, largest difference %.3g\n", *worst);
  return {};
}

Status withModel(Runner &runner, const Options &options,
                 Status (*command)(const Payload &, const Model &,
                                   const Options &)) {
  if (Status status = startModel(runner, options); !status.ok())
    return status;
  return command(runner.payload, *runner.model, options);
}

Status dispatch(const Options &options) {
  auto payload = Payload::open("/proc/self/exe", options.pages);
  if (!payload.ok())
    return payload.status();
  if (Status status = checkOutput("--profile", options.profile); !status.ok())
    return status;
  Runner runner{std::move(*payload), {}, {}, {}};
  switch (options.command) {
  case Command::Info:
    return info(runner, options);
  case Command::Run:
    return run(runner, options);
  case Command::Bench:
    return bench(runner, options);
  case Command::SelfTest:
    return selfTest(runner, options);
  case Command::Generate:
    return withModel(runner, options, generateText);
  case Command::Interactive:
    return withModel(runner, options, chat);
  case Command::ShowSteps:
    return withModel(runner, options, showSteps);
  case Command::None:
  case Command::Help:
    break;
  }
  return {};
}

} // namespace

int main(int argc, char **argv) {
  const char *name = argc > 0 ? argv[0] : "model";
  auto fail = [&](const Status &status) {
    std::fprintf(stderr, "%s: error: %s\n", name, status.message().c_str());
    return 1;
  };
  auto options = parseOptions({argv + 1, size_t(argc > 0 ? argc - 1 : 0)});
  if (!options.ok()) {
    fail(options.status());
    return 2;
  }
  if (options->command == Command::Help) {
    std::fputs(helpText, stdout);
    return 0;
  }
  if (Status status = dispatch(*options); !status.ok())
    return fail(status);
  if (std::fflush(stdout) != 0)
    return fail(TN_ERROR("cannot write the output: %s", lastError().c_str()));
  return 0;
}
