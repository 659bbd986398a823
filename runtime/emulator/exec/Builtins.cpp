//===- Builtins.cpp - printf and assert ----------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/emulator/exec/Control.h"
#include "runtime/emulator/exec/Lanes.h"
#include "runtime/support/Status.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

using namespace tenon;
using namespace tenon::emu;

namespace {

constexpr size_t longest = 1 << 16;

/// Bytes at a generic address of a lane; null where there are none.
const char *find(const Warp &warp, unsigned lane, uint64_t address,
                 uint64_t bytes) {
  if (address >> 56 == localWindow >> 56) {
    uint64_t offset = address & ~localWindow;
    if (offset > warp.localBytes || bytes > warp.localBytes - offset)
      return nullptr;
    return &warp.local[lane * warp.localBytes + offset];
  }
  if (address >> 56 == sharedWindow >> 56) {
    uint64_t offset = (address & ~sharedWindow) - warp.block->window();
    if (offset > warp.block->sharedEnd ||
        bytes > warp.block->sharedEnd - offset)
      return nullptr;
    return warp.block->shared.get() + offset;
  }
  const Allocation *in = warp.launch->memory->find(address);
  return in && in->holds(address, bytes)
             ? reinterpret_cast<const char *>(address)
             : nullptr;
}

std::string text(const Warp &warp, unsigned lane, uint64_t address) {
  std::string result;
  while (result.size() < longest) {
    const char *c = find(warp, lane, address++, 1);
    if (!c || *c == 0)
      break;
    result += *c;
  }
  return result;
}

/// printf of one lane, a conversion at a time; arguments take 4 or 8 bytes.
class Printer {
public:
  Printer(const Warp &warp, unsigned lane, uint64_t arguments)
      : warp(warp), lane(lane), at(arguments) {}

  std::string run(const std::string &form) {
    std::string out;
    for (size_t i = 0; i < form.size();) {
      if (form[i] != '%') {
        out += form[i++];
        continue;
      }
      size_t end = form.find_first_of("diouxXeEfFgGaAcsp%", i + 1);
      if (end == std::string::npos)
        break;
      out += convert(form.substr(i, end - i + 1));
      i = end + 1;
    }
    return out;
  }

private:
  template <typename T> T take() {
    at = (at + sizeof(T) - 1) / sizeof(T) * sizeof(T);
    T value{};
    if (const char *bytes = find(warp, lane, at, sizeof(T)))
      std::memcpy(&value, bytes, sizeof(T));
    at += sizeof(T);
    return value;
  }

  std::string convert(std::string form) {
    char kind = form.back();
    if (kind == '%')
      return "%";
    // Widths and precisions from arguments; anything odd is dropped.
    std::string clean = "%";
    bool wide = false;
    for (size_t i = 1; i + 1 < form.size(); ++i) {
      char c = form[i];
      if (c == '*')
        clean += std::to_string(take<int32_t>());
      else if (c == 'l' || c == 'j' || c == 'z' || c == 't')
        wide = true;
      else if (std::strchr("0123456789.-+ #", c))
        clean += c;
    }
    if (clean.size() > 32)
      return "?";
    char buffer[1024];
    if (std::strchr("eEfFgGaA", kind))
      std::snprintf(buffer, sizeof(buffer), (clean + kind).c_str(),
                    take<double>());
    else if (kind == 's')
      return text(warp, lane, take<uint64_t>());
    else if (kind == 'p')
      std::snprintf(buffer, sizeof(buffer), "0x%llx",
                    static_cast<unsigned long long>(take<uint64_t>()));
    else if (wide)
      std::snprintf(buffer, sizeof(buffer), (clean + "ll" + kind).c_str(),
                    take<long long>());
    else
      std::snprintf(buffer, sizeof(buffer), (clean + kind).c_str(),
                    take<int32_t>());
    return buffer;
  }

  const Warp &warp;
  unsigned lane;
  uint64_t at;
};

uint64_t argument(const Warp &warp, unsigned lane, const CallSite &site,
                  size_t i) {
  uint64_t value = 0;
  const ParamCopy &copy = site.arguments[i];
  std::memcpy(
      &value,
      &warp.local[lane * warp.localBytes + warp.localBase + copy.caller],
      std::min<size_t>(copy.bytes, 8));
  return value;
}

void print(Warp &warp, uint32_t mask, const CallSite &site) {
  forLanes(mask, [&](unsigned lane) {
    std::string form = text(warp, lane, argument(warp, lane, site, 0));
    std::string out =
        Printer(warp, lane, argument(warp, lane, site, 1)).run(form);
    std::fwrite(out.data(), 1, out.size(), stdout);
    for (const ParamCopy &copy : site.results) {
      uint64_t place = lane * warp.localBytes + warp.localBase + copy.caller;
      std::memset(&warp.local[place], 0, copy.bytes);
      std::memset(&warp.localShadow[place], 1, copy.bytes);
    }
  });
  std::fflush(stdout);
}

} // namespace

bool emu::runBuiltin(Warp &warp, const Op &op, uint32_t mask,
                     const CallSite &site) {
  if (site.builtin == Builtin::Printf && site.arguments.size() == 2) {
    print(warp, mask, site);
    return true;
  }
  unsigned lane = __builtin_ctz(mask);
  std::string what = "fails an assertion";
  if (site.arguments.size() >= 3)
    what += rt::format(": %s (%s:%u)",
                       text(warp, lane, argument(warp, lane, site, 0)).c_str(),
                       text(warp, lane, argument(warp, lane, site, 1)).c_str(),
                       static_cast<unsigned>(argument(warp, lane, site, 2)));
  warp.fault(op, Fault::AssertFailed, lane, what);
  return false;
}
