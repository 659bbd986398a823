//===- Lowering.h - the state of turning a graph into launches -----------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_CODEGEN_SELECT_LOWERING_H
#define TENON_CODEGEN_SELECT_LOWERING_H

#include "codegen/select/LastRows.h"
#include "codegen/select/Quantised.h"
#include "codegen/select/Views.h"
#include "codegen/target/Target.h"
#include "ir/Op.h"
#include "ir/OpDef.h"
#include "ir/kernel/Program.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include <array>
#include <map>

namespace tenon::codegen {

class Lowering;

/// Lowers one op: appends launches, or gives its results views.
using SelectFn = llvm::Error (*)(Lowering &, const ir::Op &);
using SelectTable = std::array<SelectFn, ir::numOpKinds>;

// Each family of kernels enters the ops it handles.
void addContractions(SelectTable &table);
void addAttention(SelectTable &table);
void addNorms(SelectTable &table);
void addLoops(SelectTable &table);
void addViews(SelectTable &table);
void addMovement(SelectTable &table);
void addIndexing(SelectTable &table);
void addReductions(SelectTable &table);
void addWindows(SelectTable &table);
void addShapes(SelectTable &table);

/// Compile-time members of a unit, in order.
class Config {
public:
  Config &integer(llvm::StringRef name, int64_t value);
  /// A size, or tn::dynamic when only the run tells.
  Config &size(llvm::StringRef name, Dim value);
  Config &flag(llvm::StringRef name, bool value);
  Config &number(llvm::StringRef name, double value);
  /// `using name = type`, for element types.
  Config &type(llvm::StringRef name, ir::ElementType element);
  /// `using name = tn::types<...>`.
  Config &types(llvm::StringRef name, llvm::ArrayRef<ir::ElementType> elements);
  /// A C++ int: a rank, an axis.
  Config &rank(llvm::StringRef name, int64_t value);
  /// An array of int64_t.
  Config &array(llvm::StringRef name, llvm::ArrayRef<int64_t> values);
  /// A member of any C++ type and value.
  Config &raw(llvm::StringRef type, llvm::StringRef name,
              llvm::StringRef value);
  std::vector<kernel::ConfigMember> members;
};

/// What takes one piece of a launch's work on a GPU.
enum class Grain {
  Quad,   ///< a thread takes four at a time
  Thread, ///< one of 256 in a block
  Warp,   ///< one of eight in a block
  Block,  ///< of 256 threads
};

/// Another way to do a launch (kernel::Variant).
struct VariantSpec {
  llvm::StringRef kernel;
  Config config;
  kernel::Geometry geometry = {};
  Dim when = 1;
  unsigned arch = 0;
  llvm::SmallVector<kernel::TensorMap, 2> maps = {};
};

/// What a selector says about one launch.
struct LaunchSpec {
  llvm::StringRef kernel;
  Config config;
  llvm::SmallVector<kernel::Functor, 1> functors = {};
  std::vector<View> operands, results;
  std::vector<Dim> params = {};
  std::optional<Dim> scratchBytes = {};
  llvm::SmallVector<unsigned, 1> overlays = {};
  Dim flops = 0;
  /// Bytes read and written, where operands are not read whole.
  std::optional<Dim> bytes = {};
  /// GPUs: the pieces of work, by default the elements of result 0, and what
  /// takes one; or the grid itself, of kernels with tiles of their own.
  std::optional<Dim> items = {};
  Grain grain = Grain::Thread;
  std::optional<kernel::Geometry> geometry = {};
  std::vector<VariantSpec> variants = {};
};

/// Which strides a kernel can write or read.
enum class Strides {
  Any,
  InnerContiguous, ///< the last dimension has stride 1
  Contiguous,      ///< row-major without gaps
};
bool satisfies(const View &view, Strides strides);

/// The Program under construction and where each value of the graph lives.
class Lowering {
public:
  Lowering(const ir::Module &module, const ir::Func &func,
           const TargetOptions &options, LastRows last = {});
  llvm::Expected<kernel::Program> run();
  bool isCuda() const { return options.target == Target::Cuda; }
  /// Whether f32 products may be rounded to tf32.
  bool usesTf32() const { return options.tf32; }
  Products products() const { return options.products; }
  unsigned partProducts() const { return options.partProducts; }
  /// The number of the least GPU architecture that units are compiled for.
  unsigned lowestArch() const;
  /// The least number of multiprocessors of those architectures.
  unsigned leastMultiprocessors() const;
  /// Whether units are compiled for sm_90a.
  bool hasHopper() const;

  //===--- Operands
  //--------------------------------------------------------===//

  /// Where \p value lives. On a GPU a half that its kernels widen lives as a
  /// half: the view's element type counts.
  View view(const ir::Value *value) const;
  /// Where \p value lives if its strides will do, else a copy.
  View operand(const ir::Op &op, const ir::Value *value, Strides strides);
  /// \p view if its strides will do, else a copy of it.
  View fit(const ir::Op &op, const View &view, Strides strides);
  /// \p view broadcast to \p shape (zero strides; run-time strides where a size
  /// may be 1).
  View broadcast(const View &view, ir::ShapeRef shape) const;
  /// Whether two sizes are the same: by structure or by a checked constraint.
  bool provedEqual(Dim a, Dim b) const;
  /// The constant that \p view is a window of, or null.
  ir::ConstantRef constantOf(const View &view) const;
  /// The matrix of codes that \p product multiplies by, if a kernel of the
  /// target does.
  std::optional<QuantisedMatrix> quantised(const ir::Op &product) const;
  /// Its zero points as GPUs have them, made once; see packedZeros.
  ir::ConstantRef zerosOf(const QuantisedMatrix &matrix);
  /// Matrices of the constant that \p view looks at, packed for the f32 GEMM.
  View packed(const View &view, const kernel::Weight::Matrix &matrix);
  /// The same of a whole constant, in one of the panels' layouts.
  View packed(ir::ConstantRef value, kernel::WeightLayout layout,
              const kernel::Weight::Matrix &matrix);

  //===--- Results
  //---------------------------------------------------------===//

  /// Decides where \p value will live and remembers it: in the output or the
  /// concatenation that wants it if the strides there will do, else in a buffer
  /// of its own.
  View result(const ir::Value *value, Strides strides);
  /// Where a concatenation's result will be, and operand \p number in it.
  View concatWhole(const ir::Op &concat);
  View concatPart(const ir::Op &concat, unsigned number);
  /// A buffer for something that no graph value stands for.
  View temporary(ir::ElementType element, ir::ShapeRef shape);
  /// The same with a cache line between rows.
  View rowsApart(ir::ElementType element, ir::ShapeRef shape);
  /// Says that \p value lives in \p view, a view of something that exists.
  void define(const ir::Value *value, View view);
  /// Copies elements; both views have one shape and element type.
  void copy(const ir::Op &op, const View &from, const View &to);
  /// The buffer of a weight as it is.
  View weight(ir::ConstantRef value);
  /// The same as bytes, in one dimension: of types below a byte.
  View bytes(ir::ConstantRef value);
  /// The matrix \p view [K, N] with contiguous columns: itself, or a weight
  /// that holds it so; nothing where it is neither.
  std::optional<View> columns(const View &view);

  //===--- Launches
  //--------------------------------------------------------===//

  /// While it lives, launches take place only where \p condition is 1, not 0.
  class When {
  public:
    When(Lowering &lowering, Dim condition)
        : lowering(lowering), outer(lowering.condition) {
      lowering.condition = outer * condition;
    }
    ~When() { lowering.condition = outer; }
    When(const When &) = delete;

  private:
    Lowering &lowering;
    Dim outer;
  };

  void launch(const ir::Op &op, LaunchSpec spec);
  /// Writes expressions to a contiguous i64 view.
  void writeDims(const ir::Op &op, llvm::ArrayRef<Dim> values, const View &to);
  /// Ends the segment by defining symbols from the integers of \p from.
  void bindSymbols(const ir::Op &op, const View &from,
                   llvm::ArrayRef<Dim> symbols);

  //===--- GPUs: forms for few rows (FewRows.h)
  //----------------------------===//

  /// Whether runs with few rows are usual: attention to keys that earlier runs
  /// left.
  bool decodes() const { return isDecoder; }
  /// The value whose kernel makes \p value, in front of absorbed casts; and the
  /// one that lies in memory, behind one.
  const ir::Value *maker(const ir::Value *value) const;
  const ir::Value *stored(const ir::Value *value) const;
  /// A product does \p norm on its own but where \p others is 1. Where all that
  /// use its result say so, its launch takes place only there.
  void noteNormTaken(const ir::Op &norm, Dim others);
  void noteNormLaunch(const ir::Op &norm);
  /// A map that the product in front of it does where \p few is 1.
  struct PairedMap {
    LaunchSpec spec;
    Dim few, many;
  };
  void keepPair(const ir::Op &product, const ir::Op &map, PairedMap pair);
  bool hasPair(const ir::Op &product) const {
    return paired.contains(&product);
  }
  /// The launch kept for \p map; null if there is none.
  PairedMap *pairOf(const ir::Op &map);

  const ir::Module &module;
  const ir::Func &func;
  /// Values whose rows are also codes of 8 bits, with a scale each.
  struct RowCodes {
    View codes, scales;
  };
  llvm::DenseMap<const ir::Value *, RowCodes> rowCodes;

private:
  std::vector<const GpuArch *> gpuArchs() const;
  void placeOnGrid(LaunchSpec &spec) const;
  /// Where a value would best be written: operand `number` of a concatenation,
  /// or (`concat` null) output `number`.
  struct Wish {
    const ir::Op *concat = nullptr;
    unsigned number = 0;
  };
  llvm::Error prepare();
  void absorbCasts();
  bool findsDecoder() const;
  unsigned countUses(const ir::Value *value) const;
  void restrictNorms();
  static void restrict(kernel::Launch &launch, Dim condition);
  void collectWishes();
  void wish(const ir::Value *value, Wish wish);
  std::optional<View> granted(const ir::Value *value);
  bool isKnown(ir::ShapeRef shape) const;
  View stateView(unsigned number, const ir::TensorType &type);
  View outputView(unsigned number);
  llvm::Error selectOp(const ir::Op &op);
  llvm::Error lowerReturn(const ir::Op &op);
  unsigned addBuffer(kernel::BufferKind kind, unsigned index, Dim bytes);
  unsigned addWeight(kernel::Weight weight);
  unsigned addUnit(kernel::Unit unit);
  std::optional<View> denseConstant(const View &view);
  void startSegment();

  const TargetOptions &options;
  LastRows last;
  kernel::Program program;
  /// GPUs: casts that kernels do as they load and store, and the values that
  /// are stored as what such a cast makes of them.
  llvm::DenseSet<const ir::Op *> absorbedCasts;
  llvm::DenseMap<const ir::Value *, const ir::Value *> storedAs;
  /// GPUs: norms that products do on their own, and maps that they do.
  struct TakenNorm {
    unsigned launch = kernel::none, uses = 0;
    Dim others;
  };
  llvm::DenseMap<const ir::Op *, TakenNorm> norms;
  std::map<const ir::Op *, PairedMap> pairs; ///< by map
  llvm::DenseSet<const ir::Op *> paired;     ///< products
  llvm::DenseMap<const ir::Constant *, ir::ConstantRef> zeroPoints;
  bool isDecoder = false;
  Dim condition = 1;
  SelectTable table{};
  llvm::Error errors = llvm::Error::success(); ///< of copies, found on the way
  llvm::DenseMap<const ir::Value *, View> views;
  llvm::DenseMap<const ir::Value *, Wish> wishes;
  /// Ops that the kernel of a later op does, and that nothing else uses.
  llvm::DenseSet<const ir::Op *> absorbed;
  llvm::DenseMap<const ir::Op *, View> concats; ///< buffers of their results
  /// Where their operands start, along the axis.
  llvm::DenseMap<const ir::Op *, std::vector<Dim>> concatStarts;
  std::vector<unsigned> outputBuffers;
  llvm::DenseMap<unsigned, unsigned> stateOfOutput, stateBuffers;
  llvm::StringMap<unsigned> unitByText;
  std::map<std::pair<const ir::Constant *, std::string>, unsigned>
      weightBuffers;
  llvm::StringSet<> known; ///< symbols with values in the current segment
};

/// GPUs: adds what every unit's Cfg has (kernels/cuda/common.cuh).
void completeConfig(Config &config, llvm::ArrayRef<View> views,
                    size_t numParams, unsigned threads);
/// "node '/enc/MatMul_3' (matmul): " before \p error.
llvm::Error atNode(const ir::Op &op, llvm::Error error);
/// An operand's element type that a kernel has no form for.
llvm::Error unsupportedType(const ir::Op &op, ir::ElementType element,
                            llvm::StringRef supported);
/// The type that kernels move elements of \p element as when they only move
/// them: one of the same size.
ir::ElementType movedAs(ir::ElementType element);
/// Bytes of \p count elements.
Dim byteCount(ir::ElementType element, Dim count);

} // namespace tenon::codegen

#endif // TENON_CODEGEN_SELECT_LOWERING_H
