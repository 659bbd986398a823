//===- TestModel.h - ONNX models made in tests ---------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_TEST_UNIT_FRONTEND_TESTMODEL_H
#define TENON_TEST_UNIT_FRONTEND_TESTMODEL_H

#include "frontend/Import.h"
#include "ir/text/Text.h"
#include "ir/verify/Verify.h"
#include "onnx-ml.pb.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace tenon::test {

constexpr int Float = 1, Int32 = 6, Int64 = 7, Bool = 9, Float16 = 10;

/// A model under construction; dimensions are written "batch", "3" or "" (not
/// said).
struct TestModel {
  onnx::ModelProto proto;
  frontend::ImportOptions options;
  std::vector<std::string> warnings;

  explicit TestModel(int64_t opset = 17) {
    proto.set_ir_version(8);
    proto.mutable_graph()->set_name("g");
    import("", opset);
  }

  void import(const std::string &domain, int64_t version) {
    auto *set = proto.add_opset_import();
    set->set_domain(domain);
    set->set_version(version);
  }
  onnx::GraphProto &graph() { return *proto.mutable_graph(); }

  static void fill(onnx::ValueInfoProto &value, const std::string &name,
                   int type, const std::vector<std::string> &dims) {
    value.set_name(name);
    auto *tensor = value.mutable_type()->mutable_tensor_type();
    tensor->set_elem_type(type);
    tensor->mutable_shape();
    for (const std::string &dim : dims) {
      auto *d = tensor->mutable_shape()->add_dim();
      if (!dim.empty() && llvm::isDigit(dim[0]))
        d->set_dim_value(std::stoll(dim));
      else if (!dim.empty())
        d->set_dim_param(dim);
    }
  }
  void input(const std::string &name, int type,
             const std::vector<std::string> &dims) {
    fill(*graph().add_input(), name, type, dims);
  }
  void output(const std::string &name) { graph().add_output()->set_name(name); }

  static onnx::NodeProto &fill(onnx::NodeProto &node, const std::string &op,
                               const std::vector<std::string> &inputs,
                               const std::vector<std::string> &outputs) {
    node.set_op_type(op);
    node.set_name("the_" + op);
    for (const std::string &name : inputs)
      node.add_input(name);
    for (const std::string &name : outputs)
      node.add_output(name);
    return node;
  }
  onnx::NodeProto &node(const std::string &op,
                        const std::vector<std::string> &inputs,
                        const std::vector<std::string> &outputs) {
    return fill(*graph().add_node(), op, inputs, outputs);
  }

  onnx::TensorProto &tensor(const std::string &name, int type,
                            const std::vector<int64_t> &dims) {
    auto *t = graph().add_initializer();
    t->set_name(name);
    t->set_data_type(type);
    for (int64_t dim : dims)
      t->add_dims(dim);
    return *t;
  }
  void ints(const std::string &name, const std::vector<int64_t> &values) {
    auto &t = tensor(name, Int64, {int64_t(values.size())});
    for (int64_t value : values)
      t.add_int64_data(value);
  }
  void floats(const std::string &name, const std::vector<int64_t> &dims,
              const std::vector<float> &values) {
    auto &t = tensor(name, Float, dims);
    for (float value : values)
      t.add_float_data(value);
  }

  llvm::Expected<std::unique_ptr<ir::Module>> importModule() {
    options.warn = [this](llvm::StringRef text) {
      warnings.push_back(text.str());
    };
    std::string bytes = proto.SerializeAsString();
    return frontend::importOnnxBytes(llvm::arrayRefFromStringRef(bytes),
                                     options);
  }
  /// The imported module as text without locations, or "error: ...".
  std::string text() {
    auto module = importModule();
    if (!module)
      return "error: " + llvm::toString(module.takeError());
    if (llvm::Error error = ir::verify(**module))
      return "error: does not verify: " + llvm::toString(std::move(error));
    std::string result;
    llvm::raw_string_ostream os(result);
    ir::PrintOptions print;
    print.locations = false;
    ir::print(**module, os, print);
    return result;
  }
};

inline onnx::AttributeProto &attribute(onnx::NodeProto &node,
                                       const std::string &name, int type) {
  auto *a = node.add_attribute();
  a->set_name(name);
  a->set_type(onnx::AttributeProto::AttributeType(type));
  return *a;
}
inline void set(onnx::NodeProto &node, const std::string &name, int64_t value) {
  attribute(node, name, onnx::AttributeProto::INT).set_i(value);
}
inline void set(onnx::NodeProto &node, const std::string &name,
                const std::string &value) {
  attribute(node, name, onnx::AttributeProto::STRING).set_s(value);
}
inline void setInts(onnx::NodeProto &node, const std::string &name,
                    const std::vector<int64_t> &values) {
  auto &a = attribute(node, name, onnx::AttributeProto::INTS);
  for (int64_t value : values)
    a.add_ints(value);
}

/// Expects every one of \p parts in \p text.
inline void expectParts(const std::string &text,
                        const std::vector<std::string> &parts) {
  for (const std::string &part : parts)
    EXPECT_NE(text.find(part), std::string::npos)
        << "expected '" << part << "' in\n"
        << text;
}

} // namespace tenon::test

#endif // TENON_TEST_UNIT_FRONTEND_TESTMODEL_H
