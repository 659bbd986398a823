//===- PassFlags.cpp - command-line flags that drive the passes ----------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tools/common/PassFlags.h"
#include "ir/support/Diag.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

using namespace llvm;
using namespace tenon;
using namespace tenon::tools;

PassFlags::PassFlags(cl::SubCommand &sub)
    : category("Passes"),
      dumpAfter(
          "dump-after", cl::CommaSeparated, cl::value_desc("PASS|all"),
          cl::desc("print the IR after these passes where they changed it"),
          cl::sub(sub), cl::cat(category)),
      stopAfter("stop-after", cl::value_desc("STAGE|PASS"),
                cl::desc("run nothing behind this stage or pass and print what "
                         "there is"),
                cl::sub(sub), cl::cat(category)),
      explain("explain", cl::value_desc("PASS"),
              cl::desc("print what this pass tried and why it did not apply"),
              cl::sub(sub), cl::cat(category)),
      remarks(
          "remarks", cl::value_desc("FILE"),
          cl::desc("write what fused and what did not, and why: JSON, or YAML "
                   "if FILE ends in .yaml or .yml"),
          cl::sub(sub), cl::cat(category)),
      requireFused(
          "require-fused", cl::value_desc("OP:N,..."),
          cl::desc("fail unless at least N such ops are in the result: "
                   "attention:12,layer_norm:25"),
          cl::sub(sub), cl::cat(category)),
      rewriteLimit("rewrite-limit", cl::value_desc("N"),
                   cl::desc("do the first N rewrites and no more"),
                   cl::init(~0ull), cl::sub(sub), cl::cat(category)),
      precision(
          "precision",
          cl::desc("how values are stored and multiplied (default: as the "
                   "model says)"),
          cl::values(clEnumValN(passes::Precision::F32, "f32", "exact f32"),
                     clEnumValN(passes::Precision::F32Fast, "f32-fast",
                                "f32; CPUs with AMX multiply with an error of "
                                "some 4e-6"),
                     clEnumValN(passes::Precision::F32Fma, "f32-fma",
                                "f32; CPUs with AMX do not use it"),
                     clEnumValN(passes::Precision::TF32, "tf32",
                                "f32, multiplied as tf32 by GPUs"),
                     clEnumValN(passes::Precision::F16, "f16",
                                "stored as f16, sums in f32"),
                     clEnumValN(passes::Precision::BF16, "bf16",
                                "stored as bf16, sums in f32"),
                     clEnumValN(passes::Precision::Int8, "int8",
                                "as f16, and GPUs multiply constant matrices "
                                "in 8 bits, rows scaled when running"),
                     clEnumValN(passes::Precision::Fp8, "fp8",
                                "the same with e4m3 (sm_89 and later)")),
          cl::init(passes::Precision::Model), cl::sub(sub), cl::cat(category)),
      kvCache("kv-cache",
              cl::desc("give a causal model that has no caches (past, present) "
                       "caches for its keys and values"),
              cl::sub(sub), cl::cat(category)),
      weights("weights", cl::value_desc("int8|int4[:BLOCK]"),
              cl::desc("store constant matrices in 8 or 4 bits, with a scale "
                       "for each BLOCK (32, 64, 128; default of int4: 32) rows "
                       "of a column or for whole columns (default of int8)"),
              cl::sub(sub), cl::cat(category)),
      timing("timing", cl::desc("print the time of each pass and stage"),
             cl::sub(sub), cl::cat(category)),
      verifyNumerics(
          "verify-numerics",
          cl::desc("evaluate before and after each pass and compare"),
          cl::sub(sub), cl::cat(category)),
      paranoid("paranoid",
               cl::desc("check after each pass that it told the truth about "
                        "changes and that the text parses back"),
               cl::init(passes::PassOptions().paranoid), cl::sub(sub),
               cl::cat(category)) {}

Error tools::refuseEmpty(const cl::opt<std::string> &flag) {
  if (flag.getNumOccurrences() == 0 || !flag.empty())
    return Error::success();
  return userError("--{0}=: expected {1}", flag.ArgStr, flag.ValueStr);
}

/// "int4:64".
static Expected<passes::WeightFormat> parseWeights(StringRef text) {
  passes::WeightFormat format;
  auto [name, block] = text.split(':');
  if (name == "int4")
    format = {4, 32};
  else if (name == "int8")
    format = {8, 0};
  bool good = format.bits != 0;
  if (text.contains(':'))
    good &= !block.getAsInteger(10, format.block) &&
            (format.block == 32 || format.block == 64 || format.block == 128);
  if (!good)
    return userError("--weights={0}: expected int8 or int4, perhaps with a "
                     "block of 32, 64 or 128, such as int4:64",
                     text);
  return format;
}

Expected<passes::PassOptions> PassFlags::options() const {
  passes::PassOptions options;
  for (const cl::opt<std::string> *flag :
       {&stopAfter, &explain, &remarks, &requireFused, &weights})
    if (Error error = refuseEmpty(*flag))
      return error;
  options.dumpAfter.assign(dumpAfter.begin(), dumpAfter.end());
  options.stopAfter = stopAfter;
  options.explain = explain;
  options.remarksFile = remarks;
  options.rewriteLimit = rewriteLimit;
  options.precision = precision;
  options.kvCache = kvCache;
  if (!weights.empty()) {
    Expected<passes::WeightFormat> format = parseWeights(weights);
    if (!format)
      return format.takeError();
    options.weights = *format;
  }
  options.timing = timing;
  options.verifyNumerics = verifyNumerics;
  options.paranoid = paranoid;
  SmallVector<StringRef, 4> entries;
  if (!requireFused.empty())
    StringRef(requireFused).split(entries, ',');
  for (StringRef entry : entries) {
    auto [op, text] = entry.split(':');
    unsigned count = 0;
    if (op.empty() || text.getAsInteger(10, count))
      return userError("--require-fused: '{0}' is not OP:N, such as "
                       "attention:12",
                       entry);
    options.requireFused.push_back({op.str(), count});
  }
  return options;
}
