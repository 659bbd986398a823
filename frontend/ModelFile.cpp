//===- ModelFile.cpp - reading an ONNX file ------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontend/ModelFile.h"
#include "frontend/MappedFile.h"
#include "frontend/WireScan.h"
#include "ir/support/Diag.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Path.h"
#include <climits>
#include <google/protobuf/io/coded_stream.h>

using namespace llvm;

namespace tenon::frontend {

namespace {

/// What a file that is no ONNX model looks like, for the message.
StringRef recognise(StringRef text) {
  if (text.starts_with("version https://git-lfs"))
    return "a Git LFS pointer; fetch the file itself with `git lfs pull`";
  if (text.starts_with("PK\x03\x04"))
    return "a zip archive, perhaps a PyTorch checkpoint; export the model to "
           "ONNX first";
  if (text.ltrim().starts_with("<"))
    return "an HTML or XML page";
  if (text.size() > 9 && text[8] == '{' && text.drop_front(9).starts_with("\""))
    return "a safetensors file, which holds weights and no graph";
  return "";
}

/// As ParseFromString, but with a limit of our own on how deep messages nest.
bool parseProto(const std::string &text, onnx::ModelProto &proto) {
  if (text.size() > INT_MAX)
    return false;
  google::protobuf::io::CodedInputStream input(
      reinterpret_cast<const uint8_t *>(text.data()), int(text.size()));
  input.SetRecursionLimit(messageDepthLimit);
  return proto.ParseFromCodedStream(&input) && input.ConsumedEntireMessage();
}

} // namespace

Expected<std::unique_ptr<ModelFile>>
ModelFile::parse(ArrayRef<uint8_t> bytes, std::shared_ptr<const void> owner) {
  if (bytes.empty())
    return userError("the file is empty (0 bytes); expected an ONNX model");
  StringRef looksLike = recognise(toStringRef(bytes));
  if (!looksLike.empty())
    return userError("is not an ONNX model but {0}", looksLike);
  Expected<std::string> small = withoutPayloads(bytes);
  if (!small)
    return withPrefix(small.takeError(), "cannot parse the ONNX model: ");
  auto model = std::make_unique<ModelFile>();
  model->bytes = bytes;
  model->owner = std::move(owner);
  if (!parseProto(*small, model->proto))
    return userError("cannot parse the ONNX model: not a well-formed Protocol "
                     "Buffers message, or nested too deeply");
  return model;
}

Expected<std::unique_ptr<ModelFile>> ModelFile::open(StringRef path) {
  Expected<std::shared_ptr<const MappedFile>> file = MappedFile::open(path);
  if (!file)
    return file.takeError();
  Expected<std::unique_ptr<ModelFile>> model = parse((*file)->bytes(), *file);
  if (!model)
    return model.takeError();
  (*model)->folder = sys::path::parent_path(path).str();
  (*model)->hasFolder = true;
  return model;
}

} // namespace tenon::frontend
