//===- layout.cuh - where tiles lie in shared memory ----------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Index maths only, constexpr, and so tested on the host: which lane touches
/// which 16-byte chunk of a tile, and where that chunk lies so that no two
/// lanes of one phase meet in a bank.
///
/// A tile in shared memory is a number of rows of `Chunks` chunks of 16 bytes
/// each. Shared memory serves 8 lanes of 16 bytes at a time (a *phase*): they
/// must fall into the eight different groups of four banks. Reading a column of
/// chunks, as ldmatrix does, would put all of them into one group, so a row's
/// chunks are permuted by an exclusive or with a number made of the row.
///
//===----------------------------------------------------------------------===//
#ifndef TENON_KERNELS_CUDA_LAYOUT_CUH
#define TENON_KERNELS_CUDA_LAYOUT_CUH

#include "kernels/common/form.h"

/// Index maths that the host may call too.
#if defined(__CUDACC__)
#define TN_BOTH __host__ __device__ __forceinline__
#else
#define TN_BOTH inline
#endif

namespace tn {
inline namespace TN_FORM {

/// How a matrix lies in memory: kn has n contiguous, nk has k contiguous.
enum class Layout { kn, nk };

/// How a tile in shared memory is read: `matrix` by ldmatrix, 8 rows of one
/// chunk in a phase; `words` one 32-bit word a lane, 4 rows of 8 words at once.
enum class Access { matrix, words };

/// A tile of Rows x Chunks chunks.
template <int Rows, int Chunks, Access Kind = Access::matrix> struct Tile {
  static_assert(Chunks == 2 || Chunks == 4 || Chunks % 8 == 0);
  static constexpr int rows = Rows, chunks = Chunks;
  static constexpr int bytes = Rows * Chunks * 16;

  /// What a row's chunk numbers are xored with.
  static TN_BOTH constexpr int twist(int row) {
    if constexpr (Kind == Access::words)
      return (row & 3) << 1;
    else if constexpr (Chunks >= 8)
      return row & 7;
    else // 8 / Chunks rows fill the 128 bytes of one pass over the banks
      return (row / (8 / Chunks)) & (Chunks - 1);
  }

  /// The byte offset of a chunk.
  static TN_BOTH constexpr int at(int row, int chunk) {
    return (row * Chunks + (chunk ^ twist(row))) * 16;
  }
};

/// A position in a tile.
struct Place {
  int row, chunk;
};

/// The four 8x8 matrices that one ldmatrix.x4 reads, by lane. An mma's k-step
/// is 32 bytes, that is 2 chunks, of k for every element type.
///
/// Of a [m, k] operand: 16 rows from 0 on, the two chunks of k-step `step`.
TN_BOTH constexpr Place place_a(int lane, int step) {
  return {lane & 15, step * 2 + (lane >> 4)};
}
/// Of an [n, k] operand: two groups of 8 columns, n = 0..15.
TN_BOTH constexpr Place place_nk(int lane, int step) {
  return {(lane & 7) + ((lane >> 4) << 3), step * 2 + ((lane >> 3) & 1)};
}
/// Of a [k, n] operand of 16-bit elements, to be transposed: k = 16 step ...
/// 16 step + 15, two groups of 8 columns.
TN_BOTH constexpr Place place_kn(int lane, int step) {
  return {step * 16 + (lane & 15), lane >> 4};
}

/// An accumulator of mma.m16n8: lane holds columns column, column + 1 of rows
/// row and row + 8.
TN_BOTH constexpr int fragment_row(int lane) { return lane >> 2; }
TN_BOTH constexpr int fragment_column(int lane) { return (lane & 3) * 2; }

/// The chunks of a row of `bytes` bytes, as a tile wants them.
TN_BOTH constexpr int padded_chunks(int bytes) {
  return bytes <= 32   ? 2
         : bytes <= 64 ? 4
                       : int(round_up(ceil_div(bytes, 16), 8));
}

} // namespace TN_FORM
} // namespace tn

#endif // TENON_KERNELS_CUDA_LAYOUT_CUH
