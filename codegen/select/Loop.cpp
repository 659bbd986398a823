//===- Loop.cpp - elementwise ops, maps and copies -----------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/select/Loop.h"
#include "codegen/emit/CppText.h"
#include "ir/support/Diag.h"

namespace tenon::codegen {

using ir::ElementType;
using ir::OpKind;
using kernel::Functor;

namespace {

/// The kernels' limit on ranks (codegen/kernels/common/strided.h).
constexpr unsigned maxRank = 8;

/// The iteration space of some views of one shape, with dimensions merged where
/// all of them allow it: fewer distinct kernels, and ranks within the limit.
struct Space {
  std::vector<View> views;

  void mergeAll() {
    for (unsigned i = views[0].rank(); i-- > 1;) {
      if (llvm::all_of(views, [&](const View &v) { return joins(v, i - 1); }))
        for (View &view : views)
          join(view, i - 1);
    }
  }

private:
  static bool joins(const View &v, unsigned i) { return canMerge(v, i); }
  static void join(View &v, unsigned i) {
    // The dimension that isn't 1 keeps its stride.
    if (v.shape[i + 1].isConstant(1))
      v.strides[i + 1] = v.strides[i];
    v.shape[i + 1] = v.shape[i] * v.shape[i + 1];
    v.shape.erase(v.shape.begin() + i);
    v.strides.erase(v.strides.begin() + i);
  }
};

llvm::Error launchSpace(Lowering &lowering, const ir::Op &op,
                        const Functor &functor, Space space,
                        unsigned numOperands) {
  space.mergeAll();
  unsigned rank = space.views[0].rank();
  if (rank > maxRank)
    return userError("{0} dimensions that can't be merged; at most {1} are "
                     "supported",
                     rank, maxRank);
  llvm::SmallVector<ElementType> inputs, results;
  for (const auto &[i, argument] : llvm::enumerate(functor.arguments))
    inputs.push_back(argument.element);
  for (unsigned result : functor.results)
    results.push_back(functor.elementOf(result));
  LaunchSpec spec;
  spec.kernel = "loop";
  spec.config.rank("rank", rank)
      .types("Inputs", inputs)
      .types("Results", results)
      .flag("vector", isVectorizable(functor))
      .rank("params", 0)
      .flag("index", false);
  auto split = space.views.begin() + numOperands;
  spec.operands.assign(space.views.begin(), split);
  spec.results.assign(split, space.views.end());
  for (unsigned i = 0; i < numOperands; ++i)
    spec.overlays.push_back(i);
  spec.grain = Grain::Quad;
  Dim count = ir::numElements(spec.results[0].shape);
  int64_t operations = 0;
  for (const Functor::Node &node : functor.nodes)
    operations += node.kind != OpKind::Const;
  spec.flops = count * Dim(operations);
  spec.functors.push_back(functor);
  lowering.launch(op, std::move(spec));
  return llvm::Error::success();
}

} // namespace

llvm::Error launchLoop(Lowering &lowering, const ir::Op &op,
                       const Functor &functor, llvm::ArrayRef<View> operands,
                       llvm::ArrayRef<View> results) {
  llvm::SmallVector<ir::ConstantRef> literals;
  Space space;
  for (const View &view : operands) {
    literals.push_back(literalOf(lowering, view));
    if (!literals.back())
      space.views.push_back(lowering.broadcast(view, results[0].shape));
  }
  Functor bound = bindLiterals(functor, literals);
  if (std::optional<ElementType> element = unsupportedElement(bound))
    return unsupportedType(op, *element,
                           "f64, f32, bool and the integers of 8 to 64 bits, "
                           "and casts of f16 and bf16");
  unsigned numOperands = space.views.size();
  space.views.insert(space.views.end(), results.begin(), results.end());
  return launchSpace(lowering, op, bound, std::move(space), numOperands);
}

namespace {

llvm::Error selectElementwise(Lowering &lowering, const ir::Op &op) {
  llvm::SmallVector<const ir::Value *> arguments;
  Functor functor = functorOf(lowering, op, arguments);
  std::vector<View> operands;
  for (const ir::Value *value : arguments)
    operands.push_back(lowering.view(value));
  View result = lowering.result(op.result(), Strides::Any);
  return launchLoop(lowering, op, functor, operands, {result});
}

/// tn::Small's name for a type that is only stored.
llvm::StringRef smallName(ElementType element) {
  switch (element) {
  case ElementType::F8E4M3FN:
    return "tn::Small::f8e4m3fn";
  case ElementType::F8E4M3FNUZ:
    return "tn::Small::f8e4m3fnuz";
  case ElementType::F8E5M2:
    return "tn::Small::f8e5m2";
  case ElementType::F8E5M2FNUZ:
    return "tn::Small::f8e5m2fnuz";
  case ElementType::F8E8M0:
    return "tn::Small::f8e8m0";
  case ElementType::F4E2M1:
    return "tn::Small::f4e2m1";
  case ElementType::I4:
    return "tn::Small::i4";
  case ElementType::U4:
    return "tn::Small::u4";
  case ElementType::I2:
    return "tn::Small::i2";
  case ElementType::U2:
    return "tn::Small::u2";
  default:
    return "tn::Small::none";
  }
}

/// Casts from and to types that are only stored have a kernel of their own.
llvm::Error selectCast(Lowering &lowering, const ir::Op &op) {
  const ir::Value *x = op.operand(0), *y = op.result();
  if (!ir::isStorageOnly(x->element()) && !ir::isStorageOnly(y->element()))
    return selectElementwise(lowering, op);
  auto held = [](ElementType element) {
    return ir::isStorageOnly(element) ? ElementType::U8 : element;
  };
  View from = lowering.view(x);
  bool isPacked = ir::bitWidth(x->element()) < 8;
  if (isPacked && from.strides != kernel::contiguousStrides(from.shape))
    return userError("its operand is a part of {0}, whose elements are below a "
                     "byte; cast it first",
                     mnemonic(x->element()));
  LaunchSpec spec;
  spec.kernel = "small_cast";
  spec.config.type("From", held(x->element()))
      .type("To", held(y->element()))
      .raw("tn::Small", "from", smallName(x->element()))
      .raw("tn::Small", "to", smallName(y->element()))
      .flag("saturate", op.attrs<ir::CastAttrs>().saturate)
      .flag("to_bool", y->element() == ElementType::Bool)
      .rank("rank", y->rank());
  spec.operands = {from};
  bool packs = ir::bitWidth(y->element()) < 8;
  spec.results = {
      lowering.result(y, packs ? Strides::Contiguous : Strides::Any)};
  lowering.launch(op, std::move(spec));
  return llvm::Error::success();
}

/// A map that the product in front of it does for few rows.
llvm::Error selectPair(Lowering &lowering, const ir::Op &op,
                       Lowering::PairedMap &pair) {
  std::vector<View> operands;
  for (const ir::Value *value : op.operands())
    operands.push_back(lowering.view(value));
  {
    Lowering::When when(lowering, pair.few);
    lowering.launch(op, std::move(pair.spec));
  }
  Lowering::When when(lowering, pair.many);
  return launchLoop(lowering, op, functorOf(*op.region()), operands,
                    {lowering.view(op.result())});
}

llvm::Error selectMap(Lowering &lowering, const ir::Op &op) {
  if (Lowering::PairedMap *pair = lowering.pairOf(op))
    return selectPair(lowering, op, *pair);
  std::vector<View> operands, results;
  for (const ir::Value *value : op.operands())
    operands.push_back(lowering.view(value));
  for (const ir::Value *value : op.results())
    results.push_back(lowering.result(value, Strides::Any));
  return launchLoop(lowering, op, functorOf(*op.region()), operands, results);
}

} // namespace

void addLoops(SelectTable &table) {
  for (unsigned kind = 0; kind < ir::numOpKinds; ++kind)
    if (ir::opDef(OpKind(kind)).is(ir::ElementwiseOp))
      table[kind] = selectElementwise;
  table[unsigned(OpKind::Cast)] = selectCast;
  table[unsigned(OpKind::Map)] = selectMap;
}

namespace {

/// The bytes of elements below a byte, which lie without gaps.
View bytesOf(View view) {
  view.shape = {byteCount(view.element, ir::numElements(view.shape))};
  view.strides = kernel::contiguousStrides(view.shape);
  view.element = ElementType::U8;
  return view;
}

} // namespace

void Lowering::copy(const ir::Op &op, const View &from, const View &to) {
  View source = from;
  source.shape = to.shape; // proved equal, perhaps written differently
  Space space{{source, to}};
  if (ir::bitWidth(from.element) < 8)
    space.views = {bytesOf(source), bytesOf(to)};
  llvm::Error error = launchSpace(*this, op, identity(movedAs(from.element)),
                                  std::move(space), 1);
  if (error)
    errors = llvm::joinErrors(std::move(errors), atNode(op, std::move(error)));
}

} // namespace tenon::codegen
