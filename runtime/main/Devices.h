//===- Devices.h - the device that the command line names ----------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_RUNTIME_MAIN_DEVICES_H
#define TENON_RUNTIME_MAIN_DEVICES_H

#include "runtime/device/Device.h"
#include "runtime/main/Options.h"

namespace tenon::rt {

/// What --device names; without it, a GPU (or the emulator, where
/// $TENON_DEVICE says so) for an artifact that is compiled for GPUs, else this
/// process's threads.
Result<std::unique_ptr<Device>> makeDevice(const Model &model,
                                           const Options &options);

} // namespace tenon::rt

#endif // TENON_RUNTIME_MAIN_DEVICES_H
