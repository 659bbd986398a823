//===- loop_body.h - what bodies of loops are written with ---------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The values of a loop's body with several results, and lists of indices to
/// expand its operands by.
///
//===----------------------------------------------------------------------===//
#ifndef TENON_KERNELS_COMMON_LOOP_BODY_H
#define TENON_KERNELS_COMMON_LOOP_BODY_H

#include "kernels/common/form.h"

namespace tn {
inline namespace TN_FORM {

/// The values of a body with several results.
template <class First, class... Rest> struct Results {
  First first;
  Results<Rest...> rest;
};
template <class Last> struct Results<Last> { Last first; };

template <class Last> TN_FN Results<Last> results(Last last) { return {last}; }
template <class First, class Second, class... Rest>
TN_FN Results<First, Second, Rest...> results(First first, Second second,
                                              Rest... rest) {
  return {first, results(second, rest...)};
}

template <int... I> struct Indices {};
template <int N, int... I>
struct MakeIndices : MakeIndices<N - 1, N - 1, I...> {};
template <int... I> struct MakeIndices<0, I...> { using type = Indices<I...>; };
template <int N> using make_indices = typename MakeIndices<N>::type;

} // namespace TN_FORM
} // namespace tn

#endif // TENON_KERNELS_COMMON_LOOP_BODY_H
