//===- Attention.cpp - types of attention and rotary ---------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ir/ops/Infer.h"
#include <cmath>

using namespace tenon;
using namespace tenon::ir;

namespace {

enum Operand : unsigned { Q, K, V, Mask };
/// Dimensions of [B, S, H, D].
enum Axis : unsigned { Batch, Sequence, Heads, Depth };

llvm::Error checkAttributes(const AttentionAttrs &attrs) {
  if (!std::isfinite(attrs.scale))
    return userError("scale is {0}, expected a finite number", attrs.scale);
  if (!(attrs.softcap >= 0) || !std::isfinite(attrs.softcap))
    return userError("softcap is {0}, expected 0 (off) or more",
                     attrs.softcap);
  if (attrs.windowLeft < -1 || attrs.windowRight < -1)
    return userError("the window is {0} and {1}, expected -1 (no limit) or "
                     "more",
                     attrs.windowLeft, attrs.windowRight);
  return llvm::Error::success();
}

/// The key heads must divide the query's.
llvm::Error checkGroups(InferContext &context, Dim heads, Dim keyHeads) {
  if (Dim::divideExactly(heads, keyHeads))
    return llvm::Error::success();
  std::optional<int64_t> h = heads.constant(), k = keyHeads.constant();
  if (h && k && (*k == 0 || *h % *k != 0))
    return userError("{0} query heads cannot share {1} key heads: expected a "
                     "multiple",
                     *h, *k);
  constrain(context, Dim::mod(heads, keyHeads), 0);
  return llvm::Error::success();
}

llvm::Error checkMask(const OpView &op, InferContext &context) {
  if (!op.has(Mask))
    return llvm::Error::success();
  if (op.type(Mask).element != ElementType::Bool)
    if (llvm::Error error = checkSameElement(op, Q, Mask))
      return error;
  const Shape &q = op.type(Q).shape;
  Shape scores{q[Batch], q[Heads], q[Sequence], op.type(K).shape[Sequence]};
  return requireBroadcastsTo(op, context, Mask, scores, "the scores");
}

} // namespace

llvm::Error tenon::ir::inferAttention(const OpView &op,
                                      InferContext &context) {
  if (llvm::Error error =
          checkElement(op, Q, isArithmeticFloat, "a float type"))
    return error;
  for (unsigned i : {Q, K, V}) {
    if (llvm::Error error = checkSameElement(op, Q, i))
      return error;
    if (llvm::Error error = checkRank(op, i, 4, 4))
      return error;
  }
  const auto &attrs = op.attrs<AttentionAttrs>();
  if (llvm::Error error = checkAttributes(attrs))
    return error;
  const Shape &q = op.type(Q).shape, &k = op.type(K).shape,
              &v = op.type(V).shape;
  struct Agreement {
    llvm::StringRef what;
    unsigned i, j;
    Axis axis;
  };
  for (const Agreement &same :
       {Agreement{"batch sizes", Q, K, Batch},
        Agreement{"batch sizes", Q, V, Batch},
        Agreement{"head sizes", Q, K, Depth},
        Agreement{"sequence lengths", K, V, Sequence},
        Agreement{"numbers of heads", K, V, Heads}}) {
    llvm::Expected<Dim> dim =
        unify(op, context, same.what, same.i, op.type(same.i).shape[same.axis],
              same.j, op.type(same.j).shape[same.axis]);
    if (!dim)
      return dim.takeError();
  }
  if (llvm::Error error = checkGroups(context, q[Heads], k[Heads]))
    return error;
  if (llvm::Error error = checkMask(op, context))
    return error;
  context.results.push_back(
      {op.type(Q).element, {q[Batch], q[Sequence], q[Heads], v[Depth]}});
  return llvm::Error::success();
}

llvm::Error tenon::ir::inferRotary(const OpView &op, InferContext &context) {
  if (llvm::Error error =
          checkElement(op, 0, isArithmeticFloat, "a float type"))
    return error;
  if (llvm::Error error = checkRank(op, 0, 4, 4))
    return error;
  const Shape &x = op.type(0).shape;
  int64_t rotaryDim = op.attrs<RotaryAttrs>().rotaryDim;
  if (rotaryDim < 0 || rotaryDim % 2 != 0)
    return userError("rotary_dim is {0}, expected an even number", rotaryDim);
  if (std::optional<int64_t> depth = x[Depth].constant();
      depth && rotaryDim > *depth)
    return userError("rotary_dim is {0}, but the heads of operand 'x' have {1} "
                     "elements",
                     rotaryDim, *depth);
  Shape table{x[Batch], x[Sequence], rotaryDim / 2};
  for (unsigned i : {1u, 2u}) {
    if (llvm::Error error = checkSameElement(op, 0, i))
      return error;
    if (llvm::Error error = checkRank(op, i, 3, 3))
      return error;
    const Shape &found = op.type(i).shape;
    if (llvm::Error error = requireDim(op, context, "the sequence length", i,
                                       found[1], x[Sequence]))
      return error;
    if (llvm::Error error = requireDim(op, context, "the last dimension", i,
                                       found[2], rotaryDim / 2))
      return error;
    if (llvm::Error error =
            requireBroadcastsTo(op, context, i, table, "[B, S, rotary_dim / 2]"))
      return error;
  }
  context.results.push_back(op.type(0));
  return llvm::Error::success();
}
