//===- TensorMaps.cpp - descriptors of bulk tensor copies -----------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/emulator/driver/Driver.h"
#include "runtime/emulator/tensor/TensorMap.h"

#include <cstring>

using namespace tenon::emu;

/// `map` is a CUtensorMap: 128 bytes, aligned to 64.
TN_EXPORT CUresult cuTensorMapEncodeTiled(
    void *map, int dataType, uint32_t rank, void *globalAddress,
    const uint64_t *globalDim, const uint64_t *globalStrides,
    const uint32_t *boxDim, const uint32_t *elementStrides, int interleave,
    int swizzle, int l2Promotion, int oobFill) {
  if (!map || reinterpret_cast<uintptr_t>(map) % 64 != 0)
    return CUDA_ERROR_INVALID_VALUE;
  tensor::TiledArguments args;
  args.dataType = static_cast<uint32_t>(dataType);
  args.rank = rank;
  args.globalAddress = reinterpret_cast<uintptr_t>(globalAddress);
  args.globalDim = globalDim;
  args.globalStrides = globalStrides;
  args.boxDim = boxDim;
  args.elementStrides = elementStrides;
  args.interleave = static_cast<uint32_t>(interleave);
  args.swizzle = static_cast<uint32_t>(swizzle);
  args.l2Promotion = static_cast<uint32_t>(l2Promotion);
  args.oobFill = static_cast<uint32_t>(oobFill);
  tensor::TensorMap encoded;
  if (const char *why = tensor::TensorMap::encodeTiled(args, encoded)) {
    say(std::string("cannot encode a tensor map: ") + why);
    return CUDA_ERROR_INVALID_VALUE;
  }
  std::memcpy(map, &encoded, sizeof(encoded));
  return CUDA_SUCCESS;
}
