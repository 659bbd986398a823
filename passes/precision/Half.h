//===- Half.h - what passes about half precision share ----------*- C++ -*-===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_PASSES_PRECISION_HALF_H
#define TENON_PASSES_PRECISION_HALF_H

#include "ir/Builder.h"
#include <utility>

namespace tenon::passes {

inline bool isHalf(ir::ElementType element) {
  return element == ir::ElementType::F16 || element == ir::ElementType::BF16;
}

inline ir::Value *castTo(ir::Builder builder, ir::Value *value,
                         ir::ElementType element) {
  ir::CastAttrs attrs;
  attrs.to = element;
  return builder.buildCast({value}, std::move(attrs));
}

} // namespace tenon::passes

#endif // TENON_PASSES_PRECISION_HALF_H
