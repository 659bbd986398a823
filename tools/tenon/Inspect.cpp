//===- Inspect.cpp - tenon inspect and tenon verify ----------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/artifact/Artifact.h"
#include "frontend/Import.h"
#include "ir/Fingerprint.h"
#include "ir/OpDef.h"
#include "ir/support/Diag.h"
#include "tools/common/LoadModule.h"
#include "tools/tenon/Commands.h"
#include "llvm/Object/ELF.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"
#include <map>

using namespace llvm;
using namespace tenon;
using namespace tenon::tools;

namespace {

void printModule(const ir::Module &module) {
  outs() << "stage " << ir::stageName(module.stage) << "\n";
  for (const auto &func : module.funcs) {
    std::map<std::string, unsigned> counts;
    for (const ir::Op &op : func->body)
      ++counts[ir::opDef(op).mnemonic.str()];
    outs() << "func @" << func->name << ": " << func->body.size()
           << " ops, fingerprint "
           << format_hex_no_prefix(ir::fingerprint(*func), 16) << "\n";
    for (unsigned i = 0; i < func->inputs.size(); ++i)
      outs() << "  input " << func->inputs[i].name << ": "
             << func->body.argument(i)->type << "\n";
    if (ir::Op *end = func->body.terminator())
      for (unsigned i = 0; i < func->outputs.size(); ++i)
        outs() << "  output " << func->outputs[i].name << ": "
               << end->operand(i)->type << "\n";
    for (const auto &[name, count] : counts)
      outs() << format("  %6u ", count) << name << "\n";
  }
}

bool isElf(StringRef path) {
  ErrorOr<std::unique_ptr<MemoryBuffer>> head =
      MemoryBuffer::getFileSlice(path, 4, 0);
  return head && (*head)->getBuffer() == "\x7f"
                                         "ELF";
}

/// A model's summary, a graph's op counts, or what an artifact says of itself.
class InspectCommand final : public Command {
public:
  InspectCommand()
      : Command("inspect", "describe a model, a graph's text or an artifact") {}

  int run() override {
    if (path.empty())
      return fail(userError("nothing given to inspect: tenon inspect "
                            "MODEL.onnx|OUT|FILE.tn"));
    if (StringRef(path).ends_with(".tn"))
      return inspectText();
    if (isElf(path))
      return inspectArtifact();
    Expected<frontend::ModelSummary> summary = frontend::summarizeOnnx(path);
    if (!summary)
      return fail(summary.takeError());
    frontend::print(*summary, outs());
    return 0;
  }

private:
  cl::opt<std::string> path{cl::Positional, cl::desc("FILE"), cl::sub(sub)};

  int inspectText() {
    Expected<std::unique_ptr<ir::Module>> module = loadModule(path);
    if (!module)
      return fail(module.takeError());
    printModule(**module);
    return 0;
  }

  /// Whether the artifact names a loader to start it with.
  bool isProgram() const {
    ErrorOr<std::unique_ptr<MemoryBuffer>> file = MemoryBuffer::getFile(
        path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
    if (!file)
      return true; // starting it says why
    auto elf = object::ELF64LEFile::create((*file)->getBuffer());
    if (!elf) {
      consumeError(elf.takeError());
      return false;
    }
    auto headers = elf->program_headers();
    if (!headers) {
      consumeError(headers.takeError());
      return false;
    }
    return any_of(*headers, [](const auto &header) {
      return header.p_type == ELF::PT_INTERP;
    });
  }

  int inspectArtifact() {
    // Only a file that is one of ours is started, and it knows best.
    if (Error error = codegen::verifyArtifact(path))
      return fail(std::move(error));
    if (!isProgram())
      return fail(userError("{0}: error: is a shared library, which cannot be "
                            "started and asked; `tenon verify` checks it, its "
                            "header lists what it has",
                            path));
    SmallString<128> program(path);
    sys::fs::make_absolute(program);
    std::string message;
    int status =
        sys::ExecuteAndWait(program, {program, "--info"},
                            /*Env=*/std::nullopt, /*Redirects=*/{},
                            /*SecondsToWait=*/0, /*MemoryLimit=*/0, &message);
    if (!message.empty())
      return fail(userError("{0}: error: {1}", path, message));
    return status;
  }
};

/// Checks every checksum of an artifact.
class VerifyCommand final : public Command {
public:
  VerifyCommand() : Command("verify", "check an artifact's checksums") {}

  int run() override {
    if (path.empty())
      return fail(userError("no artifact given: tenon verify OUT"));
    if (Error error = codegen::verifyArtifact(path))
      return fail(std::move(error));
    outs() << path << ": the checksums of plan and weights match\n";
    return 0;
  }

private:
  cl::opt<std::string> path{cl::Positional, cl::desc("OUT"), cl::sub(sub)};
};

} // namespace

std::unique_ptr<Command> tenon::tools::makeInspectCommand() {
  return std::make_unique<InspectCommand>();
}

std::unique_ptr<Command> tenon::tools::makeVerifyCommand() {
  return std::make_unique<VerifyCommand>();
}
