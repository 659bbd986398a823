//===- NormRules.cpp - what layer norm and RMS norm share ----------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/fusion/NormRules.h"

using namespace tenon;
using namespace tenon::ir;

Pattern passes::dividedByRoot(Pattern numerator, Pattern variance,
                              double &epsilon) {
  Pattern sum = m_Add(variance, m_AnySplat(epsilon));
  return m_AnyOf(m_Div(numerator, m_Sqrt(sum)), m_Mul(numerator, m_Rsqrt(sum)),
                 m_Mul(numerator, m_Reciprocal(m_Sqrt(sum))),
                 m_Mul(numerator, m_Div(m_Splat(1), m_Sqrt(sum))));
}

Pattern passes::squareOf(Value *&x) {
  return m_AnyOf(m_Mul(m_Val(x), m_Val(x)), m_Pow(m_Val(x), m_Splat(2)));
}

std::optional<std::string> passes::notTrailing(const Op &mean) {
  // What is written in f64 keeps its precision: kernels of norms are of f32.
  if (mean.operand(0)->element() == ElementType::F64)
    return "f64 is normalised step by step";
  const auto &attrs = mean.attrs<ReduceAttrs>();
  if (!attrs.keepdims)
    return "the mean does not keep its dimensions";
  int64_t rank = mean.operand(0)->rank();
  for (auto [i, axis] : llvm::enumerate(attrs.axes))
    if (axis != rank - int64_t(attrs.axes.size()) + int64_t(i))
      return "the mean is not over the last dimensions";
  if (attrs.axes.empty())
    return "the mean is over no dimension";
  return std::nullopt;
}

static ShapeRef normalisedDims(const Op &norm) {
  return norm.operand(0)->shape().drop_front(norm.attrs<NormAttrs>().axis);
}

bool passes::isNormParameter(const Value *value, const Op &norm) {
  ShapeRef shape = value->shape(), normalised = normalisedDims(norm);
  if (shape.size() < normalised.size() ||
      shape.size() > norm.operand(0)->rank() ||
      shape.take_back(normalised.size()) != normalised)
    return false;
  return llvm::all_of(shape.drop_back(normalised.size()),
                      [](Dim dim) { return dim.isConstant(1); });
}

Value *passes::asNormParameter(Value *value, const Op &norm, Builder &builder) {
  ShapeRef normalised = normalisedDims(norm);
  if (value->rank() == normalised.size())
    return value;
  ShapeAttrs attrs;
  attrs.shape.assign(normalised.begin(), normalised.end());
  return builder.buildReshape({value}, attrs);
}
