//===- Options.cpp - the artifact's command line ------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/main/Options.h"

#include <cmath>
#include <cstdlib>
#include <cstring>

namespace tenon::rt {

const char *const helpText =
    R"(usage: MODEL COMMAND [FLAGS]

commands
  --info                 inputs, outputs, sizes, memory, CPU forms, manifest
  --run                  run once: --inputs=IN.npz --outputs=OUT.npz
  --bench                measure: --inputs=IN.npz
  --selftest             check checksums, and the answers stored in the artifact
  --help                 this text

flags
  --inputs=FILE.npz      input tensors, named as in the model
  --outputs=FILE.npz     where to write the outputs
  --threads=N            threads to use (default: the cores there are)
  --cpu=FORM             which compiled form to use (see --info)
  --pages=map|huge       weights mapped from the file (default) or copied into
                         large pages
  --seconds=S            how long --bench measures (default 2)
  --json                 --bench and --info print one JSON object
  --profile=FILE.json    with --run or --bench: write a trace for Perfetto
)";

namespace {

struct Flag {
  const char *name;
  bool takesValue;
};
constexpr Flag flags[] = {
    {"--info", false},     {"--run", false},   {"--bench", false},
    {"--selftest", false}, {"--help", false},  {"-h", false},
    {"--json", false},     {"--inputs", true}, {"--outputs", true},
    {"--profile", true},   {"--cpu", true},    {"--threads", true},
    {"--seconds", true},   {"--pages", true}};

const Flag *findFlag(const std::string &name) {
  for (const Flag &flag : flags)
    if (name == flag.name)
      return &flag;
  return nullptr;
}

Status setCommand(Options &options, Command command) {
  if (options.command != Command::None && options.command != command)
    return TN_ERROR("more than one command; see --help");
  options.command = command;
  return {};
}

Status setThreads(Options &options, const std::string &value) {
  char *end = nullptr;
  unsigned long threads = std::strtoul(value.c_str(), &end, 10);
  if (value.empty() || *end != '\0' || value[0] == '-' || threads == 0 ||
      threads > 1024)
    return TN_ERROR("--threads: found '%s', expected a number from 1 to 1024",
                    printable(value).c_str());
  options.threads = unsigned(threads);
  return {};
}

Status setSeconds(Options &options, const std::string &value) {
  char *end = nullptr;
  options.seconds = std::strtod(value.c_str(), &end);
  if (value.empty() || *end != '\0' || !std::isfinite(options.seconds) ||
      options.seconds <= 0)
    return TN_ERROR("--seconds: found '%s', expected a positive number",
                    printable(value).c_str());
  return {};
}

Status setPages(Options &options, const std::string &value) {
  if (value != "map" && value != "huge")
    return TN_ERROR("--pages: found '%s', expected map or huge",
                    printable(value).c_str());
  options.pages = value == "huge" ? WeightPages::Huge : WeightPages::Map;
  return {};
}

Status apply(Options &options, const std::string &name,
             const std::string &value) {
  if (name == "--info")
    return setCommand(options, Command::Info);
  if (name == "--run")
    return setCommand(options, Command::Run);
  if (name == "--bench")
    return setCommand(options, Command::Bench);
  if (name == "--selftest")
    return setCommand(options, Command::SelfTest);
  if (name == "--help" || name == "-h")
    return setCommand(options, Command::Help);
  if (name == "--threads")
    return setThreads(options, value);
  if (name == "--seconds")
    return setSeconds(options, value);
  if (name == "--pages")
    return setPages(options, value);
  if (name == "--json")
    options.json = true;
  else if (name == "--inputs")
    options.inputs = value;
  else if (name == "--outputs")
    options.outputs = value;
  else if (name == "--profile")
    options.profile = value;
  else
    options.cpu = value;
  return {};
}

/// The flags that a command needs.
Status checkComplete(const Options &options) {
  switch (options.command) {
  case Command::None:
    return TN_ERROR("no command: expected --info, --run, --bench or "
                    "--selftest; see --help");
  case Command::Run:
    if (options.inputs.empty() || options.outputs.empty())
      return TN_ERROR("--run needs --inputs=FILE.npz and --outputs=FILE.npz");
    break;
  case Command::Bench:
    if (options.inputs.empty())
      return TN_ERROR("--bench needs --inputs=FILE.npz");
    break;
  case Command::Info:
  case Command::SelfTest:
  case Command::Help:
    break;
  }
  return {};
}

} // namespace

Result<Options> parseOptions(std::span<char *const> arguments) {
  Options options;
  for (size_t i = 0; i < arguments.size(); ++i) {
    std::string name = arguments[i], value;
    size_t equals = name.find('=');
    bool hasValue = equals != std::string::npos;
    if (hasValue) {
      value = name.substr(equals + 1);
      name.resize(equals);
    }
    const Flag *flag = findFlag(name);
    if (!flag)
      return TN_ERROR("unknown argument '%s'; see --help",
                      printable(name).c_str());
    if (!flag->takesValue && hasValue)
      return TN_ERROR("%s takes no value", flag->name);
    if (flag->takesValue && !hasValue) {
      if (i + 1 == arguments.size())
        return TN_ERROR("%s needs a value", flag->name);
      value = arguments[++i];
    }
    if (Status status = apply(options, name, value); !status.ok())
      return status;
  }
  if (Status status = checkComplete(options); !status.ok())
    return status;
  return options;
}

} // namespace tenon::rt
