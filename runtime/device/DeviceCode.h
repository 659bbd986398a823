//===- DeviceCode.h - reads an artifact's GPU code ------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_RUNTIME_DEVICE_DEVICECODE_H
#define TENON_RUNTIME_DEVICE_DEVICECODE_H

#include "runtime/format/device_code.h"
#include "runtime/support/Bytes.h"
#include "runtime/support/Status.h"

#include <string>
#include <vector>

namespace tenon::rt {

/// The section `.tenon.cuda`, whose every index and range has been checked.
class DeviceCode {
public:
  /// `bytes` must outlive the result and start at a multiple of 8.
  static Result<DeviceCode> load(Bytes bytes);

  uint32_t numUnits() const { return head->numUnits; }
  uint32_t numModules() const { return head->numModules; }
  uint32_t moduleOf(uint32_t unit) const { return units[unit]; }

  /// Numbers of the images to try for every module on a GPU of compute
  /// capability major.minor (as 90): cubins that it runs, the most special
  /// first, then PTX that its driver can compile. With `ptxOnly` PTX alone.
  std::vector<const DeviceImage *> choose(uint32_t module, unsigned capability,
                                          bool ptxOnly) const;
  /// The image's bytes, PTX with a NUL at its end.
  Result<std::vector<char>> contents(const DeviceImage &image) const;
  /// "sm_80, sm_90a".
  std::string archNames() const;
  /// What the emulator plays where nobody says: empty, its own choice (sm_80),
  /// if there is code for it, else the first that there is code for.
  std::string emulatedArch() const;

private:
  DeviceCode() = default;
  Status check(Bytes bytes);

  const uint8_t *base = nullptr;
  const DeviceCodeHeader *head = nullptr;
  std::span<const DeviceImage> images;
  std::span<const uint32_t> units;
};

/// "sm_90a".
std::string archName(const DeviceImage &image);

} // namespace tenon::rt

#endif // TENON_RUNTIME_DEVICE_DEVICECODE_H
