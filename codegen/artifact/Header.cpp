//===- Header.cpp - the C header of a model's shared library ------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/artifact/Header.h"

#include "codegen/toolchain/Resources.h"
#include "ir/support/Diag.h"
#include "runtime/format/DType.h"
#include "runtime/support/File.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

namespace tenon::codegen {

namespace {

void describePorts(llvm::raw_ostream &os, llvm::StringRef what,
                   llvm::ArrayRef<kernel::Port> ports) {
  for (const auto &[i, port] : llvm::enumerate(ports)) {
    os << " *   " << what << ' ' << i << ": "
       << rt::dtypeInfo(rt::DType(port.type.element)).name << '[';
    llvm::StringRef separator = "";
    for (ir::Dim dim : port.type.shape) {
      os << separator;
      if (auto size = dim.constant())
        os << *size;
      else
        os << '*';
      separator = ", ";
    }
    os << "]\n";
  }
}

} // namespace

std::string modelHeaderPath(llvm::StringRef library) {
  llvm::SmallString<128> path(library);
  llvm::sys::path::replace_extension(path, ".h");
  return std::string(path);
}

llvm::Error writeModelHeader(const kernel::Program &program,
                             llvm::StringRef library) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "/* The model's tensors by number; `*` is a size that the caller "
        "chooses or that\n * data define. tenon_input_name() and "
        "tenon_output_name() give their names.\n *\n";
  describePorts(os, "input", program.inputs);
  describePorts(os, "output", program.outputs);
  os << " */\n\n" << cApiHeader();
  auto file = rt::OutputFile::create(modelHeaderPath(library));
  if (!file.ok())
    return userError("{0}", file.message());
  rt::Status status = file->write(text.data(), text.size());
  if (status.ok())
    status = file->commit();
  return status.ok() ? llvm::Error::success()
                     : userError("{0}", status.message());
}

} // namespace tenon::codegen
