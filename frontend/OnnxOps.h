//===- OnnxOps.h - which importer handles which ONNX op ------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_FRONTEND_ONNXOPS_H
#define TENON_FRONTEND_ONNXOPS_H

#include "ir/OpKind.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>

namespace tenon::ir {
class Value;
}

namespace tenon::frontend {

class NodeView;
class Emitter;

/// The oldest and newest version of ONNX's own operator set that the table
/// covers, and the newest IR version.
inline constexpr int64_t oldestOpset = 7, newestOpset = 28;
inline constexpr int64_t oldestIrVersion = 3, newestIrVersion = 14;

/// Builds the ops of one node and gives its first output; others are set with
/// NodeView::setOutput. Null after an error.
using ImportFn = ir::Value *(*)(NodeView &node, Emitter &emit);

/// A float attribute of a plain mapping: its ONNX name, the field of the op's
/// attribute struct, and ONNX's default.
struct FloatField {
  const char *attribute = nullptr, *field = nullptr;
  double byDefault = 0;
};

/// One line of OnnxOps.def.
struct OnnxOp {
  llvm::StringLiteral domain, name;
  /// The first version of the domain's operator set that means this.
  int64_t since;
  /// "X, Scale, B?" (may be left out), "inputs..." (any number).
  llvm::StringLiteral inputs, outputs;
  /// Set for what is not a plain mapping.
  ImportFn importer;
  /// A plain mapping's op and attributes.
  ir::OpKind kind;
  FloatField floats[2];
};

/// Finds the line for \p name in \p domain ("" is ONNX's own) at version
/// \p opset. Null when there is none; then \p since, if some later version has
/// the op, is that version, else 0.
const OnnxOp *findOnnxOp(llvm::StringRef domain, llvm::StringRef name,
                         int64_t opset, int64_t &since);
/// Whether the table knows anything of this domain.
bool isKnownDomain(llvm::StringRef domain);
/// All lines.
llvm::ArrayRef<OnnxOp> onnxOps();

// Declarations of every importer.
#define ONNX_IMPORT(Domain, Op, Since, Inputs, Outputs, Function)              \
  ir::Value *Function(NodeView &node, Emitter &emit);
#include "frontend/OnnxOps.def"

} // namespace tenon::frontend

#endif // TENON_FRONTEND_ONNXOPS_H
