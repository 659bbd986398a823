//===- IndexExpr.h - an element of a tensor as an expression -------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_PASSES_ANALYSIS_INDEXEXPR_H
#define TENON_PASSES_ANALYSIS_INDEXEXPR_H

/// \file
/// Exporters build masks with index arithmetic: ranges, comparisons, gathers
/// from a flattened mask at `b * len + k`. IndexAnalysis expresses the element
/// of such a tensor at symbolic indices i0, i1, ... and simplifies it with what
/// is known of the indices' ranges, so that what the mask *means* can be read
/// off:
///
///   less_equal(range[k], add(range[q], past))     i3 <= i2 + past
///   gather(reshape(mask, [-1]), add(mul(b, len), k))   mask[i0, i3]
///   greater_equal(range[q], 0)                    true

#include "ir/Builder.h"
#include "ir/Op.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"
#include <deque>
#include <optional>

namespace tenon::passes {

/// An element of a tensor as a function of its indices. Immutable; owned by the
/// IndexAnalysis that made it.
struct IndexExpr {
  enum Kind : uint8_t {
    Integer, ///< `dim`, over module symbols and index symbols
    Real,    ///< `number`: a float constant
    Boolean, ///< `truth`: a constant
    Load,    ///< the element of `value` at `indices`
    Apply,   ///< the elementwise op `opKind` of `operands`
    Pieces,  ///< a concat: at `indices[0]` along its axis, one of `operands`
  };
  Kind kind = Integer;
  ir::ElementType element = ir::ElementType::I64;
  ir::Dim dim;
  double number = 0;
  bool truth = false;
  ir::Value *value = nullptr;
  llvm::SmallVector<ir::Dim, 4> indices;
  ir::OpKind opKind = ir::OpKind::Const;
  /// For Apply: an op with its attributes; null when it has none.
  const ir::Op *witness = nullptr;
  llvm::SmallVector<const IndexExpr *, 3> operands;
  /// For Pieces: where each operand begins along the axis.
  llvm::SmallVector<ir::Dim, 3> begins;

  /// Nodes of the tree below, itself included, and its height; both limited.
  unsigned size = 1, depth = 1;

  bool isTrue() const { return kind == Boolean && truth; }
  bool isFalse() const { return kind == Boolean && !truth; }
  bool applies(ir::OpKind k) const { return kind == Apply && opKind == k; }
};

/// What a boolean mask over [..., q, k] (its last two dimensions) asks of a
/// key, as a conjunction. A key is visible when all of it holds.
struct MaskForm {
  /// k <= q + causalOffset.
  std::optional<ir::Dim> causalOffset;
  /// k >= q + windowLow: the near end of a sliding window.
  std::optional<ir::Dim> windowLow;
  /// Everything else: padding masks and what is not understood.
  llvm::SmallVector<const IndexExpr *, 2> rest;
  /// Whether nothing is masked at all.
  bool alwaysTrue() const {
    return !causalOffset && !windowLow && rest.empty();
  }
};

/// Expresses tensors' elements. Memoized; valid while the ops it has seen are
/// unchanged.
class IndexAnalysis {
public:
  explicit IndexAnalysis(const ir::Module &module);

  /// A row length that gathers from a flattened tensor take for granted: an
  /// index over `extent` elements stays within rows of `size`.
  struct Assumption {
    ir::Dim size, extent;
  };
  /// Lets gathers at `row * size + k` be read as element k of a row although k
  /// is not proved to be less than size: what was assumed is added to \p list,
  /// and has to be checked at run time.
  void allowAssumptions(llvm::SmallVectorImpl<Assumption> &list) {
    assumptions = &list;
  }

  /// The symbol that stands for index number \p i of the tensor asked about.
  static ir::Dim index(unsigned i);
  /// Which index \p dim is, if it is one and nothing more.
  static std::optional<unsigned> asIndex(ir::Dim dim);

  /// The element of \p value at (index(0), index(1), ...). Never null: at worst
  /// a Load of \p value itself.
  const IndexExpr *elementOf(ir::Value *value);

  /// The conjuncts of a boolean expression over the shape \p shape, sorted into
  /// what attention understands. Of two bounds from one side, the second is
  /// left in `rest`.
  MaskForm maskForm(const IndexExpr *mask, ir::ShapeRef shape);

  /// Whether `materialize` can build \p expr: every Load has each index at most
  /// once, plus an offset at most, and integers are linear in the indices.
  bool isPlain(const IndexExpr *expr, ir::ShapeRef shape) const;
  /// Builds a tensor that broadcasts to \p shape with elements \p expr, which
  /// must be plain. Dimensions that it does not depend on have size 1.
  ir::Value *materialize(const IndexExpr *expr, ir::ShapeRef shape,
                         ir::Builder &builder);

  /// Whether \p dim >= \p bound for all 0 <= index(i) < shape[i].
  bool atLeast(ir::Dim dim, int64_t bound, ir::ShapeRef shape) const;

  void print(const IndexExpr *expr, llvm::raw_ostream &os) const;

private:
  friend class IndexExprBuilder;
  const IndexExpr *add(IndexExpr expr);
  const IndexExpr *load(ir::Value *value);
  const IndexExpr *boolean(bool truth);
  const IndexExpr *integer(ir::Dim dim, ir::ElementType element);
  const IndexExpr *apply(ir::OpKind kind, const ir::Op *witness,
                         ir::ElementType element,
                         llvm::ArrayRef<const IndexExpr *> operands,
                         ir::ShapeRef shape);
  const IndexExpr *choice(const IndexExpr *condition, const IndexExpr *yes,
                          const IndexExpr *no, ir::ShapeRef shape);
  const IndexExpr *applyToChoice(ir::OpKind kind, const ir::Op *witness,
                                 ir::ElementType element,
                                 llvm::ArrayRef<const IndexExpr *> operands,
                                 ir::ShapeRef shape);
  /// \p expr with each index(i) replaced by \p by[i]; \p shape bounds the
  /// indices in `by`.
  const IndexExpr *substitute(const IndexExpr *expr, llvm::ArrayRef<ir::Dim> by,
                              ir::ShapeRef shape);
  /// \p flat / \p size and the remainder, where the bounds of the indices tell.
  std::optional<std::pair<ir::Dim, ir::Dim>> divide(ir::Dim flat, ir::Dim size,
                                                    ir::ShapeRef shape) const;
  /// \p dim with quotients and remainders worked out by `divide`.
  ir::Dim simplify(ir::Dim dim, ir::ShapeRef shape) const;
  std::optional<bool> prove(ir::OpKind comparison, ir::Dim a, ir::Dim b,
                            ir::ShapeRef shape) const;

  const ir::Module &module;
  llvm::SmallVectorImpl<Assumption> *assumptions = nullptr;
  /// Whether the module's symbols could be taken for index symbols.
  bool disabled = false;
  std::deque<IndexExpr> owned;
  llvm::DenseMap<ir::Value *, const IndexExpr *> memo;
};

/// \p dim as a sum over index symbols: coefficients by index, and the rest.
/// nullopt when an index appears in a function or in a product of indices.
struct LinearIndex {
  llvm::SmallVector<std::pair<unsigned, ir::Dim>, 4> coefficients;
  ir::Dim rest;
};
std::optional<LinearIndex> asLinear(ir::Dim dim);
/// Whether any index symbol appears in \p dim.
bool dependsOnIndex(ir::Dim dim);

} // namespace tenon::passes

#endif // TENON_PASSES_ANALYSIS_INDEXEXPR_H
