//===- CodesOperand.cpp - a matrix of codes as graphs have it ------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/precision/CodesOperand.h"

using namespace tenon;
using namespace tenon::ir;

Value *passes::buildCodes(Builder &builder, const CodesOperand &m) {
  CastAttrs cast;
  cast.to = ElementType::F32;
  Value *w = builder.buildCast({builder.constant(m.codes)}, cast);
  if (m.zeros)
    w = builder.buildSub({w, builder.constant(m.zeros)});
  else
    w = builder.buildAdd({w, builder.scalar(ElementType::F32, -m.zero)});
  w = builder.buildMul({w, builder.constant(m.scales)});
  int64_t padded = m.codes->shape()[1] * m.codes->shape()[2];
  ShapeAttrs reshape;
  reshape.shape = {Dim(m.n), Dim(padded)};
  w = builder.buildReshape({w}, reshape);
  if (padded != m.k) {
    SliceAttrs slice;
    slice.starts = {Dim(0), Dim(0)};
    slice.sizes = {Dim(m.n), Dim(m.k)};
    slice.steps = {1, 1};
    w = builder.buildSlice({w}, slice);
  }
  TransposeAttrs transpose;
  transpose.perm = {1, 0};
  return builder.buildTranspose({w}, transpose);
}
