//===- OnnxOps.cpp - which importer handles which ONNX op ----------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontend/OnnxOps.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"

using namespace llvm;
using tenon::ir::OpKind;

namespace tenon::frontend {

namespace {

/// ONNX's own domain, and those of ONNX Runtime's extra ops.
constexpr StringLiteral Ai = "", Ms = "com.microsoft";

} // namespace

ArrayRef<OnnxOp> onnxOps() {
  static const OnnxOp table[] = {
#define ONNX_PLAIN(Domain, Op, Since, Inputs, Kind, ...)                       \
  {Domain, #Op, Since, Inputs, "y", nullptr, OpKind::Kind, {__VA_ARGS__}},
#define ONNX_IMPORT(Domain, Op, Since, Inputs, Outputs, Function)              \
  {Domain, #Op, Since, Inputs, Outputs, Function, OpKind::Const, {}},
#include "frontend/OnnxOps.def"
  };
  return table;
}

bool isKnownDomain(StringRef domain) { return domain == Ai || domain == Ms; }

const OnnxOp *findOnnxOp(StringRef domain, StringRef name, int64_t opset,
                         int64_t &since) {
  static const StringMap<SmallVector<const OnnxOp *, 2>> byName = [] {
    StringMap<SmallVector<const OnnxOp *, 2>> map;
    for (const OnnxOp &op : onnxOps())
      map[op.name].push_back(&op);
    return map;
  }();
  since = 0;
  const OnnxOp *best = nullptr;
  auto it = byName.find(name);
  if (it == byName.end())
    return nullptr;
  for (const OnnxOp *op : it->second) {
    if (op->domain != domain)
      continue;
    if (op->since <= opset && (!best || op->since > best->since))
      best = op;
    if (op->since > opset && (since == 0 || op->since < since))
      since = op->since;
  }
  return best;
}

} // namespace tenon::frontend
