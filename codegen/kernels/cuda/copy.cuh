//===- copy.cuh - moving tiles between global, shared and registers -------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Wrappers of cp.async, ldmatrix and vector loads and stores, and the copy of
/// a ragged tile into swizzled shared memory.
///
/// Addresses in shared memory are 32-bit (`shared_address`). Below sm_80, which
/// has no cp.async, a copy goes through registers and is finished when it
/// returns; `commit_copies` and `wait_copies` are then empty, and the barrier
/// that follows a wait in any case makes the data visible.
///
//===----------------------------------------------------------------------===//
#ifndef TENON_KERNELS_CUDA_COPY_CUH
#define TENON_KERNELS_CUDA_COPY_CUH

#include "kernels/cuda/common.cuh"
#include "kernels/cuda/layout.cuh"

namespace tn {
inline namespace TN_FORM {

TN_FN uint32_t shared_address(const void *p) {
  return uint32_t(__cvta_generic_to_shared(p));
}

//===----------------------------------------------------------------------===//
// Vectors
//===----------------------------------------------------------------------===//

/// Bytes bytes as 32-bit words, moved by one instruction.
struct __align__(16) Words4 {
  uint32_t x[4];
};
struct __align__(8) Words2 {
  uint32_t x[2];
};

TN_FN Words4 load_shared16(uint32_t from) {
  Words4 v;
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x[0]), "=r"(v.x[1]), "=r"(v.x[2]), "=r"(v.x[3])
               : "r"(from)
               : "memory");
  return v;
}
TN_FN Words2 load_shared8(uint32_t from) {
  Words2 v;
  asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];"
               : "=r"(v.x[0]), "=r"(v.x[1])
               : "r"(from)
               : "memory");
  return v;
}
TN_FN uint32_t load_shared4(uint32_t from) {
  uint32_t v;
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(v) : "r"(from) : "memory");
  return v;
}
TN_FN void store_shared16(uint32_t to, Words4 v) {
  asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(to),
               "r"(v.x[0]), "r"(v.x[1]), "r"(v.x[2]), "r"(v.x[3])
               : "memory");
}
/// To global memory. An assignment may become four stores where a branch beside
/// it makes those.
TN_FN void store_global16(void *to, Words4 v) {
  asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(
                   __cvta_generic_to_global(to)),
               "r"(v.x[0]), "r"(v.x[1]), "r"(v.x[2]), "r"(v.x[3])
               : "memory");
}
TN_FN void store_shared8(uint32_t to, uint32_t a, uint32_t b) {
  asm volatile("st.shared.v2.u32 [%0], {%1, %2};" ::"r"(to), "r"(a), "r"(b)
               : "memory");
}
TN_FN void store_shared2(uint32_t to, uint16_t a) {
  asm volatile("st.shared.u16 [%0], %1;" ::"r"(to), "h"(a) : "memory");
}
TN_FN void store_shared4(uint32_t to, uint32_t a) {
  asm volatile("st.shared.u32 [%0], %1;" ::"r"(to), "r"(a) : "memory");
}
/// One element of 2 or 4 bytes.
template <class T> TN_FN void store_shared(uint32_t to, T x) {
  if constexpr (sizeof(T) == 2)
    store_shared2(to, __builtin_bit_cast(uint16_t, x));
  else
    store_shared4(to, __builtin_bit_cast(uint32_t, x));
}

//===----------------------------------------------------------------------===//
// Global to shared
//===----------------------------------------------------------------------===//

/// Bytes (4, 8 or 16) to shared memory, of which the first `valid` come from
/// `from`; the rest become 0. `from` must be a multiple of Bytes.
template <int Bytes>
TN_FN void copy_async(uint32_t to, const char *from, int valid) {
#if __CUDA_ARCH__ >= 800
  if constexpr (Bytes == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to),
                 "l"(__cvta_generic_to_global(from)), "r"(valid)
                 : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %3, %2;" ::"r"(to),
                 "l"(__cvta_generic_to_global(from)), "r"(valid), "n"(Bytes)
                 : "memory");
#else
  uint32_t word[Bytes / 4];
  TN_UNROLL
  for (int i = 0; i < Bytes / 4; ++i)
    word[i] = 0;
  if (valid == Bytes) {
    if constexpr (Bytes == 16) {
      Words4 v = *(const Words4 *)from;
      TN_UNROLL
      for (int i = 0; i < 4; ++i)
        word[i] = v.x[i];
    } else {
      TN_UNROLL
      for (int i = 0; i < Bytes / 4; ++i)
        word[i] = ((const uint32_t *)from)[i];
    }
  } else if (valid > 0) {
    TN_UNROLL
    for (int i = 0; i < Bytes; ++i)
      if (i < valid)
        word[i / 4] |= uint32_t(((const uint8_t *)from)[i]) << (i % 4 * 8);
  }
  if constexpr (Bytes == 16)
    store_shared16(to, {word[0], word[1], word[2], word[3]});
  else
    TN_UNROLL
  for (int i = 0; i < Bytes / 4; ++i)
    store_shared4(to + i * 4, word[i]);
#endif
}

/// Ends a group of asynchronous copies.
TN_FN void commit_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/// Waits until at most Groups of this thread's latest groups are under way.
template <int Groups> TN_FN void wait_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(Groups) : "memory");
#endif
}

/// A chunk of 16 bytes of which the first `valid` come from `from`, whose
/// address is a multiple of Align (1 to 16) bytes; the rest become 0.
template <int Align>
TN_FN void copy_chunk(uint32_t to, const char *from, int valid) {
  if constexpr (Align >= 16) {
    copy_async<16>(to, from, valid);
  } else if constexpr (Align >= 4) {
    TN_UNROLL
    for (int i = 0; i < 16; i += Align) {
      int rest = valid - i;
      rest = rest < 0 ? 0 : rest > Align ? Align : rest;
      copy_async<Align>(to + i, rest ? from + i : from, rest);
    }
  } else {
    // cp.async moves no less than 4 bytes.
    uint32_t word[4] = {0, 0, 0, 0};
    TN_UNROLL
    for (int i = 0; i < 16; i += Align)
      if (i < valid) {
        uint32_t part = Align == 2 ? uint32_t(*(const uint16_t *)(from + i))
                                   : uint32_t(*(const uint8_t *)(from + i));
        word[i / 4] |= part << (i % 4 * 8);
      }
    store_shared16(to, {word[0], word[1], word[2], word[3]});
  }
}

/// A ragged tile of a matrix in global memory.
struct Source {
  /// Its first element; any valid address where it has none.
  const char *data;
  /// Bytes from one row to the next.
  int64_t pitch;
  /// How many rows there are, and how many bytes in each.
  int rows, bytes;
};

/// Copies a tile into shared memory with all `Threads` threads of a group, of
/// which this one is `thread`; what lies beyond the source becomes 0.
/// Asynchronous: commit and wait.
template <class Tile, int Threads, int Align>
TN_FN void copy_tile(uint32_t to, const Source &s, int thread) {
  constexpr int count = Tile::rows * Tile::chunks;
  constexpr int rounds = (count + Threads - 1) / Threads;
  // A thread has one column of chunks, if that comes out even.
  constexpr bool even = Threads % Tile::chunks == 0;
  constexpr int step = Threads / Tile::chunks;
  int row = thread / Tile::chunks, chunk = thread % Tile::chunks;
  auto width_at = [&](int chunk) {
    int width = s.bytes - chunk * 16;
    return width < 0 ? 0 : width > 16 ? 16 : width;
  };
  int width = width_at(chunk);
  const char *from = s.data + row * s.pitch + chunk * 16;
#if __CUDA_ARCH__ >= 800
  TN_PRAGMA(unroll(rounds <= 8 ? rounds : 4))
#else // each copy holds registers
  TN_PRAGMA(unroll(2))
#endif
  for (int i = 0; i < rounds; ++i) {
    if (count % Threads != 0 && row >= Tile::rows)
      break;
    int valid = row < s.rows ? width : 0;
    copy_chunk<Align>(to + Tile::at(row, chunk), valid ? from : s.data, valid);
    if constexpr (even) {
      row += step;
      from += step * s.pitch;
    } else {
      int next = thread + (i + 1) * Threads;
      row = next / Tile::chunks;
      chunk = next % Tile::chunks;
      width = width_at(chunk);
      from = s.data + row * s.pitch + chunk * 16;
    }
  }
}

//===----------------------------------------------------------------------===//
// Between blocks
//===----------------------------------------------------------------------===//

/// Whether this is the last of `blocks` blocks to call it with this counter,
/// which is 0 before the first and after the last; then, all that the others
/// wrote before they called it can be read. All threads of the block call it.
TN_FN bool is_last_block(uint32_t *counter, int blocks) {
  __threadfence();
  __syncthreads();
  bool last = false;
  if (threadIdx.x == 0) {
    last = atomicAdd(counter, 1u) == uint32_t(blocks - 1);
    if (last)
      *counter = 0;
  }
  last = __syncthreads_or(last);
  __threadfence();
  return last;
}

//===----------------------------------------------------------------------===//
// Shared to registers
//===----------------------------------------------------------------------===//

/// Four 8x8 matrices of 16-bit elements: lane l gives the address of row l % 8
/// of matrix l / 8, and gets two elements, row lane / 4, from each.
TN_FN void load_matrices(uint32_t (&r)[4], uint32_t from) {
  asm volatile(
      "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
      : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
      : "r"(from)
      : "memory");
}
/// The same, each matrix transposed.
TN_FN void load_matrices_transposed(uint32_t (&r)[4], uint32_t from) {
  asm volatile(
      "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
      : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
      : "r"(from)
      : "memory");
}

} // namespace TN_FORM
} // namespace tn

#endif // TENON_KERNELS_CUDA_COPY_CUH
