//===- Options.cpp - the artifact's command line ------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/main/Options.h"

#include <cerrno>
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
  --generate             continue a text: --prompt=TEXT
  --interactive          a chat, a line at a time
  --show-steps           one token from text to text: --prompt=TEXT
  --help                 this text

flags
  --inputs=FILE.npz      input tensors, named as in the model
  --outputs=FILE.npz     where to write the outputs
  --threads=N            threads to use (default: the cores there are)
  --cpu=FORM             which compiled form to use (see --info)
  --device=DEVICE        cpu, cuda or emulated (default: what it was compiled
                         for)
  --gpu=N                which GPU (default 0)
  --device-memory=SIZE   use at most so much of the GPU's memory: 2G, 500M
  --stepwise             wait for each kernel, so that an error names it
  --emulated-arch=ARCH   the GPU that the emulator plays, such as sm_90a
                         (default: sm_80, or what there is code for)
  --emulator-report=FILE where the emulator writes what it counted and found
  --pages=map|huge       weights mapped from the file (default) or copied into
                         large pages
  --seconds=S            how long --bench measures (default 2)
  --json                 --bench and --info print one JSON object
  --profile=FILE.json    with --run or --bench: show where the time went, write
                         a trace for Perfetto

flags of --generate and --interactive (defaults: the model's generation config)
  --max-tokens=N         how many tokens at most (default 256)
  --temperature=T        0: always the most probable token
  --top-k=K --top-p=P --min-p=P
                         choose among the K most probable; the fewest that have
                         probability P; those with P times the greatest
  --repetition-penalty=R above 1: what was there becomes less probable
  --seed=N               the same seed gives the same text
  --stop=TEXT            end before this text (may be repeated)
)";

namespace {

struct Flag {
  const char *name;
  bool takesValue;
};
constexpr Flag flags[] = {
    {"--info", false},         {"--run", false},
    {"--bench", false},        {"--selftest", false},
    {"--help", false},         {"-h", false},
    {"--json", false},         {"--inputs", true},
    {"--outputs", true},       {"--profile", true},
    {"--cpu", true},           {"--threads", true},
    {"--seconds", true},       {"--pages", true},
    {"--generate", false},     {"--interactive", false},
    {"--show-steps", false},   {"--prompt", true},
    {"--max-tokens", true},    {"--temperature", true},
    {"--top-k", true},         {"--top-p", true},
    {"--min-p", true},         {"--repetition-penalty", true},
    {"--seed", true},          {"--stop", true},
    {"--device", true},        {"--gpu", true},
    {"--device-memory", true}, {"--stepwise", false},
    {"--emulated-arch", true}, {"--emulator-report", true}};

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

Status readReal(const std::string &name, const std::string &value,
                std::optional<float> &to) {
  char *end = nullptr;
  float number = std::strtof(value.c_str(), &end);
  if (value.empty() || *end != '\0' || !std::isfinite(number))
    return TN_ERROR("%s: found '%s', expected a number", name.c_str(),
                    printable(value).c_str());
  to = number;
  return {};
}

/// A whole number up to `most`.
template <typename T>
Status readCount(const std::string &name, const std::string &value,
                 uint64_t most, T &to) {
  char *end = nullptr;
  errno = 0;
  unsigned long long number = std::strtoull(value.c_str(), &end, 10);
  if (value.empty() || *end != '\0' || value[0] == '-' || errno != 0 ||
      number > most)
    return TN_ERROR("%s: found '%s', expected a number from 0 to %llu",
                    name.c_str(), printable(value).c_str(),
                    static_cast<unsigned long long>(most));
  to = number;
  return {};
}

std::optional<Command> commandOf(const std::string &name) {
  struct {
    const char *flag;
    Command command;
  } constexpr commands[] = {{"--info", Command::Info},
                            {"--run", Command::Run},
                            {"--bench", Command::Bench},
                            {"--selftest", Command::SelfTest},
                            {"--generate", Command::Generate},
                            {"--interactive", Command::Interactive},
                            {"--show-steps", Command::ShowSteps},
                            {"--help", Command::Help},
                            {"-h", Command::Help}};
  for (const auto &known : commands)
    if (name == known.flag)
      return known.command;
  return std::nullopt;
}

/// The flags of text generation; nothing if `name` is none of them.
std::optional<Status> applyText(Options &options, const std::string &name,
                                const std::string &value) {
  if (name == "--prompt")
    options.prompt = value;
  else if (name == "--stop" && value.empty())
    return TN_ERROR("--stop: found nothing, expected a text");
  else if (name == "--stop")
    options.stops.push_back(value);
  else if (name == "--max-tokens")
    return readCount(name, value, UINT32_MAX, options.maxTokens);
  else if (name == "--temperature")
    return readReal(name, value, options.temperature);
  else if (name == "--top-p")
    return readReal(name, value, options.topP);
  else if (name == "--min-p")
    return readReal(name, value, options.minP);
  else if (name == "--repetition-penalty")
    return readReal(name, value, options.repetitionPenalty);
  else if (name == "--top-k")
    return readCount(name, value, UINT32_MAX, options.topK);
  else if (name == "--seed")
    return readCount(name, value, UINT64_MAX, options.seed);
  else
    return std::nullopt;
  return Status();
}

Status setDevice(Options &options, const std::string &value) {
  if (value != "cpu" && value != "cuda" && value != "emulated")
    return TN_ERROR("--device: found '%s', expected cpu, cuda or emulated",
                    printable(value).c_str());
  options.device = value;
  options.cuda.emulated = value == "emulated";
  return {};
}

Status setGpu(Options &options, const std::string &value) {
  char *end = nullptr;
  long number = std::strtol(value.c_str(), &end, 10);
  if (value.empty() || *end != '\0' || number < 0 || number > 1023)
    return TN_ERROR("--gpu: found '%s', expected a number from 0",
                    printable(value).c_str());
  options.cuda.ordinal = int(number);
  return {};
}

/// "2G", "500M", "1000000".
Status setDeviceMemory(Options &options, const std::string &value) {
  char *end = nullptr;
  double size = std::strtod(value.c_str(), &end);
  std::string unit = end;
  double scale = unit.empty()  ? 1
                 : unit == "K" ? 1e3
                 : unit == "M" ? 1e6
                 : unit == "G" ? 1e9
                               : 0;
  if (value.empty() || scale == 0 || !(size > 0) || size * scale > 1e18)
    return TN_ERROR("--device-memory: found '%s', expected a size such as 2G "
                    "or 500M",
                    printable(value).c_str());
  options.cuda.memoryLimit = uint64_t(size * scale);
  return {};
}

Status apply(Options &options, const std::string &name,
             const std::string &value) {
  if (auto command = commandOf(name))
    return setCommand(options, *command);
  if (auto applied = applyText(options, name, value))
    return *applied;
  if (name == "--threads")
    return setThreads(options, value);
  if (name == "--seconds")
    return setSeconds(options, value);
  if (name == "--pages")
    return setPages(options, value);
  if (name == "--device")
    return setDevice(options, value);
  if (name == "--gpu")
    return setGpu(options, value);
  if (name == "--device-memory")
    return setDeviceMemory(options, value);
  if (name == "--json")
    options.json = true;
  else if (name == "--inputs")
    options.inputs = value;
  else if (name == "--outputs")
    options.outputs = value;
  else if (name == "--profile")
    options.profile = value;
  else if (name == "--stepwise")
    options.cuda.stepwise = true;
  else if (name == "--emulated-arch")
    options.cuda.emulatedArch = value;
  else if (name == "--emulator-report")
    options.cuda.emulatorReport = value;
  else
    options.cpu = value;
  return {};
}

/// The flags that a command needs.
Status checkComplete(const Options &options) {
  switch (options.command) {
  case Command::None:
    return TN_ERROR("no command: expected --info, --run, --bench, "
                    "--selftest, --generate, --interactive or --show-steps; "
                    "see --help");
  case Command::Run:
    if (options.inputs.empty() || options.outputs.empty())
      return TN_ERROR("--run needs --inputs=FILE.npz and --outputs=FILE.npz");
    break;
  case Command::Bench:
    if (options.inputs.empty())
      return TN_ERROR("--bench needs --inputs=FILE.npz");
    break;
  case Command::Generate:
  case Command::ShowSteps:
    if (!options.prompt)
      return TN_ERROR("--generate and --show-steps need --prompt=TEXT");
    break;
  case Command::Info:
  case Command::SelfTest:
  case Command::Interactive:
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
