//===- Precision.cpp - --precision as the code generator wants it -------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "tools/common/Precision.h"
#include "ir/support/Diag.h"

using namespace tenon;
using passes::Precision;

llvm::Error tools::setPrecision(Precision precision, llvm::StringRef archs,
                                codegen::TargetOptions &options) {
  constexpr unsigned firstWithFp8 = 89;
  options.tf32 = precision == Precision::TF32;
  if (precision == Precision::F32Fast)
    options.partProducts = 3;
  if (precision == Precision::F32Fma)
    options.partProducts = 0;
  if (precision == Precision::BF16)
    options.partProducts = 1;
  if (precision != Precision::Int8 && precision != Precision::Fp8)
    return llvm::Error::success();
  bool isFp8 = precision == Precision::Fp8;
  if (options.target != codegen::Target::Cuda)
    return userError("--precision={0}: the {1} target does not multiply in 8 "
                     "bits; --target=cuda does",
                     isFp8 ? "fp8" : "int8",
                     codegen::targetText(options.target));
  options.products = isFp8 ? codegen::Products::Fp8 : codegen::Products::Int8;
  if (!isFp8)
    return llvm::Error::success();
  if (archs.empty())
    options.archs = llvm::cantFail(codegen::parseGpuArchs("sm_89,sm_90a"));
  for (const codegen::GpuArch *arch : options.archs)
    if (arch->number < firstWithFp8)
      return userError("--precision=fp8: {0} has no fp8, which GPUs have from "
                       "sm_89 on; name others with --arch, or use int8",
                       arch->name);
  return llvm::Error::success();
}
