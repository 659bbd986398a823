//===- ModelFile.h - reading an ONNX file --------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_FRONTEND_MODELFILE_H
#define TENON_FRONTEND_MODELFILE_H

#include "onnx-ml.pb.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <memory>
#include <string>

namespace tenon::frontend {

/// A parsed model. Large payloads of tensors are not in `proto`: they stay in
/// the mapped file, and the tensor's `segment` (a field that ONNX never uses)
/// says at which bytes; see WireScan.h.
struct ModelFile {
  /// What `owner` keeps alive.
  llvm::ArrayRef<uint8_t> bytes;
  std::shared_ptr<const void> owner;
  /// Where external data lies; empty for the current folder.
  std::string folder;
  /// External data is refused when there is no folder to find it in.
  bool hasFolder = false;
  /// ImportOptions::followLinks.
  bool followLinks = false;
  onnx::ModelProto proto;

  /// Maps and parses the file at \p path.
  static llvm::Expected<std::unique_ptr<ModelFile>> open(llvm::StringRef path);
  /// Parses a model in memory.
  static llvm::Expected<std::unique_ptr<ModelFile>>
  parse(llvm::ArrayRef<uint8_t> bytes, std::shared_ptr<const void> owner);
};

} // namespace tenon::frontend

#endif // TENON_FRONTEND_MODELFILE_H
