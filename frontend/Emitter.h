//===- Emitter.h - building ops from a model's nodes ---------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_FRONTEND_EMITTER_H
#define TENON_FRONTEND_EMITTER_H

#include "frontend/ErrorSink.h"
#include "ir/Builder.h"
#include "ir/ShapeValues.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace onnx {
class GraphProto;
class TensorProto;
} // namespace onnx

namespace tenon::frontend {

using Values = llvm::SmallVector<ir::Value *, 4>;

/// What the graph walk does for importers of nodes that hold graphs or tensors.
class GraphServices {
public:
  virtual ~GraphServices() = default;
  /// Imports a subgraph at the current place, with \p inputs as its inputs;
  /// gives its outputs. Empty after an error.
  virtual Values importSubgraph(const onnx::GraphProto &graph,
                                llvm::ArrayRef<ir::Value *> inputs = {}) = 0;
  /// A tensor as a constant; null after an error.
  virtual ir::ConstantRef loadTensor(const onnx::TensorProto &tensor) = 0;
};

/// Builds ops for importers. What a model's file can get wrong goes to the
/// error sink; after an error every call does nothing and gives null, which
/// calls accept as operands. So an importer is straight code, but must look at
/// `failed` before it asks a value that it built for its shape.
class Emitter {
public:
  Emitter(ir::Module &module, ir::Func &func, ErrorSink &errors,
          GraphServices &services)
      : module(module), func(func), errors(errors), services(services),
        builder(&func.body) {
    builder.func = &func;
  }

  ir::Module &module;
  ir::Func &func;
  ErrorSink &errors;
  GraphServices &services;
  ir::ShapeValues shapeValues;
  /// In how many branches on data this is: ops that may not be wanted.
  unsigned branches = 0;

  void setLocation(const ir::Location &loc) { builder.loc = loc; }
  const ir::Location &location() const { return builder.loc; }

  bool failed() const { return errors.failed(); }
  template <class... Ts> ir::Value *fail(const char *format, Ts &&...values) {
    errors.fail(format, std::forward<Ts>(values)...);
    return nullptr;
  }

  //===- Any op -----------------------------------------------------------===//
  /// Null when it has failed.
  ir::Op *create(ir::OpKind kind, llvm::ArrayRef<ir::Value *> operands,
                 std::unique_ptr<ir::Attrs> attrs = nullptr);
  ir::Value *op(ir::OpKind kind, llvm::ArrayRef<ir::Value *> operands);
  template <class A>
  ir::Value *op(ir::OpKind kind, llvm::ArrayRef<ir::Value *> operands,
                A attrs) {
    ir::Op *made =
        create(kind, operands, std::make_unique<A>(std::move(attrs)));
    return made ? made->result() : nullptr;
  }

  //===- Constants --------------------------------------------------------===//
  ir::Value *constant(ir::ConstantRef value);
  /// A scalar of \p element; fails when the type cannot hold \p value.
  ir::Value *scalar(ir::ElementType element, double value);
  /// A constant of known numbers, rounded to \p element.
  ir::Value *table(ir::ElementType element, llvm::ArrayRef<int64_t> shape,
                   llvm::ArrayRef<double> values);
  ir::Value *dims(llvm::ArrayRef<ir::Dim> values);
  ir::Value *dimScalar(ir::Dim value);
  /// \p value repeated to \p shape.
  ir::Value *filled(ir::ElementType element, double value, ir::ShapeRef shape);

  //===- Shorthands -------------------------------------------------------===//
  ir::Value *add(ir::Value *a, ir::Value *b);
  ir::Value *sub(ir::Value *a, ir::Value *b);
  ir::Value *mul(ir::Value *a, ir::Value *b);
  ir::Value *div(ir::Value *a, ir::Value *b);
  /// With a scalar of the other operand's type.
  ir::Value *addScalar(ir::Value *a, double b);
  ir::Value *mulScalar(ir::Value *a, double b);
  ir::Value *where(ir::Value *condition, ir::Value *a, ir::Value *b);
  ir::Value *cast(ir::Value *x, ir::ElementType to);
  ir::Value *reshape(ir::Value *x, ir::ShapeRef shape);
  ir::Value *broadcast(ir::Value *x, ir::ShapeRef shape);
  ir::Value *transpose(ir::Value *x, llvm::ArrayRef<int64_t> perm);
  /// Element \p index of dimension \p axis, which goes.
  ir::Value *element(ir::Value *x, int64_t axis, ir::Dim index);
  /// \p values of one shape along a new dimension \p axis.
  ir::Value *stack(llvm::ArrayRef<ir::Value *> values, int64_t axis);
  /// Swaps the last two dimensions.
  ir::Value *transposeLast(ir::Value *x);
  ir::Value *matmul(ir::Value *a, ir::Value *b);
  ir::Value *reduce(ir::OpKind kind, ir::Value *x, llvm::ArrayRef<int64_t> axes,
                    bool keepdims);
  /// Softmax or LogSoftmax; of f64 their parts, which alone have kernels.
  ir::Value *softmax(ir::Value *x, int64_t axis,
                     ir::OpKind kind = ir::OpKind::Softmax);
  ir::Value *gather(ir::Value *x, ir::Value *indices, int64_t axis);
  ir::Value *concat(llvm::ArrayRef<ir::Value *> values, int64_t axis);
  /// Elements start .. start + size - 1 of one dimension.
  ir::Value *slice(ir::Value *x, int64_t axis, ir::Dim start, ir::Dim size);
  /// The i64 numbers 0 .. count - 1, as a shape of \p rank dimensions that are
  /// 1 but for \p axis.
  ir::Value *iota(ir::Dim count, unsigned rank, unsigned axis);

  //===- Values known when importing --------------------------------------===//
  /// The elements of an integer tensor of rank 0 or 1 as expressions. What
  /// depends on data becomes new symbols that the artifact binds when running
  /// (and so must not be negative then).
  ir::Dims sizes(ir::Value *x, llvm::StringRef what);
  /// The same for one number.
  ir::Dim size(ir::Value *x, llvm::StringRef what);
  /// The elements if all are known without running.
  std::optional<ir::Dims> knownInts(ir::Value *x) {
    std::optional<llvm::SmallVector<ir::Dim, 4>> v = shapeValues.valuesOf(x);
    return v;
  }
  /// Integers that must be constants: axes, steps.
  llvm::SmallVector<int64_t, 4> constantInts(ir::Value *x,
                                             llvm::StringRef what);
  /// A float or integer scalar, if it is a constant.
  std::optional<double> constantScalar(ir::Value *x);
  /// Demands at run time (or finds now) that a == b.
  void require(ir::Dim a, ir::Dim b, llvm::StringRef what);
  /// A new symbol named like the node's first output.
  ir::Dim freshSymbol(llvm::StringRef hint, ir::DimRange range = {}) {
    return module.freshSymbol(hint, range);
  }

private:
  ir::Builder builder;
};

} // namespace tenon::frontend

#endif // TENON_FRONTEND_EMITTER_H
