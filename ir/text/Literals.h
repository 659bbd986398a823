//===- Literals.h - numbers and constants as text ------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_IR_TEXT_LITERALS_H
#define TENON_IR_TEXT_LITERALS_H

#include "ir/Constant.h"
#include "ir/text/Cursor.h"
#include "ir/text/Text.h"

namespace tenon::ir {

/// Prints one element: integers in decimal, `true`, `inf`, `nan` (with its bits
/// when they are not the usual ones), floats with the fewest digits that read
/// back to the same bits.
void printElement(llvm::raw_ostream &os, ElementType type, const uint8_t *bytes,
                  uint64_t index);
/// Reads what printElement prints, and any number that fits the type.
bool parseElement(Cursor &cursor, ElementType type, uint8_t *bytes,
                  uint64_t index);

void printDouble(llvm::raw_ostream &os, double value);
bool parseDouble(Cursor &cursor, double &value);

/// Prints `splat(0.125)`, `iota`, `random(seed = 3)`, `[1, 2, 3]` (row-major)
/// or, for a Dense or Concat constant of more than \p maxInline elements,
/// `dense<"name">`.
void printConstant(llvm::raw_ostream &os, const Constant &constant,
                   uint64_t maxInline, llvm::StringRef name);
/// Parses one of these, for a constant of type \p type.
bool parseConstant(Cursor &cursor, const TensorType &type,
                   ConstantLookup lookup, ConstantRef &value);

} // namespace tenon::ir

#endif // TENON_IR_TEXT_LITERALS_H
