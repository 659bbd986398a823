//===- Regex.cpp - regular expressions over UTF-8 ------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/text/Regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <cstdlib>
#include <pcre2.h>

// What PCRE2 calls where a pattern was compiled to machine code, which none is
// here. Defined before its library is searched, so that its compiler, the
// largest part of it, stays out of artifacts.
extern "C" {
[[noreturn]] static void withoutCode() { std::abort(); }
void tn_pcre2_jit_free(void *, void *) asm("_pcre2_jit_free_8");
void tn_pcre2_jit_free(void *, void *) { withoutCode(); }
int tn_pcre2_jit_check_exec() asm("_pcre2_jit_check_exec_8");
int tn_pcre2_jit_check_exec() { withoutCode(); }
int pcre2_jit_match_8(const pcre2_code_8 *, PCRE2_SPTR8, PCRE2_SIZE, PCRE2_SIZE,
                      uint32_t, pcre2_match_data_8 *, pcre2_match_context_8 *) {
  withoutCode();
}
}

namespace tenon::rt {
namespace {

/// Limits of one match: a hostile pattern fails instead of running for hours.
constexpr uint32_t maxSteps = 50'000'000;
constexpr uint32_t maxHeapKib = 256 << 10;

std::string messageOf(int code) {
  PCRE2_UCHAR text[256];
  pcre2_get_error_message(code, text, sizeof(text));
  return reinterpret_cast<const char *>(text);
}

size_t characterLength(std::string_view text, size_t at) {
  size_t length = 1;
  while (at + length < text.size() &&
         (static_cast<unsigned char>(text[at + length]) & 0xc0) == 0x80)
    ++length;
  return length;
}

} // namespace

struct Regex::Compiled {
  pcre2_code *code = nullptr;
  pcre2_match_data *data = nullptr;
  pcre2_match_context *context = nullptr;

  ~Compiled() {
    pcre2_match_context_free(context);
    pcre2_match_data_free(data);
    pcre2_code_free(code);
  }
};

Regex::Regex(std::unique_ptr<Compiled> compiled)
    : compiled(std::move(compiled)) {}
Regex::Regex(Regex &&) noexcept = default;
Regex &Regex::operator=(Regex &&) noexcept = default;
Regex::~Regex() = default;

Result<Regex> Regex::compile(std::string_view pattern) {
  auto compiled = std::make_unique<Compiled>();
  std::unique_ptr<pcre2_compile_context, void (*)(pcre2_compile_context *)>
      context(pcre2_compile_context_create(nullptr),
              pcre2_compile_context_free);
  if (!context)
    return TN_ERROR("not enough memory");
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  int failed = 0;
  PCRE2_SIZE where = 0;
  compiled->code = pcre2_compile(
      reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
      PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C,
      &failed, &where, context.get());
  if (!compiled->code)
    return TN_ERROR("pattern '%s': %s at byte %zu",
                    printable(std::string(pattern)).c_str(),
                    messageOf(failed).c_str(), size_t(where));
  compiled->data =
      pcre2_match_data_create_from_pattern(compiled->code, nullptr);
  compiled->context = pcre2_match_context_create(nullptr);
  if (!compiled->data || !compiled->context)
    return TN_ERROR("not enough memory");
  pcre2_set_match_limit(compiled->context, maxSteps);
  pcre2_set_heap_limit(compiled->context, maxHeapKib);
  return Regex(std::move(compiled));
}

Status Regex::findAll(std::string_view text, std::vector<Match> &out) {
  auto subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  const PCRE2_SIZE *ends = pcre2_get_ovector_pointer(compiled->data);
  size_t at = 0, lastEnd = size_t(-1);
  while (at <= text.size()) {
    int count =
        pcre2_match(compiled->code, subject, text.size(), at,
                    PCRE2_NO_UTF_CHECK, compiled->data, compiled->context);
    if (count == PCRE2_ERROR_NOMATCH)
      break;
    if (count < 0)
      return TN_ERROR("the tokenizer's pattern failed on this text: %s",
                      messageOf(count).c_str());
    size_t begin = ends[0], end = ends[1];
    if (begin > end) // \K in a lookahead
      begin = end;
    if (begin == end && begin == lastEnd) {
      if (at >= text.size())
        break;
      at += characterLength(text, at);
      continue;
    }
    out.push_back({uint32_t(begin), uint32_t(end)});
    at = lastEnd = end;
  }
  return {};
}

} // namespace tenon::rt
