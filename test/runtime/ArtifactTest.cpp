//===- ArtifactTest.cpp - artifacts from programs, run as a user runs them ===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/artifact/Artifact.h"
#include "ir/text/Text.h"
#include "runtime/Npz.h"
#include "runtime/Session.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace tenon;

namespace {

/// y = tanh(x @ w + 1), w: 48 x 40 in panels, and a weight that is not packed.
constexpr char graph[] = R"(
dims { batch: 1..100 }
func @main(%x: f32[batch, 48]) -> (f32[batch, 40]) {
  %w = const random(seed=3) : f32[48, 40]
  %y = matmul %x, %w epilogue (%acc: f32) {
    %one = const splat(1) : f32
    %0 = add %acc, %one : f32
    %1 = tanh %0 : f32
    yield %1
  } : f32[batch, 40]
  return %y
}
)";

/// The value, or the end of the test program with the message.
template <typename T> T orDie(llvm::Expected<T> value) {
  if (value)
    return std::move(*value);
  llvm::errs() << llvm::toString(value.takeError()) << '\n';
  std::abort();
}

struct Built {
  ir::ParsedFile file;
  kernel::Program program;
  std::vector<codegen::Source> sources;
};

Built build(llvm::StringRef forms = "native") {
  Built out;
  out.file = orDie(ir::parse(llvm::MemoryBufferRef(graph, "graph.tn")));
  codegen::TargetOptions options;
  options.forms = orDie(codegen::parseCpuForms(forms));
  out.program = orDie(
      codegen::lower(*out.file.module, out.file.module->entry(), options));
  out.program.inputs[0].name = "a \"name\" */ ../x";
  out.sources = codegen::emitUnits(out.program.units, options);
  return out;
}

class Artifact : public testing::Test {
protected:
  void SetUp() override {
    llvm::SmallString<128> made;
    ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("tenon-artifact", made));
    folder = std::string(made);
    cache = file("cache");
  }
  void TearDown() override { llvm::sys::fs::remove_directories(folder); }

  std::string file(llvm::StringRef name) const {
    return (folder + "/" + name).str();
  }

  codegen::ArtifactReport make(const Built &built, llvm::StringRef out,
                               codegen::ArtifactKind kind) {
    codegen::ArtifactOptions options;
    options.kind = kind;
    options.toolchain.cacheFolder = cache;
    options.manifest = llvm::json::Object{{"model", "test"}};
    auto report =
        codegen::buildArtifact(built.program, built.sources, options, out);
    if (!report) {
      ADD_FAILURE() << llvm::toString(report.takeError());
      return {};
    }
    return *report;
  }

  /// Runs a program; its output goes to the files "out" and "err".
  int run(std::vector<std::string> words) {
    auto program = llvm::sys::findProgramByName(words[0]);
    if (!program)
      return -1;
    std::vector<llvm::StringRef> arguments(words.begin(), words.end());
    std::string out = file("out"), err = file("err");
    llvm::sys::fs::remove(out); // redirecting does not cut files off
    llvm::sys::fs::remove(err);
    std::optional<llvm::StringRef> redirects[] = {
        llvm::StringRef(""), llvm::StringRef(out), llvm::StringRef(err)};
    return llvm::sys::ExecuteAndWait(*program, arguments, std::nullopt,
                                     redirects);
  }
  std::string text(llvm::StringRef name) {
    auto buffer = llvm::MemoryBuffer::getFile(file(name));
    return buffer ? (*buffer)->getBuffer().str() : "";
  }

  void writeInput(int64_t batch) {
    x.resize(size_t(batch) * 48);
    for (size_t i = 0; i < x.size(); ++i)
      x[i] = float(int(i * 37 % 19) - 9) / 20;
    rt::NpyView view = {
        "a \"name\" */ ../x", rt::DType::F32, {batch, 48}, x.data()};
    ASSERT_TRUE(rt::writeNpzFile(file("in.npz"), {&view, 1}).ok());
  }

  /// Compares values with the formula in double.
  void expectRight(const float *found, const ir::Constant &w) {
    for (size_t r = 0; r < x.size() / 48; ++r)
      for (size_t c = 0; c < 40; ++c) {
        double sum = 1;
        for (size_t k = 0; k < 48; ++k)
          sum += double(x[r * 48 + k]) * w.floatAt(k * 40 + c);
        ASSERT_NEAR(found[r * 40 + c], std::tanh(sum), 1e-5) << r << ' ' << c;
      }
  }
  void expectRightFile(const Built &built) {
    auto arrays = rt::readNpzFile(file("out.npz"));
    ASSERT_TRUE(arrays.ok()) << arrays.message();
    ASSERT_EQ(arrays->size(), 1u);
    const rt::NpyArray &y = arrays->front();
    EXPECT_EQ(y.name, built.program.outputs[0].name);
    ASSERT_EQ(y.shape, (std::vector<int64_t>{int64_t(x.size()) / 48, 40}));
    expectRight(reinterpret_cast<const float *>(y.data.get()),
                *built.program.weights[0].value);
  }

  std::string folder, cache;
  std::vector<float> x;
};

TEST_F(Artifact, RunsAndSurvivesStripAndCopy) {
  Built built = build();
  codegen::ArtifactReport report =
      make(built, file("model"), codegen::ArtifactKind::Executable);
  EXPECT_EQ(report.compiled, report.numSources);
#ifndef __SANITIZE_ADDRESS__ // which makes the runtime some times as big
  EXPECT_LT(report.fileBytes - report.weightBytes, 2u << 20);
#endif
  writeInput(7);
  std::vector<std::string> command = {file("model"), "--run",
                                      "--inputs=" + file("in.npz"),
                                      "--outputs=" + file("out.npz")};
  ASSERT_EQ(run(command), 0) << text("err");
  expectRightFile(built);
  EXPECT_EQ(text("out"), "");
  EXPECT_NE(text("err").find("peak memory: "), std::string::npos);

  ASSERT_EQ(run({"strip", file("model")}), 0) << text("err");
  ASSERT_EQ(run({"cp", file("model"), file("copy")}), 0);
  command[0] = file("copy");
  ASSERT_EQ(run(command), 0) << text("err");
  expectRightFile(built);
  EXPECT_FALSE(bool(codegen::verifyArtifact(file("copy"))));
  ASSERT_EQ(run({file("copy"), "--selftest"}), 0) << text("err");

  ASSERT_EQ(run({file("copy"), "--info"}), 0) << text("err");
  EXPECT_NE(text("out").find("f32[batch, 48]"), std::string::npos);
  ASSERT_EQ(run({file("copy"), "--info", "--json"}), 0) << text("err");
  auto info = llvm::json::parse(text("out"));
  ASSERT_TRUE(bool(info)) << llvm::toString(info.takeError());
  EXPECT_EQ(info->getAsObject()->getInteger("weight_bytes"),
            int64_t(report.weightBytes));

  const auto *forms =
      info->getAsObject()->getObject("manifest")->getObject("form_bytes");
  ASSERT_TRUE(forms);
  EXPECT_EQ(forms->size(), 1u);

  ASSERT_EQ(
      run({file("copy"), "--bench", "--json", "--seconds=0.05", "--threads=2",
           "--inputs", file("in.npz"), "--profile=" + file("trace.json")}),
      0)
      << text("err");
  auto bench = llvm::json::parse(text("out"));
  ASSERT_TRUE(bool(bench)) << llvm::toString(bench.takeError());
  EXPECT_GT(*bench->getAsObject()->getNumber("median_ms"), 0);
  auto trace = llvm::json::parse(text("trace.json"));
  ASSERT_TRUE(bool(trace)) << llvm::toString(trace.takeError());
}

TEST_F(Artifact, IsCachedAndReproducible) {
  Built built = build();
  make(built, file("one"), codegen::ArtifactKind::Executable);
  codegen::ArtifactReport again =
      make(built, file("two"), codegen::ArtifactKind::Executable);
  EXPECT_EQ(again.compiled, 0u);
  EXPECT_EQ(text("one"), text("two"));
  // Nothing but the two, and the cache's objects.
  std::error_code failed;
  std::vector<std::string> left;
  for (llvm::sys::fs::directory_iterator at(folder, failed), end; at != end;
       at.increment(failed))
    left.push_back(llvm::sys::path::filename(at->path()).str());
  llvm::sort(left);
  EXPECT_EQ(left, (std::vector<std::string>{"cache", "one", "two"}));
  left.clear();
  for (llvm::sys::fs::directory_iterator at(cache, failed), end; at != end;
       at.increment(failed))
    left.push_back(llvm::sys::path::filename(at->path()).str());
  EXPECT_EQ(left, (std::vector<std::string>{"objects"}));
}

TEST_F(Artifact, ExplainsWhatIsWrong) {
  Built built = build();
  make(built, file("model"), codegen::ArtifactKind::Executable);
  writeInput(2);
  auto message = [&](std::vector<std::string> flags) {
    flags.insert(flags.begin(), file("model"));
    EXPECT_GT(run(flags), 0);
    EXPECT_EQ(text("out"), "");
    std::string err = text("err");
    return err.substr(err.find("error: "));
  };
  EXPECT_EQ(message({}),
            "error: no command: expected --info, --run, --bench, --selftest, "
            "--generate, --interactive or --show-steps; see --help\n");
  EXPECT_EQ(message({"--rum"}),
            "error: unknown argument '--rum'; see --help\n");
  EXPECT_EQ(message({"--run"}), "error: --run needs --inputs=FILE.npz and "
                                "--outputs=FILE.npz\n");
  EXPECT_EQ(message({"--bench", "--inputs=x", "--threads=0"}),
            "error: --threads: found '0', expected a number from 1 to 1024\n");
  std::string missing = file("missing.npz"), in = file("in.npz");
  EXPECT_EQ(message({"--bench", "--inputs=" + missing}),
            "error: " + missing + ": No such file or directory\n");
  EXPECT_NE(message({"--bench", "--inputs=" + in, "--cpu=z80"})
                .find("error: no CPU form 'z80'; there are "),
            std::string::npos);
  EXPECT_EQ(
      message({"--run", "--inputs=" + in, "--outputs=" + file("none/out.npz")}),
      "error: " + file("none/out.npz") +
          ": cannot write: No such file or directory\n");
  float other[1] = {};
  rt::NpyView view = {"b", rt::DType::F32, {1}, other};
  ASSERT_TRUE(rt::writeNpzFile(in, {&view, 1}).ok());
  EXPECT_EQ(
      message({"--run", "--inputs=" + in, "--outputs=" + file("o.npz")}),
      "error: " + in +
          ": no input 'b'; the model's inputs are 'a \"name\" */ ../x'\n");
  EXPECT_FALSE(llvm::sys::fs::exists(file("o.npz")));
}

TEST_F(Artifact, NoticesDamage) {
  Built built = build();
  make(built, file("model"), codegen::ArtifactKind::Executable);
  uint64_t size;
  ASSERT_FALSE(llvm::sys::fs::file_size(file("model"), size));
  std::string whole = text("model");
  auto damaged = [&](std::string bytes) {
    std::error_code failed;
    llvm::raw_fd_ostream os(file("bad"), failed);
    os << bytes;
    os.close();
    return llvm::toString(codegen::verifyArtifact(file("bad")));
  };
  std::string bad = whole;
  bad[size - 9000] ^= 1; // in the weights
  EXPECT_EQ(damaged(bad),
            file("bad") + ": error: damaged: the weights' checksum differs");
  EXPECT_NE(damaged(whole.substr(0, size / 2)), "");
  EXPECT_EQ(damaged("not ELF"),
            file("bad") + ": error: not an ELF file for a 64-bit machine");
}

TEST_F(Artifact, LeavesNothingWhenTheCompilerFails) {
  Built built = build();
  built.sources[0].text += "#error of a test\n";
  codegen::ArtifactOptions options;
  options.toolchain.cacheFolder = cache;
  std::string message =
      llvm::toString(codegen::buildArtifact(built.program, built.sources,
                                            options, file("model"))
                         .takeError());
  EXPECT_NE(message.find("#error of a test"), std::string::npos) << message;
  EXPECT_FALSE(llvm::sys::fs::exists(file("model")));
  std::error_code failed;
  for (llvm::sys::fs::directory_iterator at(folder, failed), end; at != end;
       at.increment(failed))
    EXPECT_EQ(at->path(), cache);
  EXPECT_EQ(llvm::toString(codegen::buildArtifact(built.program, built.sources,
                                                  options, file("no/model"))
                               .takeError()),
            file("no/model") + ": cannot write: No such file or directory");
}

TEST_F(Artifact, LoadsIntoThisProcess) {
  Built built = build("x86-64,native");
  codegen::ToolchainOptions options;
  options.cacheFolder = cache;
  options.keepSources = file("sources");
  auto units = codegen::LoadedUnits::compile(built.sources, options);
  ASSERT_TRUE(bool(units)) << llvm::toString(units.takeError());
  EXPECT_TRUE(llvm::sys::fs::exists(file("sources/kernels/cpu/gemm.h")));
  EXPECT_TRUE(llvm::sys::fs::exists(file("sources/forms.cpp")));
  for (const tn_form &form : (*units)->forms()) {
    auto program =
        codegen::LoadedProgram::create(built.program, *units, form.name);
    ASSERT_TRUE(bool(program)) << llvm::toString(program.takeError());
    auto session = std::move(*rt::Session::create((*program)->model(), 2));
    writeInput(5);
    int64_t shape[] = {5, 48};
    ASSERT_TRUE(session->setInput(0, rt::DType::F32, shape, x.data()).ok());
    rt::Status status = session->run();
    ASSERT_TRUE(status.ok()) << status.message();
    expectRight(static_cast<const float *>(session->output(0).data),
                *built.program.weights[0].value);
  }
}

constexpr char user[] = R"(
#include "libmodel.h"
#include <stdio.h>
int main(void) {
  float x[2 * 48] = {0}, y[2 * 40];
  int64_t shape[2] = {2, 48};
  tenon_tensor out;
  tenon_model *model = tenon_open();
  if (!model) {
    fprintf(stderr, "%s\n", tenon_open_error());
    return 1;
  }
  tenon_session *session = tenon_session_create(model, 2);
  if (tenon_set_input(session, "wrong", TENON_F32, shape, 2, x) == 0)
    return 2;
  if (tenon_get_output(session, 0, &out) == 0)
    return 3;
  if (tenon_set_input_at(session, 0, TENON_F32, shape, 2, x) ||
      tenon_set_output_at(session, 0, y, sizeof(y)) || tenon_run(session) ||
      tenon_get_output(session, 0, &out)) {
    fprintf(stderr, "%s\n", tenon_session_error(session));
    return 4;
  }
  printf("%zu %zu %u %lld %.4f\n", tenon_num_inputs(model),
         tenon_num_outputs(model), out.rank, (long long)out.shape[0], y[79]);
  tenon_session_destroy(session);
  tenon_close(model);
  return out.data == y ? 0 : 5;
}
)";

TEST_F(Artifact, SharedLibraryServesC) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "a library with a sanitizer inside needs a program with one";
#endif
  Built built = build();
  make(built, file("libmodel.so"), codegen::ArtifactKind::SharedLibrary);
  {
    std::error_code failed;
    llvm::raw_fd_ostream os(file("user.c"), failed);
    os << user;
  }
  ASSERT_EQ(run({"cc", "-Wall", "-Werror", "-std=c11", file("user.c"),
                 file("libmodel.so"), "-o", file("user")}),
            0)
      << text("err");
  ASSERT_EQ(run({file("user")}), 0) << text("err");
  EXPECT_EQ(text("out"), "1 1 2 2 0.7616\n"); // tanh(1)
  EXPECT_FALSE(bool(codegen::verifyArtifact(file("libmodel.so"))));
  // Only the C interface is visible.
  ASSERT_EQ(run({"nm", "-D", "--defined-only", file("libmodel.so")}), 0);
  llvm::SmallVector<llvm::StringRef> lines;
  std::string symbols = text("out");
  llvm::StringRef(symbols).split(lines, '\n', -1, false);
  for (llvm::StringRef line : lines)
    EXPECT_NE(line.find(" tenon_"), llvm::StringRef::npos) << line.str();
}

} // namespace
