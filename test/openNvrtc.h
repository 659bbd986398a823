//===- openNvrtc.h - NVRTC and the library beside it ----------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_TEST_OPENNVRTC_H
#define TENON_TEST_OPENNVRTC_H

#include <dlfcn.h>
#include <filesystem>
#include <string>

namespace tenon::test {

/// Opens NVRTC at `path`, or where the loader finds a bare name; null if there
/// is none. Its second part, which it loads by name when it compiles, is opened
/// first: in Python packages both lie where the loader does not look.
inline void *openNvrtc(const std::string &path) {
  std::error_code none;
  std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (!folder.empty())
    for (const auto &entry : std::filesystem::directory_iterator(folder, none))
      if (entry.path().filename().string().starts_with("libnvrtc-builtins.so"))
        dlopen(entry.path().c_str(), RTLD_NOW | RTLD_LOCAL);
  return dlopen(path.c_str(), RTLD_NOW);
}

} // namespace tenon::test

#endif // TENON_TEST_OPENNVRTC_H
