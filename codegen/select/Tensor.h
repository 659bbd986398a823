//===- Tensor.h - the fast contractions and attention of GPUs ------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_CODEGEN_SELECT_TENSOR_H
#define TENON_CODEGEN_SELECT_TENSOR_H

#include "codegen/select/Epilogue.h"
#include "codegen/select/Lowering.h"

namespace tenon::codegen {

struct ByteProduct;
struct Product;

inline bool isHalf(ir::ElementType element) {
  return element == ir::ElementType::F16 || element == ir::ElementType::BF16;
}

/// Whether kernels of GPUs load and store it as a float.
inline bool isGpuFloat(ir::ElementType element) {
  return element == ir::ElementType::F32 || isHalf(element);
}

/// The launch of the tiled GEMM (kernels/cuda/gemm.cuh) for
/// c[..., M, N] = a[..., M, K] b[..., K, N], all of one rank, with a tuning
/// that suits the sizes and that every architecture asked for has; operands,
/// but those of \p epilogue, are in it. Nothing when element types or strides
/// are not among its forms.
std::optional<LaunchSpec> tensorProduct(const Lowering &lowering, const View &a,
                                        const View &b, const View &c,
                                        const Epilogue &epilogue);

/// The tiles and the rest of the Cfg of gemm_codes.cuh, without the matrix of
/// codes: nothing if a and c are not among its forms.
std::optional<LaunchSpec> tensorCodes(const Lowering &lowering, const View &a,
                                      const View &c, const Epilogue &epilogue);

/// The same of bytes, the k of both contiguous; \p epilogue takes sums in s32
/// (of e4m3: in f32).
enum class Bytes { SignedBySigned, UnsignedBySigned, E4m3 };
std::optional<LaunchSpec> byteProduct(const Lowering &lowering, Bytes kind,
                                      const View &a, const View &b,
                                      const View &c, const Epilogue &epilogue);

/// The same tiles for a convolution of one group (kernels/cuda/conv_gemm.cuh):
/// its spec without what the kernel wants to know of the window.
std::optional<LaunchSpec> tensorConv(const Lowering &lowering, const View &x,
                                     const View &w, const View &y,
                                     const ir::ConvAttrs &attrs,
                                     const Epilogue &epilogue);

/// With --precision=int8 or fp8: launches a[..., M, K] b[K, N] in 8 bits, if b
/// is a constant matrix: the rows of a become codes when running, the columns
/// of b now, and the scales of both go into the epilogue. False if it is not
/// for this form.
bool launchInBytes(Lowering &lowering, const ir::Op &op, const View &a,
                   const View &b, const View &c, const Epilogue &epilogue);

/// Launches \p bytes, a product of whole numbers whose first operand has the
/// view p.a, with exact sums: the zero point's share is taken off them first
/// thing in the epilogue. Any product of bytes can be launched, with an
/// epilogue that leaves room for `zeroOperands` more.
constexpr unsigned zeroOperands = 2;
void launchIntegers(Lowering &lowering, const ir::Op &op, Product &p,
                    const ByteProduct &bytes, const Epilogue &epilogue);

/// The greatest power of two up to 16 that divides the address of every row of
/// \p view, dimension \p inner being along rows.
int64_t alignmentOf(const View &view, unsigned inner);

/// The same for flash attention (kernels/cuda/attention_flash.cuh), of halves
/// on tensor cores, of f32 with multiply-adds: completes \p spec, which has the
/// operands, the result, and the Cfg that all attention kernels share. False
/// when it must be the plain form.
bool useFlashAttention(const Lowering &lowering, LaunchSpec &spec, bool hasMask,
                       int64_t d, int64_t dv);

/// The launch of the split-KV kernel (kernels/cuda/attention_decode.cuh) for
/// what \p spec has, and the condition under which it should be taken: few
/// queries, in a model that decodes or known to be few. Nothing when element
/// types or strides are not among its forms.
struct DecodeAttention {
  LaunchSpec spec;
  Dim few, many; ///< 1 and 0, or the other way around
};
std::optional<DecodeAttention> decodeAttention(const Lowering &lowering,
                                               const LaunchSpec &spec,
                                               bool hasMask, int64_t d,
                                               int64_t dv);

} // namespace tenon::codegen

#endif // TENON_CODEGEN_SELECT_TENSOR_H
