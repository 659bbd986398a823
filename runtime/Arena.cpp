//===- Arena.cpp - memory for a segment's temporaries -------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/Arena.h"

#include "runtime/support/File.h"

#include <sys/mman.h>

namespace tenon::rt {
namespace {

constexpr uint64_t smallPage = 4096, hugePage = uint64_t(2) << 20;
/// From here on large pages pay, and their rounding does not show.
constexpr uint64_t hugeFrom = 4 * hugePage;

} // namespace

Arena::~Arena() {
  if (base)
    munmap(base, mapped);
}

Status Arena::reserve(uint64_t bytes) {
  if (base && bytes <= capacity)
    return {};
  bool huge = bytes >= hugeFrom;
  uint64_t slack = huge ? hugePage : 0;
  if (bytes > uint64_t(INT64_MAX) - smallPage - slack)
    return TN_ERROR("not enough memory for %llu bytes of temporaries",
                    static_cast<unsigned long long>(bytes));
  if (base)
    munmap(base, mapped);
  base = nullptr;
  mapped = (bytes + slack) / smallPage * smallPage + smallPage;
  void *memory = mmap(nullptr, mapped, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    return TN_ERROR("not enough memory for %llu bytes of temporaries: %s",
                    static_cast<unsigned long long>(bytes),
                    lastError().c_str());
  base = memory;
  start = static_cast<char *>(memory);
  if (huge)
    start += hugePage - reinterpret_cast<uint64_t>(memory) % hugePage;
  capacity = bytes;
  if (huge)
    madvise(start, bytes, MADV_HUGEPAGE);
  return {};
}

} // namespace tenon::rt
