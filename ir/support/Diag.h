//===- Diag.h - errors for the user --------------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_IR_SUPPORT_DIAG_H
#define TENON_IR_SUPPORT_DIAG_H

#include "llvm/Support/Error.h"
#include "llvm/Support/FormatVariadic.h"

namespace tenon {

/// An error for the user. Wording: lower case, what was found and what was
/// expected, no final period. Say what would work.
///
/// \code
///   return userError("axis {0} is out of range for rank {1}", axis, rank);
/// \endcode
template <class... Ts>
llvm::Error userError(const char *format, Ts &&...values) {
  return llvm::createStringError(
      llvm::inconvertibleErrorCode(),
      llvm::formatv(format, std::forward<Ts>(values)...).str());
}

/// \p error with \p prefix before each of its messages.
llvm::Error withPrefix(llvm::Error error, const llvm::Twine &prefix);

} // namespace tenon

#endif // TENON_IR_SUPPORT_DIAG_H
