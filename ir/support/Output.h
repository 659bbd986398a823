//===- Output.h - files written whole ------------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_IR_SUPPORT_OUTPUT_H
#define TENON_IR_SUPPORT_OUTPUT_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"

namespace tenon {

/// Writes the text file \p path through a temporary one beside it, renamed when
/// complete: a failure, a full disk for one, leaves what was there. Links are
/// followed. What is there and no file, a pipe or /dev/null, is written to.
llvm::Error writeWhole(llvm::StringRef path,
                       llvm::function_ref<void(llvm::raw_ostream &)> write);

} // namespace tenon

#endif // TENON_IR_SUPPORT_OUTPUT_H
