//===- TensorMaps.cpp - descriptors of bulk tensor copies ---------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/device/TensorMaps.h"

#include <cstring>

namespace tenon::rt {
namespace {

struct alignas(64) Encoded {
  int64_t words[tensorMapWords];
};

/// The driver's numbers of element types; -1: none.
int dataTypeOf(DType dtype) {
  switch (dtype) {
  case DType::F16:
    return 6;
  case DType::F32:
    return 7;
  case DType::BF16:
    return 9;
  case DType::I8:
  case DType::U8:
  case DType::F8E4M3FN:
    return 0;
  default:
    return -1;
  }
}

uint64_t bytesOf(DType dtype) {
  return dtype == DType::F32                           ? 4
         : dtype == DType::F16 || dtype == DType::BF16 ? 2
                                                       : 1;
}

} // namespace

CUresult encodeTensorMap(const CudaDriver &api, const TensorMap &map,
                         const tn_view &view, unsigned rank, DType dtype,
                         std::vector<int64_t> &out) {
  constexpr int noInterleave = 0, swizzle128 = 3, noPromotion = 0, zeros = 0;
  int dataType = dataTypeOf(dtype);
  if (dataType < 0)
    return CUDA_ERROR_INVALID_VALUE;
  unsigned inner = map.transposed ? rank - 2 : rank - 1;
  unsigned outer = map.transposed ? rank - 1 : rank - 2;
  uint64_t size[3] = {uint64_t(view.shape[inner]), uint64_t(view.shape[outer]),
                      1};
  uint64_t pitch = uint64_t(view.stride[outer]) * bytesOf(dtype);
  uint64_t strides[2] = {pitch, pitch * size[1]};
  for (unsigned d = 0; d + 2 < rank && !map.shared; ++d) {
    size[2] *= uint64_t(view.shape[d]);
    if (view.shape[d] > 1)
      strides[1] = uint64_t(view.stride[d]) * bytesOf(dtype);
  }
  uint32_t box[3] = {map.box[0], map.box[1], 1}, steps[3] = {1, 1, 1};
  Encoded encoded;
  CUresult result = api.cuTensorMapEncodeTiled(
      &encoded, dataType, 3, view.data, size, strides, box, steps, noInterleave,
      swizzle128, noPromotion, zeros);
  if (result == CUDA_SUCCESS)
    out.insert(out.end(), encoded.words, encoded.words + tensorMapWords);
  return result;
}

} // namespace tenon::rt
