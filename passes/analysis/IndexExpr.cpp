//===- IndexExpr.cpp - an element of a tensor as an expression -----------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/analysis/IndexExpr.h"
#include "ir/OpDef.h"
#include "passes/analysis/ConstantForms.h"
#include "passes/canonical/LawUtil.h"
#include "llvm/ADT/STLExtras.h"

using namespace tenon;
using namespace tenon::ir;
using namespace tenon::passes;
using llvm::ArrayRef;

namespace {

/// Ops that one question may look at, and how big an expression may be: what
/// exporters write is far below, and recursion over expressions stays shallow.
constexpr unsigned maxOps = 2048;
constexpr unsigned maxDepth = 48;
constexpr unsigned maxSize = 1024;
/// Elements of a constant of integers that are looked at for regularity.
constexpr uint64_t maxConstant = 1 << 22;

bool isTooBig(const IndexExpr *expr) {
  return expr->depth >= maxDepth || expr->size >= maxSize;
}

llvm::SmallVector<Dim, 4> allIndices(unsigned rank) {
  llvm::SmallVector<Dim, 4> indices;
  for (unsigned i = 0; i != rank; ++i)
    indices.push_back(IndexAnalysis::index(i));
  return indices;
}

bool isIndexLike(ElementType element) {
  return isInteger(element) || element == ElementType::Bool;
}

} // namespace

const IndexExpr *IndexAnalysis::add(IndexExpr expr) {
  expr.size = expr.depth = 1;
  for (const IndexExpr *operand : expr.operands) {
    expr.size += operand->size;
    expr.depth = std::max(expr.depth, operand->depth + 1);
  }
  owned.push_back(std::move(expr));
  return &owned.back();
}

const IndexExpr *IndexAnalysis::load(Value *value) {
  IndexExpr expr;
  expr.kind = IndexExpr::Load;
  expr.element = value->element();
  expr.value = value;
  expr.indices = allIndices(value->rank());
  return add(std::move(expr));
}

const IndexExpr *IndexAnalysis::boolean(bool truth) {
  IndexExpr expr;
  expr.kind = IndexExpr::Boolean;
  expr.element = ElementType::Bool;
  expr.truth = truth;
  return add(std::move(expr));
}

const IndexExpr *IndexAnalysis::integer(Dim dim, ElementType element) {
  IndexExpr expr;
  expr.kind = IndexExpr::Integer;
  expr.element = element;
  expr.dim = dim;
  return add(std::move(expr));
}

/// Sums, products and the like of integers as one dimension expression.
static std::optional<Dim> foldIntegers(OpKind kind, ArrayRef<Dim> x,
                                       llvm::function_ref<bool(Dim)> positive) {
  switch (kind) {
  case OpKind::Add:
    return x[0] + x[1];
  case OpKind::Sub:
    return x[0] - x[1];
  case OpKind::Mul:
    return x[0] * x[1];
  case OpKind::Neg:
    return Dim(0) - x[0];
  case OpKind::Min:
    return Dim::min(x[0], x[1]);
  case OpKind::Max:
    return Dim::max(x[0], x[1]);
  case OpKind::Cast:
    return x[0];
  case OpKind::Div:
    // Truncation is the floor of what is not negative.
    if (positive(x[0]) && positive(x[1] - Dim(1)))
      return Dim::floorDiv(x[0], x[1]);
    return std::nullopt;
  case OpKind::Mod:
    if (positive(x[0]) && positive(x[1] - Dim(1)))
      return Dim::mod(x[0], x[1]);
    return std::nullopt;
  default:
    return std::nullopt;
  }
}

const IndexExpr *IndexAnalysis::apply(OpKind kind, const Op *witness,
                                      ElementType element,
                                      ArrayRef<const IndexExpr *> operands,
                                      ShapeRef shape) {
  auto isInt = [](const IndexExpr *e) { return e->kind == IndexExpr::Integer; };
  if (llvm::all_of(operands, isInt)) {
    llvm::SmallVector<Dim, 3> dims;
    for (const IndexExpr *operand : operands)
      dims.push_back(operand->dim);
    if (isInteger(element))
      if (std::optional<Dim> dim = foldIntegers(
              kind, dims, [&](Dim d) { return atLeast(d, 0, shape); }))
        return integer(*dim, element);
    if (dims.size() == 2)
      if (std::optional<bool> known = prove(kind, dims[0], dims[1], shape))
        return boolean(*known);
    if (kind == OpKind::Cast && element == ElementType::Bool)
      if (std::optional<bool> zero =
              prove(OpKind::Equal, dims[0], Dim(0), shape))
        return boolean(!*zero);
  }
  if (kind == OpKind::Cast && operands[0]->element == element)
    return operands[0];
  if (kind == OpKind::Cast && operands[0]->kind == IndexExpr::Boolean &&
      isInteger(element))
    return integer(operands[0]->truth ? 1 : 0, element);
  bool isAnd = kind == OpKind::And;
  if (isAnd || kind == OpKind::Or)
    for (unsigned i : {0u, 1u})
      if (operands[i]->kind == IndexExpr::Boolean)
        return operands[i]->truth == isAnd ? operands[1 - i] : operands[i];
  if (kind == OpKind::Not && operands[0]->kind == IndexExpr::Boolean)
    return boolean(!operands[0]->truth);
  if (kind == OpKind::Where && operands[0]->kind == IndexExpr::Boolean)
    return operands[operands[0]->truth ? 1 : 2];
  if (kind == OpKind::Where && operands[1]->kind == IndexExpr::Boolean &&
      operands[2]->kind == IndexExpr::Boolean)
    return choice(operands[0], operands[1], operands[2], shape);
  if (const IndexExpr *expr =
          applyToChoice(kind, witness, element, operands, shape))
    return expr;

  IndexExpr expr;
  expr.kind = IndexExpr::Apply;
  expr.element = element;
  expr.opKind = kind;
  expr.witness = witness;
  expr.operands.assign(operands.begin(), operands.end());
  return add(std::move(expr));
}

/// One truth where \p condition holds and another where it doesn't.
const IndexExpr *IndexAnalysis::choice(const IndexExpr *condition,
                                       const IndexExpr *yes,
                                       const IndexExpr *no, ShapeRef shape) {
  if (yes->truth == no->truth)
    return yes;
  return yes->truth ? condition
                    : apply(OpKind::Not, nullptr, ElementType::Bool,
                            {condition}, shape);
}

/// A truth about where(c, 1, 0), that it is not 0 say, is one about c.
const IndexExpr *IndexAnalysis::applyToChoice(
    OpKind kind, const Op *witness, ElementType element,
    ArrayRef<const IndexExpr *> operands, ShapeRef shape) {
  if (element != ElementType::Bool || kind == OpKind::Where)
    return nullptr;
  auto isInteger = [](auto *e) { return e->kind == IndexExpr::Integer; };
  const auto *at = llvm::find_if_not(operands, isInteger);
  if (at == operands.end() || !(*at)->applies(OpKind::Where) ||
      !isInteger((*at)->operands[1]) || !isInteger((*at)->operands[2]) ||
      !std::all_of(at + 1, operands.end(), isInteger))
    return nullptr;
  const IndexExpr *truths[2];
  for (unsigned i : {0u, 1u}) {
    llvm::SmallVector<const IndexExpr *, 3> chosen(operands);
    chosen[at - operands.begin()] = (*at)->operands[i + 1];
    truths[i] = apply(kind, witness, element, chosen, shape);
    if (truths[i]->kind != IndexExpr::Boolean)
      return nullptr;
  }
  return choice((*at)->operands[0], truths[0], truths[1], shape);
}

const IndexExpr *IndexAnalysis::substitute(const IndexExpr *expr,
                                           ArrayRef<Dim> by, ShapeRef shape) {
  auto replace = [&](Dim dim) {
    if (!dependsOnIndex(dim))
      return dim;
    Dim replaced =
        dim.substitute([&](llvm::StringRef name) -> std::optional<Dim> {
          std::optional<unsigned> i = asIndex(Dim::symbol(name));
          return i && *i < by.size() ? std::optional<Dim>(by[*i])
                                     : std::nullopt;
        });
    return simplify(replaced, shape);
  };
  switch (expr->kind) {
  case IndexExpr::Real:
  case IndexExpr::Boolean:
    return expr;
  case IndexExpr::Integer:
    return integer(replace(expr->dim), expr->element);
  case IndexExpr::Load: {
    IndexExpr copy = *expr;
    for (Dim &index : copy.indices)
      index = replace(index);
    return add(std::move(copy));
  }
  case IndexExpr::Apply: {
    llvm::SmallVector<const IndexExpr *, 3> operands;
    for (const IndexExpr *operand : expr->operands)
      operands.push_back(substitute(operand, by, shape));
    return apply(expr->opKind, expr->witness, expr->element, operands, shape);
  }
  case IndexExpr::Pieces: {
    Dim at = replace(expr->indices[0]);
    for (size_t i = expr->operands.size(); i-- > 0;) {
      if (prove(OpKind::GreaterEqual, at, expr->begins[i], shape) == true)
        return substitute(expr->operands[i], by, shape);
      if (prove(OpKind::Less, at, expr->begins[i], shape) != true)
        break;
    }
    IndexExpr copy = *expr;
    copy.indices[0] = at;
    for (const IndexExpr *&operand : copy.operands)
      operand = substitute(operand, by, shape);
    return add(std::move(copy));
  }
  }
  llvm_unreachable("not a kind");
}

//===----------------------------------------------------------------------===//
// One op at a time
//===----------------------------------------------------------------------===//

namespace tenon::passes {

/// Expresses the result of one op, whose operands are in the memo.
class IndexExprBuilder {
public:
  explicit IndexExprBuilder(IndexAnalysis &analysis) : analysis(analysis) {}

  /// Null when nothing better than a Load is known.
  const IndexExpr *build(Op &op) {
    shape = op.result()->shape();
    if (is(op, ElementwiseOp))
      return elementwise(op);
    switch (op.kind()) {
    case OpKind::Const:
      return constant(op);
    case OpKind::Dims:
      return dims(op);
    case OpKind::Range:
      return range(op);
    case OpKind::Reshape:
      return reshape(op);
    case OpKind::Broadcast:
      return aligned(op.operand(0));
    case OpKind::Transpose:
      return transpose(op);
    case OpKind::Slice:
      return slice(op);
    case OpKind::Concat:
      return concat(op);
    case OpKind::Gather:
      return gather(op);
    case OpKind::GatherNd:
      return gatherNd(op);
    case OpKind::Trilu:
      return trilu(op);
    default:
      return nullptr;
    }
  }

private:
  IndexAnalysis &analysis;
  /// Of the result, whose indices the expression is in.
  ShapeRef shape;

  static Dim index(unsigned i) { return IndexAnalysis::index(i); }
  const IndexExpr *exprOf(Value *value) { return analysis.memo.lookup(value); }

  const IndexExpr *at(Value *value, ArrayRef<Dim> indices) {
    return analysis.substitute(exprOf(value), indices, shape);
  }

  /// The element of an operand that broadcasts to the result; null when its
  /// dimensions are not known to be 1 or the result's.
  const IndexExpr *aligned(Value *operand) {
    if (!broadcastsSurely(operand->shape(), shape))
      return nullptr;
    unsigned lead = shape.size() - operand->rank();
    llvm::SmallVector<Dim, 4> indices;
    for (unsigned i = 0; i != operand->rank(); ++i)
      indices.push_back(operand->shape()[i].isConstant(1) ? Dim(0)
                                                          : index(lead + i));
    return at(operand, indices);
  }

  const IndexExpr *elementwise(Op &op) {
    llvm::SmallVector<const IndexExpr *, 3> operands;
    for (Value *operand : op.operands()) {
      const IndexExpr *expr = aligned(operand);
      if (!expr || isTooBig(expr))
        return nullptr;
      operands.push_back(expr);
    }
    return analysis.apply(op.kind(), &op, op.result()->element(), operands,
                          shape);
  }

  const IndexExpr *constant(Op &op) {
    const Constant &value = *op.attrs<ConstAttrs>().value;
    ElementType element = value.element();
    if (std::optional<double> splat = value.splatValue())
      return isInteger(element) ? analysis.integer(value.intAt(0), element)
                                : number(*splat, element);
    if (isInteger(element) && value.numElements() <= maxConstant)
      if (const IndexExpr *expr = affine(value))
        return expr;
    return banded(value);
  }

  /// first + sum of step_i * i: aranges of any rank.
  const IndexExpr *affine(const Constant &value) {
    auto steps = affineSteps(value);
    if (!steps)
      return nullptr;
    Dim dim = value.intAt(0);
    for (auto [i, step] : llvm::enumerate(*steps))
      dim = dim + Dim(step) * index(i);
    return analysis.integer(dim, value.element());
  }

  /// where(low <= k - q <= high, a, b) over the last two dimensions.
  const IndexExpr *banded(const Constant &value) {
    std::optional<ConstantBand> band = ConstantBand::of(value);
    if (!band)
      return nullptr;
    unsigned rank = value.shape().size();
    const IndexExpr *condition = nullptr;
    if (band->high)
      condition = bound(OpKind::LessEqual, rank, *band->high);
    if (band->low) {
      const IndexExpr *low = bound(OpKind::Greater, rank, *band->low - 1);
      condition = condition
                      ? apply(OpKind::And, ElementType::Bool, {condition, low})
                      : low;
    }
    return apply(OpKind::Where, value.element(),
                 {condition, number(band->inside, value.element()),
                  number(band->outside, value.element())});
  }

  const IndexExpr *apply(OpKind kind, ElementType element,
                         ArrayRef<const IndexExpr *> operands) {
    return analysis.apply(kind, nullptr, element, operands, shape);
  }

  /// k <= q + offset, or another comparison.
  const IndexExpr *bound(OpKind comparison, unsigned rank, int64_t offset) {
    return apply(
        comparison, ElementType::Bool,
        {analysis.integer(index(rank - 1), ElementType::I64),
         analysis.integer(index(rank - 2) + Dim(offset), ElementType::I64)});
  }

  const IndexExpr *number(double value, ElementType element) {
    if (element == ElementType::Bool)
      return analysis.boolean(value != 0);
    if (isInteger(element))
      return analysis.integer(int64_t(value), element);
    IndexExpr real;
    real.kind = IndexExpr::Real;
    real.element = element;
    real.number = value;
    return analysis.add(std::move(real));
  }

  const IndexExpr *dims(Op &op) {
    const Dims &values = op.attrs<DimsAttrs>().values;
    if (values.empty() || !llvm::all_equal(values))
      return pieces(values);
    return analysis.integer(values[0], ElementType::I64);
  }

  const IndexExpr *pieces(ArrayRef<Dim> values) {
    if (values.empty())
      return nullptr;
    IndexExpr expr;
    expr.kind = IndexExpr::Pieces;
    expr.indices = {index(0)};
    for (auto [i, dim] : llvm::enumerate(values)) {
      expr.begins.push_back(i);
      expr.operands.push_back(analysis.integer(dim, ElementType::I64));
    }
    return analysis.add(std::move(expr));
  }

  const IndexExpr *range(Op &op) {
    const IndexExpr *start = exprOf(op.operand(0)),
                    *delta = exprOf(op.operand(1));
    if (start->kind != IndexExpr::Integer || delta->kind != IndexExpr::Integer)
      return nullptr;
    return analysis.integer(start->dim + index(0) * delta->dim,
                            op.result()->element());
  }

  const IndexExpr *transpose(Op &op) {
    const Ints &perm = op.attrs<TransposeAttrs>().perm;
    llvm::SmallVector<Dim, 4> indices(perm.size());
    for (auto [i, axis] : llvm::enumerate(perm))
      indices[axis] = index(i);
    return at(op.operand(0), indices);
  }

  const IndexExpr *slice(Op &op) {
    const auto &attrs = op.attrs<SliceAttrs>();
    llvm::SmallVector<Dim, 4> indices;
    for (unsigned i = 0; i != shape.size(); ++i)
      indices.push_back(attrs.starts[i] + index(i) * Dim(attrs.steps[i]));
    return at(op.operand(0), indices);
  }

  const IndexExpr *concat(Op &op) {
    unsigned axis = op.attrs<AxisAttrs>().axis;
    IndexExpr expr;
    expr.kind = IndexExpr::Pieces;
    expr.element = op.result()->element();
    expr.indices = {index(axis)};
    Dim begin = 0;
    for (Value *input : op.operands()) {
      llvm::SmallVector<Dim, 4> indices = allIndices(shape.size());
      indices[axis] = indices[axis] - begin;
      if (isTooBig(exprOf(input)))
        return nullptr;
      expr.begins.push_back(begin);
      expr.operands.push_back(at(input, indices));
      begin = begin + input->shape()[axis];
    }
    return analysis.add(std::move(expr));
  }

  std::pair<Dim, Dim> divide(Dim flat, Dim size) {
    if (auto known = analysis.divide(flat, size, shape))
      return *known;
    return {Dim::floorDiv(flat, size), Dim::mod(flat, size)};
  }

  const IndexExpr *reshape(Op &op) {
    Value *x = op.operand(0);
    auto groups = groupDims(x->shape(), shape);
    if (!groups)
      groups = {{DimGroup{0, x->rank(), 0, (unsigned)shape.size()}}};
    llvm::SmallVector<Dim, 4> indices(x->rank());
    for (const DimGroup &group : *groups) {
      Dim flat = 0;
      for (unsigned j = group.outBegin; j != group.outEnd; ++j)
        flat = flat * shape[j] + (shape[j].isConstant(1) ? Dim(0) : index(j));
      for (unsigned i = group.inEnd; i-- > group.inBegin + 1;)
        std::tie(flat, indices[i]) = divide(flat, x->shape()[i]);
      if (group.numIn())
        indices[group.inBegin] = flat;
    }
    return at(x, indices);
  }

  /// \p expr as an index into \p size elements, negative ones counted from the
  /// end; nullopt when it depends on data.
  std::optional<Dim> asPosition(const IndexExpr *expr, Dim size) {
    if (expr->kind != IndexExpr::Integer)
      return std::nullopt;
    if (analysis.atLeast(expr->dim, 0, shape))
      return expr->dim;
    if (analysis.atLeast(Dim(0) - expr->dim, 1, shape))
      return expr->dim + size;
    return std::nullopt;
  }

  const IndexExpr *gather(Op &op) {
    Value *x = op.operand(0), *positions = op.operand(1);
    unsigned axis = op.attrs<AxisAttrs>().axis;
    llvm::SmallVector<Dim, 4> inner, indices;
    for (unsigned i = 0; i != positions->rank(); ++i)
      inner.push_back(index(axis + i));
    std::optional<Dim> position =
        asPosition(at(positions, inner), x->shape()[axis]);
    if (!position)
      return nullptr;
    for (unsigned i = 0; i != x->rank(); ++i)
      indices.push_back(i < axis    ? index(i)
                        : i == axis ? *position
                                    : index(i - 1 + positions->rank()));
    return at(x, indices);
  }

  const IndexExpr *gatherNd(Op &op) {
    Value *x = op.operand(0), *positions = op.operand(1);
    unsigned batch = op.attrs<GatherNdAttrs>().batchDims;
    std::optional<int64_t> depth = positions->shape().back().constant();
    if (!depth || batch + *depth > x->rank())
      return nullptr;
    unsigned outer = positions->rank() - 1;
    llvm::SmallVector<Dim, 4> inner = allIndices(outer), indices;
    inner.push_back(0);
    for (unsigned i = 0; i != batch; ++i)
      indices.push_back(index(i));
    for (int64_t j = 0; j != *depth; ++j) {
      inner.back() = j;
      std::optional<Dim> position =
          asPosition(at(positions, inner), x->shape()[batch + j]);
      if (!position)
        return nullptr;
      indices.push_back(*position);
    }
    for (unsigned i = outer; i != shape.size(); ++i)
      indices.push_back(index(i));
    return at(x, indices);
  }

  const IndexExpr *trilu(Op &op) {
    const auto &attrs = op.attrs<TriluAttrs>();
    unsigned rank = shape.size();
    if (op.result()->element() != ElementType::Bool || rank < 2)
      return nullptr;
    const IndexExpr *k = analysis.integer(index(rank - 1), ElementType::I64);
    const IndexExpr *q =
        analysis.integer(index(rank - 2) + attrs.k, ElementType::I64);
    const IndexExpr *inside =
        analysis.apply(attrs.upper ? OpKind::GreaterEqual : OpKind::LessEqual,
                       nullptr, ElementType::Bool, {k, q}, shape);
    return analysis.apply(OpKind::And, nullptr, ElementType::Bool,
                          {inside, exprOf(op.operand(0))}, shape);
  }
};

} // namespace tenon::passes

/// Whether \p op's result is worth following. Floats are, through movement
/// alone: a gather of rows at regular positions is a slice.
static bool isFollowed(const Op &op) {
  if (op.numResults() != 1 || op.region())
    return false;
  if (isIndexLike(op.result()->element()))
    return true;
  return op.kind() == OpKind::Gather || op.kind() == OpKind::GatherNd ||
         op.kind() == OpKind::Const || is(op, ViewLike);
}

/// What is moved from a tensor of floats is read where it is now.
static bool isWorthKeeping(const IndexExpr *expr, const Op &op) {
  return expr->kind != IndexExpr::Load || isIndexLike(expr->element) ||
         !is(op, ViewLike);
}

const IndexExpr *IndexAnalysis::elementOf(Value *root) {
  IndexExprBuilder builder(*this);
  llvm::SmallVector<Value *, 16> pending{root};
  unsigned visited = 0;
  while (!pending.empty()) {
    Value *value = pending.back();
    if (memo.contains(value)) {
      pending.pop_back();
      continue;
    }
    Op *op = value->def();
    bool follow = !disabled && op && isFollowed(*op) && visited < maxOps;
    bool ready = true;
    if (follow)
      for (Value *operand : op->operands())
        if (operand && !memo.contains(operand)) {
          pending.push_back(operand);
          ready = false;
        }
    if (!ready)
      continue;
    pending.pop_back();
    ++visited;
    const IndexExpr *expr = follow ? builder.build(*op) : nullptr;
    if (!expr || isTooBig(expr) || !isWorthKeeping(expr, *op))
      expr = load(value);
    memo[value] = expr;
  }
  return memo.lookup(root);
}
