//===- DeriveKvCache.cpp - the cached form of a causal model -------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

///
/// \file
/// A model from input_ids[batch, sequence] to logits becomes one that computes
/// new tokens alone and remembers keys and values:
///
///   attention(q, k, v, mask) {causal}
///     -> present = concat(past, k), also of v, new inputs and outputs
///        attention(q, present k, present v, mask) {causal, query_offset =
///        past}
///
/// `sequence` is then the number of new tokens, `past` of those before them,
/// and what follows from attention_mask alone is about all of them.
///
/// The proof that row t of every value depends on tokens up to t alone, so that
/// rows computed once stay right when tokens are appended: values that depend
/// on tokens have one dimension that counts them, each op on them works row by
/// row (ir/RowUse), and attention is causal, which its mask's index
/// arithmetic has shown (fusion/AttentionMasks). Operands that do not depend on
/// tokens (masks, positions, tables) are either used whole or have their last
/// `sequence` rows computed; what is in a row may not depend on how many rows
/// there are.
///
/// Refused, with the reason: everything else. What a row without any visible
/// key gives is no reason: only padding has such rows, and nothing looks at it.

#include "ir/Builder.h"
#include "ir/RowUse.h"
#include "ir/support/Diag.h"
#include "passes/Pass.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace tenon;
using namespace tenon::ir;
using namespace tenon::passes;
using llvm::Error;
using llvm::StringRef;

namespace {

std::string text(const TensorType &type) {
  std::string out;
  llvm::raw_string_ostream(out) << type;
  return out;
}

Error atOp(const Op &op, const llvm::Twine &why) {
  return userError("--kv-cache: node '{0}' ({1}): {2}", op.loc.name(),
                   opDef(op).mnemonic, why.str());
}

bool isMask(const Port &input) { return input.name == "attention_mask"; }

/// Proves a function causal and finds where rows are counted.
class CausalProof {
public:
  explicit CausalProof(Func &func) : func(func) {}

  Error run() {
    if (Error error = findTokens())
      return error;
    findLive();
    if (Error error = checkOutputs())
      return error;
    for (auto it = func.body.end(); it != func.body.begin();) {
      Op &op = *--it;
      if (op.kind() == OpKind::Return || !isLive(op))
        continue;
      if (Error error = visit(op))
        return error;
    }
    if (attentions.empty())
      return userError("--kv-cache: the model has no attention over its "
                       "tokens, so there is nothing to remember");
    std::reverse(attentions.begin(), attentions.end());
    return Error::success();
  }

  /// The symbol that counts tokens.
  std::string sequence;
  /// Attention over the tokens themselves, in order.
  std::vector<Op *> attentions;
  /// Operands that do not depend on tokens and of which rows are needed.
  struct Boundary {
    Op *op;
    unsigned operand, axis;
  };
  std::vector<Boundary> boundaries;

  bool isLive(const Value *value) const { return live.contains(value); }
  bool isLive(const Op &op) const {
    return llvm::any_of(op.operands(),
                        [&](Value *x) { return x && isLive(x); });
  }

private:
  Func &func;
  llvm::SmallPtrSet<const Value *, 32> live;
  /// Values that do not depend on tokens, but of which what is there may change
  /// when there are more of them.
  llvm::SmallPtrSet<const Value *, 16> unstable;
  llvm::DenseMap<const Value *, unsigned> axisOf;

  bool counts(Dim dim) const { return dim.symbolName() == sequence; }
  bool mentionsTokens(ShapeRef shape) const {
    return llvm::any_of(shape,
                        [&](Dim dim) { return mentions(dim, sequence); });
  }

  Error findTokens() {
    Value *tokens = nullptr;
    for (const auto &[i, input] : llvm::enumerate(func.inputs)) {
      if (StringRef(input.name).starts_with("past"))
        return userError("--kv-cache: the model has caches already: input "
                         "'{0}'",
                         input.name);
      if (input.name == "input_ids")
        tokens = func.body.argument(i);
    }
    if (!tokens || tokens->rank() != 2)
      return userError("--kv-cache: the model has no input "
                       "'input_ids', [batch, sequence]");
    std::optional<StringRef> name = tokens->shape()[1].symbolName();
    if (!name)
      return userError("--kv-cache: the number of tokens, {0} in input "
                       "'input_ids', is fixed; export the model with a dynamic "
                       "axis",
                       tokens->shape()[1]);
    sequence = name->str();
    return Error::success();
  }

  /// Everything that tokens decide, or an input with rows for them.
  void findLive() {
    for (const auto &[i, input] : llvm::enumerate(func.inputs)) {
      Value *value = func.body.argument(i);
      if (!isMask(input) && mentionsTokens(value->shape()))
        live.insert(value);
    }
    for (Op &op : func.body)
      for (Value *result : op.results()) {
        if (isLive(op))
          live.insert(result);
        else if (!isStable(op, *result))
          unstable.insert(result);
      }
  }

  /// Whether elements of \p result, which does not depend on tokens, stay as
  /// they are when there are more: each comes from rows of the operands with
  /// its own number, and no operand's rows are merged.
  bool isStable(Op &op, const Value &result) {
    if (llvm::any_of(op.operands(),
                     [&](Value *x) { return x && unstable.contains(x); }))
      return false;
    if (op.kind() == OpKind::Range)
      return true;
    if (!onlySizesMention(op))
      return false;
    llvm::SmallVector<llvm::SmallVector<unsigned, 4>, 4> used(op.numOperands());
    for (const auto &[d, dim] : llvm::enumerate(result.shape())) {
      if (!mentions(dim, sequence))
        continue;
      std::optional<llvm::SmallVector<RowUse, 4>> uses =
          keepsPrefix(op, d) ? llvm::SmallVector<RowUse, 4>{{unsigned(d)}}
                             : rowUses(op, d);
      if (!counts(dim) || !uses)
        return false;
      for (const auto &[i, use] : llvm::enumerate(*uses))
        if (!use.isWhole())
          used[i].push_back(*use.axis);
    }
    for (const auto &[i, operand] : llvm::enumerate(op.operands()))
      for (unsigned d = 0; operand && d < operand->rank(); ++d)
        if (mentions(operand->shape()[d], sequence) &&
            !llvm::is_contained(used[i], d))
          return false;
    return true;
  }

  /// Whether the first rows along \p axis come from the operand's first ones,
  /// however many there are.
  static bool keepsPrefix(const Op &op, unsigned axis) {
    if (op.kind() == OpKind::Slice) // from a fixed start
      return op.attrs<SliceAttrs>().steps[axis] > 0;
    if (op.kind() != OpKind::CumSum)
      return false;
    const auto &attrs = op.attrs<CumSumAttrs>();
    return attrs.axis == int64_t(axis) && !attrs.reverse;
  }

  /// Whether attributes say no more of how many tokens there are than the size
  /// of the result.
  bool onlySizesMention(Op &op) {
    if (op.kind() == OpKind::Reshape || op.kind() == OpKind::Broadcast)
      return true;
    if (op.kind() == OpKind::Slice)
      return !mentionsTokens(op.attrs<SliceAttrs>().starts);
    bool found = false;
    rewriteAttrDims(op, [&](Dim dim) {
      found |= mentions(dim, sequence);
      return dim;
    });
    return !found;
  }

  Error checkOutputs() {
    const Op &end = *func.body.terminator();
    for (const auto &[i, output] : llvm::enumerate(func.outputs)) {
      Value *value = end.operand(i);
      ShapeRef shape = value->shape();
      if (!isLive(value)) {
        if (mentionsTokens(shape))
          return userError("--kv-cache: output '{0}' does not depend on the "
                           "tokens, only on how many there are",
                           output.name);
        continue;
      }
      auto found = llvm::find_if(shape, [&](Dim dim) { return counts(dim); });
      if (found == shape.end())
        return userError("--kv-cache: output '{0}', {1}, has no row for each "
                         "token",
                         output.name, text(value->type));
      if (Error error = demand(end, value, found - shape.begin()))
        return error;
    }
    return Error::success();
  }

  /// Notes that \p user takes rows of \p value along \p axis.
  Error demand(const Op &user, const Value *value, unsigned axis) {
    for (const auto &[d, dim] : llvm::enumerate(value->shape()))
      if (d == axis ? !counts(dim) : mentions(dim, sequence))
        return atOp(user, "dimension " + llvm::Twine(d) + " of " +
                              text(value->type) +
                              (d == axis ? " does not count tokens"
                                         : " depends on how many tokens there "
                                           "are"));
    auto [known, added] = axisOf.try_emplace(value, axis);
    if (!added && known->second != axis)
      return atOp(user,
                  "two dimensions of " + text(value->type) + " count tokens");
    return Error::success();
  }

  Error visit(Op &op) {
    if (op.numResults() == 0 || is(op, SideEffect))
      return atOp(op, "sizes depend on the tokens' data");
    std::optional<unsigned> axis;
    for (Value *result : op.results())
      if (auto found = axisOf.find(result); found != axisOf.end()) {
        if (axis && *axis != found->second)
          return atOp(op, "its results count tokens in different dimensions");
        axis = found->second;
      }
    if (!axis) // nothing that is put out needs it
      return Error::success();
    if (Error error = checkAttrs(op))
      return error;
    if (op.kind() == OpKind::Attention && isLive(op.operand(1)))
      return visitAttention(op, *axis);
    std::optional<llvm::SmallVector<RowUse, 4>> uses =
        op.kind() == OpKind::Attention && *axis == 1 ? crossUses(op)
                                                     : rowUses(op, *axis);
    if (!uses)
      return atOp(op, "it mixes tokens, and is no attention of which it is "
                      "known that tokens see earlier ones only");
    for (const auto &[i, use] : llvm::enumerate(*uses))
      if (Error error = take(op, i, use))
        return error;
    return Error::success();
  }

  /// Attributes may say how many rows there are, and nothing more of it.
  Error checkAttrs(Op &op) {
    bool found = false;
    rewriteAttrDims(op, [&](Dim dim) {
      found |= mentions(dim, sequence) && !counts(dim);
      return dim;
    });
    if (found)
      return atOp(op, "an attribute depends on how many tokens there are");
    return Error::success();
  }

  Error take(Op &op, unsigned operand, RowUse use) {
    Value *value = op.operand(operand);
    if (!value)
      return Error::success();
    if (isLive(value)) {
      if (use.isWhole())
        return atOp(op, "each of its results depends on all tokens");
      return demand(op, value, *use.axis);
    }
    if (unstable.contains(value))
      return atOp(op, "operand " + text(value->type) +
                          " changes when there are more tokens");
    if (!use.isWhole())
      boundaries.push_back({&op, operand, *use.axis});
    else if (mentionsTokens(value->shape()))
      return atOp(op, "operand " + text(value->type) +
                          " depends on how many tokens there are");
    return Error::success();
  }

  /// Rows of queries that are not one as all are the same.
  static std::optional<unsigned> queryRows(const Value *mask) {
    if (!mask || mask->rank() < 2 ||
        mask->shape()[mask->rank() - 2].isConstant(1))
      return std::nullopt;
    return mask->rank() - 2;
  }

  /// Of attention over something else than the tokens (cross-attention).
  static std::optional<llvm::SmallVector<RowUse, 4>> crossUses(const Op &op) {
    llvm::SmallVector<RowUse, 4> uses(op.numOperands());
    uses[0] = {1};
    if (op.numOperands() > 3)
      uses[3] = {queryRows(op.operand(3))};
    return uses;
  }

  Error visitAttention(Op &op, unsigned axis) {
    const auto &attrs = op.attrs<AttentionAttrs>();
    if (axis != 1 || !isLive(op.operand(0)) || !isLive(op.operand(2)))
      return atOp(op, "its queries, keys and values do not all have a row for "
                      "each token");
    if (attrs.causality != Causality::Causal && attrs.windowRight != 0)
      return atOp(op, "tokens see later ones: no causal mask was found");
    if (!attrs.queryOffset.isConstant(0))
      return atOp(op, "its causal mask is shifted");
    for (unsigned i = 0; i < 3; ++i)
      if (Error error = demand(op, op.operand(i), 1))
        return error;
    attentions.push_back(&op);
    Value *mask = op.operand(3);
    if (mask && (isLive(mask) || unstable.contains(mask)))
      return atOp(op, "its mask depends on the tokens or changes when there "
                      "are more");
    if (std::optional<unsigned> rows = queryRows(mask))
      boundaries.push_back({&op, 3, *rows});
    return Error::success();
  }
};

/// Changes a function that CausalProof has proved.
class Derivation {
public:
  Derivation(Module &module, Func &func, CausalProof &proof)
      : module(module), func(func), proof(proof),
        fresh(Dim::symbol(proof.sequence)) {}

  void run() {
    DimRange range = module.rangeOf(proof.sequence);
    past = module.freshSymbol("past", {0, range.high});
    all = past + fresh;
    widenStatic();
    // What is known of how many tokens there are holds for all of them.
    if (range.high != INT64_MAX)
      func.constraints.push_back(
          {Dim::min(all, Dim(range.high)), all, proof.attentions[0]->loc});
    for (const CausalProof::Boundary &b : proof.boundaries)
      b.op->setOperand(b.operand, rows(b.op->operand(b.operand), b.axis));
    for (const auto &[i, op] : llvm::enumerate(proof.attentions))
      addCaches(*op, i);
  }

private:
  Module &module;
  Func &func;
  CausalProof &proof;
  Dim fresh, past, all;
  llvm::DenseMap<std::pair<Value *, unsigned>, Value *> known;
  llvm::DenseMap<Value *, Value *> extended;

  /// Values that do not depend on tokens are about all of them.
  void widenStatic() {
    auto widen = [&](Dim dim) {
      return dim.substitute([&](StringRef name) {
        return name == proof.sequence ? std::optional(all) : std::nullopt;
      });
    };
    auto widenType = [&](Value *value) {
      for (Dim &dim : value->type.shape)
        dim = widen(dim);
    };
    for (const auto &[i, input] : llvm::enumerate(func.inputs))
      if (isMask(input))
        widenType(func.body.argument(i));
    for (Op &op : func.body) {
      if (proof.isLive(op) || op.kind() == OpKind::Return)
        continue;
      rewriteAttrDims(op, widen);
      for (Value *result : op.results())
        widenType(result);
    }
  }

  /// Behind what makes \p value.
  Builder behind(Value *value) {
    Builder builder = value->def() ? Builder::after(value->def())
                                   : Builder::before(&func.body.front());
    builder.func = &func;
    if (value->def())
      builder.loc = value->def()->loc;
    return builder;
  }

  /// The rows of new tokens of \p value, which has rows for all.
  Value *rows(Value *value, unsigned axis) {
    if (value->shape()[axis] != all)
      return value;
    Value *&result = known[{value, axis}];
    if (!result) {
      Value *made = makeRows(value, axis);
      known[{value, axis}] = made; // the reference may have moved
      return made;
    }
    return result;
  }

  Value *makeRows(Value *value, unsigned axis) {
    Op *op = value->def();
    if (op && op->kind() == OpKind::Range)
      return laterRange(*op);
    std::optional<llvm::SmallVector<RowUse, 4>> uses;
    if (op && op->numResults() == 1 && !is(*op, SideEffect))
      uses = rowUses(*op, axis);
    if (!uses)
      return slice(value, axis);
    llvm::SmallVector<Value *, 4> operands(op->operands());
    for (const auto &[i, use] : llvm::enumerate(*uses))
      if (operands[i] && !use.isWhole())
        operands[i] = rows(operands[i], *use.axis);
    Builder builder = behind(value);
    std::unique_ptr<Attrs> attrs = op->rawAttrs().clone();
    if (Dims *shape = shapeIn(*attrs, op->kind()))
      (*shape)[axis] = fresh;
    std::unique_ptr<Block> region;
    if (op->region()) {
      region = std::make_unique<Block>();
      ValueMap map;
      cloneBlock(*op->region(), *region, map);
    }
    llvm::Expected<Op *> copy = builder.create(
        op->kind(), operands, std::move(attrs), std::move(region));
    if (copy)
      return (*copy)->result();
    llvm::consumeError(copy.takeError());
    return slice(value, axis);
  }

  /// The attribute that is the result's shape, if \p kind has one.
  static Dims *shapeIn(Attrs &attrs, OpKind kind) {
    if (kind == OpKind::Reshape || kind == OpKind::Broadcast)
      return &static_cast<ShapeAttrs &>(attrs).shape;
    if (kind == OpKind::Slice)
      return &static_cast<SliceAttrs &>(attrs).sizes;
    return nullptr;
  }

  Value *slice(Value *value, unsigned axis) {
    SliceAttrs attrs;
    attrs.starts.assign(value->rank(), Dim(0));
    attrs.sizes.assign(value->shape().begin(), value->shape().end());
    attrs.steps.assign(value->rank(), 1);
    attrs.starts[axis] = past;
    attrs.sizes[axis] = fresh;
    return behind(value).buildSlice({value}, attrs);
  }

  /// start + past * delta, for the new tokens.
  Value *laterRange(Op &range) {
    Builder builder = behind(range.result());
    Value *start = range.operand(0), *delta = range.operand(1);
    DimsAttrs place;
    place.values = {past};
    place.scalar = true;
    Value *offset = builder.buildDims({}, place);
    if (start->element() != offset->element()) {
      CastAttrs cast;
      cast.to = start->element();
      offset = builder.buildCast({offset}, cast);
    }
    start = builder.buildAdd({start, builder.buildMul({offset, delta})});
    CountAttrs count;
    count.count = fresh;
    return builder.buildRange({start, delta}, count);
  }

  void addCaches(Op &op, unsigned number) {
    for (auto [operand, kind] :
         {std::pair(1u, "key"), std::pair(2u, "value")}) {
      Value *x = op.operand(operand);
      Value *&whole = extended[x];
      if (!whole)
        whole = addCache(op, x, (llvm::Twine(number) + "." + kind).str());
      op.setOperand(operand, whole);
    }
    op.attrs<AttentionAttrs>().queryOffset = past;
  }

  /// The cache that \p x[B, S, H, D] is appended to, as [B, past + S, H, D].
  Value *addCache(Op &user, Value *x, const std::string &name) {
    TransposeAttrs swap;
    swap.perm = {0, 2, 1, 3};
    ShapeRef s = x->shape();
    TensorType type = x->type;
    type.shape = {s[0], s[2], past, s[3]};
    std::string input = "past_key_values." + name;
    Value *before = func.body.addArgument(type, input);
    func.inputs.push_back({input});
    Builder builder = Builder::before(&user);
    builder.func = &func;
    builder.loc = user.loc;
    AxisAttrs axis;
    axis.axis = 2;
    Value *present =
        builder.buildConcat({before, builder.buildTranspose({x}, swap)}, axis);
    Op &end = *func.body.terminator();
    llvm::SmallVector<Value *, 8> outputs(end.operands());
    outputs.push_back(present);
    end.setOperands(outputs);
    func.outputs.push_back({"present." + name});
    return builder.buildTranspose({present}, swap);
  }
};

struct DeriveKvCache final : FuncPass {
  llvm::Expected<bool> runOnFunc(Module &module, Func &func,
                                 PassContext &context) override {
    CausalProof proof(func);
    if (Error error = proof.run())
      return error;
    Derivation(module, func, proof).run();
    return true;
  }
};

} // namespace

std::unique_ptr<Pass> passes::createDeriveKvCache() {
  return std::make_unique<DeriveKvCache>();
}
