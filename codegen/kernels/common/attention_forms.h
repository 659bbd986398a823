//===- attention_forms.h - the forms of attention ------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What an attention's Cfg chooses from.
/// kernels/cpu/attention.h has the full contract, which the CUDA kernels share.
///
//===----------------------------------------------------------------------===//
#ifndef TENON_KERNELS_COMMON_ATTENTION_FORMS_H
#define TENON_KERNELS_COMMON_ATTENTION_FORMS_H

#include "kernels/common/form.h"

namespace tn {
inline namespace TN_FORM {

enum class Mask { none, additive, boolean };
enum class Align { top_left, bottom_right, param };
enum class MaskedRow { zero, uniform, nan };

} // namespace TN_FORM
} // namespace tn

#endif // TENON_KERNELS_COMMON_ATTENTION_FORMS_H
