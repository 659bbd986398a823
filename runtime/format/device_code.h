//===- device_code.h - compiled GPU code in an artifact -------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_RUNTIME_FORMAT_DEVICE_CODE_H
#define TENON_RUNTIME_FORMAT_DEVICE_CODE_H

/// \file
/// The section `.tenon.cuda`: modules of units, each as a cubin and as PTX for
/// several architectures. One block of plain structs; offsets count from the
/// header's start. Unit number i is the kernel "tn_unit_<i>" of module
/// `moduleOfUnit[i]`. Nothing in it is trusted.

#include <cstdint>

namespace tenon::rt {

inline constexpr char deviceCodeMagic[8] = {'T', 'E', 'N', 'O',
                                            'N', 'G', 'P', 'U'};
inline constexpr uint32_t deviceCodeVersion = 1;

enum class ImageKind : uint8_t {
  Cubin,
  Ptx, ///< deflated (RFC 1951); text without a NUL
};

/// One module's code for one architecture.
struct DeviceImage {
  uint32_t module;
  uint16_t arch; ///< 90 for sm_90 and sm_90a
  uint8_t exact; ///< 1: for this very architecture alone ("a")
  ImageKind kind;
  uint64_t offset;
  uint64_t storedBytes;
  uint64_t bytes; ///< once it is inflated; Cubin: the same
};

struct DeviceCodeHeader {
  char magic[8];
  uint32_t version;
  uint32_t numUnits, numModules, numImages;
  uint64_t totalBytes;
  uint64_t checksum; ///< of everything, computed with itself as 0
  uint64_t imagesOffset; ///< DeviceImage[numImages]
  uint64_t unitsOffset;  ///< uint32_t moduleOfUnit[numUnits]
};

} // namespace tenon::rt

#endif // TENON_RUNTIME_FORMAT_DEVICE_CODE_H
