//===- builtins.cuh - the host compilers' builtins, for NVRTC -------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The headers in kernels/common and generated units name GCC's builtins where
/// others would include <cmath>. NVRTC has the functions, not these names.
///
//===----------------------------------------------------------------------===//
#ifndef TENON_KERNELS_CUDA_BUILTINS_CUH
#define TENON_KERNELS_CUDA_BUILTINS_CUH

// Constants, usable in constant expressions.
#define __builtin_inff() __builtin_bit_cast(float, 0x7f800000u)
#define __builtin_inf() __builtin_bit_cast(double, 0x7ff0000000000000ul)
#define __builtin_nanf(TAG) __builtin_bit_cast(float, 0x7fc00000u)
#define __builtin_nan(TAG) __builtin_bit_cast(double, 0x7ff8000000000000ul)

#define __builtin_memcpy memcpy
#define __builtin_memset memset

#define __builtin_exp exp
#define __builtin_expf expf
#define __builtin_expm1 expm1
#define __builtin_expm1f expm1f
#define __builtin_log log
#define __builtin_logf logf
#define __builtin_log1p log1p
#define __builtin_log1pf log1pf
#define __builtin_erf erf
#define __builtin_erff erff
#define __builtin_tanh tanh
#define __builtin_tanhf tanhf
#define __builtin_sin sin
#define __builtin_sinf sinf
#define __builtin_cos cos
#define __builtin_cosf cosf
#define __builtin_tan tan
#define __builtin_tanf tanf
#define __builtin_asin asin
#define __builtin_asinf asinf
#define __builtin_acos acos
#define __builtin_acosf acosf
#define __builtin_atan atan
#define __builtin_atanf atanf
#define __builtin_sinh sinh
#define __builtin_sinhf sinhf
#define __builtin_cosh cosh
#define __builtin_coshf coshf
#define __builtin_asinh asinh
#define __builtin_asinhf asinhf
#define __builtin_acosh acosh
#define __builtin_acoshf acoshf
#define __builtin_atanh atanh
#define __builtin_atanhf atanhf
#define __builtin_floor floor
#define __builtin_floorf floorf
#define __builtin_ceil ceil
#define __builtin_ceilf ceilf
#define __builtin_rint rint
#define __builtin_rintf rintf
#define __builtin_sqrt sqrt
#define __builtin_sqrtf sqrtf
#define __builtin_fabs fabs
#define __builtin_fabsf fabsf
#define __builtin_fmod fmod
#define __builtin_fmodf fmodf
#define __builtin_pow pow
#define __builtin_powf powf

#endif // TENON_KERNELS_CUDA_BUILTINS_CUH
