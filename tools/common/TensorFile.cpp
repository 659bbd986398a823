//===- TensorFile.cpp - inputs and outputs in .npz files -----------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "tools/common/TensorFile.h"

#include "ir/support/Diag.h"
#include "runtime/Npz.h"

using namespace tenon;
using namespace tenon::tools;

namespace {

// Both enumerations list the element types in one order.
static_assert(unsigned(ir::ElementType::F4E2M1) + 1 == rt::numDTypes);
rt::DType dtypeOf(ir::ElementType element) {
  return static_cast<rt::DType>(element);
}

/// The elements are `element`'s already.
ir::Tensor toTensor(const rt::NpyArray &array, ir::ElementType element) {
  ir::Tensor tensor;
  tensor.element = element;
  tensor.shape.assign(array.shape.begin(), array.shape.end());
  tensor.bytes.assign(array.data.get(), array.data.get() + array.bytes);
  return tensor;
}

/// The arrays called like \p ports, which are \p kind ("input") of \p func and
/// have the types of \p values.
llvm::Expected<std::vector<ir::Tensor>>
readTensors(const std::string &path, const ir::Func &func, llvm::StringRef kind,
            llvm::ArrayRef<ir::Port> ports,
            llvm::ArrayRef<ir::Value *> values) {
  rt::Result<std::vector<rt::NpyArray>> arrays = rt::readNpzFile(path);
  if (!arrays.ok())
    return userError("{0}", arrays.message());
  for (const rt::NpyArray &array : *arrays)
    if (llvm::none_of(ports, [&](const ir::Port &port) {
          return port.name == array.name;
        }))
      return userError("{0}: '@{1}' has no {2} '{3}'", path, func.name, kind,
                       array.name);
  std::vector<ir::Tensor> tensors;
  for (auto [port, value] : llvm::zip(ports, values)) {
    rt::NpyArray *array = nullptr;
    for (rt::NpyArray &candidate : *arrays)
      if (candidate.name == port.name)
        array = &candidate;
    if (!array)
      return userError("{0}: there is no array for {1} '{2}'", path, kind,
                       port.name);
    if (!array->fits(dtypeOf(value->element())))
      return userError("{0}: '{1}' is {2}, expected {3}", path, port.name,
                       rt::describeType(array->dtype, array->shape),
                       mnemonic(value->element()));
    rt::Status status = array->convert(dtypeOf(value->element()));
    if (!status.ok())
      return userError("{0}: {1}", path, status.message());
    tensors.push_back(toTensor(*array, value->element()));
  }
  return tensors;
}

} // namespace

llvm::Expected<std::vector<ir::Tensor>>
tenon::tools::readInputs(const std::string &path, const ir::Func &func) {
  llvm::SmallVector<ir::Value *, 4> values;
  for (unsigned i = 0; i != func.body.numArguments(); ++i)
    values.push_back(func.body.argument(i));
  return readTensors(path, func, "input", func.inputs, values);
}

llvm::Expected<std::vector<ir::Tensor>>
tenon::tools::readOutputs(const std::string &path, const ir::Func &func) {
  return readTensors(path, func, "output", func.outputs,
                     func.body.terminator()->operands());
}

llvm::Error tenon::tools::writeOutputs(const std::string &path,
                                       const ir::Func &func,
                                       llvm::ArrayRef<ir::Tensor> outputs) {
  std::vector<rt::NpyView> views;
  for (unsigned i = 0; i != outputs.size(); ++i)
    views.push_back(
        {i < func.outputs.size() ? func.outputs[i].name : std::to_string(i),
         dtypeOf(outputs[i].element),
         std::vector<int64_t>(outputs[i].shape.begin(), outputs[i].shape.end()),
         outputs[i].bytes.data()});
  rt::Status status = rt::writeNpzFile(path, views);
  if (!status.ok())
    return userError("{0}", status.message());
  return llvm::Error::success();
}
