//===- fuzz_external.cpp - tensors that lie outside the model ------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Three lines of the input are location, offset and length of a tensor's
/// external data, the fourth is its number of bytes. Whatever they say: what is
/// read lies inside the one file there is, and is the right part of it.
///
//===----------------------------------------------------------------------===//

#include "frontend/Import.h"
#include "ir/OpDef.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdlib>
#include <onnx-ml.pb.h>

using namespace tenon;

namespace {

constexpr size_t fileBytes = 64;

/// A folder with the model and `w` (bytes 0, 1, 2 ...), `sub/w`, a link out of
/// it and a folder.
class Folder {
public:
  Folder() {
    namespace fs = llvm::sys::fs;
    check(fs::createUniqueDirectory("tenon-fuzz", path));
    std::string bytes;
    for (size_t i = 0; i < fileBytes; ++i)
      bytes.push_back(char(i));
    check(fs::create_directory(file("sub")));
    write("w", bytes);
    write("sub/w", bytes);
    check(fs::create_link("/etc/passwd", file("link")));
  }
  ~Folder() { llvm::sys::fs::remove_directories(path); }

  std::string file(llvm::StringRef name) const {
    return (llvm::Twine(path) + "/" + name).str();
  }
  void write(llvm::StringRef name, llvm::StringRef bytes) const {
    std::error_code failed;
    llvm::raw_fd_ostream os(file(name), failed);
    check(failed);
    os << bytes;
  }

private:
  static void check(std::error_code failed) {
    if (failed)
      std::abort();
  }
  llvm::SmallString<128> path;
};

std::string modelBytes(llvm::StringRef input) {
  llvm::SmallVector<llvm::StringRef, 4> lines;
  input.split(lines, '\n');
  lines.resize(4);
  onnx::ModelProto model;
  model.set_ir_version(10);
  model.add_opset_import()->set_version(21);
  onnx::GraphProto &graph = *model.mutable_graph();
  graph.add_output()->set_name("w");
  onnx::TensorProto &tensor = *graph.add_initializer();
  tensor.set_name("w");
  tensor.set_data_type(onnx::TensorProto::UINT8);
  tensor.set_data_location(onnx::TensorProto::EXTERNAL);
  int64_t count = 0;
  lines[3].getAsInteger(10, count);
  tensor.add_dims(count);
  const char *keys[] = {"location", "offset", "length"};
  for (auto [key, value] : llvm::zip_first(keys, lines)) {
    if (value.empty())
      continue;
    onnx::StringStringEntryProto &entry = *tensor.add_external_data();
    entry.set_key(key);
    entry.set_value(value.str());
  }
  return model.SerializeAsString();
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const Folder folder;
  llvm::StringRef input(reinterpret_cast<const char *>(data), size);
  folder.write("model.onnx", modelBytes(input));
  frontend::ImportOptions options;
  options.warn = [](llvm::StringRef) {};
  auto module = frontend::importOnnx(folder.file("model.onnx"), options);
  if (!module) {
    llvm::consumeError(module.takeError());
    return 0;
  }
  llvm::StringRef offsetText = input.split('\n').second.split('\n').first;
  uint64_t offset = 0;
  offsetText.getAsInteger(10, offset);
  ir::Op *end = (*module)->entry().body.terminator();
  const ir::ConstantRef &w =
      end->operand(0)->def()->attrs<ir::ConstAttrs>().value;
  for (uint64_t i = 0; i < w->numElements(); ++i)
    if (w->intAt(i) != int64_t(offset + i))
      std::abort();
  return 0;
}
