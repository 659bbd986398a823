//===- MatMul.cpp - importers of matrix products -------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontend/Emitter.h"
#include "frontend/NodeView.h"
#include "frontend/OnnxOps.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"

using namespace llvm;
using namespace tenon::ir;

namespace tenon::frontend {

Value *importGemm(NodeView &node, Emitter &emit) {
  Value *a = node.input(0), *b = node.input(1), *c = node.input(2);
  double alpha = node.floatAttr("alpha", 1.0),
         beta = node.floatAttr("beta", 1.0);
  if (node.flagAttr("transA", false))
    a = emit.transposeLast(a);
  if (node.flagAttr("transB", false))
    b = emit.transposeLast(b);
  if (emit.failed())
    return nullptr;
  if (a->rank() != 2 || b->rank() != 2)
    return node.fail("its operands are {0} and {1}; expected rank 2", a->type,
                     b->type);
  Value *y = emit.mulScalar(emit.matmul(a, b), alpha);
  if (!c || beta == 0.0 || emit.failed())
    return y;
  Value *sum = emit.add(y, emit.mulScalar(c, beta));
  if (!emit.failed() && sum->type != y->type)
    return node.fail("operand 'C' is {0}, which does not broadcast to {1}",
                     c->type, y->type);
  return sum;
}

namespace {

/// Moves the first dimension behind the batch dimensions.
Value *batchToRows(NodeView &node, Emitter &emit, Value *x) {
  if (emit.failed() || x->rank() < 3)
    return emit.failed() ? nullptr
                         : node.fail("an operand is {0}; swapping batch and "
                                     "rows needs rank 3 or more",
                                     x->type);
  auto perm = llvm::to_vector(llvm::seq<int64_t>(1, x->rank() - 1));
  perm.push_back(0);
  perm.push_back(x->rank() - 1);
  return emit.transpose(x, perm);
}

} // namespace

Value *importFusedMatMul(NodeView &node, Emitter &emit) {
  Value *a = node.input(0), *b = node.input(1);
  double alpha = node.floatAttr("alpha", 1.0);
  bool transA = node.flagAttr("transA", false),
       transB = node.flagAttr("transB", false);
  if (node.flagAttr("transBatchA", false))
    a = batchToRows(node, emit, a);
  if (node.flagAttr("transBatchB", false))
    b = batchToRows(node, emit, b);
  if (transA)
    a = emit.transposeLast(a);
  if (transB)
    b = emit.transposeLast(b);
  return emit.mulScalar(emit.matmul(a, b), alpha);
}

} // namespace tenon::frontend
