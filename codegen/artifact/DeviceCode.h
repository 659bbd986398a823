//===- DeviceCode.h - writes an artifact's GPU code -----------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_CODEGEN_ARTIFACT_DEVICECODE_H
#define TENON_CODEGEN_ARTIFACT_DEVICECODE_H

#include "codegen/toolchain/Nvrtc.h"
#include <cstdint>
#include <vector>

namespace tenon::codegen {

/// The section that runtime/format/device_code.h describes: \p objects, which
/// are \p sources' (all of Target::Cuda), source-major, of \p numUnits units.
/// The PTX is compressed.
std::vector<uint8_t> writeDeviceCode(llvm::ArrayRef<Source> sources,
                                     llvm::ArrayRef<DeviceObject> objects,
                                     unsigned numUnits);

} // namespace tenon::codegen

#endif // TENON_CODEGEN_ARTIFACT_DEVICECODE_H
