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
#include <memory>
#include <optional>
#include <vector>

namespace tenon::passes {

/// An element of a tensor as a function of its indices. Immutable; owned by the
/// IndexAnalysis that made it.
struct IndexExpr {
  enum Kind : uint8_t {
    Integer, ///< `dim`, over module symbols and index symbols
    Real,    ///< `number`: a float constant
    Boolean, ///< `truth`: a constant
    Load,    ///< the element of `value` at `indices` (Integer expressions)
    Apply,   ///< elementwise op `op` of `operands`
  };
  Kind kind;
  ir::ElementType element;
  ir::Dim dim;
  double number = 0;
  bool truth = false;
  ir::Value *value = nullptr;
  llvm::SmallVector<ir::Dim, 4> indices;
  /// For Apply: the kind and, as a witness of its attributes, an op.
  const ir::Op *op = nullptr;
  llvm::SmallVector<const IndexExpr *, 3> operands;

  bool isTrue() const { return kind == Boolean && truth; }
  bool isFalse() const { return kind == Boolean && !truth; }
  bool applies(ir::OpKind k) const {
    return kind == Apply && op->kind() == k;
  }
};

/// What a boolean mask over [..., q, k] (its last two dimensions) asks of a
/// key, as a conjunction. A key is visible when all of it holds.
struct MaskForm {
  /// k <= q + offset, for each one found (the tightest first is not sorted).
  std::optional<ir::Dim> causalOffset;
  /// k >= q + offset - left: a sliding window, counted from the causal offset.
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
  ~IndexAnalysis();

  /// The symbol that stands for index number \p i of the tensor asked about.
  static ir::Dim index(unsigned i);
  /// Which index \p dim is, if it is one and nothing more.
  static std::optional<unsigned> asIndex(ir::Dim dim);

  /// The element of \p value at (index(0), index(1), ...). Never null: at worst
  /// a Load of \p value itself.
  const IndexExpr *elementOf(ir::Value *value);

  /// The conjuncts of a boolean expression over the shape \p shape, sorted into
  /// what attention understands. A window is recognised only beside a causal
  /// bound or as a bound from below.
  MaskForm maskForm(const IndexExpr *mask, ir::ShapeRef shape);

  /// Whether \p expr can be built from plain movement ops (`materialize`): every
  /// Load's indices are different indices, or constants where the dimension is
  /// one.
  bool isPlain(const IndexExpr *expr, ir::ShapeRef shape) const;
  /// Builds a tensor that broadcasts to \p shape with elements \p expr, which
  /// must be plain. Dimensions that it does not depend on have size 1.
  ir::Value *materialize(const IndexExpr *expr, ir::ShapeRef shape,
                         ir::Builder &builder);

  /// Whether \p dim >= \p bound for all 0 <= index(i) < shape[i].
  bool atLeast(ir::Dim dim, int64_t bound, ir::ShapeRef shape) const;

  void print(const IndexExpr *expr, llvm::raw_ostream &os) const;

private:
  class Impl;
  const ir::Module &module;
  std::unique_ptr<Impl> impl;
};

} // namespace tenon::passes

#endif // TENON_PASSES_ANALYSIS_INDEXEXPR_H
