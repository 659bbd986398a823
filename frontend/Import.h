//===- Import.h - ONNX models to modules ---------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_FRONTEND_IMPORT_H
#define TENON_FRONTEND_IMPORT_H

#include "ir/Op.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace tenon::frontend {

struct ImportOptions {
  /// What is said about sizes, by the name that the model gives them (or
  /// `<input>_<axis>` where it gives none). A range of one value is a constant
  /// from then on.
  llvm::StringMap<ir::DimRange> dims;
  /// Inputs that become constants: the text of the number that all elements of
  /// each are.
  llvm::StringMap<std::string> values;
  /// External data may lie behind any link; see MappedFile::openBeneath.
  bool followLinks = false;
  /// Told what is odd but no error; by default it is printed to standard error.
  std::function<void(llvm::StringRef)> warn;
};

/// Reads `name=N` or `name=LO..HI` (either bound may be left out).
llvm::Error parseDimOption(llvm::StringRef text, ImportOptions &options);
/// Reads `input=NUMBER`.
llvm::Error parseValueOption(llvm::StringRef text, ImportOptions &options);

/// Imports the model at \p path: one function `main`, stage *imported*.
/// Constants point into the mapped file and keep it open. Errors read
/// `PATH: error: node 'NAME' (OP): message`; ops that are not supported are
/// reported all at once.
llvm::Expected<std::unique_ptr<ir::Module>>
importOnnx(llvm::StringRef path, const ImportOptions &options = {});

/// The same from memory, without external data. \p bytes is copied.
llvm::Expected<std::unique_ptr<ir::Module>>
importOnnxBytes(llvm::ArrayRef<uint8_t> bytes,
                const ImportOptions &options = {});

/// An op that the model uses and Tenon cannot import, and where.
struct UnsupportedOp {
  std::string domain, op;
  /// The version of the domain's operator set that the model imports.
  int64_t version = 0;
  /// Why, if it is not just unknown: "exists from opset 20".
  std::string note;
  std::vector<std::string> nodes;
};

/// What `tenon check` says about a model.
struct ModelSummary {
  std::string producer, graphName;
  int64_t irVersion = 0;
  struct Opset {
    std::string domain;
    int64_t version;
  };
  std::vector<Opset> opsets;
  /// `name: f32[batch, 3, 224, 224]`; not with initializers that older files
  /// list among the inputs.
  std::vector<std::string> inputs, outputs;
  /// How often each op occurs, subgraphs and functions included, in the order
  /// of names; ops of other domains are written `domain.Op`.
  std::vector<std::pair<std::string, uint64_t>> ops;
  std::vector<UnsupportedOp> unsupported;
  uint64_t nodes = 0, weights = 0, weightBytes = 0;
};

/// Reads the model at \p path without importing it, so that everything
/// unsupported is found whatever else is wrong.
llvm::Expected<ModelSummary> summarizeOnnx(llvm::StringRef path);
void print(const ModelSummary &summary, llvm::raw_ostream &os);

} // namespace tenon::frontend

#endif // TENON_FRONTEND_IMPORT_H
