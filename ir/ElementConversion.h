//===- ElementConversion.h - many elements to another float type ----------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_IR_ELEMENTCONVERSION_H
#define TENON_IR_ELEMENTCONVERSION_H

#include "ir/Type.h"
#include <cstdint>

namespace tenon::ir {

/// Converts \p count elements of \p from at \p in to type \p to at \p out,
/// which do not overlap: what `storeElement` of each `loadElement` gives. Fast
/// between f32 and the 16-bit types, of which models have gigabytes.
void convertElements(ElementType from, const uint8_t *in, ElementType to,
                     uint8_t *out, uint64_t count);

} // namespace tenon::ir

#endif // TENON_IR_ELEMENTCONVERSION_H
