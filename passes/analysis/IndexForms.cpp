//===- IndexForms.cpp - reading masks off, and building them again
//-----------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ir/OpDef.h"
#include "passes/analysis/IndexExpr.h"
#include "passes/canonical/LawUtil.h"
#include "llvm/ADT/STLExtras.h"

using namespace tenon;
using namespace tenon::ir;
using namespace tenon::passes;
using llvm::ArrayRef;

//===----------------------------------------------------------------------===//
// Masks
//===----------------------------------------------------------------------===//

namespace {

/// `d >= 0`, which a comparison of integers (or its negation) comes to.
std::optional<Dim> asNonNegative(const IndexExpr *expr, bool negated) {
  if (expr->kind != IndexExpr::Apply || expr->operands.size() != 2 ||
      expr->operands[0]->kind != IndexExpr::Integer ||
      expr->operands[1]->kind != IndexExpr::Integer)
    return std::nullopt;
  Dim a = expr->operands[0]->dim, b = expr->operands[1]->dim, d;
  switch (expr->opKind) {
  case OpKind::LessEqual:
    d = b - a;
    break;
  case OpKind::Less:
    d = b - a - Dim(1);
    break;
  case OpKind::GreaterEqual:
    d = a - b;
    break;
  case OpKind::Greater:
    d = a - b - Dim(1);
    break;
  default:
    return std::nullopt;
  }
  return negated ? Dim(-1) - d : d;
}

/// Takes `d >= 0` into \p form if it bounds k against q.
bool takeBound(Dim d, unsigned rank, MaskForm &form) {
  std::optional<LinearIndex> linear = asLinear(d);
  if (!linear || rank < 2)
    return false;
  Dim ofQuery = 0, ofKey = 0;
  for (auto [i, coefficient] : linear->coefficients) {
    if (i == rank - 2)
      ofQuery = coefficient;
    else if (i == rank - 1)
      ofKey = coefficient;
    else
      return false;
  }
  if (ofQuery.isConstant(1) && ofKey.isConstant(-1) && !form.causalOffset) {
    form.causalOffset = linear->rest;
    return true;
  }
  if (ofQuery.isConstant(-1) && ofKey.isConstant(1) && !form.windowLow) {
    form.windowLow = Dim(0) - linear->rest;
    return true;
  }
  return false;
}

} // namespace

MaskForm IndexAnalysis::maskForm(const IndexExpr *mask, ShapeRef shape) {
  MaskForm form;
  llvm::SmallVector<std::pair<const IndexExpr *, bool>, 8> pending{
      {mask, false}};
  while (!pending.empty()) {
    auto [expr, negated] = pending.pop_back_val();
    if (expr->applies(negated ? OpKind::Or : OpKind::And)) {
      for (const IndexExpr *operand : llvm::reverse(expr->operands))
        pending.push_back({operand, negated});
      continue;
    }
    if (expr->applies(OpKind::Not)) {
      pending.push_back({expr->operands[0], !negated});
      continue;
    }
    if (expr->kind == IndexExpr::Boolean && expr->truth != negated)
      continue;
    if (std::optional<Dim> d = asNonNegative(expr, negated)) {
      if (atLeast(*d, 0, shape) || takeBound(*d, shape.size(), form))
        continue;
    }
    if (negated)
      expr = apply(OpKind::Not, nullptr, ElementType::Bool, {expr}, shape);
    form.rest.push_back(expr);
  }
  return form;
}

//===----------------------------------------------------------------------===//
// Building
//===----------------------------------------------------------------------===//

namespace {

/// Where an index of a Load comes from: an index of the result plus an offset,
/// or a fixed position.
struct Source {
  std::optional<unsigned> index;
  Dim start;
};

std::optional<Source> sourceOf(Dim dim) {
  std::optional<LinearIndex> linear = asLinear(dim);
  if (!linear || linear->coefficients.size() > 1)
    return std::nullopt;
  if (linear->coefficients.empty())
    return Source{std::nullopt, linear->rest};
  auto [i, coefficient] = linear->coefficients.front();
  if (!coefficient.isConstant(1))
    return std::nullopt;
  return Source{i, linear->rest};
}

/// Nullopt, too, where a position is surely outside of the value: what happens
/// then is not a slice's business.
std::optional<llvm::SmallVector<Source, 4>> sourcesOf(const IndexExpr *load,
                                                      ShapeRef shape) {
  llvm::SmallVector<Source, 4> sources;
  llvm::SmallVector<bool, 4> used(shape.size(), false);
  for (auto [axis, dim] : llvm::enumerate(load->indices)) {
    std::optional<Source> source = sourceOf(dim);
    if (!source)
      return std::nullopt;
    if (source->index) {
      if (*source->index >= shape.size() || used[*source->index])
        return std::nullopt;
      used[*source->index] = true;
    }
    Dim end = source->start + (source->index ? shape[*source->index] : Dim(1));
    std::optional<int64_t> last = end.constant(),
                           size = load->value->shape()[axis].constant();
    if (end.isOverflow() || source->start.constant().value_or(0) < 0 ||
        (last && size && *last > *size))
      return std::nullopt;
    sources.push_back(*source);
  }
  return sources;
}

/// Builds \p load as a slice, transpose and reshape of its value.
Value *buildLoad(const IndexExpr *load, ShapeRef shape, Builder &builder) {
  llvm::SmallVector<Source, 4> sources = *sourcesOf(load, shape);
  Value *value = load->value;
  SliceAttrs slice;
  bool isAll = true;
  for (auto [i, source] : llvm::enumerate(sources)) {
    slice.starts.push_back(source.start);
    slice.sizes.push_back(source.index ? shape[*source.index] : Dim(1));
    slice.steps.push_back(1);
    isAll &= slice.sizes.back() == value->shape()[i];
  }
  if (!isAll)
    value = builder.buildSlice({value}, slice);

  Ints perm(sources.size());
  for (unsigned i = 0; i != perm.size(); ++i)
    perm[i] = i;
  // Fixed positions are of size 1 and may stand anywhere: first.
  auto key = [&](int64_t axis) {
    return sources[axis].index ? static_cast<int>(*sources[axis].index) : -1;
  };
  llvm::stable_sort(perm,
                    [&](int64_t a, int64_t b) { return key(a) < key(b); });
  if (!llvm::is_sorted(perm))
    value = buildTranspose(builder, value, perm);

  Shape full(shape.size(), Dim(1));
  for (const Source &source : sources)
    if (source.index)
      full[*source.index] = shape[*source.index];
  if (value->shape() != ShapeRef(full))
    value = buildReshape(builder, value, full);
  return value;
}

/// A scalar i64 (or other integer) with the value of \p dim.
Value *buildScalar(Dim dim, ElementType element, Builder &builder) {
  if (std::optional<int64_t> number = dim.constant())
    return builder.scalar(element, static_cast<double>(*number));
  DimsAttrs attrs;
  attrs.values = {dim};
  attrs.scalar = true;
  Value *value = builder.buildDims({}, attrs);
  return element == ElementType::I64 ? value
                                     : buildCast(builder, value, element);
}

/// A sum of ranges, one along each index that \p expr depends on.
Value *buildInteger(const IndexExpr *expr, ShapeRef shape, Builder &builder) {
  LinearIndex linear = *asLinear(expr->dim);
  Value *sum = nullptr;
  for (auto [i, coefficient] : linear.coefficients) {
    CountAttrs count;
    count.count = shape[i];
    // The rest starts the first range.
    Dim start = sum ? Dim(0) : linear.rest;
    Value *range =
        builder.buildRange({buildScalar(start, expr->element, builder),
                            buildScalar(coefficient, expr->element, builder)},
                           count);
    Shape full(shape.size(), Dim(1));
    full[i] = shape[i];
    Value *term = buildReshape(builder, range, full);
    sum = sum ? builder.buildAdd({sum, term}) : term;
  }
  return sum ? sum : buildScalar(linear.rest, expr->element, builder);
}

} // namespace

bool IndexAnalysis::isPlain(const IndexExpr *expr, ShapeRef shape) const {
  switch (expr->kind) {
  case IndexExpr::Real:
  case IndexExpr::Boolean:
    return true;
  case IndexExpr::Integer: {
    std::optional<LinearIndex> linear = asLinear(expr->dim);
    return linear && llvm::all_of(linear->coefficients, [&](const auto &e) {
             return e.first < shape.size();
           });
  }
  case IndexExpr::Load:
    return sourcesOf(expr, shape).has_value();
  case IndexExpr::Apply:
    return llvm::all_of(expr->operands, [&](const IndexExpr *operand) {
      return isPlain(operand, shape);
    });
  case IndexExpr::Pieces:
    return false;
  }
  llvm_unreachable("not a kind");
}

Value *IndexAnalysis::materialize(const IndexExpr *expr, ShapeRef shape,
                                  Builder &builder) {
  switch (expr->kind) {
  case IndexExpr::Real:
    return builder.scalar(expr->element, expr->number);
  case IndexExpr::Boolean:
    return builder.scalar(ElementType::Bool, expr->truth);
  case IndexExpr::Integer:
    return buildInteger(expr, shape, builder);
  case IndexExpr::Load:
    return buildLoad(expr, shape, builder);
  case IndexExpr::Apply:
    break;
  case IndexExpr::Pieces:
    llvm_unreachable("not plain");
  }
  llvm::SmallVector<Value *, 3> operands;
  for (const IndexExpr *operand : expr->operands)
    operands.push_back(materialize(operand, shape, builder));
  if (expr->witness)
    return llvm::cantFail(builder.clone(*expr->witness, operands))->result();
  return llvm::cantFail(builder.create(expr->opKind, operands))->result();
}

void IndexAnalysis::print(const IndexExpr *expr, llvm::raw_ostream &os) const {
  auto printDim = [&](Dim dim) {
    os << dim.substitute([](llvm::StringRef name) -> std::optional<Dim> {
      std::optional<unsigned> i = asIndex(Dim::symbol(name));
      if (!i)
        return std::nullopt;
      return Dim::symbol("i" + std::to_string(*i));
    });
  };
  switch (expr->kind) {
  case IndexExpr::Real:
    os << expr->number;
    return;
  case IndexExpr::Boolean:
    os << (expr->truth ? "true" : "false");
    return;
  case IndexExpr::Integer:
    printDim(expr->dim);
    return;
  case IndexExpr::Load:
    os << describe(*expr->value) << '[';
    llvm::interleave(expr->indices, printDim, [&] { os << ", "; });
    os << ']';
    return;
  case IndexExpr::Apply:
    os << opDef(expr->opKind).mnemonic << '(';
    break;
  case IndexExpr::Pieces:
    os << "pieces(";
    printDim(expr->indices[0]);
    os << ": ";
    break;
  }
  llvm::interleave(
      expr->operands, [&](const IndexExpr *operand) { print(operand, os); },
      [&] { os << ", "; });
  os << ')';
}
