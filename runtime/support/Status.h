//===- Status.h - success or a message ------------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_RUNTIME_SUPPORT_STATUS_H
#define TENON_RUNTIME_SUPPORT_STATUS_H

/// \file
/// The runtime has no exceptions: whatever can go wrong returns a `Status` or a
/// `Result<T>`, with a message for the user.

#include <cassert>
#include <optional>
#include <string>
#include <utility>

namespace tenon::rt {

/// Success, or a message that says what was found and what was expected.
class [[nodiscard]] Status {
public:
  Status() = default;
  static Status error(std::string text) {
    Status status;
    status.text = std::move(text);
    status.bad = true;
    return status;
  }

  bool ok() const { return !bad; }
  const std::string &message() const { return text; }

private:
  std::string text;
  bool bad = false;
};

/// A value or a message.
template <typename T> class [[nodiscard]] Result {
public:
  Result(T value) : held(std::move(value)) {}
  Result(Status status) : failure(std::move(status)) { assert(!failure.ok()); }

  bool ok() const { return held.has_value(); }
  T &operator*() { return *held; }
  const T &operator*() const { return *held; }
  T *operator->() { return &*held; }
  const T *operator->() const { return &*held; }
  Status status() const { return failure; }
  const std::string &message() const { return failure.message(); }

private:
  std::optional<T> held;
  Status failure;
};

/// printf into a string; the runtime avoids iostreams for their size.
std::string format(const char *text, ...) __attribute__((format(printf, 1, 2)));

/// An error whose message is printf-formatted.
#define TN_ERROR(...)                                                          \
  ::tenon::rt::Status::error(::tenon::rt::format(__VA_ARGS__))

/// Text from a file, made safe to print: control characters become `?` and
/// long text is cut.
std::string printable(const char *text, size_t length);
inline std::string printable(const std::string &text) {
  return printable(text.data(), text.size());
}

} // namespace tenon::rt

#endif // TENON_RUNTIME_SUPPORT_STATUS_H
