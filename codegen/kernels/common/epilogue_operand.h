//===- epilogue_operand.h - what epilogues of both targets share ----------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_KERNELS_COMMON_EPILOGUE_OPERAND_H
#define TENON_KERNELS_COMMON_EPILOGUE_OPERAND_H

#include "kernels/common/form.h"

namespace tn {
inline namespace TN_FORM {

/// The greatest number of epilogue operands.
inline constexpr int max_epilogue = 8;

/// An operand within the current batch; strides in elements.
struct EpilogueOperand {
  const char *data;
  int64_t row, column;
};

/// No epilogue.
struct Identity {
  template <class V, class Args>
  static TN_FN V apply(V acc, const Args &, int64_t, int64_t) {
    return acc;
  }
};

} // namespace TN_FORM
} // namespace tn

#endif // TENON_KERNELS_COMMON_EPILOGUE_OPERAND_H
