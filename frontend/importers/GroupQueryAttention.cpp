//===- GroupQueryAttention.cpp - ONNX Runtime's attention with a cache ---===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

/// \file
/// com.microsoft GroupQueryAttention. Entry b of the batch has T[b] = seqlens_k
/// [b] + 1 tokens after this step, of which P[b] = max(T[b] - S, 0) were there
/// before; new keys and values are written at P[b], and query s stands at
/// P[b] + s. What the op leaves unspecified (rows of right padding, cache rows
/// behind T[b]) may be anything.
///
/// Where the batch is 1 and the total is past + new, P is the length of the
/// past: then the cache is a concatenation and the mask is causality.
///
/// With `sliding_window_cache`, caches have C rows however many tokens there
/// are, the latest L(T) of them in front, C >= W, W the window:
///   L(T) = T - G * ceil(max(T - C, 0) / G), G = C - W + 1
/// Attention looks at the C rows that were there and at all new ones.

#include "frontend/DimMath.h"
#include "frontend/NodeView.h"
#include "frontend/OnnxOps.h"
#include "frontend/importers/AttentionMath.h"
#include <cmath>

using namespace llvm;
using namespace tenon::ir;

namespace tenon::frontend {

namespace {

enum Input : unsigned {
  Query,
  Key,
  InValue,
  PastKey,
  PastValue,
  SeqLensK,
  TotalLength,
  CosCache,
  SinCache,
  PositionIds,
  Bias,
  HeadSink,
  KScale,
  VScale,
  QNorm,
  KNorm,
  QueryLens
};

class GroupQuery {
public:
  GroupQuery(NodeView &node, Emitter &emit) : node(node), emit(emit) {}

  Value *import() {
    if (!readAttributes() || !readQkv() || !readLengths())
      return nullptr;
    normalise();
    rotate();
    if (slides)
      slideCache();
    else
      updateCache();
    if (!slides)
      buildMask();
    return attend();
  }

private:
  NodeView &node;
  Emitter &emit;
  AttentionParts p;
  int64_t heads = 0, keyHeads = 0, window = -1, qkOutput = 0;
  bool causal = true, rotary = false, interleaved = false, smooth = false,
       slides = false;
  double queryEpsilon = 0, keyEpsilon = 0;
  Dim batch, queries, past;
  /// i64[B, 1, 1, 1]: P; null where it is the Dim `past`.
  Value *place = nullptr;
  Value *valid = nullptr; ///< i64[B, 1, 1, 1]: T; null with `place`

  void refuse(StringRef attribute, StringRef text) {
    node.fail("attribute '{0}' {1}", attribute, text);
  }

  bool readAttributes() {
    heads = node.requireInt("num_heads");
    keyHeads = node.requireInt("kv_num_heads");
    rotary = node.flagAttr("do_rotary", false);
    interleaved = node.flagAttr("rotary_interleaved", false);
    causal = node.flagAttr("causal", true);
    window = node.intAttr("local_window_size", -1);
    smooth = node.intAttr("smooth_softmax", -1) == 1;
    qkOutput = node.intAttr("qk_output", 0);
    p.attrs.softcap = node.floatAttr("softcap", 0.0);
    p.attrs.scale = node.floatAttr("scale", 0.0);
    p.attrs.maskedRow = MaskedRow::Zero;
    double epsilon = node.floatAttr("qk_norm_epsilon", 1e-6);
    queryEpsilon = node.floatAttr("q_norm_epsilon", epsilon);
    keyEpsilon = node.floatAttr("k_norm_epsilon", epsilon);
    slides = node.flagAttr("sliding_window_cache", false);
    if (slides && (window < 0 || !node.input(PastKey) || node.input(Bias)))
      refuse("sliding_window_cache",
             "is 1; expected a 'local_window_size', a 'past_key' and no "
             "'attention_bias' with it");
    for (StringRef name : {"k_quant_type", "v_quant_type"})
      if (StringRef type = node.strAttr(name, "NONE"); type != "NONE")
        refuse(name,
               ("is '" + type + "': quantised caches are not supported").str());
    node.ignoreAttr("kv_cache_bit_width"); // Of a quantised cache.
    for (unsigned i : {KScale, VScale})
      if (node.hasInput(i))
        node.fail("the input '{0}' is not supported: quantised caches are not",
                  i == KScale ? "k_scale" : "v_scale");
    if (heads <= 0 || keyHeads <= 0 || heads % keyHeads != 0)
      node.fail("{0} query heads cannot share {1} key heads", heads, keyHeads);
    if (window == 0 || window < -1 || (window > 0 && !causal))
      node.fail("attribute 'local_window_size' is {0}; expected -1, or more "
                "than 0 with 'causal'",
                window);
    if (qkOutput < 0 || qkOutput > 2)
      node.fail("attribute 'qk_output' is {0}; expected 0 to 2", qkOutput);
    if (p.attrs.softcap < 0)
      node.fail("attribute 'softcap' is {0}", p.attrs.softcap);
    return !emit.failed();
  }

  /// q, k and v as [B, S, H, D], from three inputs or one.
  bool readQkv() {
    Value *query = node.input(Query), *key = node.input(Key),
          *value = node.input(InValue);
    if ((key == nullptr) != (value == nullptr) || query->rank() != 3) {
      node.fail("'query' is {0}; expected rank 3, with both 'key' and 'value' "
                "or, packed, with neither",
                query->type);
      return false;
    }
    if (!key) {
      std::optional<Dim> width =
          Dim::divideExactly(query->shape()[2], Dim(heads + 2 * keyHeads));
      if (!width) {
        node.fail("the packed 'query', {0}, does not divide into {1} heads",
                  query->type, heads + 2 * keyHeads);
        return false;
      }
      Dim q = *width * Dim(heads), k = *width * Dim(keyHeads);
      key = emit.slice(query, 2, q, k);
      value = emit.slice(query, 2, q + k, k);
      query = emit.slice(query, 2, Dim(0), q);
    }
    p.q = splitHeads(emit, query, heads, "query");
    p.k = splitHeads(emit, key, keyHeads, "key");
    p.v = splitHeads(emit, value, keyHeads, "value");
    if (emit.failed())
      return false;
    batch = p.q->shape()[0];
    queries = p.q->shape()[1];
    std::optional<int64_t> width = p.q->shape()[3].constant();
    if (!width || *width <= 0) {
      node.fail("the size of a head must be known; 'query' is {0}",
                node.input(Query)->type);
      return false;
    }
    if (p.attrs.scale == 0)
      p.attrs.scale = 1.0 / std::sqrt(double(*width));
    return true;
  }

  /// Where new tokens go.
  bool readLengths() {
    Value *pastKey = node.input(PastKey), *pastValue = node.input(PastValue);
    if ((pastKey == nullptr) != (pastValue == nullptr) ||
        (pastKey && (pastKey->rank() != 4 || pastValue->rank() != 4))) {
      node.fail("'past_key' and 'past_value' must be given together and have "
                "rank 4");
      return false;
    }
    past = pastKey ? pastKey->shape()[2] : Dim(0);
    Value *lengths = node.input(SeqLensK);
    total = emit.size(node.input(TotalLength), "total_sequence_length");
    Value *valids = node.input(QueryLens);
    if (emit.failed())
      return false;
    if (slides && !boundWindow(pastKey, pastValue))
      return false;
    if (batch.isConstant(1) && total == past + queries && !valids && !slides)
      return true;
    valid = emit.addScalar(perEntry(lengths), 1);
    Value *fresh = valids ? perEntry(valids) : emit.dimScalar(queries);
    place = emit.op(OpKind::Max,
                    {emit.sub(valid, fresh), emit.scalar(ElementType::I64, 0)});
    return !emit.failed();
  }

  /// A cache that slides has room for the window at least.
  bool boundWindow(Value *pastKey, Value *pastValue) {
    emit.require(pastValue->shape()[2], past, "the length of 'past_value'");
    if (std::optional<StringRef> name = past.symbolName()) {
      for (Module::Symbol &symbol : emit.module.symbols)
        if (symbol.name == *name)
          symbol.range.low = std::max(symbol.range.low, window);
    } else if (past.constant().value_or(0) < window) {
      node.fail("'past_key' is {0}; expected at least {1} rows, the window",
                pastKey->type, window);
    }
    return !emit.failed();
  }

  /// [B] (or [B, 1]) as i64[B, 1, 1, 1].
  Value *perEntry(Value *x) {
    return emit.reshape(emit.cast(x, ElementType::I64),
                        {batch, Dim(1), Dim(1), Dim(1)});
  }

  void normalise() {
    Value *qNorm = node.input(QNorm), *kNorm = node.input(KNorm);
    if ((qNorm == nullptr) != (kNorm == nullptr))
      node.fail("'q_norm_weight' and 'k_norm_weight' must be given together");
    if (!qNorm || emit.failed())
      return;
    NormAttrs attrs;
    attrs.axis = 3;
    attrs.epsilon = queryEpsilon;
    p.q = emit.op(OpKind::RmsNorm, {p.q, qNorm}, attrs);
    attrs.epsilon = keyEpsilon;
    p.k = emit.op(OpKind::RmsNorm, {p.k, kNorm}, attrs);
  }

  void rotate() {
    Value *cos = node.input(CosCache), *sin = node.input(SinCache),
          *positions = node.input(PositionIds);
    if (!rotary || emit.failed())
      return;
    if (!cos || !sin || cos->rank() != 2 || sin->rank() != 2) {
      node.fail("with 'do_rotary', 'cos_cache' and 'sin_cache' of rank 2 are "
                "needed");
      return;
    }
    std::optional<int64_t> half = cos->shape()[1].constant();
    if (!half) {
      node.fail("the size of 'cos_cache', {0}, must be known", cos->type);
      return;
    }
    if (positions) {
      positions = emit.reshape(emit.cast(positions, ElementType::I64),
                               {batch, queries});
    } else if (place) {
      positions = emit.add(emit.reshape(place, {batch, Dim(1)}),
                           emit.iota(queries, 2, 1));
    } else {
      positions = emit.add(emit.iota(queries, 2, 1), emit.dimScalar(past));
    }
    RotaryAttrs attrs;
    attrs.interleaved = interleaved;
    attrs.rotaryDim = *half * 2;
    Value *c = emit.gather(cos, positions, 0);
    Value *s = emit.gather(sin, positions, 0);
    p.q = emit.op(OpKind::Rotary, {p.q, c, s}, attrs);
    p.k = emit.op(OpKind::Rotary, {p.k, c, s}, attrs);
  }

  /// The cache [B, Hkv, L, D] with \p fresh written into \p old.
  Value *written(Value *old, Value *fresh) {
    fresh = swapHeads(emit, fresh);
    if (!old || emit.failed())
      return fresh;
    if (!place)
      return emit.concat({old, fresh}, 2);
    // Entry i of the new tokens goes to place + i, wherever that is.
    PadAttrs pad;
    pad.low.assign(4, Dim(0));
    pad.high.assign(4, Dim(0));
    pad.high[2] = Dim::max(past, total) - past;
    Value *room = emit.op(OpKind::Pad, {old, nullptr}, pad);
    Value *rows = emit.add(place, emit.iota(queries, 4, 2));
    if (emit.failed())
      return nullptr;
    ScatterElementsAttrs scatter;
    scatter.axis = 2;
    return emit.op(OpKind::ScatterElements,
                   {room, emit.broadcast(rows, fresh->shape()), fresh},
                   scatter);
  }

  Value *integer(OpKind kind, Value *a, Value *b) {
    return emit.op(kind, {a, b});
  }

  /// How many rows of a cache that slides are taken after \p tokens.
  Value *resident(Value *tokens) {
    Value *room = emit.dimScalar(past);
    Dim gap = past - Dim(window) + Dim(1);
    Value *over = integer(OpKind::Max, emit.sub(tokens, room),
                          emit.scalar(ElementType::I64, 0));
    Value *steps = emit.div(emit.add(over, emit.dimScalar(gap - Dim(1))),
                            emit.dimScalar(gap));
    return emit.sub(tokens, emit.mul(steps, emit.dimScalar(gap)));
  }

  /// p.k and p.v become the rows that were there and all new ones, of which
  /// p.mask says who sees what; the latest are the new caches.
  void slideCache() {
    if (emit.failed())
      return;
    Dim all = past + queries;
    Value *room = emit.dimScalar(past), *before = resident(place);
    Value *fresh = emit.sub(valid, place);
    // Where a row's token stands, and whether it has one.
    Value *row = emit.iota(all, 4, 3),
          *isOld = integer(OpKind::Less, row, room);
    Value *at = emit.add(
        row, emit.where(isOld, emit.sub(place, before), emit.sub(place, room)));
    Value *isThere = integer(OpKind::Less, row,
                             emit.where(isOld, before, emit.add(room, fresh)));
    Value *query = emit.add(place, emit.iota(queries, 4, 2));
    Value *inWindow = integer(
        OpKind::And, integer(OpKind::LessEqual, at, query),
        integer(OpKind::Greater, at, emit.addScalar(query, double(-window))));
    p.mask = integer(OpKind::And, isThere, inWindow);
    // The latest tokens begin at T - L(T).
    Value *kept =
        emit.add(emit.sub(valid, resident(valid)), emit.iota(past, 4, 2));
    Value *source = emit.add(
        kept, emit.where(integer(OpKind::Less, kept, place),
                         emit.sub(before, place), emit.sub(room, place)));
    source = integer(OpKind::Max, source, emit.scalar(ElementType::I64, 0));
    source = integer(OpKind::Min, source, emit.dimScalar(all - Dim(1)));
    Value *old = emit.iota(past, 4, 2);
    Value *isUsed = integer(OpKind::Less, old, before);
    p.k = slid(PastKey, p.k, isUsed, source, 1);
    p.v = slid(PastValue, p.v, isUsed, source, 2);
  }

  /// Rows of the past, 0 where \p isUsed says that there is nothing, and
  /// \p fresh, as [B, S, H, D]; of them \p source are output \p output.
  Value *slid(unsigned input, Value *fresh, Value *isUsed, Value *source,
              unsigned output) {
    Value *old = node.input(input);
    if (emit.failed())
      return nullptr;
    old = emit.where(isUsed, old, constantScalar(emit, old->element(), 0));
    Value *all = emit.concat({old, swapHeads(emit, fresh)}, 2);
    if (emit.failed())
      return nullptr;
    if (node.wantsOutput(output)) {
      AxisAttrs axis;
      axis.axis = 2;
      node.setOutput(
          output, emit.op(OpKind::GatherElements,
                          {all, emit.broadcast(source, old->shape())}, axis));
    }
    return swapHeads(emit, all);
  }

  void updateCache() {
    Value *key = written(node.input(PastKey), p.k);
    Value *value = written(node.input(PastValue), p.v);
    if (node.wantsOutput(1))
      node.setOutput(1, key);
    if (node.wantsOutput(2))
      node.setOutput(2, value);
    p.k = swapHeads(emit, key);
    p.v = swapHeads(emit, value);
  }

  void buildMask() {
    if (emit.failed())
      return;
    Value *bias = node.input(Bias);
    Dim keys = p.k->shape()[1];
    if (!place) {
      p.attrs.causality = causal ? Causality::Causal : Causality::None;
      p.attrs.queryOffset = past;
      p.attrs.windowLeft = window < 0 ? -1 : window - 1;
      p.mask = bias;
      return;
    }
    Value *key = emit.iota(keys, 4, 3);
    Value *query = emit.add(place, emit.iota(queries, 4, 2));
    Value *keep = causal ? emit.op(OpKind::LessEqual, {key, query})
                         : emit.op(OpKind::Less, {key, valid});
    if (window > 0)
      keep = emit.op(
          OpKind::And,
          {keep, emit.op(OpKind::Greater,
                         {key, emit.addScalar(query, double(-window))})});
    if (bias)
      keep = emit.where(keep, bias,
                        constantScalar(emit, p.q->element(), -INFINITY));
    p.mask = keep;
  }

  /// The softmax's denominator has e^sink too: as if there were one more key
  /// with that score and a value of 0.
  Value *softmaxWithSink(Value *scores, Value *sink) {
    if (emit.failed())
      return nullptr;
    Shape column(scores->shape());
    column.back() = Dim(1);
    Value *extra = emit.broadcast(
        emit.reshape(sink, {Dim(1), sink->shape()[0], Dim(1), Dim(1)}), column);
    Value *all = emit.softmax(emit.concat({scores, extra}, 3), 3);
    return emit.slice(all, 3, Dim(0), scores->shape().back());
  }

  Value *attend() {
    Value *sink = node.input(HeadSink);
    if (smooth && !sink && !emit.failed())
      sink = emit.filled(p.q->element(), 0, {Dim(heads)});
    bool wantsScores = node.wantsOutput(3) && qkOutput != 0;
    if (node.wantsOutput(3) && qkOutput == 0)
      node.fail("the output 'output_qk' needs the attribute 'qk_output'");
    if (!sink && !wantsScores)
      return mergeHeads(emit, emitAttention(emit, p));
    AttentionScores s = emitScores(emit, p);
    if (sink)
      s.weights = softmaxWithSink(s.masked, sink);
    if (wantsScores)
      node.setOutput(3, qkOutput == 1 ? s.masked : s.weights);
    return mergeHeads(emit, emitWeighted(emit, s.weights, p.v));
  }

  Dim total;
};

} // namespace

Value *importGroupQueryAttention(NodeView &node, Emitter &emit) {
  return GroupQuery(node, emit).import();
}

} // namespace tenon::frontend
