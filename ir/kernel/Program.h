//===- Program.h - the second IR: launches on buffers ---------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_IR_KERNEL_PROGRAM_H
#define TENON_IR_KERNEL_PROGRAM_H

/// \file
/// A Program is what a graph becomes once values stop meaning tensors and start
/// meaning memory: kernel launches, in order, on strided views of buffers. All
/// sizes are Dims. `codegen/select` makes it (stage *selected*), `codegen/plan`
/// gives every arena buffer an offset (stage *planned*), `codegen/emit` writes
/// the units' source, `codegen/artifact` turns the rest into the plan.
///
/// Everything refers to everything by index into the Program's vectors.

#include "ir/Attrs.h"
#include "ir/Constant.h"
#include "ir/Dim.h"
#include "ir/Op.h"
#include "ir/OpKind.h"
#include "ir/Type.h"
#include "ir/support/Location.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBufferRef.h"
#include <optional>
#include <string>
#include <vector>

namespace tenon::kernel {

using ir::Dim;
using ir::Dims;
using ir::ElementType;

/// No index.
inline constexpr unsigned none = ~0u;

enum class BufferKind : uint8_t {
  Arena,  ///< temporary, at `offset` in the arena of `segment`
  Weight, ///< weight number `index`
  Input,  ///< the caller's memory of input number `index`
  Output, ///< the caller's memory of output number `index`
  State,  ///< memory that lasts from run to run: state number `index`
};

struct Buffer {
  BufferKind kind = BufferKind::Arena;
  unsigned index = 0;
  Dim bytes;
  /// Arena buffers: the first segment whose launches use it (it is placed when
  /// that segment starts and keeps its place), and after planning its slot and
  /// the slot's offset, a multiple of 64.
  unsigned segment = 0;
  unsigned slot = none;
  Dim offset;
};

/// A strided window into a buffer; offset, shape and strides count elements of
/// `element`. A stride may be 0 (a broadcast dimension) or negative.
struct View {
  unsigned buffer = none;
  ElementType element = ElementType::F32;
  Dim offset;
  Dims shape, strides;

  unsigned rank() const { return shape.size(); }
  bool operator==(const View &) const = default;
};

/// How a weight's elements lie in the artifact.
enum class WeightLayout : uint8_t {
  RowMajor, ///< as in the constant
  /// One or more matrices B[k, n], packed for the f32 GEMM: for each batch,
  /// panels of 16 columns, each k rows of 16 contiguous elements, the last
  /// panel filled up with zeros.
  Panels16,
  /// A matrix of codes, u2, u4 or u8, or of bf16, in such panels, as
  /// kernels/cpu/codes_pack.h has them.
  Panels16Codes,
  /// One matrix B[k, n] of the constant's elements, a column after another,
  /// each filled up with zeros to a multiple of 16 bytes.
  Columns,
};
/// "row-major", "panels16", "panels16-codes", "columns"
llvm::StringRef layoutName(WeightLayout layout);

struct Weight {
  ir::ConstantRef value;
  WeightLayout layout = WeightLayout::RowMajor;
  /// Panels and columns: element (b, i, j) is the constant's element number
  /// offset + b * batchStride + i * rowStride + j * columnStride.
  struct Matrix {
    int64_t batch = 1, k = 0, n = 0;
    int64_t offset = 0, batchStride = 0, rowStride = 0, columnStride = 0;
    bool operator==(const Matrix &) const = default;
  } matrix;
  /// Bytes as stored in `layout`. codegen/plan/Weights.h writes them.
  uint64_t bytes = 0;
};

/// How a functor comes by an argument.
enum class Access : uint8_t {
  Value,  ///< handed over by the kernel
  Row,    ///< an epilogue's operand that varies along columns only: a bias
  Column, ///< ... along rows (and batches) only
  Scalar, ///< ... is the same for a whole matrix
  Full,   ///< ... along both, with contiguous columns: a residual
  Any,    ///< ... with strides that only the run tells
};
llvm::StringRef accessName(Access access); ///< "value", "row", ...

/// A function of scalars: an epilogue, or what a loop kernel computes for each
/// index. Values are numbered: arguments first, then one for each node.
struct Functor {
  struct Argument {
    ElementType element;
    Access access = Access::Value;
  };
  struct Node {
    ir::OpKind kind; ///< an ElementwiseOp, or Const for `literal`
    ElementType element;
    llvm::SmallVector<unsigned, 3> operands;
    std::shared_ptr<const ir::Attrs> attrs; ///< of an op; never null
  };
  llvm::SmallVector<Argument, 4> arguments;
  std::vector<Node> nodes;
  llvm::SmallVector<unsigned, 1> results;

  ElementType elementOf(unsigned value) const {
    return value < arguments.size() ? arguments[value].element
                                    : nodes[value - arguments.size()].element;
  }
};

/// One compile-time member of a unit's `Cfg` struct, in C++: a constant
/// ("int64_t", "N", "768") or, with the type "using", a type name.
struct ConfigMember {
  std::string type, name, value;
  bool operator==(const ConfigMember &) const = default;
};

/// A specialised kernel: becomes the function `tn_unit_<index>`.
struct Unit {
  /// A line of Kernels.def, by its name: "gemm_f32".
  std::string kernel;
  std::vector<ConfigMember> config;
  /// One for each functor parameter of the kernel's template, in order.
  llvm::SmallVector<Functor, 1> functors;
};

enum class LaunchKind : uint8_t {
  Kernel,      ///< call `unit`
  WriteDims,   ///< store params as i64 to views[0], which is contiguous
  BindSymbols, ///< read the integers of views[0] (contiguous); element i
               ///< becomes the value of `symbols[i]`; ends the segment
};

/// How a GPU runs a launch: the blocks of the grid, the threads of a block, and
/// a block's dynamic shared memory.
struct Geometry {
  Dim grid[3] = {1, 1, 1};
  unsigned threads = 0;
  Dim sharedBytes;
};

/// How bulk copies of a GPU see a view: batches of matrices, its last two
/// dimensions, of which they move boxes.
struct TensorMap {
  unsigned view = 0; ///< its number in the launch
  /// The last dimension but one is the contiguous one.
  bool transposed = false;
  bool shared = false; ///< one matrix for all batches
  /// Elements of a box along the contiguous dimension, and along the other.
  unsigned box[2] = {0, 0};
};

/// Another way to do a launch on a GPU: another unit, on the same operands.
struct Variant {
  unsigned unit = none;
  Geometry geometry;
  /// It is taken where this is not 0, and (if `arch` is not 0) the unit's code
  /// is that for this very architecture (90: sm_90a).
  Dim when = 1;
  unsigned arch = 0;
  /// Arguments of the unit's entry point after the launch's own.
  llvm::SmallVector<TensorMap, 2> maps;
};

struct Launch {
  LaunchKind kind = LaunchKind::Kernel;
  unsigned unit = none;
  /// Operands as the kernel's contract orders them, results last.
  std::vector<View> views;
  unsigned numResults = 0;
  std::vector<Dim> params;
  std::vector<std::string> symbols; ///< BindSymbols only
  /// Shared scratch memory; after planning `scratchBuffer` is its arena buffer.
  std::optional<Dim> scratchBytes;
  unsigned scratchBuffer = none;
  std::optional<Geometry> geometry; ///< on GPUs
  /// The first that can be taken replaces `unit` and `geometry`.
  std::vector<Variant> variants;
  /// Operands that result 0 may overlay when nothing else needs them: each
  /// thread reads an element before it writes the one at the same place, and
  /// no thread reads another's.
  llvm::SmallVector<unsigned, 1> overlays;
  /// Floating-point operations, and bytes that must be read and written.
  Dim flops, bytes;
  ir::Location loc;

  llvm::ArrayRef<View> operands() const {
    return llvm::ArrayRef(views).drop_back(numResults);
  }
  llvm::ArrayRef<View> results() const {
    return llvm::ArrayRef(views).take_back(numResults);
  }
};

/// A run of launches; only the last may be a BindSymbols. A segment's sizes use
/// only symbols of the inputs and those that earlier segments define.
struct Segment {
  unsigned firstLaunch = 0, numLaunches = 0;
  /// Bytes of this segment's own arena (its buffers may outlive it).
  Dim arenaBytes;
};

/// An input or output of the model. An output's values are written to the
/// buffer of kind Output with its number, row-major.
struct Port {
  std::string name;
  ir::TensorType type;
};

/// A symbol with its range; those that data define come with the segment after
/// which they are known (`none`: bound from the inputs' shapes).
struct Symbol {
  std::string name;
  ir::DimRange range;
  unsigned definedBy = none;
  /// The symbol that is the most it may be, and what it is unless a session
  /// asks for less; empty: it has no choice.
  std::string most = {};
};

/// Memory that input `input` reads and output `output` leaves for the next run:
/// both begin at its start, the output is the input with more behind it along
/// `axis`, and there it has room for `capacity`.
struct State {
  unsigned input = 0, output = 0;
  int64_t axis = 0;
  int64_t capacity = 0;
};

/// Of a language model with caches: where slots of padding, which
/// attention_mask hides, may stand among a row's tokens and change nothing.
enum class Padding : uint8_t { Nowhere, InFront, Anywhere };
llvm::StringRef paddingName(Padding padding); ///< "nowhere", "in_front", ...

struct Program {
  std::string name;
  Padding padding = Padding::Nowhere;
  std::vector<Symbol> symbols;
  std::vector<Port> inputs, outputs;
  std::vector<State> states;
  /// Equalities to hold before the first launch, or (where they name symbols
  /// that data define) as soon as these are known.
  std::vector<ir::DimConstraint> checks;
  std::vector<Weight> weights;
  std::vector<Buffer> buffers;
  std::vector<Unit> units;
  std::vector<Launch> launches;
  std::vector<Segment> segments;
  /// Set by planning. All arenas; and with weights, inputs and outputs: the
  /// most memory that a run needs, with its formula for people, as in
  /// "weights 437.9 MB + 21504 * batch * seq B".
  Dim arenaBytes, peakBytes;
  std::string peakFormula;

  uint64_t weightBytes() const; ///< each weight rounded up to 64 bytes
  /// A contiguous view of the whole of \p buffer.
  static View contiguous(unsigned buffer, const ir::TensorType &type);
  /// A tensor of \p type in \p buffer, which holds \p state.
  static View window(unsigned buffer, const ir::TensorType &type,
                     const State &state);
};

/// Row-major strides of \p shape.
Dims contiguousStrides(ir::ShapeRef shape);

/// Drops arena buffers and weights that no launch uses, and symbols that
/// nothing names, and renumbers the rest.
void dropUnused(Program &program);

/// Calls \p visit with every expression of \p program.
void forEachDim(const Program &program, llvm::function_ref<void(Dim)> visit);

/// Checks indices, ranks and stages; the message is for Tenon's authors.
llvm::Error verify(const Program &program);

/// Prints and parses a .tnk file. What is printed parses back to an equal
/// program, but for the contents of big weights.
void print(const Program &program, llvm::raw_ostream &os);
/// One unit as its line in a .tnk file says it: equal text, equal unit.
void print(const Unit &unit, llvm::raw_ostream &os);
llvm::Expected<Program> parse(llvm::MemoryBufferRef buffer);

} // namespace tenon::kernel

#endif // TENON_IR_KERNEL_PROGRAM_H
