//===- ErrorSink.h - the first thing wrong with a node -------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_FRONTEND_ERRORSINK_H
#define TENON_FRONTEND_ERRORSINK_H

#include "ir/support/Diag.h"
#include "llvm/Support/Error.h"
#include <optional>
#include <string>
#include <utility>

namespace tenon::frontend {

/// Keeps the first error of an import. With it importers read as straight
/// code: once something has failed, building more ops does nothing, and the
/// driver picks the error up after the importer returns.
class ErrorSink {
public:
  bool failed() const { return message.has_value(); }
  template <class... Ts> void fail(const char *format, Ts &&...values) {
    if (!message)
      message = llvm::formatv(format, std::forward<Ts>(values)...).str();
  }
  void fail(llvm::Error error) {
    std::string text = llvm::toString(std::move(error));
    if (!message)
      message = std::move(text);
  }
  /// Success when nothing has failed.
  llvm::Error take() {
    if (!message)
      return llvm::Error::success();
    llvm::Error error = userError("{0}", *message);
    message.reset();
    return error;
  }

private:
  std::optional<std::string> message;
};

} // namespace tenon::frontend

#endif // TENON_FRONTEND_ERRORSINK_H
