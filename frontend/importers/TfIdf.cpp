//===- TfIdf.cpp - importer of TfIdfVectorizer ----------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontend/Emitter.h"
#include "frontend/NodeView.h"
#include "frontend/OnnxOps.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;
using namespace tenon::ir;

namespace tenon::frontend {

namespace {

/// No larger table of n-grams is compared with.
constexpr int64_t largestPool = 1 << 20;

/// The n-grams of one length: their place among all, and their items.
struct Grams {
  int64_t length, first, count;
  ArrayRef<int64_t> items;
};

/// Splits the pool as `ngram_counts` says, which has the place of each length's
/// first item.
std::vector<Grams> gramsOf(NodeView &node, ArrayRef<int64_t> pool,
                           ArrayRef<int64_t> starts) {
  std::vector<Grams> result;
  int64_t number = 0;
  for (size_t i = 0; i < starts.size(); ++i) {
    int64_t length = int64_t(i) + 1, from = starts[i],
            to = i + 1 < starts.size() ? starts[i + 1] : int64_t(pool.size());
    if (from < 0 || to < from || to > int64_t(pool.size()) ||
        (to - from) % length != 0) {
      node.fail("attribute 'ngram_counts' does not fit a pool of {0} items",
                pool.size());
      return {};
    }
    int64_t count = (to - from) / length;
    result.push_back({length, number, count, pool.slice(from, to - from)});
    number += count;
  }
  return result;
}

/// f32[rows, grams]: how often each n-gram stands in a row of x[rows, size],
/// its items \p distance apart.
Value *countGrams(Emitter &emit, Value *x, const Grams &grams,
                  int64_t distance) {
  if (emit.failed())
    return nullptr;
  Dim rows = x->shape()[0], size = x->shape()[1];
  Dim places = Dim::max(size - Dim((grams.length - 1) * distance), Dim(0));
  if (places.isConstant(0))
    return nullptr;
  Value *found = nullptr;
  for (int64_t k = 0; k < grams.length; ++k) {
    std::vector<double> column;
    for (int64_t i = 0; i < grams.count; ++i)
      column.push_back(double(grams.items[i * grams.length + k]));
    Value *wanted = emit.table(ElementType::I64, {grams.count, 1}, column);
    Value *there = emit.reshape(emit.slice(x, 1, Dim(k * distance), places),
                                {rows, Dim(1), places});
    Value *equal = emit.op(OpKind::Equal, {there, wanted});
    found = found ? emit.op(OpKind::And, {found, equal}) : equal;
  }
  return emit.reduce(OpKind::ReduceSum, emit.cast(found, ElementType::F32), {2},
                     false);
}

/// What is counted at all: lengths within the limits, each with every distance
/// but for single items, which have none. Columns of \p counts by n-gram.
Value *countAll(Emitter &emit, Value *x, ArrayRef<Grams> all, int64_t shortest,
                int64_t longest, int64_t skips) {
  Values columns;
  for (const Grams &grams : all) {
    if (grams.count == 0)
      continue;
    Value *sum = nullptr;
    bool counts = grams.length >= shortest && grams.length <= longest;
    for (int64_t distance = 1; counts && distance <= skips + 1; ++distance) {
      if (grams.length == 1 && distance > 1)
        break;
      Value *part = countGrams(emit, x, grams, distance);
      sum = sum && part ? emit.add(sum, part) : sum ? sum : part;
    }
    if (emit.failed())
      return nullptr;
    columns.push_back(sum ? sum
                          : emit.filled(ElementType::F32, 0,
                                        {x->shape()[0], Dim(grams.count)}));
  }
  return columns.empty() ? nullptr : emit.concat(columns, 1);
}

} // namespace

/// Counts of the n-grams of a pool, at the places that `ngram_indexes` gives
/// them, weighted. Of integers alone.
Value *importTfIdf(NodeView &node, Emitter &emit) {
  Value *x = node.input(0);
  StringRef mode = node.strAttr("mode", "");
  int64_t shortest = node.requireInt("min_gram_length"),
          longest = node.requireInt("max_gram_length"),
          skips = node.requireInt("max_skip_count");
  auto starts = node.findInts("ngram_counts"),
       places = node.findInts("ngram_indexes"),
       pool = node.findInts("pool_int64s");
  auto weights = node.findFloats("weights");
  if (node.hasAttr("pool_strings"))
    return node.fail("attribute 'pool_strings' is given: strings are not "
                     "supported");
  if (mode != "TF" && mode != "IDF" && mode != "TFIDF")
    return node.fail("attribute 'mode' is '{0}'; expected TF, IDF or TFIDF",
                     mode);
  if (!starts || !places || !pool || pool->size() > largestPool ||
      places->empty() || skips < 0 || skips > 1024 || shortest < 1)
    return node.fail("its attributes do not describe a pool of n-grams");
  if (!isInteger(x->element()) || x->rank() < 1 || x->rank() > 2)
    return node.fail("its input is {0}; expected integers of rank 1 or 2",
                     x->type);
  std::vector<Grams> all = gramsOf(node, *pool, *starts);
  if (emit.failed())
    return nullptr;
  Dim rows = x->rank() == 2 ? x->shape()[0] : Dim(1);
  Value *table =
      emit.reshape(emit.cast(x, ElementType::I64), {rows, x->shape().back()});
  Value *counts = countAll(emit, table, all, shortest, longest, skips);
  int64_t total = all.empty() ? 0 : all.back().first + all.back().count;
  int64_t width = *llvm::max_element(*places) + 1;
  if (!counts || emit.failed() || total != int64_t(places->size()) ||
      *llvm::min_element(*places) < 0 || width > largestPool)
    return node.fail("attribute 'ngram_indexes' does not fit its n-grams");
  // Columns to their places; those that no n-gram has are behind, and 0.
  std::vector<double> sources(width, double(total));
  for (auto [i, place] : llvm::enumerate(*places))
    sources[place] = double(i);
  Value *padded = emit.concat(
      {counts, emit.filled(ElementType::F32, 0, {rows, Dim(1)})}, 1);
  Value *y =
      emit.gather(padded, emit.table(ElementType::I64, {width}, sources), 1);
  if (mode == "IDF")
    y = emit.cast(
        emit.op(OpKind::Greater, {y, emit.scalar(ElementType::F32, 0)}),
        ElementType::F32);
  if (mode != "TF" && weights && !emit.failed()) {
    if (int64_t(weights->size()) != width)
      return node.fail("attribute 'weights' has {0} entries; expected {1}",
                       weights->size(), width);
    std::vector<double> numbers(weights->begin(), weights->end());
    y = emit.mul(y, emit.table(ElementType::F32, {width}, numbers));
  }
  return x->rank() == 2 ? y : emit.reshape(y, {Dim(width)});
}

} // namespace tenon::frontend
