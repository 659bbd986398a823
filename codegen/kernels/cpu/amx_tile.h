//===- amx_tile.h - the tile registers of AMX -----------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Eight tiles of 16 rows by 64 bytes each, as `Tiles` sets them up. A product
/// is C[16][16] f32 += A[16][32] * B[32][16] bf16, where A's rows are 32
/// contiguous numbers and row r of B holds the two numbers of each column that
/// belong to A's numbers 2 r and 2 r + 1.
///
/// Compilers' intrinsics for tiles do not say that they read and write memory,
/// so these are written out. The instructions read and give zero for what is
/// denormal, round to nearest and raise nothing.
///
//===----------------------------------------------------------------------===//
#ifndef TENON_KERNELS_CPU_AMX_TILE_H
#define TENON_KERNELS_CPU_AMX_TILE_H

#include "kernels/cpu/vec.h"

#if defined(TN_AMX_TILES)

namespace tn {
inline namespace TN_FORM {

/// Bytes in a row of a tile; elements of bf16 in a tile.
inline constexpr int64_t tile_line = 64, tile_elements = 16 * 32;

/// While it lives this thread's tiles are set up, their contents undefined.
/// Nothing of them is left after it, so that no switch between threads has to
/// save them.
class Tiles {
public:
  TN_FN Tiles() {
    struct alignas(64) Config {
      uint8_t palette = 1, start_row = 0, reserved[14] = {};
      uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
      uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
    } config;
    __asm__ volatile("ldtilecfg %0" : : "m"(config));
  }
  TN_FN ~Tiles() { __asm__ volatile("tilerelease" : : : "memory"); }
  Tiles(const Tiles &) = delete;
  Tiles &operator=(const Tiles &) = delete;
};

template <int Tile> TN_FN void tile_zero() {
  __asm__ volatile("tilezero %%tmm%c0" : : "i"(Tile));
}

/// Rows `stride` bytes apart.
template <int Tile>
TN_FN void tile_load(const void *p, int64_t stride = tile_line) {
  __asm__ volatile("tileloadd (%0,%1,1), %%tmm%c2"
                   :
                   : "r"(p), "r"(stride), "i"(Tile)
                   : "memory");
}

template <int Tile> TN_FN void tile_store(void *p, int64_t stride = tile_line) {
  __asm__ volatile("tilestored %%tmm%c2, (%0,%1,1)"
                   :
                   : "r"(p), "r"(stride), "i"(Tile)
                   : "memory");
}

/// C += A * B.
template <int C, int A, int B> TN_FN void tile_multiply() {
  __asm__ volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0"
                   :
                   : "i"(C), "i"(A), "i"(B));
}

/// C[16][16] s32 += A[16][64] u8 * B[64][16] s8, where row r of B holds the
/// four numbers of each column that belong to A's numbers 4 r and on.
template <int C, int A, int B> TN_FN void tile_multiply_bytes() {
  __asm__ volatile("tdpbusd %%tmm%c2, %%tmm%c1, %%tmm%c0"
                   :
                   : "i"(C), "i"(A), "i"(B));
}

} // namespace TN_FORM
} // namespace tn

#endif // TN_AMX_TILES
#endif // TENON_KERNELS_CPU_AMX_TILE_H
