//===- Regex.h - regular expressions over UTF-8 --------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_RUNTIME_TEXT_REGEX_H
#define TENON_RUNTIME_TEXT_REGEX_H

#include "runtime/support/Status.h"

#include <memory>
#include <string_view>
#include <vector>

namespace tenon::rt {

/// Begin and end of a match, in bytes.
struct Match {
  uint32_t begin, end;
};

/// A compiled PCRE2 pattern with its scratch memory; for one thread at a time.
class Regex {
public:
  /// `pattern` is in PCRE2's syntax; `$`, `^` match at lines and `.` is
  /// anything but a newline.
  static Result<Regex> compile(std::string_view pattern);
  Regex(Regex &&) noexcept;
  Regex &operator=(Regex &&) noexcept;
  ~Regex();

  /// Finds all matches in valid UTF-8, from left to right, not overlapping; an
  /// empty match right behind another is skipped. Appends them to `out`.
  Status findAll(std::string_view text, std::vector<Match> &out);

private:
  struct Compiled;
  explicit Regex(std::unique_ptr<Compiled> compiled);
  std::unique_ptr<Compiled> compiled;
};

} // namespace tenon::rt

#endif // TENON_RUNTIME_TEXT_REGEX_H
