//===- Diag.cpp - errors for the user ------------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ir/support/Diag.h"

using namespace llvm;

namespace tenon {

Error withPrefix(Error error, const Twine &prefix) {
  std::string text = prefix.str();
  Error result = Error::success();
  handleAllErrors(std::move(error), [&](const ErrorInfoBase &info) {
    result = joinErrors(
        std::move(result),
        createStringError(inconvertibleErrorCode(), text + info.message()));
  });
  return result;
}

} // namespace tenon
