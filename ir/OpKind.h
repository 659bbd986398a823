//===- OpKind.h - the enumeration of op kinds ----------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_IR_OPKIND_H
#define TENON_IR_OPKIND_H

#include <cstdint>

namespace tenon::ir {

enum class OpKind : uint8_t {
#define TN_OP(Name, ...) Name,
#include "ir/ops/Ops.def"
};

inline constexpr unsigned numOpKinds = 0
#define TN_OP(Name, ...) +1
#include "ir/ops/Ops.def"
    ;

} // namespace tenon::ir

#endif // TENON_IR_OPKIND_H
