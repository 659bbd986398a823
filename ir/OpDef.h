//===- OpDef.h - what is known about each op kind ------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_IR_OPDEF_H
#define TENON_IR_OPDEF_H

#include "ir/Op.h"
#include "ir/eval/Tensor.h"
#include "llvm/Support/Error.h"

namespace tenon::ir {

/// Facts about an op kind that passes ask for; combined with |.
enum Trait : uint32_t {
  Plain = 0,
  /// result[i] depends on the operands at (broadcast) position i alone; legal
  /// inside a map's body or an epilogue, and has a `tn_<mnemonic>` function.
  ElementwiseOp = 1u << 0,
  Commutative = 1u << 1,
  /// May be a zero-copy view of its first operand.
  ViewLike = 1u << 2,
  /// May carry an epilogue region over its result.
  HasEpilogue = 1u << 3,
  /// Ends a block.
  Terminator = 1u << 4,
  /// Must stay although nothing uses a result (it defines symbols).
  SideEffect = 1u << 5,
  /// Contains a region that is not an epilogue.
  HasBody = 1u << 6,
  /// A reduction over ReduceAttrs.
  ReductionOp = 1u << 7,
};

/// What inference sees of an op: also before it exists (the parser, Builder).
struct OpView {
  OpKind kind;
  llvm::ArrayRef<const TensorType *> operands; ///< null where left out
  const Attrs &rawAttrs;
  const Block *region = nullptr;

  const TensorType &type(unsigned i) const { return *operands[i]; }
  bool has(unsigned i) const { return i < operands.size() && operands[i]; }
  template <class T> const T &attrs() const {
    assert(rawAttrs.id() == attrsId<T>() && "attributes of another op");
    return static_cast<const T &>(rawAttrs);
  }
};

using ResultTypes = llvm::SmallVector<TensorType, 2>;
/// Computes the result types and checks everything that can be wrong with the
/// operands' types and the attributes. Messages name operands as Ops.def does:
/// "contracting dimensions differ: 768 in operand 'a', 64 in operand 'b'".
/// Dimensions that must agree but aren't provably equal are pushed to
/// \p constraints (pairs to be checked at run time).
struct InferContext {
  ResultTypes results;
  llvm::SmallVector<std::pair<Dim, Dim>, 2> constraints;
};
using InferFn = llvm::Error (*)(const OpView &op, InferContext &context);

/// What the reference evaluator of an op gets. Results have their final types
/// and shapes (from the op's type under `env`) unless the op defines symbols;
/// then the function resizes the result and binds them. Shapes are to be read
/// off the tensors, not the op's types: elementwise ops inside a region also run
/// on whole tensors. The operands are checked to broadcast to the results.
struct EvalContext {
  const Op &op;
  llvm::ArrayRef<const Tensor *> operands; ///< null where left out
  llvm::MutableArrayRef<Tensor> results;
  DimEnv &env;

  const Tensor &in(unsigned i) const { return *operands[i]; }
  Tensor &out(unsigned i = 0) const { return results[i]; }
  template <class T> const T &attrs() const { return op.attrs<T>(); }
};
using EvalFn = llvm::Error (*)(EvalContext &context);

/// One operand or result of an op kind as Ops.def writes it: "x", "mask?"
/// (may be left out), "rest..." (any number, last).
struct PortSpec {
  llvm::StringRef name;
  bool optional = false, variadic = false;
};

struct OpDef {
  llvm::StringLiteral name;              ///< "LayerNorm"
  llvm::StringLiteral mnemonic;          ///< "layer_norm"
  llvm::StringLiteral operands, results; ///< specs as written
  std::unique_ptr<Attrs> (*makeAttrs)();
  const void *attrsId;
  InferFn infer;
  EvalFn eval; ///< null for terminators
  uint32_t traits;
  llvm::StringLiteral doc;

  bool is(Trait trait) const { return traits & trait; }
};

const OpDef &opDef(OpKind kind);
inline const OpDef &opDef(const Op &op) { return opDef(op.kind()); }
std::optional<OpKind> parseMnemonic(llvm::StringRef mnemonic);
inline bool is(const Op &op, Trait trait) { return opDef(op).is(trait); }
/// Operand (result) specs in order.
llvm::ArrayRef<PortSpec> operandSpecs(OpKind kind);
llvm::ArrayRef<PortSpec> resultSpecs(OpKind kind);
/// The name of operand \p i for messages: "a", "rest #2".
std::string operandName(OpKind kind, unsigned i);

/// Checks the number of operands against the spec, that required ones are
/// there, that the attributes are this kind's, runs the op's inference and
/// refuses results with dimensions that overflow. Inference functions may rely
/// on the first three. Everything that makes or checks ops goes through here.
llvm::Error infer(const OpView &op, InferContext &context);
/// Infers from an existing op's operands and attributes.
llvm::Error inferOp(const Op &op, InferContext &context);

// Declarations of every inference and evaluation function, so that a missing
// one fails to link and a misspelt one to compile.
#define TN_OP(Name, mnemonic, operands, results, Attributes, inferFn, evalFn,  \
              traits, doc)                                                     \
  llvm::Error inferFn(const OpView &, InferContext &);                         \
  llvm::Error evalFn(EvalContext &);
#include "ir/ops/Ops.def"

} // namespace tenon::ir

#endif // TENON_IR_OPDEF_H
