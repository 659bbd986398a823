//===- stdint.h - the fixed-size integers, for NVRTC ----------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// NVRTC has no headers of the C library. It is handed this one as <stdint.h>,
/// with the types that the host has on 64-bit Linux.
///
//===----------------------------------------------------------------------===//
#ifndef TENON_KERNELS_CUDA_STDINT_H
#define TENON_KERNELS_CUDA_STDINT_H

typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long uint64_t;
typedef long intptr_t;
typedef unsigned long uintptr_t;

#define INT32_MAX 2147483647
#define INT32_MIN (-INT32_MAX - 1)
#define UINT32_MAX 4294967295u
#define INT64_MAX 9223372036854775807L
#define INT64_MIN (-INT64_MAX - 1)
#define UINT64_MAX 18446744073709551615UL

#endif // TENON_KERNELS_CUDA_STDINT_H
