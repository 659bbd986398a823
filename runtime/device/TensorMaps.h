//===- TensorMaps.h - descriptors of bulk tensor copies -----------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_RUNTIME_DEVICE_TENSORMAPS_H
#define TENON_RUNTIME_DEVICE_TENSORMAPS_H

#include "runtime/device/CudaDriver.h"
#include "runtime/format/abi.h"
#include "runtime/format/plan.h"

#include <vector>

namespace tenon::rt {

/// Words of an encoded map.
inline constexpr size_t tensorMapWords = 16;

/// Appends the driver's descriptor of `view`, which has `rank` dimensions, as
/// `map` sees it, with the 128-byte swizzle and 0 outside the tensor. Leading
/// dimensions must be one of even step; the driver refuses odd addresses.
CUresult encodeTensorMap(const CudaDriver &api, const TensorMap &map,
                         const tn_view &view, unsigned rank, DType dtype,
                         std::vector<int64_t> &out);

} // namespace tenon::rt

#endif // TENON_RUNTIME_DEVICE_TENSORMAPS_H
