//===- TextTest.cpp - tests of the text form -----------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ir/text/Text.h"
#include "ir/text/SideFile.h"
#include "ir/verify/Verify.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/FileSystem.h"
#include "gtest/gtest.h"
#include <random>

using namespace tenon::ir;

namespace {

std::string str(const Module &module, const PrintOptions &options = {}) {
  std::string text;
  llvm::raw_string_ostream os(text);
  print(module, os, options);
  return text;
}

llvm::Expected<ParsedFile> parseText(llvm::StringRef text,
                                     ConstantLookup lookup = nullptr) {
  return parse(llvm::MemoryBufferRef(text, "t.tn"), lookup);
}

/// The error of parsing \p text, "" when there is none.
std::string problem(llvm::StringRef text) {
  llvm::Expected<ParsedFile> file = parseText(text);
  return file ? "" : llvm::toString(file.takeError());
}

/// Parses, verifies, prints, parses and prints again; the first print.
std::string roundTrip(llvm::StringRef text) {
  llvm::Expected<ParsedFile> file = parseText(text);
  if (!file) {
    ADD_FAILURE() << llvm::toString(file.takeError());
    return "";
  }
  EXPECT_EQ(llvm::toString(verify(*file->module)), "");
  std::string first = str(*file->module);
  llvm::Expected<ParsedFile> again = parseText(first);
  if (!again) {
    ADD_FAILURE() << llvm::toString(again.takeError()) << '\n' << first;
    return first;
  }
  EXPECT_EQ(str(*again->module), first);
  return first;
}

/// A function around \p ops.
std::string in(llvm::StringRef ops) {
  return ("func @f(%x: f32[n, 4]) -> (y: f32[n, 4]) {\n" + ops +
          "\n  return %x\n}\n")
      .str();
}

bool contains(llvm::StringRef text, llvm::StringRef part) {
  return text.contains(part);
}

TEST(Text, RoundTripsEverything) {
  constexpr llvm::StringLiteral text = R"(stage fused
dims { batch: 1..., seq: 1..512, past, "odd name": 0..4, total }

func @main(%ids: i64[batch, seq], %x: f32[batch, seq, 768], %arg2 "a/b \"c\"": f32["odd name"], %m: bool[total]) -> (logits: f32[batch, seq, 768], "p/q": f32[batch, 4], third: i64[batch, 4]) where past + seq == total loc("/cache/Concat") {
  %w = const random(seed = 3) : f32[768, 768]
  %c = const splat(0.125) : f32
  %ints = const [1, 2, 3] : i64[3]
  %flags = const [true, false] : bool[2]
  %i = const iota : i32[5]
  %bias = const splat(1e-05) : f32[768] loc("b")
  %y = matmul %x, %w, %bias epilogue(%acc: f32, %b: f32) {
    %0 = add %acc, %b : f32
    yield %0
  } : f32[batch, seq, 768] loc("/layer.0/MatMul", "/layer.0/Add")
  %n = layer_norm %y, %bias, _ {axis = 2, epsilon = 1e-12} : f32[batch, seq, 768]
  %m_1 = map %n, %y (%s: f32, %t: f32) {
    %0 = mul %s, %t : f32
    %k = const splat(2.5) : f32
    %1 = add %0, %k : f32
    yield %1, %0
  } : f32[batch, seq, 768], f32[batch, seq, 768]
  return %n
}
)";
  // The map's results need two names, the function's three.
  std::string whole = text.str();
  whole.replace(whole.find("%m_1 ="), 6, "%m_1, %m_2 =");
  whole.replace(whole.find("  return %n"), 11,
                "  %flat = reduce_max %m_1 {axes = [1], keepdims = false} : "
                "f32[batch, 768]\n"
                "  %v, %top = top_k %flat {axis = 1, k = 4} : f32[batch, 4], "
                "i64[batch, 4]\n"
                "  return %m_2, %v, %top");
  EXPECT_EQ(roundTrip(whole), whole);
}

TEST(Text, CommentsAndLayoutAreFree) {
  std::string text =
      roundTrip("// hello\nfunc @f(%x:f32[2*n])->(f32[n+n]){// c\n"
                "return %x// end\n}\n// last");
  EXPECT_TRUE(
      contains(text, "func @f(%x: f32[2 * n]) -> (output0: f32[2 * n])"))
      << text;
  EXPECT_TRUE(contains(text, "dims { n }"));
}

TEST(Text, FloatsPrintShortestAndExact) {
  const char *values[] = {"0.1",  "1e-45", "3.4028235e+38",   "-0",   "inf",
                          "-inf", "nan",   "nan(0xffc00001)", "1e+10"};
  for (const char *value : values) {
    std::string op = std::string("  %c = const splat(") + value + ") : f32";
    EXPECT_TRUE(contains(roundTrip(in(op)), op)) << value;
  }
  EXPECT_TRUE(contains(roundTrip(in("%c = const [0.1, 65504, 6e-8] : f16[3]")),
                       "[0.1, 65504, 6e-08]"));
  EXPECT_TRUE(contains(roundTrip(in("%c = const splat(448) : f8e4m3fn[3]")),
                       "splat(448)"));
  EXPECT_TRUE(
      contains(roundTrip(in("%c = const splat(0.30000000000000004) : f64")),
               "splat(0.30000000000000004)"));
}

TEST(Text, IntegersAreExact) {
  for (const char *op :
       {"  %c = const splat(9223372036854775807) : i64",
        "  %c = const splat(-9223372036854775808) : i64[2]",
        "  %c = const splat(18446744073709551615) : u64",
        "  %c = const [-8, 7] : i4[2]", "  %c = const [0, 3, 1] : u2[3]",
        "  %c = const [-128] : i8[1]"})
    EXPECT_TRUE(contains(roundTrip(in(op)), op)) << op;
  EXPECT_TRUE(contains(problem(in("%c = const splat(128) : i8")),
                       "128 does not fit i8"));
  EXPECT_TRUE(
      contains(problem(in("%c = const splat(-1) : u8")), "-1 does not fit u8"));
}

TEST(Text, RunLinesAreCollected) {
  llvm::Expected<ParsedFile> file =
      parseText(in("") + "// run: @f(random(seed=1, n=2)) ~ ref, rtol = 1e-5\n"
                         "  // run: @f(ones)\r\n");
  ASSERT_TRUE(bool(file));
  ASSERT_EQ(file->runLines.size(), 2u);
  EXPECT_EQ(file->runLines[0].text,
            "@f(random(seed=1, n=2)) ~ ref, rtol = 1e-5");
  EXPECT_EQ(file->runLines[0].line, 5u);
  EXPECT_EQ(file->runLines[1].text, "@f(ones)");
}

TEST(Text, NamesAreStable) {
  std::string text = roundTrip(in("%x_1 = neg %x : f32[n, 4]\n"
                                  "%7 = neg %x_1 : f32[n, 4]"));
  EXPECT_TRUE(contains(text, "%0 = neg %x_1")) << text;
}

/// The parts that split-file makes of a test, or the whole of it.
std::vector<llvm::StringRef> modulesOf(llvm::StringRef file) {
  llvm::SmallVector<llvm::StringRef> parts;
  file.split(parts, "\n//--- ");
  if (parts.size() == 1)
    return {file};
  std::vector<llvm::StringRef> modules;
  for (llvm::StringRef part : llvm::drop_begin(parts))
    modules.push_back(part.split('\n').second);
  return modules;
}

/// Every .tn file of the tests parses, verifies and round-trips.
TEST(Text, TestFilesRoundTrip) {
  std::error_code error;
  unsigned files = 0;
  for (llvm::sys::fs::recursive_directory_iterator it(TENON_TEST_DIR, error),
       end;
       it != end && !error; it.increment(error)) {
    llvm::StringRef path = it->path();
    if (!path.ends_with(".tn"))
      continue;
    SCOPED_TRACE(path.str());
    auto buffer = llvm::MemoryBuffer::getFile(path);
    ASSERT_TRUE(bool(buffer));
    for (llvm::StringRef module : modulesOf((*buffer)->getBuffer()))
      roundTrip(module);
    ++files;
  }
  EXPECT_GT(files, 50u);
}

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

TEST(TextErrors, SayWhereAndWhat) {
  EXPECT_EQ(problem("func @f(%x: f32[2]) -> (f32[2]) {\n  %y = nonsense %x\n}"),
            "t.tn:2:8: error: expected the name of an op, found 'nonsense'");
  EXPECT_EQ(problem(in("  %y = neg %z : f32[n, 4]")),
            "t.tn:2:12: error: %z is not defined here");
  EXPECT_EQ(problem(in("  %y = neg %x : f32[n, 5]")),
            "t.tn:2:17: error: neg: the text says f32[n, 5], but the result is "
            "f32[n, 4]");
  EXPECT_EQ(problem(in("  %y = softmax %x : f32[n, 4]")),
            "t.tn:2:19: error: attribute 'axis' of 'softmax' is missing");
  EXPECT_EQ(problem(in("  %y = softmax %x {axis = 1, foo = 2} : f32[n, 4]")),
            "t.tn:2:30: error: 'softmax' has no attribute 'foo'; it has axis");
  EXPECT_EQ(problem(in("  %y = softmax %x {axis = 1, axis = 1} : f32[n, 4]")),
            "t.tn:2:30: error: attribute 'axis' is given twice");
  EXPECT_EQ(problem(in("  %y = softmax %x {axis = 1 2} : f32[n, 4]")),
            "t.tn:2:29: error: expected ',' or '}' after the value of 'axis', "
            "found '2'");
  EXPECT_EQ(problem(in("  %y, %z = neg %x : f32[n, 4]")),
            "t.tn:2:12: error: neg: has 1 results, but the text names 2 and "
            "gives types for 1");
  EXPECT_EQ(problem(in("  %x = neg %x : f32[n, 4]")),
            "t.tn:2:3: error: %x is defined twice");
  EXPECT_EQ(problem(in("  %c = const [1, 2] : f32[3]")),
            "t.tn:2:14: error: expected 3 elements for f32[3], found 2");
  EXPECT_EQ(problem("func @f(%x: f33) -> () { return }"),
            "t.tn:1:13: error: expected an element type such as f32 or i64, "
            "found 'f33'");
  EXPECT_EQ(problem(""), "t.tn:1:1: error: expected 'func', found the end of "
                         "the file");
}

TEST(TextErrors, OfTheSignature) {
  EXPECT_TRUE(contains(problem("func @f(%x: f32) -> (f32, f32) { return %x }"),
                       "declares 2 outputs and returns 1"));
  EXPECT_TRUE(contains(problem("func @f(%x: f32) -> (f64) { return %x }"),
                       "declared as f64, but what is returned is f32"));
  EXPECT_TRUE(contains(problem("func @f(%x: f32) -> () { }"),
                       "does not end in a return"));
  EXPECT_TRUE(contains(problem("func @f() -> () { return return }"),
                       "nothing may come after 'return'"));
  EXPECT_TRUE(contains(problem("dims { n: 4..2 } func @f() -> () { return }"),
                       "a range goes from"));
  EXPECT_TRUE(contains(problem("dims { n, n } func @f() -> () { return }"),
                       "declared twice"));
}

TEST(TextErrors, MissingWeightsSayHowToGiveThem) {
  EXPECT_TRUE(contains(problem(in("%w = const dense<\"a\"> : f32[3]")),
                       "weights file beside the text, which is not there"));
}

TEST(TextErrors, ExpressionsThatAreTooLarge) {
  EXPECT_TRUE(contains(problem("func @f(%x: f32[9223372036854775807 * n + n]) "
                               "-> () { return }"),
                       "dimension"));
  EXPECT_TRUE(
      contains(problem(in("%c = const splat(1) : f32[4294967296, 4294967296]")),
               "can be addressed"));
}

TEST(TextErrors, HostileInputEnds) {
  EXPECT_NE(problem(std::string(200000, '{')), "");
  EXPECT_NE(problem(std::string(200000, '(')), "");
  EXPECT_NE(problem("func @f(%x: f32[" + std::string(200000, '(')), "");
  EXPECT_NE(problem(in("%y = softmax %x " + std::string(200000, '{'))), "");
  EXPECT_NE(problem(in("%c = const " + std::string(200000, '['))), "");
  EXPECT_NE(
      problem(in("%c = const splat(" + std::string(200000, '1') + ") : f64")),
      "");
  EXPECT_NE(problem("func @\"open"), "");
  EXPECT_NE(problem(std::string("func \0 @f", 9)), "");
  std::string nested = "%y = ";
  for (int i = 0; i < 1000; ++i)
    nested += "map (%a: f32) { %y = ";
  EXPECT_NE(problem(in(nested)), "");
}

/// Every prefix, and every text with one byte changed, parses or fails cleanly;
/// what parses prints and parses again.
TEST(TextErrors, DamagedTextNeverCrashes) {
  std::string text =
      "dims { n: 1..9 }\nfunc @f(%x \"q\": f32[n, 4]) -> (y: f32[n, 4]) where "
      "n == m {\n  %c = const [1, 0.5] : f32[2] loc(\"a\")\n  %y = matmul %x, "
      "%x "
      "epilogue(%a: f32) { yield %a } : f32[n, 4]\n  %s = softmax %x {axis = "
      "1} "
      ": f32[n, 4]\n  return %s\n}\n";
  std::mt19937 random(7);
  for (size_t i = 0; i < text.size(); ++i)
    problem(llvm::StringRef(text).take_front(i));
  for (unsigned n = 0; n < 4000; ++n) {
    std::string damaged = text;
    for (unsigned k = 0; k <= n % 3; ++k) {
      size_t at = random() % damaged.size();
      switch (random() % 3) {
      case 0:
        damaged[at] = char(random());
        break;
      case 1:
        damaged.erase(at, 1 + random() % 5);
        break;
      case 2:
        damaged.insert(at, text.substr(random() % text.size(), 6));
        break;
      }
    }
    llvm::Expected<ParsedFile> file = parseText(damaged);
    if (!file) {
      llvm::consumeError(file.takeError());
      continue;
    }
    std::string printed = str(*file->module);
    EXPECT_EQ(problem(printed), "") << printed;
  }
}

//===----------------------------------------------------------------------===//
// Weights beside the text
//===----------------------------------------------------------------------===//

std::unique_ptr<Module> moduleWithWeights() {
  llvm::Expected<ParsedFile> file = parseText(
      "func @f() -> (a: f32[40], b: i4[33], c: f32[40], d: f32[3]) {\n"
      "  %a = const random(seed = 1) : f32[40]\n"
      "  %b = const random(seed = 2) : i4[33]\n"
      "  %c = const random(seed = 3) : f32[40]\n"
      "  %d = const [1, 2, 3] : f32[3]\n"
      "  return %a, %b, %c, %d\n}\n");
  EXPECT_TRUE(bool(file));
  for (Op &op : file->module->entry().body) {
    if (op.kind() != OpKind::Const)
      continue;
    ConstantRef &value = op.attrs<ConstAttrs>().value;
    value = Constant::copy(value->element(), value->shape(),
                           value->materialize(), "w");
  }
  return std::move(file->module);
}

TEST(SideFile, RoundTrips) {
  std::unique_ptr<Module> module = moduleWithWeights();
  std::string text = str(*module), weights;
  {
    llvm::raw_string_ostream os(weights);
    writeSideFile(*module, os);
  }
  EXPECT_TRUE(contains(text, "dense<\"w\"> : f32[40]"));
  EXPECT_TRUE(contains(text, "dense<\"w_1\"> : i4[33]"));
  EXPECT_TRUE(contains(text, "[1, 2, 3] : f32[3]"));
  llvm::Expected<SideFile> side =
      SideFile::read(llvm::MemoryBuffer::getMemBufferCopy(weights));
  ASSERT_TRUE(bool(side)) << llvm::toString(side.takeError());
  EXPECT_EQ(side->size(), 3u);
  llvm::Expected<ParsedFile> again =
      parseText(text, [&](llvm::StringRef name) { return side->lookup(name); });
  ASSERT_TRUE(bool(again)) << llvm::toString(again.takeError());
  EXPECT_EQ(str(*again->module), text);
  auto a = module->entry().body.begin(),
       b = again->module->entry().body.begin();
  for (unsigned i = 0; i < 4; ++i, ++a, ++b)
    EXPECT_TRUE(equal(a->rawAttrs(), b->rawAttrs()));
  EXPECT_TRUE(contains(
      [&] {
        std::string other = text;
        other.replace(other.find("> : f32[40]"), 11, "> : f32[41]");
        llvm::Expected<ParsedFile> file = parseText(
            other, [&](llvm::StringRef name) { return side->lookup(name); });
        return file ? std::string() : llvm::toString(file.takeError());
      }(),
      "is f32[40], but the text says f32[41]"));
}

TEST(SideFile, HoldsConstantsMadeOfParts) {
  std::unique_ptr<Module> module = moduleWithWeights();
  Op &op = module->entry().body.front();
  ConstantRef part =
      Constant::generated(Constant::Form::Iota, ElementType::F32, {20}, 0);
  op.attrs<ConstAttrs>().value = Constant::concat({part, part}, 0);
  std::string text = str(*module), weights;
  {
    llvm::raw_string_ostream os(weights);
    writeSideFile(*module, os);
  }
  llvm::Expected<SideFile> side =
      SideFile::read(llvm::MemoryBuffer::getMemBufferCopy(weights));
  ASSERT_TRUE(bool(side)) << llvm::toString(side.takeError());
  llvm::Expected<ParsedFile> again =
      parseText(text, [&](llvm::StringRef name) { return side->lookup(name); });
  ASSERT_TRUE(bool(again)) << llvm::toString(again.takeError());
  EXPECT_TRUE(
      equal(again->module->entry().body.front().rawAttrs(), op.rawAttrs()));
}

TEST(SideFile, DamagedFilesAreRefused) {
  std::unique_ptr<Module> module = moduleWithWeights();
  std::string weights;
  {
    llvm::raw_string_ostream os(weights);
    writeSideFile(*module, os);
  }
  auto tryRead = [](llvm::StringRef bytes) {
    llvm::Expected<SideFile> side =
        SideFile::read(llvm::MemoryBuffer::getMemBufferCopy(bytes));
    if (side)
      return true;
    llvm::consumeError(side.takeError());
    return false;
  };
  for (size_t size = 0; size < weights.size(); ++size)
    EXPECT_FALSE(tryRead(llvm::StringRef(weights).take_front(size))) << size;
  for (size_t at = 0; at < 160; ++at) {
    std::string damaged = weights;
    damaged[at] = char(~damaged[at]);
    tryRead(damaged);
  }
}

TEST(SideFile, FilesGoTogether) {
  llvm::SmallString<128> path;
  ASSERT_FALSE(llvm::sys::fs::createTemporaryFile("tenon", "tn", path));
  std::unique_ptr<Module> module = moduleWithWeights();
  EXPECT_EQ(llvm::toString(writeFile(*module, path)), "");
  llvm::Expected<ParsedFile> file = parseFile(path);
  ASSERT_TRUE(bool(file)) << llvm::toString(file.takeError());
  EXPECT_EQ(str(*file->module), str(*module));
  llvm::sys::fs::remove(sideFilePath(path));
  EXPECT_TRUE(
      contains(llvm::toString(parseFile(path).takeError()), "weights file"));
  llvm::sys::fs::remove(path);
}

} // namespace
