//===- gemm_amx.h - matmul by a packed operand, on tiles ------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The form of gemm.h for many rows on a CPU with AMX. A and B are split into
/// parts of bf16 (amx_split.h) on their way to the tiles: where B is f32, six
/// products of parts make one of f32, where it is bf16, three do.
///
/// A unit of work is 32 rows by 32 columns of C, four tiles, summed over K in
/// steps of 32. Rows go in blocks, as many as leave room in a 2 MB L2 cache,
/// and K in blocks of at most 768. A block of A is split once for all columns
/// of a thread. Two panels of B are split once for a block of rows, in small
/// pieces while tiles are multiplied by the two before them; and so are sums
/// finished that are complete. Tiles have a unit of their own: what the vector
/// units do meanwhile costs little.
///
/// Where a result may owe anything to what tiles do otherwise than f32 does,
/// the 16 rows by 32 columns around it are computed again by micro.h: where it
/// is not finite, or so small that what tiles flush to zero could matter. That
/// is each below 2^-99 K max(1, |a|, |b|), for the largest magnitudes in its
/// row of A and column of B, but for the zeros that come of a row or a column
/// of zeros.
///
/// Cuts into rows and columns lie at multiples of 32 wherever the threads'
/// shares end, and each element is one chain of sums in a fixed order: results
/// do not depend on the number of threads.
///
//===----------------------------------------------------------------------===//
#ifndef TENON_KERNELS_CPU_GEMM_AMX_H
#define TENON_KERNELS_CPU_GEMM_AMX_H

#include "kernels/cpu/amx_split.h"
#include "kernels/cpu/epilogue.h"
#include "kernels/cpu/micro.h"

#if defined(TN_AMX_TILES)

namespace tn {
inline namespace TN_FORM {

/// Rows and columns of a unit of work, steps of K, steps in a unit.
inline constexpr int64_t amx_rows = 32, amx_columns = 32, amx_depth = 32,
                         amx_steps = 24;
/// The largest blocks: K in one, row pairs, column tiles, kept sums; steps of
/// row pairs, which are 6 KB each where A has three parts.
inline constexpr int64_t amx_block_k = 768, amx_block_pairs = 16,
                         amx_block_tiles = 128, amx_block_sums = 192 * 768,
                         amx_block_a = 168;
/// Row pairs in a block where sums over many blocks of K are kept beside it.
inline constexpr int64_t amx_kept_pairs = 6;
static_assert(amx_columns == tile_columns);

/// A thread's memory for what it has split and summed.
template <class Way> struct AmxMemory {
  /// Elements of one step's tiles: [parts][two tiles].
  static constexpr int64_t a_step = Way::a_parts * 2 * tile_elements;
  static constexpr int64_t b_step = Way::b_parts * 2 * tile_elements;
  alignas(64) uint16_t a[amx_block_a * a_step];
  alignas(64) uint16_t b[2][amx_steps * b_step];
  alignas(64) float sums[amx_block_sums];
  /// The largest magnitude in each row of A, first 16 candidates each, and in
  /// each column of B, those of two blocks of rows.
  alignas(64) float row_tops[amx_block_pairs * amx_rows][vf::width];
  float row_max[amx_block_pairs * amx_rows];
  alignas(64) float column_max[2][amx_block_tiles][amx_columns];
  /// The last rows of two panels, when they do not fill the last step.
  alignas(64)
      typename Way::Stored rest[2][amx_steps * amx_depth * panel_columns];
};

template <class Way> inline thread_local AmxMemory<Way> amx_memory;

/// Splits two panels in pieces, two rows of one panel in each; 32 pieces are a
/// step.
template <class Way> struct PanelSplitter {
  using B = typename Way::Stored;
  const B *panel[2]; ///< at the first k
  uint16_t *out;     ///< [steps][part][panel][16][32]
  vf largest[2];
  int64_t piece, end; ///< the next piece and the one to stop before
  /// Rows that are left of the panel, and the elements of one: what lies behind
  /// a panel is the tile's other one, and behind that the next tile's.
  int64_t left, size;

  TN_FN void run(int64_t count) {
    constexpr int64_t step = AmxMemory<Way>::b_step;
    constexpr int64_t half = amx_depth / 2 * panel_columns;
    // Far enough for memory to answer, into the L2 cache: tiles are loaded from
    // there, and the lines that L1 can await at a time are theirs.
    constexpr int64_t rows = 2048 / sizeof(B) / panel_columns;
    constexpr int64_t ahead = rows * panel_columns;
    constexpr int64_t part_elements = 2 * tile_elements, steps_ahead = 3;
    for (; count > 0 && piece < end; --count, ++piece) {
      int64_t p = piece & 1, row = piece >> 1, in_step = row & 15;
      const B *in = panel[p] + (2 * row - in_step) * panel_columns;
      vf x = load_single(in), y = load_single(in + half);
      const B *next = in + ahead + (2 * row + rows < left ? 0 : size);
      __builtin_prefetch(next, 0, 2);
      __builtin_prefetch(next + half, 0, 2);
      largest[p] = max_magnitude(max_magnitude(x, y), largest[p]);
      uint16_t *to =
          out + (row >> 4) * step + p * tile_elements + in_step * amx_depth;
      split_lanes<Way::b_parts, Way::b_parts == 2>(x, y, to, part_elements);
      // Loads of tiles wait for stores that wait for their lines.
      TN_UNROLL
      for (int part = 0; part < Way::b_parts; ++part)
        __builtin_prefetch(to + steps_ahead * step + part * part_elements, 1);
    }
  }
};

/// What one unit of work reads and writes: C[32][32] (+)= A * B over `steps`.
template <class Way> struct AmxUnit {
  const uint16_t *a, *b;
  float *c;
  int64_t steps;
  bool accumulate;
  /// What the vector units do meanwhile: so many pieces, spread over the whole,
  /// and a call for every two products.
  PanelSplitter<Way> *splitter;
  int64_t pieces;
  void (*meanwhile)(void *);
  void *context;
};

/// The multiplications of one step, from the Nth product of parts on. Loads are
/// spread among them.
template <class Way, int RowTiles, int N = 0>
TN_FN void multiply_step(const uint16_t *a, const uint16_t *b,
                         const AmxUnit<Way> &u, int64_t &due) {
  constexpr const PartProduct *order = Way::order;
  if constexpr (N < Way::products) {
    constexpr int last = N > 0 ? N - 1 : 0;
    constexpr bool new_a = N == 0 || order[last].a != order[N].a;
    constexpr bool new_b = N == 0 || order[last].b != order[N].b;
    const uint16_t *pa = a + order[N].a * 2 * tile_elements;
    const uint16_t *pb = b + order[N].b * 2 * tile_elements;
    if constexpr (new_a)
      tile_load<4>(pa);
    if constexpr (new_b)
      tile_load<6>(pb);
    tile_multiply<0, 4, 6>();
    if constexpr (RowTiles > 1 && new_a)
      tile_load<5>(pa + tile_elements);
    if constexpr (RowTiles > 1)
      tile_multiply<2, 5, 6>();
    if constexpr (new_b)
      tile_load<7>(pb + tile_elements);
    tile_multiply<1, 4, 7>();
    if constexpr (RowTiles > 1)
      tile_multiply<3, 5, 7>();
    for (due += u.pieces; due > 0; due -= u.steps * Way::products)
      u.splitter->run(1);
    if constexpr (N % 2 == 0)
      u.meanwhile(u.context);
    multiply_step<Way, RowTiles, N + 1>(a, b, u, due);
  }
}

template <int RowTiles, class Unit> TN_FN void begin_sums(const Unit &u) {
  constexpr int64_t line = amx_columns * 4;
  if (!u.accumulate) {
    tile_zero<0>();
    tile_zero<1>();
    tile_zero<2>();
    tile_zero<3>();
    return;
  }
  tile_load<0>(u.c, line);
  tile_load<1>(u.c + 16, line);
  if constexpr (RowTiles > 1) {
    tile_load<2>(u.c + 16 * amx_columns, line);
    tile_load<3>(u.c + 16 * amx_columns + 16, line);
  }
}

template <int RowTiles, class Unit> TN_FN void end_sums(const Unit &u) {
  constexpr int64_t line = amx_columns * 4;
  tile_store<0>(u.c, line);
  tile_store<1>(u.c + 16, line);
  if constexpr (RowTiles > 1) {
    tile_store<2>(u.c + 16 * amx_columns, line);
    tile_store<3>(u.c + 16 * amx_columns + 16, line);
  }
}

/// One unit of work.
template <class Way, int RowTiles>
__attribute__((noinline)) void multiply_unit(const AmxUnit<Way> &u) {
  using Memory = AmxMemory<Way>;
  const uint16_t *a = u.a, *b = u.b;
  int64_t due = 0;
  begin_sums<RowTiles>(u);
  for (int64_t s = 0; s < u.steps;
       ++s, a += Memory::a_step, b += Memory::b_step)
    multiply_step<Way, RowTiles>(a, b, u, due);
  end_sums<RowTiles>(u);
}

/// Sums of a row pair that have still to go to C. A tile at a time they are
/// looked through, four rows in a step, then finished, a row in a step.
struct AmxPending {
  static constexpr int64_t checks = 4, tile_steps = checks + 16;
  float *sums;
  const float *row_max, *column_max;
  int64_t row, col, rows, columns;
  int64_t next = 0, end = 0; ///< steps
  /// The smallest and the largest magnitude in each column of the tile, as the
  /// bits of f32: NaN is larger than all else.
  __m512i least[2], most[2];

  /// Four rows of the tile that begins at row `first`.
  TN_FN void look(int64_t first, int64_t step) {
    for (int p = 0; p < 2; ++p) {
      if (step == 0) {
        least[p] = _mm512_set1_epi32(-1);
        most[p] = _mm512_setzero_si512();
      }
      const float *s = sums + first * amx_columns + p * panel_columns;
      for (int64_t i = step * 4; i < min_of(step * 4 + 4, rows - first); ++i) {
        __m512i x = bits(abs(load(s + i * amx_columns))).v;
        least[p] = _mm512_min_epu32(least[p], x);
        most[p] = _mm512_max_epu32(most[p], x);
      }
    }
  }

  /// Whether no sum of the tile can owe anything to what tiles do otherwise
  /// than f32 does; `scale` as the file's head says.
  TN_FN bool is_exact(int64_t first, vf scale) const {
    vf top = max_raw(vf(1), vf(reduce_max(load(row_max + first))));
    vm fine = mask_of(true);
    for (int64_t p = 0; p * panel_columns < columns; ++p) {
      vf limit = max_raw(top, load(column_max + p * panel_columns)) * scale;
      vm here = (limit <= from_bits(vi(least[p]))) &
                (from_bits(vi(most[p])) < vf(__builtin_inff()));
      fine = fine & (here | ~first_lanes(columns - p * panel_columns));
    }
    return all(fine) || is_exact_by_row(first, scale);
  }

  /// The same, of each sum by itself.
  __attribute__((noinline)) bool is_exact_by_row(int64_t first,
                                                 vf scale) const {
    vm fine = mask_of(true);
    for (int64_t i = first; i < min_of(first + 16, rows); ++i)
      for (int64_t j = 0; j < columns; j += panel_columns) {
        vf x = abs(load(sums + i * amx_columns + j));
        vf r = vf(row_max[i]), top = load(column_max + j);
        vm normal = (max_raw(max_raw(r, vf(1)), top) * scale <= x) &
                    (x < vf(__builtin_inff()));
        vm zero = (x == vf(0)) & ((r == vf(0)) | (top == vf(0)));
        fine = fine & (normal | zero | ~first_lanes(columns - j));
      }
    return all(fine);
  }
};

/// One product C[m, n] = epilogue(A[m, k] * B) with plain row strides.
template <class Way, class Epilogue> struct AmxGemm {
  using Memory = AmxMemory<Way>;
  const float *a;
  int64_t lda;
  const typename Way::Stored *b; ///< packed
  float *c;
  int64_t ldc;
  int64_t m, n, k;
  EpilogueArgs *e;
  Memory *memory;
  /// A thread's share, and the sizes of blocks: row pairs, column tiles, K.
  Range pairs, columns;
  int64_t rows, across, depth;
  /// What is done while tiles are multiplied: splitting, and so many rows a
  /// call.
  PanelSplitter<Way> splitter;
  AmxPending pending;
  int64_t row_steps;

  /// A place in the work, in the order in which it is done: blocks of rows,
  /// blocks of columns, blocks of K, column tiles, K within its block.
  struct Place {
    int64_t row, column, k0, tile, at;
  };

  TN_FN void advance(Place &p) const {
    p.at += amx_steps * amx_depth;
    if (p.at < min_of(depth, k - p.k0))
      return;
    p.at = 0;
    if (++p.tile < min_of(p.column + across, columns.end))
      return;
    p.tile = p.column;
    p.k0 += depth;
    if (p.k0 < k)
      return;
    p.k0 = 0;
    p.column += across;
    if (p.column >= columns.end) {
      p.column = columns.begin;
      p.row += rows;
    }
    p.tile = p.column;
  }

  TN_FN static int64_t even(int64_t total, int64_t most) {
    return ceil_div(total, max_of(1, ceil_div(total, most)));
  }

  /// Row pairs (32 rows each) and column tiles of the share.
  void run(Range row_pairs, Range column_tiles) {
    memory = &amx_memory<Way>;
    pairs = row_pairs;
    columns = column_tiles;
    if (pairs.begin == pairs.end || columns.begin == columns.end)
      return;
    depth = round_up(even(k, amx_block_k), amx_depth);
    rows = even(
        pairs.end - pairs.begin,
        depth < k ? amx_kept_pairs
                  : min_of(amx_block_a / (depth / amx_depth), amx_block_pairs));
    // Sums over one block of K go to C soon, those of many are kept.
    int64_t most = depth < k ? amx_block_sums / (amx_rows * amx_columns) / rows
                             : amx_block_tiles;
    across = even(columns.end - columns.begin, min_of(most, amx_block_tiles));
    Tiles tiles;
    Place now = {pairs.begin, columns.begin, 0, columns.begin, 0}, next = now;
    uint16_t *b = memory->b[0], *other = memory->b[1];
    begin_split(now, b);
    end_split(now);
    for (; now.row < pairs.end; now = next) {
      advance(next);
      if (now.tile == now.column && now.at == 0)
        begin_block(now);
      begin_split(next, other);
      multiply(now, b);
      end_split(next);
      uint16_t *swap = b;
      b = other;
      other = swap;
    }
    finish();
  }

  /// A block of A stays while columns change.
  TN_FN void begin_block(const Place &p) {
    finish();
    if (depth < k || p.column == columns.begin)
      pack_a(p);
  }

  TN_FN int64_t count(const Place &p) const {
    return min_of(rows, pairs.end - p.row);
  }
  TN_FN int64_t steps(const Place &p) const {
    return min_of(amx_steps,
                  ceil_div(min_of(depth, k - p.k0) - p.at, amx_depth));
  }
  TN_FN float *sums(const Place &p) const {
    int64_t kept = depth < k ? p.tile - p.column : p.tile % 2;
    return memory->sums + kept * rows * amx_rows * amx_columns;
  }
  TN_FN float *column_max(const Place &p) const {
    return memory->column_max[(p.row - pairs.begin) / rows % 2]
                             [p.tile % amx_block_tiles];
  }

  /// The panels of a place. Where the last tile has one panel too few, it reads
  /// its first one again and the result is dropped.
  TN_FN void panels(const Place &p,
                    const typename Way::Stored *(&panel)[2]) const {
    for (int i = 0; i < 2; ++i) {
      int64_t column = p.tile * amx_columns + i * panel_columns;
      int64_t index = (column < n ? column : p.tile * amx_columns);
      panel[i] = b + (index / panel_columns * k + p.k0 + p.at) * panel_columns;
    }
  }

  void begin_split(const Place &p, uint16_t *out) {
    splitter.out = out;
    splitter.piece = splitter.end = 0;
    if (p.row >= pairs.end)
      return;
    panels(p, splitter.panel);
    splitter.end = steps(p) * 32;
    bool first = p.k0 == 0 && p.at == 0;
    for (int i = 0; i < 2; ++i)
      splitter.largest[i] =
          first ? vf(0) : load(column_max(p) + i * panel_columns);
    splitter.left = k - p.k0 - p.at;
    splitter.size = k * panel_columns;
    if (splitter.left < steps(p) * amx_depth)
      copy_rest(splitter.left);
  }

  TN_FN void end_split(const Place &p) {
    splitter.run(splitter.end);
    for (int i = 0; splitter.end > 0 && i < 2; ++i)
      store(column_max(p) + i * panel_columns, splitter.largest[i]);
  }

  /// The last `left` rows of the panels, with rows of zeros up to whole steps.
  void copy_rest(int64_t left) {
    for (int p = 0; p < 2; ++p) {
      const auto *in = splitter.panel[p];
      __builtin_memset(memory->rest[p], 0, sizeof(memory->rest[p]));
      __builtin_memcpy(memory->rest[p], in, left * panel_columns * sizeof(*in));
      splitter.panel[p] = memory->rest[p];
    }
  }

  /// Splits a block of A: [row pair][step][part][row tile][16 rows][32].
  void pack_a(const Place &p) {
    int64_t end = min_of(depth, k - p.k0), all = ceil_div(end, amx_depth);
    uint16_t *out = memory->a;
    for (int64_t pair = 0; pair < count(p); ++pair)
      for (int64_t s = 0; s < all; ++s, out += Memory::a_step)
        for (int64_t i = 0; i < amx_rows; ++i) {
          int64_t row = (p.row + pair) * amx_rows + i;
          float *top = memory->row_tops[pair * amx_rows + i];
          const float *in = a + row * lda + p.k0 + s * amx_depth;
          int64_t left = row < m ? end - s * amx_depth : 0;
          constexpr int64_t half = amx_depth / 2;
          vf x = 0, y = 0;
          if (left >= amx_depth) {
            x = load(in);
            y = load(in + half);
          } else if (left > 0) {
            x = load_n(in, left);
            y = load_n(in + half, max_of(left - half, 0));
          }
          vf larger = max_magnitude(x, y);
          store(top, p.k0 + s == 0 ? larger : max_magnitude(larger, load(top)));
          split_lanes<Way::a_parts>(x, y, out + i * amx_depth,
                                    2 * tile_elements);
        }
    for (int64_t i = 0; i < count(p) * amx_rows; ++i)
      memory->row_max[i] = reduce_max(load(memory->row_tops[i]));
  }

  /// All row pairs of a block by `b`, a place's panels, with the splitting of
  /// the next place's shared out.
  void multiply(const Place &p, const uint16_t *b) {
    int64_t all = ceil_div(min_of(depth, k - p.k0), amx_depth);
    int64_t calls = steps(p) * ceil_div(Way::products, 2);
    bool last = p.k0 + p.at + steps(p) * amx_depth >= k;
    for (int64_t pair = 0; pair < count(p); ++pair) {
      AmxUnit<Way> u = {memory->a +
                            (pair * all + p.at / amx_depth) * Memory::a_step,
                        b,
                        sums(p) + pair * amx_rows * amx_columns,
                        steps(p),
                        p.k0 + p.at > 0,
                        &splitter,
                        ceil_div(splitter.end, count(p)),
                        meanwhile,
                        this};
      row_steps = ceil_div(pending.end - pending.next, calls);
      if (m - (p.row + pair) * amx_rows <= amx_rows / 2)
        multiply_unit<Way, 1>(u);
      else
        multiply_unit<Way, 2>(u);
      if (last)
        begin_finish(p, pair, u.c);
    }
  }

  static void meanwhile(void *context) {
    AmxGemm &self = *(AmxGemm *)context;
    self.finish_rows(self.row_steps);
  }

  /// The sums `s` of a row pair of a block are complete.
  TN_FN void begin_finish(const Place &p, int64_t pair, float *s) {
    finish();
    int64_t row = (p.row + pair) * amx_rows, col = p.tile * amx_columns;
    pending = {s,
               memory->row_max + pair * amx_rows,
               column_max(p),
               row,
               col,
               min_of(amx_rows, m - row),
               min_of(amx_columns, n - col),
               0,
               2 * AmxPending::tile_steps,
               {},
               {}};
  }

  TN_FN void finish() { finish_rows(pending.end); }

  /// Some steps of what is pending.
  void finish_rows(int64_t count) {
    AmxPending &p = pending;
    for (; count > 0 && p.next < p.end; --count, ++p.next) {
      bool second = p.next >= AmxPending::tile_steps;
      int64_t first = second ? 16 : 0;
      int64_t step = p.next - (second ? AmxPending::tile_steps : 0);
      int64_t row = first + step - AmxPending::checks;
      if (step < AmxPending::checks) {
        p.look(first, step);
        fetch_lines(first + step * 4, 4);
        continue;
      }
      if (row >= p.rows)
        continue;
      if (row == first && !p.is_exact(first, vf(float(k) * 0x1p-99f)))
        compute_again(first);
      finish_tile<Epilogue>(p.sums + row * amx_columns, amx_columns,
                            c + (p.row + row) * ldc + p.col, ldc, 1, p.columns,
                            p.row + row, p.col, *e);
    }
  }

  /// Lines of C of some pending rows, for writing.
  TN_FN void fetch_lines(int64_t first, int64_t count) const {
    float *line = c + (pending.row + first) * ldc + pending.col;
    for (int64_t i = first; i < min_of(first + count, pending.rows);
         ++i, line += ldc) {
      __builtin_prefetch(line, 1);
      __builtin_prefetch(line + panel_columns, 1);
    }
  }

  /// The pending sums of the tile of rows from `first` on, as f32 does it.
  __attribute__((noinline)) void compute_again(int64_t first) {
    TileOf<typename Way::Stored> t = {};
    t.lda = lda;
    t.ldc = amx_columns;
    t.k = k;
    panels({0, 0, 0, pending.col / amx_columns, 0}, t.b);
    int64_t rows = min_of(16, pending.rows - first);
    for (int64_t i = 0; i < rows; i += tile_rows) {
      t.a = a + (pending.row + first + i) * lda;
      t.c = pending.sums + (first + i) * amx_columns;
      micro_tile(min_of(tile_rows, rows - i), t);
    }
  }
};

/// How many products of parts a unit's Cfg asks for: 6, 3 or 0 where B is f32,
/// also where 1 is for what is bf16; as many as a has parts where B is bf16.
template <class Cfg> constexpr int amx_products() {
  int asked = 6;
  if constexpr (requires { Cfg::products; })
    asked = Cfg::products;
  if (same_type<typename Cfg::B, float>)
    return asked == 1 ? 6 : asked;
  if (same_type<typename Cfg::B, tn_bf16>)
    return (asked + 1) / 2;
  return 0;
}

/// Whether tiles pay for a product with so many rows.
template <class Cfg> TN_FN bool uses_amx(int64_t rows) {
  constexpr int64_t least_rows = 56, least_k = 64;
  return amx_products<Cfg>() != 0 && Cfg::K >= least_k && rows >= least_rows;
}

/// A share's cost (grid.h): a unit of work costs 12, splitting a row pair of A
/// 10, and splitting two panels for each block of row pairs 4.
inline int64_t amx_cost(int64_t pairs, int64_t columns) {
  return pairs * columns * 12 + pairs * 10 +
         columns * ceil_div(pairs, amx_kept_pairs) * 4;
}

/// The product that `g` describes: row pairs `pairs`, column tiles `columns`.
template <class Cfg, class Epilogue, class Gemm>
TN_FN void run_amx(const Gemm &g, Range pairs, Range columns, EpilogueArgs &e) {
  if constexpr (amx_products<Cfg>() != 0) {
    AmxGemm<Split<typename Cfg::B, amx_products<Cfg>()>, Epilogue> product = {
        g.a, g.lda, g.b, g.c, g.ldc, g.m, g.n, g.k, &e};
    product.run(pairs, columns);
  }
}

} // namespace TN_FORM
} // namespace tn

#else // no tiles: never

namespace tn {
inline namespace TN_FORM {

inline constexpr int64_t amx_rows = 32;
template <class Cfg> constexpr bool uses_amx(int64_t) { return false; }
inline int64_t amx_cost(int64_t, int64_t) { return 0; }
template <class Cfg, class Epilogue, class Gemm>
TN_FN void run_amx(const Gemm &, Range, Range, EpilogueArgs &) {}

} // namespace TN_FORM
} // namespace tn

#endif // TN_AMX_TILES
#endif // TENON_KERNELS_CPU_GEMM_AMX_H
