//===- Functors.h - functors of scalars from regions and ops -------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_CODEGEN_SELECT_FUNCTORS_H
#define TENON_CODEGEN_SELECT_FUNCTORS_H

#include "codegen/select/Lowering.h"
#include "ir/Op.h"
#include "ir/kernel/Program.h"

namespace tenon::codegen {

/// The functor of a map's body or an epilogue. Its arguments are the block's.
kernel::Functor functorOf(const ir::Block &body);
/// The functor of one elementwise op. Operands that are one number become
/// literals; \p arguments receives the others, in the functor's order.
kernel::Functor functorOf(const Lowering &lowering, const ir::Op &op,
                          llvm::SmallVectorImpl<const ir::Value *> &arguments);
/// y = x.
kernel::Functor identity(ir::ElementType element);
/// Drops the arguments that have a literal in \p literals (null: keep).
kernel::Functor bindLiterals(const kernel::Functor &functor,
                             llvm::ArrayRef<ir::ConstantRef> literals);
/// \p second applied to the result of \p first as its first argument; then come
/// first's other arguments and second's.
kernel::Functor compose(const kernel::Functor &first,
                        const kernel::Functor &second);
/// The scalar constant that every element of \p view is, or null.
ir::ConstantRef literalOf(const Lowering &lowering, const View &view);
/// Whether kernels of f32 can call it with vectors: only f32 and bool inside.
bool isVectorizable(const kernel::Functor &functor);
/// The first element type in it that kernels compute nothing with, if any.
std::optional<ir::ElementType>
unsupportedElement(const kernel::Functor &functor);

} // namespace tenon::codegen

#endif // TENON_CODEGEN_SELECT_FUNCTORS_H
