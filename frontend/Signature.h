//===- Signature.h - types and sizes of a model's inputs -----------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_FRONTEND_SIGNATURE_H
#define TENON_FRONTEND_SIGNATURE_H

#include "frontend/Import.h"
#include "onnx-ml.pb.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringMap.h"

namespace tenon::frontend {

/// The element type of a value's declared type; what is not a plain tensor is
/// an error that names it. Nullopt when no type is declared.
llvm::Expected<std::optional<ir::ElementType>>
declaredElement(const onnx::ValueInfoProto &value);

/// Makes dimensions of what a model writes: `dim_param` texts that are
/// expressions over other inputs' sizes ("past + sequence") become expressions,
/// other texts are symbols, and a missing size gets a symbol named
/// `<input>_<axis>`. What ImportOptions says about a symbol is applied.
class InputSizes {
public:
  InputSizes(ir::Module &module, const ImportOptions &options)
      : module(module), options(options) {}

  /// Must see every input first: a text is an expression only when all its
  /// symbols stand alone somewhere, since they are read off the inputs' shapes.
  void collect(const onnx::ValueInfoProto &input);
  llvm::Expected<ir::TensorType> typeOf(const onnx::ValueInfoProto &input);
  /// The constant that ImportOptions makes of an input, null where it is one.
  llvm::Expected<ir::ConstantRef> valueOf(llvm::StringRef input,
                                          const ir::TensorType &type);
  /// Complains about options that name no size and no input.
  llvm::Error checkOptions() const;

private:
  ir::Dim symbol(llvm::StringRef name);
  ir::Dim parameter(llvm::StringRef text);
  ir::Module &module;
  const ImportOptions &options;
  /// Texts that stand for a symbol by themselves.
  llvm::StringMap<bool> plain;
  /// What symbols became, and their names in order of appearance.
  llvm::StringMap<ir::Dim> symbols;
  std::vector<std::string> names;
  /// Inputs that became constants.
  llvm::StringMap<bool> fixed;
};

} // namespace tenon::frontend

#endif // TENON_FRONTEND_SIGNATURE_H
