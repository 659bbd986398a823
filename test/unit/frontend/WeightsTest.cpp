//===- WeightsTest.cpp - tensors in every form, and hostile files --------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontend/Weights.h"
#include "TestModel.h"
#include "frontend/ModelFile.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <fstream>
#include <random>
#include <unistd.h>

using namespace tenon;
using namespace tenon::test;

namespace {

/// Loads one tensor as from a model in memory; null and the message otherwise.
ir::ConstantRef load(const onnx::TensorProto &tensor, std::string &message) {
  frontend::ModelFile model;
  auto constant = frontend::Weights(model).load(tensor);
  if (constant)
    return *constant;
  message = llvm::toString(constant.takeError());
  return nullptr;
}

onnx::TensorProto tensor(int type, const std::vector<int64_t> &dims) {
  onnx::TensorProto t;
  t.set_data_type(type);
  for (int64_t dim : dims)
    t.add_dims(dim);
  return t;
}

std::string failure(const onnx::TensorProto &t) {
  std::string message;
  EXPECT_EQ(load(t, message), nullptr);
  return message;
}

TEST(Weights, ReadsTypedFields) {
  std::string message;
  onnx::TensorProto half = tensor(Float16, {2});
  half.add_int32_data(0x3c00);
  half.add_int32_data(0xc000);
  auto c = load(half, message);
  ASSERT_TRUE(c) << message;
  EXPECT_EQ(c->floatAt(0), 1.0);
  EXPECT_EQ(c->floatAt(1), -2.0);

  onnx::TensorProto flags = tensor(Bool, {3});
  for (int value : {0, 1, 7})
    flags.add_int32_data(value);
  c = load(flags, message);
  ASSERT_TRUE(c) << message;
  EXPECT_EQ(c->intAt(2), 1);

  onnx::TensorProto nibbles =
      tensor(22, {3}); // int4, the first in the low bits
  nibbles.add_int32_data(0x7f);
  nibbles.add_int32_data(0x08);
  c = load(nibbles, message);
  ASSERT_TRUE(c) << message;
  EXPECT_EQ(c->intAt(0), -1);
  EXPECT_EQ(c->intAt(1), 7);
  EXPECT_EQ(c->intAt(2), -8);

  onnx::TensorProto wide = tensor(13, {1}); // uint64
  wide.add_uint64_data(5);
  c = load(wide, message);
  ASSERT_TRUE(c) << message;
  EXPECT_EQ(c->intAt(0), 5);
}

TEST(Weights, ChecksSizesAndFields) {
  onnx::TensorProto shortRaw = tensor(Float, {4, 3});
  shortRaw.set_raw_data(std::string(44, 'x'));
  expectParts(failure(shortRaw), {"44", "48"});
  onnx::TensorProto few = tensor(Float, {4});
  few.add_float_data(1);
  expectParts(failure(few), {"float_data has 1 values", "4"});
  expectParts(failure(tensor(Float, {4})), {"no data", "16 bytes"});
  onnx::TensorProto both = tensor(Float, {1});
  both.set_raw_data("abcd");
  both.add_float_data(1);
  expectParts(failure(both), {"raw_data", "float_data"});
  onnx::TensorProto wrong = tensor(Float, {1});
  wrong.add_int64_data(1);
  expectParts(failure(wrong), {"int64_data", "float"});
  onnx::TensorProto big = tensor(3, {1}); // int8
  big.add_int32_data(300);
  expectParts(failure(big), {"300", "8 bits"});
}

TEST(Weights, SizesDoNotWrap) {
  onnx::TensorProto wraps = tensor(Float, {int64_t(1) << 32, int64_t(1) << 32});
  wraps.set_raw_data("");
  expectParts(failure(wraps), {"2^63"});
  expectParts(failure(tensor(Float, {int64_t(1) << 62})), {"2^63 bytes"});
  expectParts(failure(tensor(Float, {-4, -3})), {"-4 is negative"});
}

TEST(Weights, NamesTypesThatItLacks) {
  expectParts(failure(tensor(8, {1})), {"string"});
  expectParts(failure(tensor(14, {1})), {"complex64"});
  expectParts(failure(tensor(999, {1})), {"999"});
  expectParts(failure(tensor(0, {1})), {"0"});
}

TEST(Weights, LargePayloadsAreNotCopied) {
  TestModel m;
  m.tensor("raw", Float, {1024}).set_raw_data(std::string(4096, '\1'));
  m.floats("typed", {1024}, std::vector<float>(1024, 2.0f));
  std::string bytes = m.proto.SerializeAsString();
  auto model = frontend::ModelFile::parse(llvm::arrayRefFromStringRef(bytes),
                                          std::make_shared<int>());
  ASSERT_TRUE(bool(model)) << llvm::toString(model.takeError());
  frontend::Weights weights(**model);
  for (const onnx::TensorProto &t : (*model)->proto.graph().initializer()) {
    EXPECT_TRUE(t.raw_data().empty() && t.float_data().empty());
    auto constant = weights.load(t);
    ASSERT_TRUE(bool(constant)) << llvm::toString(constant.takeError());
    const char *data =
        reinterpret_cast<const char *>((*constant)->bytes().data());
    EXPECT_TRUE(data >= bytes.data() && data < bytes.data() + bytes.size());
  }
}

//===----------------------------------------------------------------------===//
// External data
//===----------------------------------------------------------------------===//

class External : public testing::Test {
protected:
  void SetUp() override {
    llvm::SmallString<128> path;
    ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("tenon-weights", path));
    root = path.str().str();
    ASSERT_FALSE(llvm::sys::fs::create_directories(root + "/model/sub"));
    write("outside.bin", 16);
    write("model/w.bin", 16);
    write("model/sub/w.bin", 64);
    ASSERT_EQ(::symlink("../outside.bin", (root + "/model/link.bin").c_str()),
              0);
    ASSERT_EQ(::symlink("..", (root + "/model/up").c_str()), 0);
  }
  void TearDown() override { llvm::sys::fs::remove_directories(root); }
  void write(const std::string &name, size_t size) {
    std::ofstream(root + "/" + name) << std::string(size, '\0');
  }
  /// Imports a model with one external f32[4]; "" when it works.
  std::string import(std::vector<std::pair<std::string, std::string>> entries) {
    TestModel m;
    auto &t = m.tensor("weight", Float, {4});
    t.set_data_location(onnx::TensorProto::EXTERNAL);
    for (const auto &[key, value] : entries) {
      auto *entry = t.add_external_data();
      entry->set_key(key);
      entry->set_value(value);
    }
    m.output("weight");
    std::string path = root + "/" + folder + "/model.onnx";
    std::ofstream(path) << m.proto.SerializeAsString();
    auto module = frontend::importOnnx(path, options);
    return module ? "" : llvm::toString(module.takeError());
  }
  std::string root, folder = "model";
  frontend::ImportOptions options;
};

TEST_F(External, FindsFilesInTheFolder) {
  EXPECT_EQ(import({{"location", "w.bin"}}), "");
  EXPECT_EQ(import({{"location", "./sub/w.bin"},
                    {"offset", "13"},
                    {"length", "16"},
                    {"checksum", "?"}}),
            "");
}

TEST_F(External, StaysInTheFolder) {
  for (const char *location :
       {"../outside.bin", "sub/../../outside.bin", "/etc/passwd", "/dev/zero",
        "link.bin", "up/outside.bin", "sub", "gone.bin", "", "."})
    expectParts(import({{"location", location}}),
                {"model.onnx: error: ", "'weight'"});
  expectParts(import({{"location", "link.bin"}}),
              {"is a symbolic link to '/", "--follow-links allows it"});
  expectParts(import({{"location", "/etc/passwd"}}), {"absolute"});
  expectParts(import({{"location", "gone.bin"}}), {"No such file"});
}

TEST_F(External, FollowsLinksWithinTheFolderOrWhereTold) {
  ASSERT_EQ(::symlink("sub/w.bin", (root + "/model/near.bin").c_str()), 0);
  ASSERT_EQ(::symlink("sub", (root + "/model/folder").c_str()), 0);
  EXPECT_EQ(import({{"location", "near.bin"}}), "");
  EXPECT_EQ(import({{"location", "folder/w.bin"}, {"length", "16"}}), "");
  options.followLinks = true;
  EXPECT_EQ(import({{"location", "link.bin"}}), "");
  expectParts(import({{"location", "up/../outside.bin"}}), {"leaves"});
}

// A cache of models as Hugging Face's: files are links into `blobs`.
TEST_F(External, FollowsLinksIntoTheBlobsOfACache) {
  for (const char *made :
       {"/a", "/a/blobs", "/a/blobs/deep", "/a/snapshots", "/a/snapshots/1",
        "/a/snapshots/1/onnx", "/b", "/b/blobs"})
    ASSERT_EQ(::mkdir((root + made).c_str(), 0755), 0);
  write("a/blobs/123", 16);
  write("b/blobs/123", 16);
  auto link = [&](const char *target, const char *name) {
    ASSERT_EQ(::symlink(target, (root + name).c_str()), 0);
  };
  link("../../../blobs/123", "/a/snapshots/1/onnx/w.bin");
  link("../../../../b/blobs/123", "/a/snapshots/1/onnx/other.bin");
  link("../../..", "/a/snapshots/1/onnx/up");
  link("../../../blobs/124", "/a/snapshots/1/onnx/gone.bin");
  link("../../outside.bin", "/a/blobs/124x");
  link("../../../blobs/124x", "/a/snapshots/1/onnx/twice.bin");
  folder = "a/snapshots/1/onnx";
  EXPECT_EQ(import({{"location", "w.bin"}}), "");
  expectParts(import({{"location", "other.bin"}}), {"--follow-links"});
  expectParts(import({{"location", "up/snapshots"}}), {"--follow-links"});
  expectParts(import({{"location", "gone.bin"}}), {"No such file"});
  expectParts(import({{"location", "twice.bin"}}), {"--follow-links"});
}

TEST_F(External, ChecksRanges) {
  auto at = [&](const char *offset, const char *length) {
    return import(
        {{"location", "w.bin"}, {"offset", offset}, {"length", length}});
  };
  expectParts(at("8", "16"), {"16 bytes at offset 8", "has 16"});
  expectParts(at("0", "12"), {"12", "16"});
  expectParts(at("-16", "16"), {"'-16'"});
  expectParts(at("12abc", "16"), {"'12abc'"});
  expectParts(at("18446744073709551600", "16"), {"18446744073709551600"});
  expectParts(import({{"location", "w.bin"}, {"location", "w.bin"}}),
              {"twice"});
  expectParts(import({}), {"no location"});
}

//===----------------------------------------------------------------------===//
// Corrupt files
//===----------------------------------------------------------------------===//

std::string wholeModel() {
  TestModel m;
  m.input("x", Float, {"batch", "4"});
  m.tensor("w", Float, {4, 300}).set_raw_data(std::string(4800, '\2'));
  auto &node = m.node("MatMul", {"x", "w"}, {"t"});
  node.set_doc_string("to be dropped");
  set(m.node("Softmax", {"t"}, {"y"}), "axis", -1);
  m.output("y");
  return m.proto.SerializeAsString();
}

TEST(Corrupt, EveryPrefixIsAnError) {
  std::string bytes = wholeModel();
  for (size_t size = 0; size < bytes.size(); size += size < 200 ? 1 : 37) {
    auto module = frontend::importOnnxBytes(
        llvm::arrayRefFromStringRef(llvm::StringRef(bytes).take_front(size)));
    EXPECT_FALSE(bool(module)) << size;
    llvm::consumeError(module.takeError());
  }
}

TEST(Corrupt, ChangedBytesNeverCrash) {
  std::string bytes = wholeModel();
  std::mt19937 random(1);
  for (int i = 0; i < 3000; ++i) {
    std::string changed = bytes;
    // The weights are most of the file, and not what matters.
    for (int j = 0; j < 3; ++j) {
      size_t at = random() % 600;
      changed[random() % 2 ? at % bytes.size() : bytes.size() - 1 - at] =
          char(random());
    }
    frontend::ImportOptions quiet;
    quiet.warn = [](llvm::StringRef) {};
    auto module =
        frontend::importOnnxBytes(llvm::arrayRefFromStringRef(changed), quiet);
    if (module)
      llvm::consumeError(ir::verify(**module));
    else
      llvm::consumeError(module.takeError());
  }
}

TEST(Corrupt, RecognisesOtherFiles) {
  auto message = [](llvm::StringRef text) {
    auto module = frontend::importOnnxBytes(llvm::arrayRefFromStringRef(text));
    return module ? "" : llvm::toString(module.takeError());
  };
  expectParts(message("version https://git-lfs.github.com/spec/v1\n"),
              {"git lfs pull"});
  expectParts(message("<!DOCTYPE html>"), {"HTML"});
  expectParts(message("PK\x03\x04...."), {"zip"});
  expectParts(message(""), {"empty"});
}

TEST(Corrupt, DepthIsBounded) {
  // 400 nested If nodes.
  onnx::GraphProto inner;
  inner.add_output()->set_name("r");
  for (int i = 0; i < 400; ++i) {
    onnx::GraphProto outer;
    auto &node = TestModel::fill(*outer.add_node(), "If", {"c"}, {"r"});
    *attribute(node, "then_branch", onnx::AttributeProto::GRAPH).mutable_g() =
        std::move(inner);
    outer.add_output()->set_name("r");
    inner = std::move(outer);
  }
  TestModel m;
  *m.proto.mutable_graph() = std::move(inner);
  expectParts(m.text(), {"nested more than 1000 deep"});
}

} // namespace
