//===- Npz.h - reads and writes NumPy's .npy and .npz -------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_RUNTIME_NPZ_H
#define TENON_RUNTIME_NPZ_H

/// \file
/// Tensors in files. Reading takes stored and deflated members, Zip64, either
/// byte order and Fortran order, and gives C order in the host's byte order.
/// A member's name is a key, never a path. Files are hostile until checked.
///
/// NumPy has no bf16 or f8: they are stored as raw bytes, '|V2' and '|V1', as
/// the `ml_dtypes` package writes them. Such an array fits any such type of its
/// size (`NpyArray::raw`). Types below 8 bits have no form in a file.

#include "runtime/format/DType.h"
#include "runtime/support/Bytes.h"
#include "runtime/support/Status.h"

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

namespace tenon::rt {

struct FreeDeleter {
  void operator()(void *memory) const { std::free(memory); }
};
using AlignedBytes = std::unique_ptr<uint8_t, FreeDeleter>;

/// 64-byte aligned memory, or null when there is none.
AlignedBytes allocateAligned(uint64_t bytes);

/// A tensor read from a file: C order, contiguous, host byte order.
struct NpyArray {
  std::string name; ///< the member's name without ".npy"
  DType dtype = DType::F32;
  bool raw = false; ///< '|V1' or '|V2': `dtype` is a guess, its size is right
  std::vector<int64_t> shape;
  AlignedBytes data;
  uint64_t bytes = 0;

  /// True when the elements may be those of `type`: raw bytes of its size, or
  /// the bytes that stand for elements below a byte.
  bool fits(DType type) const;
  /// Makes them so, if they fit: packs elements below a byte. An error where a
  /// number is out of their range.
  Status convert(DType type);
};

/// A tensor to write: C order, contiguous.
struct NpyView {
  std::string name;
  DType dtype = DType::F32;
  std::vector<int64_t> shape;
  const void *data = nullptr;
};

/// Reads the .npy in `file`.
Result<NpyArray> readNpy(Bytes file);
/// Reads all arrays of the .npz (or the one of the .npy) in `file`, in the
/// order of the archive. Two members of one name are an error.
Result<std::vector<NpyArray>> readNpz(Bytes file);
/// Same, from a file; messages begin with its path.
Result<std::vector<NpyArray>> readNpzFile(const std::string &path);

/// Writes `arrays` as stored members, by way of a temporary file.
Status writeNpzFile(const std::string &path, std::span<const NpyView> arrays);
/// The bytes of such a file; for small data.
Result<std::vector<uint8_t>> writeNpz(std::span<const NpyView> arrays);

/// Number of elements, or false when that overflows or a size is negative.
bool countElements(std::span<const int64_t> shape, uint64_t &count);

/// "f32[2, 128]".
std::string describeType(DType dtype, std::span<const int64_t> shape);

} // namespace tenon::rt

#endif // TENON_RUNTIME_NPZ_H
