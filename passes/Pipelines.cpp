//===- Pipelines.cpp - the order of the passes ---------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Pipelines.h"
#include "ir/OpDef.h"
#include "ir/support/Diag.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>

using namespace tenon;
using namespace tenon::passes;
using llvm::ArrayRef;
using llvm::StringLiteral;
using llvm::StringRef;

// imported -> canonical
static constexpr StringLiteral canonicalPipeline[] = {
    // 0. Where only weights are halves, the rest is a graph of f32.
    "widen-half",
    // 1. Sizes first: every law about shapes needs symbols that are the same
    //    where the sizes are, and values of integer tensors.
    "unify-dims",
    "shape-values",
    // Matrices of integers with scales, before they are folded.
    "pack-codes",
    // 2. Constants and duplicates go, so that the laws see few forms.
    "fold",
    "cse",
    // 3. One form for each computation.
    "canonicalize",
    // 4. Masks: index arithmetic becomes broadcasts, true conditions go, and
    //    their sizes are what they are used for.
    "simplify-masks",
    "unify-dims",
    // 5. What that made constant.
    "canonicalize",
    "fold",
    // 6. Transposes to where they cancel or merge.
    "sink-transposes",
    "canonicalize",
    // 7. Clean up.
    "cse",
    "dce",
};

// canonical -> fused
static constexpr StringLiteral fusedPipeline[] = {
    // 1. Small patterns first: what they leave behind is what larger ones know.
    "fuse-layer-norm",
    "fuse-rms-norm",
    "fuse-gelu",
    "fuse-rotary",
    "canonicalize",
    // 2. Attention, then the transposes that it brings cancel with those
    // around.
    "fuse-attention",
    "canonicalize",
    "sink-transposes",
    "canonicalize",
    "cse",
    // With --kv-cache alone: the attentions are there, and their masks known.
    "derive-kv-cache",
    // 3. Parallel products before any of them takes up an epilogue.
    "merge-matmuls",
    "canonicalize",
    // 4. Whole fused ops compute in f32; the casts go into maps.
    "promote-half",
    // 5. Matrices as codes, whole as they were merged.
    "quantise-weights",
    "fuse-byte-products",
    "fuse-epilogue",
    // 6. What elementwise work is left over.
    "fuse-elementwise",
    // 7. How what is left is stored.
    "assign-precision",
    "narrow-weights",
    // 8. Clean up.
    "cse",
    "dce",
};

std::optional<ir::ElementType> passes::storageOf(Precision precision) {
  switch (precision) {
  case Precision::F16:
  case Precision::Int8:
  case Precision::Fp8:
    return ir::ElementType::F16;
  case Precision::BF16:
    return ir::ElementType::BF16;
  case Precision::Model:
  case Precision::F32:
  case Precision::F32Fast:
  case Precision::F32Fma:
  case Precision::TF32:
    return std::nullopt;
  }
  llvm_unreachable("not a precision");
}

StringRef passes::precisionName(Precision precision) {
  static constexpr StringLiteral names[] = {
      "", "f32", "f32-fast", "f32-fma", "tf32", "f16", "bf16", "int8", "fp8"};
  static_assert(std::size(names) == static_cast<size_t>(Precision::Fp8) + 1);
  return names[static_cast<unsigned>(precision)];
}

ArrayRef<StringLiteral> passes::pipeline(ir::Stage stage) {
  switch (stage) {
  case ir::Stage::Imported:
    return {};
  case ir::Stage::Canonical:
    return canonicalPipeline;
  case ir::Stage::Fused:
    return fusedPipeline;
  }
  llvm_unreachable("not a stage");
}

static llvm::Error checkName(StringRef flag, StringRef name, bool mayBeStage) {
  // All stages of a compilation, those behind the passes too.
  static constexpr StringLiteral stages[] = {"imported", "canonical", "fused",
                                             "selected", "planned",   "source",
                                             "objects",  "artifact"};
  if (findPass(name) || (mayBeStage && llvm::is_contained(stages, name)))
    return llvm::Error::success();
  std::string known;
  for (const PassInfo &pass : allPasses())
    known += (known.empty() ? "" : ", ") + pass.name.str();
  return userError("--{0}: there is no pass{1} '{2}'; the passes are {3}", flag,
                   mayBeStage ? " or stage" : "", name, known);
}

llvm::Error passes::checkNames(const PassOptions &options) {
  if (!options.stopAfter.empty())
    if (llvm::Error error = checkName("stop-after", options.stopAfter, true))
      return error;
  for (const std::string &name : options.dumpAfter)
    if (name != "all")
      if (llvm::Error error = checkName("dump-after", name, true))
        return error;
  if (!options.explain.empty())
    if (llvm::Error error = checkName("explain", options.explain, false))
      return error;
  for (const auto &[mnemonic, count] : options.requireFused)
    if (!ir::parseMnemonic(mnemonic))
      return userError("--require-fused: there is no op '{0}'", mnemonic);
  return llvm::Error::success();
}

/// The half precision that most of a model's big constants are of, if any.
static Precision precisionOf(const ir::Module &module) {
  constexpr uint64_t big = 4096;
  uint64_t f16 = 0, bf16 = 0;
  for (const std::unique_ptr<ir::Func> &func : module.funcs)
    for (ir::Op &op : func->body) {
      if (op.kind() != ir::OpKind::Const)
        continue;
      const ir::Constant &constant = *op.attrs<ir::ConstAttrs>().value;
      if (constant.numElements() < big)
        continue;
      f16 += constant.element() == ir::ElementType::F16;
      bf16 += constant.element() == ir::ElementType::BF16;
    }
  if (f16 == 0 && bf16 == 0)
    return Precision::Model;
  return f16 >= bf16 ? Precision::F16 : Precision::BF16;
}

/// Whether \p options want \p pass at all. \p own is what the model's weights
/// are stored in: what a model of f32 rounds to halves stays rounded.
static bool isWanted(StringRef pass, const PassOptions &options,
                     Precision own) {
  if (pass == "derive-kv-cache")
    return options.kvCache;
  bool onlyWeights = options.halves == Halves::Weights;
  if (pass == "widen-half")
    return onlyWeights && own != Precision::Model;
  if (pass == "narrow-weights")
    return onlyWeights;
  return pass != "assign-precision" || !onlyWeights;
}

llvm::Expected<PipelineResult> passes::runPipeline(ir::Module &module,
                                                   ir::Stage upTo,
                                                   const PassOptions &given,
                                                   Remarks &remarks,
                                                   llvm::raw_ostream &log) {
  if (llvm::Error error = checkNames(given))
    return error;
  PassOptions options = given;
  Precision own = precisionOf(module);
  if (options.halves == Halves::Weights &&
      options.precision == Precision::Model)
    options.precision = own;
  PassManager manager(options, remarks, log);
  if (module.stage == ir::Stage::Imported)
    if (llvm::Error error = manager.reachStage(module, ir::Stage::Imported))
      return error;
  for (ir::Stage stage : {ir::Stage::Canonical, ir::Stage::Fused}) {
    if (stage <= module.stage || stage > upTo || manager.stopped())
      continue;
    for (StringRef name : pipeline(stage)) {
      if (!isWanted(name, options, own))
        continue;
      const PassInfo *info = findPass(name);
      assert(info && "the pipeline names a pass that is not in Passes.def");
      llvm::Expected<bool> changed = manager.run(module, *info);
      if (!changed)
        return changed.takeError();
    }
    if (llvm::Error error = manager.reachStage(module, stage))
      return error;
  }
  if (options.timing)
    manager.printTiming();
  if (!options.remarksFile.empty())
    if (llvm::Error error = remarks.write(options.remarksFile))
      return error;
  if (!manager.stopped() && module.stage == ir::Stage::Fused)
    if (llvm::Error error = checkRequired(module, options, remarks))
      return error;
  return PipelineResult{manager.stopped()};
}

unsigned passes::countOps(const ir::Module &module, StringRef mnemonic) {
  unsigned count = 0;
  llvm::SmallVector<const ir::Block *, 8> pending;
  for (const std::unique_ptr<ir::Func> &func : module.funcs)
    pending.push_back(&func->body);
  while (!pending.empty())
    for (ir::Op &op : *pending.pop_back_val()) {
      count += ir::opDef(op).mnemonic == mnemonic;
      if (op.region())
        pending.push_back(op.region());
    }
  return count;
}

llvm::Error passes::checkRequired(const ir::Module &module,
                                  const PassOptions &options,
                                  const Remarks &remarks) {
  std::string message;
  llvm::raw_string_ostream os(message);
  for (const auto &[mnemonic, wanted] : options.requireFused) {
    unsigned found = countOps(module, mnemonic);
    if (found >= wanted)
      continue;
    if (!message.empty())
      os << '\n';
    os << "--require-fused=" << mnemonic << ':' << wanted << ": found " << found
       << " in the final graph, expected " << wanted;
    std::string pass = "fuse-" + mnemonic;
    std::replace(pass.begin(), pass.end(), '_', '-');
    for (const Remark &remark : remarks.all())
      if (!remark.applied && StringRef(remark.pass).starts_with(pass)) {
        os << "\n  ";
        std::string text;
        llvm::raw_string_ostream line(text);
        remark.print(line);
        os << StringRef(text).rtrim();
      }
  }
  if (message.empty())
    return llvm::Error::success();
  return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                 std::move(message));
}
