//===- Weights.h - tensors stored in a model -----------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_FRONTEND_WEIGHTS_H
#define TENON_FRONTEND_WEIGHTS_H

#include "frontend/ModelFile.h"
#include "ir/Constant.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"

namespace tenon::frontend {

class MappedFile;

/// The element type of an onnx.TensorProto.DataType; what Tenon does not have
/// (strings, complex numbers) is an error that names it.
llvm::Expected<ir::ElementType> elementTypeOf(int dataType);

/// As many dimensions as a tensor may have, here as in the text form.
inline constexpr unsigned maxRank = 64;

/// Turns onnx.TensorProto into constants, in every form of storage: raw_data,
/// typed fields, external data. Bytes that already lie in a file as Tenon wants
/// them are not copied but point into its mapping (with any alignment).
class Weights {
public:
  explicit Weights(const ModelFile &model) : model(model) {}

  /// Checks \p tensor, which must outlive this object, from end to end and
  /// gives its contents. Errors do not name the tensor; callers prefix them.
  llvm::Expected<ir::ConstantRef> load(const onnx::TensorProto &tensor);

private:
  llvm::Expected<ir::ConstantRef> read(const onnx::TensorProto &tensor);
  llvm::Expected<ir::ConstantRef> external(const onnx::TensorProto &tensor,
                                           ir::ElementType element,
                                           llvm::ArrayRef<int64_t> shape,
                                           uint64_t size);
  const ModelFile &model;
  llvm::StringMap<std::shared_ptr<const MappedFile>> files;
  llvm::DenseMap<const onnx::TensorProto *, ir::ConstantRef> loaded;
};

} // namespace tenon::frontend

#endif // TENON_FRONTEND_WEIGHTS_H
