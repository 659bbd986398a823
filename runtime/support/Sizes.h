//===- Sizes.h - sizes for people -----------------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_RUNTIME_SUPPORT_SIZES_H
#define TENON_RUNTIME_SUPPORT_SIZES_H

#include <string>

namespace tenon::rt {

/// "12.3 MB", "512 B".
std::string describeBytes(double bytes);

} // namespace tenon::rt

#endif // TENON_RUNTIME_SUPPORT_SIZES_H
