//===- Fingerprint.h - what a function computes, as a number -------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_IR_FINGERPRINT_H
#define TENON_IR_FINGERPRINT_H

#include "ir/Op.h"

namespace tenon::ir {

/// A hash of what \p func computes: of every op that its results need, with
/// attributes, types, regions and the contents of constants, but not of names,
/// locations, the order of ops or the order of operands of commutative ops. Two
/// exports of one model that end in the same IR have the same fingerprint. The
/// same in every run and on every machine.
uint64_t fingerprint(const Func &func);

} // namespace tenon::ir

#endif // TENON_IR_FINGERPRINT_H
