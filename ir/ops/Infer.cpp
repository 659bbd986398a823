//===- Infer.cpp - what inference functions share ------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ir/ops/Infer.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace tenon::ir {

namespace {

template <class T> std::string printed(const T &value) {
  std::string result;
  raw_string_ostream(result) << value;
  return result;
}

} // namespace

std::string text(Dim dim) { return printed(dim); }

std::string text(ShapeRef shape) {
  std::string result;
  raw_string_ostream os(result);
  os << '[';
  interleaveComma(shape, os);
  os << ']';
  return result;
}

std::string text(const TensorType &type) { return printed(type); }

std::string operandText(const OpView &op, unsigned i) {
  return "operand '" + operandName(op.kind, i) + "'";
}

//===----------------------------------------------------------------------===//
// Facts about dimensions
//===----------------------------------------------------------------------===//

bool provablyDifferent(Dim a, Dim b) {
  return a != b && ((a - b).isAtLeast(1) || (b - a).isAtLeast(1));
}

bool provablyNotOne(Dim dim) { return provablyDifferent(dim, 1); }

bool differByFactor(Dim a, Dim b) {
  ArrayRef<Dim::Term> x = a.terms(), y = b.terms();
  if (a == b || x.empty() || x.size() != y.size())
    return false;
  // Coefficients are proportional when all cross products with the first pair
  // agree. The products of two 64-bit numbers fit 128 bits.
  auto proportional = [&](const auto &pair) {
    const auto &[s, t] = pair;
    return s.atoms == t.atoms &&
           __int128(s.coefficient) * y.front().coefficient ==
               __int128(t.coefficient) * x.front().coefficient;
  };
  return all_of(zip_equal(x, y), proportional);
}

Dim moreSpecific(Dim a, Dim b) { return !a.constant() && b.constant() ? b : a; }

bool isArithmetic(ElementType type) {
  return category(type) != TypeCategory::Bool && bitWidth(type) >= 8 &&
         (!isFloat(type) || bitWidth(type) >= 16);
}

//===----------------------------------------------------------------------===//
// Dimensions that must agree
//===----------------------------------------------------------------------===//

void constrain(InferContext &context, Dim a, Dim b) {
  std::pair<Dim, Dim> pair(a, b);
  if (a != b && !is_contained(context.constraints, pair))
    context.constraints.push_back(pair);
}

void constrainOneOr(InferContext &context, Dim dim, Dim size) {
  // (dim - 1) * (dim - size) = 0, with the negative terms on the other side.
  // `broadcast(dim, size)` would not do: it simplifies to `size`.
  Dim left = dim * dim + size, right = dim * size + dim;
  if (left.isOverflow() || right.isOverflow())
    constrain(context, dim, size);
  else
    constrain(context, left, right);
}

Expected<Dim> unify(const OpView &op, InferContext &context, StringRef what,
                    unsigned i, Dim a, unsigned j, Dim b) {
  if (provablyDifferent(a, b))
    return userError("{0} differ: {1} in {2}, {3} in {4}", what, text(a),
                     operandText(op, i), text(b), operandText(op, j));
  constrain(context, a, b);
  return moreSpecific(a, b);
}

Error requireDim(const OpView &op, InferContext &context, StringRef what,
                 unsigned i, Dim dim, Dim expected) {
  if (provablyDifferent(dim, expected))
    return userError("{0} of {1} is {2}, expected {3}", what,
                     operandText(op, i), text(dim), text(expected));
  constrain(context, dim, expected);
  return Error::success();
}

Error requireShape(const OpView &op, InferContext &context, unsigned i,
                   ShapeRef expected) {
  ShapeRef shape = op.type(i).shape;
  bool differ =
      shape.size() != expected.size() ||
      any_of(zip(shape, expected), [](const auto &pair) {
        return provablyDifferent(std::get<0>(pair), std::get<1>(pair));
      });
  if (differ)
    return userError("{0} has shape {1}, expected {2}", operandText(op, i),
                     text(shape), text(expected));
  for (auto [dim, wanted] : zip_equal(shape, expected))
    constrain(context, dim, wanted);
  return Error::success();
}

std::optional<Dim> broadcastDims(InferContext &context, Dim a, Dim b) {
  if (a == b || b.isConstant(1))
    return a;
  if (a.isConstant(1))
    return b;
  bool fixedA = provablyNotOne(a), fixedB = provablyNotOne(b);
  if (fixedA && fixedB) {
    if (provablyDifferent(a, b))
      return std::nullopt;
    constrain(context, a, b);
    return moreSpecific(a, b);
  }
  // One side may turn out to be 1; the other, if that is sure not to be, is the
  // result. Otherwise evaluating `broadcast(a, b)` checks that they fit.
  if (fixedA || fixedB) {
    constrainOneOr(context, fixedA ? b : a, fixedA ? a : b);
    return fixedA ? a : b;
  }
  return Dim::broadcast(a, b);
}

Expected<Shape> broadcastOperands(const OpView &op, InferContext &context) {
  Shape result;
  for (const TensorType *type : op.operands) {
    if (!type)
      continue;
    ShapeRef shape = type->shape;
    if (shape.size() > result.size())
      result.insert(result.begin(), shape.size() - result.size(), Dim(1));
    size_t lead = result.size() - shape.size();
    for (auto [i, dim] : enumerate(shape)) {
      std::optional<Dim> both = broadcastDims(context, result[lead + i], dim);
      if (!both) {
        std::string shapes;
        for (auto [k, other] : enumerate(op.operands))
          if (other)
            shapes += (shapes.empty() ? "" : ", ") + text(other->shape) +
                      " in " + operandText(op, k);
        return userError("shapes do not broadcast: {0}", shapes);
      }
      result[lead + i] = *both;
    }
  }
  return result;
}

Error requireBroadcastsTo(const OpView &op, InferContext &context, unsigned i,
                          ShapeRef target, StringRef what) {
  ShapeRef shape = op.type(i).shape;
  auto fail = [&] {
    return userError("{0} of shape {1} does not broadcast to {2} of {3}",
                     operandText(op, i), text(shape), text(target), what);
  };
  if (shape.size() > target.size())
    return fail();
  for (auto [dim, wanted] : zip(shape, target.take_back(shape.size()))) {
    if (dim == wanted || dim.isConstant(1))
      continue;
    if (provablyNotOne(dim)) {
      if (provablyDifferent(dim, wanted))
        return fail();
      constrain(context, dim, wanted);
    } else if (provablyNotOne(wanted)) {
      constrainOneOr(context, dim, wanted);
    } else {
      constrain(context, Dim::broadcast(dim, wanted), wanted);
    }
  }
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Checks of attributes and operands
//===----------------------------------------------------------------------===//

Error checkAxis(StringRef attribute, int64_t axis, unsigned rank,
                StringRef of) {
  if (axis >= 0 && axis < int64_t(rank))
    return Error::success();
  return userError("{0} {1} is out of range for rank {2} of {3}", attribute,
                   axis, rank, of);
}

Error checkAxis(const OpView &op, int64_t axis, unsigned i) {
  return checkAxis("axis", axis, op.type(i).rank(), operandText(op, i));
}

Error checkRank(const OpView &op, unsigned i, unsigned low, unsigned high) {
  unsigned rank = op.type(i).rank();
  if (rank >= low && rank <= high)
    return Error::success();
  std::string wanted = std::to_string(low);
  if (high == ~0u)
    wanted += " or more";
  else if (high != low)
    wanted += " to " + std::to_string(high);
  return userError("{0} has rank {1}, expected {2}", operandText(op, i), rank,
                   wanted);
}

Error checkElement(const OpView &op, unsigned i, bool (*accepts)(ElementType),
                   StringRef wanted) {
  if (accepts(op.type(i).element))
    return Error::success();
  return userError("{0} has element type {1}, expected {2}", operandText(op, i),
                   mnemonic(op.type(i).element), wanted);
}

Error checkSameElement(const OpView &op, unsigned i, unsigned j) {
  if (op.type(i).element == op.type(j).element)
    return Error::success();
  return userError("element types differ: {0} in {1}, {2} in {3}",
                   mnemonic(op.type(i).element), operandText(op, i),
                   mnemonic(op.type(j).element), operandText(op, j));
}

Error checkLength(StringRef attribute, size_t length, size_t rank) {
  if (length == rank)
    return Error::success();
  return userError("attribute '{0}' has {1} entries, expected {2}, one for "
                   "each dimension",
                   attribute, length, rank);
}

Error checkSize(StringRef what, Dim size) {
  if (size.isOverflow())
    return userError("{0} is too large to compute", what);
  if (!(Dim(-1) - size).isAtLeast(0))
    return Error::success();
  return userError("{0} is {1}, expected 0 or more", what, text(size));
}

} // namespace tenon::ir
