//===- plan.h - the plan an artifact carries -----------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_RUNTIME_FORMAT_PLAN_H
#define TENON_RUNTIME_FORMAT_PLAN_H

/// \file
/// The plan is data: what to run, on which views of which buffers, with all
/// sizes as expressions of the symbolic dimensions. `codegen/artifact` writes
/// it, the runtime walks it. It is one block of plain structs addressed by
/// tables; indices refer to other tables, strings to the string table. Nothing
/// in it is trusted: the runtime checks every index and range when it loads.
///
/// Life of a call: bind symbols from the inputs' shapes; for each segment,
/// evaluate the expressions that became known, place its buffers in an arena,
/// run its launches with a barrier after each. A segment ends where a launch
/// defines symbols from data (`BindSymbols`); most models have one.

#include <cstdint>

namespace tenon::rt {

inline constexpr char planMagic[8] = {'T', 'E', 'N', 'O', 'N', 'P', 'L', 'N'};
inline constexpr uint32_t planVersion = 4;
/// Weights and buffers start at multiples of this many bytes; weights as a
/// whole at a page.
inline constexpr uint64_t bufferAlignment = 64;
inline constexpr uint64_t pageAlignment = 4096;
inline constexpr uint32_t none = 0xffffffffu;
inline constexpr unsigned maxRank = 16;
/// On a GPU: 32-bit numbers that every launch finds 0 and leaves 0, for blocks
/// that count each other.
inline constexpr unsigned maxLaunchCounters = 1 << 14;
/// Tensor maps of a variant.
inline constexpr unsigned maxTensorMaps = 4;

/// `count` records from `offset` bytes after the header's start.
struct Table {
  uint64_t offset;
  uint32_t count;
  uint32_t recordSize;
};

using StringId = uint32_t; ///< offset of a NUL-terminated string
using ExprId = uint32_t;   ///< index into exprs
using IndexRun = uint32_t; ///< first of a run in `indices`

/// Element types, numbered as in ir/Types.def.
enum class DType : uint8_t {
  F64,
  F32,
  F16,
  BF16,
  I64,
  I32,
  I16,
  I8,
  U64,
  U32,
  U16,
  U8,
  Bool,
  I4,
  U4,
  I2,
  U2,
  F8E4M3FN,
  F8E4M3FNUZ,
  F8E5M2,
  F8E5M2FNUZ,
  F8E8M0,
  F4E2M1,
};

/// A size that the model's user chooses (batch, seq) or that data define.
struct Symbol {
  StringId name;
  /// The symbol that is the most it may be, and what it is unless a session
  /// asks for less; `none` where shapes or data say what it is.
  uint32_t most;
  int64_t low, high; ///< inclusive; high is INT64_MAX when open
};

enum class ExprOp : uint8_t {
  Constant, ///< value
  Symbol,   ///< symbol number `value`
  Add,
  Sub,
  Mul,
  FloorDiv,
  CeilDiv,
  Mod, ///< b == 0 is a run-time error
  Min,
  Max,
  Broadcast, ///< a if b == 1, else b if a == 1, else a; checked equal
};

/// expr[i] uses only expr[j], j < i, so one pass over the table evaluates all.
/// `segment` is the first segment in which it is known.
struct Expr {
  ExprOp op;
  uint8_t reserved[3];
  uint32_t segment;
  ExprId a, b;
  int64_t value;
};

/// An input or output of the model.
struct Port {
  StringId name;
  DType dtype;
  uint8_t rank;
  uint16_t reserved;
  IndexRun shape; ///< rank ExprIds in `indices`
  /// Inputs: the buffer that stands for the caller's memory, or holds the
  /// state. Outputs: the view (into any buffer) that is copied to, or is, the
  /// caller's memory.
  uint32_t target;
};

/// Equality that must hold between two expressions; `why` names the node.
struct Check {
  ExprId a, b;
  StringId why;
};

enum class BufferKind : uint8_t {
  Arena,  ///< at `offset` (an expression) in its segment's arena
  Weight, ///< at `offset` (a number of bytes) in the weights
  Input,  ///< the caller's memory of input number `offset`
  Output, ///< the caller's memory of output number `offset`
  State,  ///< memory that lasts from run to run: state number `offset`
};

struct Buffer {
  BufferKind kind;
  uint8_t reserved[3];
  uint32_t segment; ///< Arena: where it is placed
  ExprId bytes;
  uint32_t reserved2;
  uint64_t offset; ///< Arena: an ExprId
};

/// A strided window: what a launch's operand is. Offset and strides count
/// elements of `dtype`.
struct View {
  uint32_t buffer;
  DType dtype;
  uint8_t rank;
  uint16_t reserved;
  ExprId offset;
  IndexRun shape;   ///< rank ExprIds
  IndexRun strides; ///< rank ExprIds
};

enum class LaunchKind : uint8_t {
  Kernel,      ///< call unit number `unit`
  WriteExprs,  ///< store params[...] as i64 to views[0] (contiguous)
  BindSymbols, ///< read views[0] (integers); element i defines symbol params[i]
               ///< (a symbol number, not an ExprId); ends the segment
};

struct Launch {
  LaunchKind kind;
  uint8_t reserved[3];
  uint32_t unit;
  StringId kernel;   ///< for profiles and errors: "gemm_f32"
  StringId location; ///< ONNX node names, comma-separated
  IndexRun views;
  uint32_t numViews;
  IndexRun params; ///< ExprIds
  uint32_t numParams;
  ExprId scratchBytes;    ///< or none
  uint32_t scratchBuffer; ///< an Arena buffer, or none
  ExprId flops;           ///< floating-point operations, for --bench; or none
  ExprId bytes;           ///< bytes read and written at least; or none
  /// On a GPU: blocks, dynamic shared memory of each, threads of each; else
  /// threads is 0.
  ExprId grid[3];
  ExprId sharedBytes;
  uint32_t threads;
  /// On a GPU: other ways to do it. The first that can be taken replaces unit,
  /// grid, shared memory and threads.
  uint32_t firstVariant, numVariants;
};

/// How bulk copies see view number `view` of a launch: batches of matrices, its
/// last two dimensions.
struct TensorMap {
  uint32_t view;
  uint8_t transposed; ///< the last dimension but one is the contiguous one
  uint8_t shared;     ///< one matrix for all batches
  uint16_t reserved;
  /// Elements of a box along the contiguous dimension, and along the other.
  uint32_t box[2];
};

/// Taken where `when` is not 0 and, if `arch` is not 0, the code that was
/// loaded for `unit` is that for this very architecture (90: sm_90a).
struct Variant {
  uint32_t unit;
  StringId kernel;
  ExprId when;
  uint32_t arch;
  ExprId grid[3];
  ExprId sharedBytes;
  uint32_t threads;
  uint32_t firstMap, numMaps; ///< arguments after the launch's own
};

/// A run of launches between data-dependent symbols.
struct Segment {
  uint32_t firstLaunch, numLaunches;
  ExprId arenaBytes;
  uint32_t reserved;
};

/// An input and an output that are one memory from run to run. Both begin at
/// its start; along `axis`, the only dimension in which they differ, there is
/// room for `capacity`. How long the input is, a symbol, is how long the output
/// of the last run was.
struct State {
  uint32_t input, output;
  uint32_t buffer;
  uint32_t axis;
  int64_t capacity;
};

/// A weight as stored, for --info and verify.
struct Weight {
  StringId name;
  DType dtype;
  uint8_t reserved[3];
  uint64_t offset, bytes;
  StringId layout; ///< "row-major", "panels16"
  uint32_t reserved2;
};

/// Of a language model with caches: where slots of padding, which
/// attention_mask hides, may stand among a row's tokens and change nothing.
enum class Padding : uint32_t { Nowhere, InFront, Anywhere };

struct PlanHeader {
  char magic[8];
  uint32_t version;
  uint32_t headerBytes;
  uint64_t totalBytes;
  uint64_t weightBytes;
  /// XXH64-like checksums; `planChecksum` is computed with itself as 0.
  uint64_t planChecksum, weightChecksum;
  uint32_t numUnits; ///< every CPU form's table has this many entries
  Padding padding;
  /// Total bytes of all arenas and the peak of everything, as expressions and
  /// as text for people ("weights 437 MB + batch * seq * 21504 B").
  ExprId peakBytes;
  StringId peakFormula;
  /// JSON: model's hash, compiler version, flags, targets, dimension ranges.
  StringId manifest;
  uint32_t reserved2;
  Table strings; ///< bytes
  Table indices; ///< uint32_t
  Table symbols, exprs, inputs, outputs, checks, buffers, views, launches,
      segments, weights, states, variants, tensorMaps;
};

} // namespace tenon::rt

#endif // TENON_RUNTIME_FORMAT_PLAN_H
