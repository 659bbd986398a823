//===- Shrink.cpp - smaller sizes ----------------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

/// \file
/// A number that stands for a size stands in many places: inputs' types, sizes
/// of constants, attributes. They all change at once, and the types of results
/// follow by inference; where that fails, the sizes depended on each other in
/// another way, and the edit cannot be done.

#include "ir/OpDef.h"
#include "tools/tenon-reduce/Edits.h"
#include <set>

using namespace tenon;
using namespace tenon::ir;
using namespace tenon::reduce;

namespace {

using Resize = llvm::function_ref<int64_t(int64_t)>;

Dim resized(Dim dim, Resize resize) {
  std::optional<int64_t> size = dim.constant();
  return size ? Dim(resize(*size)) : dim;
}

/// Changes the sizes in attributes.
class ResizeAttrs final : public FieldVisitor {
public:
  explicit ResizeAttrs(Resize resize) : resize(resize) {}
  void visit(llvm::StringRef, Dim &value) override {
    value = resized(value, resize);
  }
  void visit(llvm::StringRef, Dims &values) override {
    for (Dim &value : values)
      value = resized(value, resize);
  }
  void visit(llvm::StringRef, int64_t &) override {}
  void visit(llvm::StringRef, bool &) override {}
  void visit(llvm::StringRef, double &) override {}
  void visit(llvm::StringRef, Ints &) override {}
  void visit(llvm::StringRef, ElementType &) override {}
  void visit(llvm::StringRef, ConstantRef &) override {}
  void visit(llvm::StringRef, EnumRef) override {}
  void nextIsOptional(bool) override {}

private:
  Resize resize;
};

/// The first elements of each dimension of \p value.
ConstantRef cropped(const Constant &value, llvm::ArrayRef<int64_t> shape) {
  Tensor whole = Tensor::fromConstant(value), part(value.element(), shape);
  llvm::SmallVector<int64_t, 4> strides = rowMajorStrides(whole.shape);
  uint64_t next = 0;
  forEachIndex(shape, [&](llvm::ArrayRef<int64_t> index) {
    uint64_t from = 0;
    for (auto [i, stride] : llvm::zip(index, strides))
      from += static_cast<uint64_t>(i * stride);
    if (isFloat(value.element()))
      part.set(next++, whole.at(from));
    else
      part.setInt(next++, whole.intAt(from));
  });
  return Constant::copy(value.element(), shape, part.bytes);
}

bool resizeConstant(ConstantRef &value, Resize resize) {
  llvm::SmallVector<int64_t, 4> shape;
  for (auto size : value->shape())
    shape.push_back(resize(size));
  if (llvm::ArrayRef<int64_t>(shape) == value->shape())
    return true;
  if (value->form() == Constant::Form::Splat) {
    value = Constant::splatBytes(value->element(), shape, value->bytes());
    return true;
  }
  constexpr uint64_t most = 1 << 24;
  if (value->numElements() > most)
    return false;
  value = cropped(*value, shape);
  return true;
}

/// Changes all sizes of \p module; false if that doesn't fit together.
bool resizeAll(Module &module, Resize resize) {
  for (const std::unique_ptr<Func> &func : module.funcs) {
    for (unsigned i = 0; i != func->body.numArguments(); ++i)
      for (Dim &dim : func->body.argument(i)->type.shape)
        dim = resized(dim, resize);
    for (DimConstraint &constraint : func->constraints) {
      constraint.a = resized(constraint.a, resize);
      constraint.b = resized(constraint.b, resize);
    }
    for (Op &op : func->body) {
      if (op.kind() == OpKind::Const &&
          !resizeConstant(op.attrs<ConstAttrs>().value, resize))
        return false;
      ResizeAttrs visitor(resize);
      op.rawAttrs().fields(visitor);
      InferContext context;
      if (llvm::Error error = inferOp(op, context)) {
        llvm::consumeError(std::move(error));
        return false;
      }
      for (auto [result, type] : llvm::zip(op.results(), context.results))
        result->type = type;
    }
  }
  return true;
}

/// All sizes above 1 in inputs and constants, largest first.
std::set<int64_t, std::greater<>> sizesOf(const Module &module) {
  std::set<int64_t, std::greater<>> sizes;
  auto add = [&](ShapeRef shape) {
    for (Dim dim : shape)
      if (std::optional<int64_t> size = dim.constant(); size && *size > 1)
        sizes.insert(*size);
  };
  for (const std::unique_ptr<Func> &func : module.funcs) {
    for (unsigned i = 0; i != func->body.numArguments(); ++i)
      add(func->body.argument(i)->shape());
    for (Op &op : func->body)
      if (op.kind() == OpKind::Const)
        add(op.result()->shape());
  }
  return sizes;
}

} // namespace

std::vector<Edit> reduce::shrinkEdits(const Module &module) {
  std::vector<Edit> edits;
  for (int64_t old : sizesOf(module)) {
    std::set<int64_t> targets = {1, 2, old / 2};
    for (int64_t now : targets) {
      if (now >= old)
        continue;
      edits.push_back([old, now](Module &clone) {
        return resizeAll(
            clone, [&](int64_t size) { return size == old ? now : size; });
      });
      // What was reshaped from it, too.
      edits.push_back([old, now](Module &clone) {
        return resizeAll(clone, [&](int64_t size) {
          return size > 0 && size % old == 0 ? size / old * now : size;
        });
      });
    }
  }
  return edits;
}
