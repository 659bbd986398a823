//===- TensorMap.cpp - the emulator's own CUtensorMap ---------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/emulator/tensor/TensorMap.h"

#include <cstring>

namespace tenon::emu::tensor {
namespace {

constexpr unsigned bytesOf[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};

bool isFloat(TensorData data) {
  return data >= TensorData::F16 && data <= TensorData::TF32Ftz;
}

const char *checkKinds(const TiledArguments &args) {
  if (args.dataType > uint32_t(TensorData::TF32Ftz))
    return "the emulator has no packed 4-bit and 6-bit tensor data types";
  TensorData data = TensorData(args.dataType);
  if (data == TensorData::TF32 || data == TensorData::TF32Ftz)
    return "the emulator has no tensor data type TFLOAT32, whose rounding is "
           "not documented; FLOAT32 copies the same bytes unrounded";
  if (args.rank < 1 || args.rank > 5)
    return "the tensor's rank must be from 1 to 5";
  if (args.interleave != 0)
    return "the emulator has no interleaved tensor layouts";
  if (args.swizzle > uint32_t(TensorSwizzle::B128))
    return "the emulator has no swizzles of 32-byte or 64-byte atoms";
  if (args.l2Promotion > 3)
    return "no such L2 promotion";
  if (args.oobFill > 1 || (args.oobFill == 1 && !isFloat(data)))
    return "out-of-bounds fill must be zeros, or NaN for floating-point types";
  if (args.globalAddress % 16 != 0)
    return "the global address must be a multiple of 16";
  if (!args.globalDim || !args.boxDim || !args.elementStrides ||
      (args.rank > 1 && !args.globalStrides))
    return "an array of the tensor's dimensions is null";
  return nullptr;
}

const char *checkSizes(const TiledArguments &args) {
  for (uint32_t d = 0; d < args.rank; ++d) {
    if (args.globalDim[d] == 0 || args.globalDim[d] > uint64_t(1) << 32)
      return "each dimension of the tensor must be from 1 to 2^32";
    if (args.boxDim[d] == 0 || args.boxDim[d] > 256)
      return "each dimension of the box must be from 1 to 256";
    if (args.elementStrides[d] == 0 || args.elementStrides[d] > 8)
      return "each element stride must be from 1 to 8";
  }
  for (uint32_t d = 0; d + 1 < args.rank; ++d)
    if (args.globalStrides[d] % 16 != 0 || args.globalStrides[d] >= uint64_t(1)
                                                                        << 40)
      return "each global stride must be a multiple of 16 below 2^40";
  uint32_t row = args.boxDim[0] * bytesOf[args.dataType];
  if (row % 16 != 0)
    return "the rows of the box must be multiples of 16 bytes";
  if (args.swizzle == 0)
    return nullptr;
  uint32_t span = 16u << args.swizzle;
  if (row > span)
    return "the rows of the box are wider than the swizzle";
  if (row < span)
    return "the emulator has no swizzle wider than the rows of the box";
  return nullptr;
}

} // namespace

const char *TensorMap::encodeTiled(const TiledArguments &args, TensorMap &map) {
  if (const char *wrong = checkKinds(args))
    return wrong;
  if (const char *wrong = checkSizes(args))
    return wrong;
  std::memset(&map, 0, sizeof(map));
  map.mark = magic;
  map.address = args.globalAddress;
  map.rank = uint8_t(args.rank);
  map.data = TensorData(args.dataType);
  map.swizzle = TensorSwizzle(args.swizzle);
  map.fillNaN = uint8_t(args.oobFill);
  for (uint32_t d = 0; d < args.rank; ++d) {
    map.dim[d] = args.globalDim[d];
    map.box[d] = uint16_t(args.boxDim[d]);
    // Without interleaving the innermost stride is ignored.
    map.elementStride[d] = d == 0 ? 1 : uint8_t(args.elementStrides[d]);
  }
  for (uint32_t d = 0; d + 1 < args.rank; ++d)
    map.stride[d] = args.globalStrides[d];
  return nullptr;
}

bool TensorMap::decode(const void *bytes, TensorMap &map) {
  std::memcpy(&map, bytes, sizeof(map));
  bool whole = map.mark == magic && map.rank >= 1 && map.rank <= 5 &&
               map.data < TensorData::TF32 &&
               map.swizzle <= TensorSwizzle::B128;
  for (unsigned d = 0; whole && d < map.rank; ++d)
    whole = map.box[d] >= 1 && map.box[d] <= 256 && map.elementStride[d] >= 1 &&
            map.elementStride[d] <= 8;
  return whole;
}

unsigned TensorMap::elementBytes() const { return bytesOf[unsigned(data)]; }

unsigned TensorMap::boxElements(unsigned d) const {
  return (box[d] + elementStride[d] - 1u) / elementStride[d];
}

uint64_t TensorMap::boxBytes() const {
  uint64_t bytes = elementBytes();
  for (unsigned d = 0; d < rank; ++d)
    bytes *= boxElements(d);
  return bytes;
}

} // namespace tenon::emu::tensor
