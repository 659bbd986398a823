//===- Status.cpp - success or a message ----------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/support/Status.h"

#include <cstdarg>
#include <cstdio>

namespace tenon::rt {

std::string format(const char *text, ...) {
  va_list args, again;
  va_start(args, text);
  va_copy(again, args);
  int length = std::vsnprintf(nullptr, 0, text, args);
  va_end(args);
  std::string out(length > 0 ? size_t(length) : 0, '\0');
  if (length > 0)
    std::vsnprintf(out.data(), out.size() + 1, text, again);
  va_end(again);
  return out;
}

std::string printable(const char *text, size_t length) {
  constexpr size_t limit = 200;
  std::string out(text, length < limit ? length : limit);
  for (char &c : out)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
      c = '?';
  if (length > limit)
    out += "...";
  return out;
}

} // namespace tenon::rt
