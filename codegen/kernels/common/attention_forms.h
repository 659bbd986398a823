//===- attention_forms.h - forms of attention, rules of all its kernels ------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What an attention's Cfg chooses from, and the rules that follow from it and
/// are the same in every kernel. kernels/cpu/attention.h has the full contract.
///
//===----------------------------------------------------------------------===//
#ifndef TENON_KERNELS_COMMON_ATTENTION_FORMS_H
#define TENON_KERNELS_COMMON_ATTENTION_FORMS_H

#include "kernels/common/form.h"
#include "kernels/common/strided.h"

namespace tn {
inline namespace TN_FORM {

enum class Mask { none, additive, boolean };
enum class Align { top_left, bottom_right, param };
enum class MaskedRow { zero, uniform, nan };

/// The score of a key that bounds hide, and of one that a boolean mask hides
/// where masked_row is uniform.
inline constexpr float score_none =
    __builtin_bit_cast(float, 0xff800000u); // -infinity
inline constexpr float score_masked = -3.40282346638528859812e38f;

/// A query's place among the keys, less its index.
template <class Cfg>
TN_FN int64_t query_offset(const tn_args *args, int64_t queries, int64_t keys) {
  if constexpr (Cfg::align == Align::bottom_right)
    return keys - queries;
  if constexpr (Cfg::align == Align::param)
    return args->params[0];
  return 0;
}

/// Keys [begin, end), of all there are; begin <= end.
struct VisibleKeys {
  int64_t begin, end;
};

/// What the query at `place` among the keys may see.
template <class Cfg>
TN_FN VisibleKeys visible_keys(int64_t place, int64_t keys) {
  VisibleKeys r = {0, keys};
  if constexpr (Cfg::left != dynamic)
    r.begin = max_of(0, place - Cfg::left);
  if constexpr (Cfg::right != dynamic)
    r.end = min_of(keys, place + Cfg::right + 1);
  r.end = max_of(r.end, 0);
  r.begin = min_of(r.begin, r.end);
  return r;
}

/// Whether a row with this greatest score is a uniform one; `empty`: it sees no
/// key.
template <class Cfg> TN_FN bool is_uniform_row(float max, bool empty) {
  if constexpr (Cfg::masked_row != MaskedRow::uniform)
    return false;
  if (empty)
    return true;
  if constexpr (Cfg::mask == Mask::boolean)
    return max <= score_masked / 2 && max > score_none;
  return false;
}

} // namespace TN_FORM
} // namespace tn

#endif // TENON_KERNELS_COMMON_ATTENTION_FORMS_H
