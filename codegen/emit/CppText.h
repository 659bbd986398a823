//===- CppText.h - C++ spellings -----------------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_CODEGEN_EMIT_CPPTEXT_H
#define TENON_CODEGEN_EMIT_CPPTEXT_H

#include "ir/Type.h"
#include "ir/kernel/Program.h"
#include <string>

namespace tenon::codegen {

/// The C++ type of \p element in kernels ("float", "tn_bool"); empty when
/// kernels compute nothing with it (f16, 4-bit ...).
llvm::StringRef cppType(ir::ElementType element);
/// As above, and of the types that loops only load, cast and store: "tn_f16".
llvm::StringRef storageType(ir::ElementType element);
/// "0.125f", "0x1.8p-24", "-__builtin_inff()": exact, of type float or double.
std::string floatLiteral(double value, bool isDouble);
/// \p value as a literal of exactly \p element's C++ type.
std::string literal(ir::ElementType element, const ir::Constant &scalar);
/// The body of a functor's `apply` as nested calls, with \p argument giving the
/// text of each argument; values used more than once become locals.
/// `lines` receives the statements before the results' expressions.
struct FunctorText {
  std::vector<std::string> lines;
  std::vector<std::string> results;
  std::string formula; ///< for a comment: "gelu_erf(x0 + x1)"
};
FunctorText functorText(const kernel::Functor &functor,
                        llvm::ArrayRef<std::string> arguments);
/// For each value of \p functor whether it is one number, whatever the
/// arguments.
std::vector<bool> literalValues(const kernel::Functor &functor);

} // namespace tenon::codegen

#endif // TENON_CODEGEN_EMIT_CPPTEXT_H
