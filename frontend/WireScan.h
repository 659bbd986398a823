//===- WireScan.h - large payloads out of a serialized model -------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_FRONTEND_WIRESCAN_H
#define TENON_FRONTEND_WIRESCAN_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <string>

namespace tenon::frontend {

/// An If in a branch of another is three messages deeper.
constexpr unsigned messageDepthLimit = 1000;

/// Copies a serialized onnx.ModelProto without what makes it large: a tensor's
/// `raw_data` (or packed `float_data`, `double_data`, which are the same bytes)
/// of more than a kilobyte is replaced by `segment {begin, end}`, its bytes'
/// range in \p model. `segment` is a field that ONNX itself never uses; a file
/// that has one is refused. So a parser never copies the weights. Documentation
/// strings, metadata of nodes and training information are dropped as well.
///
/// Errors: fields that run past the end of their message, overlong varints,
/// illegal tags, and messages nested more than `messageDepthLimit` deep.
llvm::Expected<std::string> withoutPayloads(llvm::ArrayRef<uint8_t> model);

} // namespace tenon::frontend

#endif // TENON_FRONTEND_WIRESCAN_H
