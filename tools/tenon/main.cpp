//===- main.cpp - the tenon command --------------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

///
/// \file
///   tenon compile MODEL.onnx -o OUT     one binary that runs the model
///   tenon check MODEL.onnx              what the model needs, what is missing
///   tenon inspect MODEL.onnx|OUT|FILE.tn
///   tenon verify OUT                    checksums of an artifact
///   tenon run OUT ...                   the same as OUT ...

#include "tools/tenon/Commands.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/WithColor.h"
#include "llvm/Support/raw_ostream.h"
#include <csignal>
#include <unistd.h>
#include <vector>

using namespace llvm;
using namespace tenon::tools;

namespace {

/// \p text, which may quote anything from a model, for a terminal: control
/// characters are spelled out, very long lines lose their middle.
std::string forTerminal(StringRef text) {
  constexpr size_t maxLine = 4000;
  std::string result;
  SmallVector<StringRef> lines;
  text.split(lines, '\n');
  for (auto [i, line] : enumerate(lines)) {
    result += i ? "\n" : "";
    std::string cut = line.str();
    if (line.size() > maxLine)
      cut =
          (line.take_front(maxLine / 2) + " ... " + line.take_back(maxLine / 2))
              .str();
    for (unsigned char c : cut) {
      if (c >= ' ' && c != 0x7f)
        result += char(c);
      else
        result += formatv("\\x{0:x-2}", unsigned(c)).str();
    }
  }
  return result;
}

} // namespace

int tenon::tools::fail(Error error) {
  std::string text = forTerminal(toString(std::move(error)));
  if (!StringRef(text).contains("error: "))
    text = "error: " + text;
  errs() << text << (StringRef(text).ends_with("\n") ? "" : "\n");
  return 1;
}

namespace {

/// `tenon run OUT ...` becomes OUT: same process, same streams, same status.
int runArtifact(int argc, char **argv) {
  if (argc < 3) {
    errs() << "error: tenon run needs an artifact: tenon run OUT --info\n";
    return 1;
  }
  std::string path = argv[2];
  if (!StringRef(path).contains('/'))
    path = "./" + path;
  // The emulator lies beside this program.
  std::string self = sys::fs::getMainExecutable(argv[0], nullptr);
  SmallString<128> emulator(sys::path::parent_path(self));
  sys::path::append(emulator, "libtenon_emulator.so");
  if (sys::fs::exists(emulator))
    setenv("TENON_CUDA_DRIVER", emulator.c_str(), /*overwrite=*/0);
  execv(path.c_str(), argv + 2);
  errs() << path << ": error: cannot be run: " << strerror(errno) << "\n";
  return 1;
}

/// \p status, unless what was printed did not arrive.
int finish(int status) {
  outs().flush();
  std::error_code failed = outs().error();
  if (!failed)
    return status;
  outs().clear_error();
  errs() << "error: cannot write to standard output: " << failed.message()
         << "\n";
  return 1;
}

} // namespace

int main(int argc, char **argv) {
  if (argc >= 2 && StringRef(argv[1]) == "run")
    return runArtifact(argc, argv);
  InitLLVM init(argc, argv);
  // A limit on the size of files is an error of whoever writes, as a full disk.
  std::signal(SIGXFSZ, SIG_IGN);
  std::vector<std::unique_ptr<Command>> commands;
  commands.push_back(makeCompileCommand());
  commands.push_back(makeCheckCommand());
  commands.push_back(makeExplainCommand());
  commands.push_back(makeInspectCommand());
  commands.push_back(makeVerifyCommand());
  // The libraries' own options are none of the user's business.
  cl::OptionCategory none("");
  cl::HideUnrelatedOptions(none);
  cl::SetVersionPrinter(
      [](raw_ostream &os) { os << "tenon " TENON_VERSION "\n"; });
  if (!cl::ParseCommandLineOptions(
          argc, argv, "an ahead-of-time compiler for transformer models\n"))
    return 1;
  for (std::unique_ptr<Command> &command : commands)
    if (command->chosen())
      return finish(command->run());
  errs() << "error: no command given; `tenon compile MODEL.onnx -o OUT` "
            "compiles a model, `tenon --help` lists the commands\n";
  return 1;
}
