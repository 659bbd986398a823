//===- Npy.h - the .npy header ------------------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_RUNTIME_NPY_H
#define TENON_RUNTIME_NPY_H

#include "runtime/Npz.h"

namespace tenon::rt {

/// What a .npy header says.
struct NpyHeader {
  DType dtype = DType::F32;
  bool raw = false;
  bool swapped = false; ///< big-endian elements
  bool fortranOrder = false;
  std::vector<int64_t> shape;
  uint64_t dataOffset = 0;
  uint64_t dataBytes = 0;
};

Result<NpyHeader> parseNpyHeader(Bytes file);
/// The header of a C-order array, padded to a multiple of 64 bytes.
std::string makeNpyHeader(DType dtype, std::span<const int64_t> shape);
/// Turns `data` as the header describes it into C order and host byte order.
Status normaliseNpy(const NpyHeader &header, Bytes data, NpyArray &array);
/// What a file holds of `count` packed elements below a byte.
std::vector<uint8_t> unpack(DType dtype, uint64_t count, const void *data);

} // namespace tenon::rt

#endif // TENON_RUNTIME_NPY_H
