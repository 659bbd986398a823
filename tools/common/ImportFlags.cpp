//===- ImportFlags.cpp - command-line flags of reading a model ------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "tools/common/ImportFlags.h"

using namespace llvm;

namespace tenon::tools {

ImportFlags::ImportFlags(cl::SubCommand &sub)
    : dims("dim", cl::value_desc("name=N|LO..HI"),
           cl::desc("fix or bound a symbolic dimension (may be repeated)"),
           cl::sub(sub)),
      values("set", cl::value_desc("input=NUMBER"),
             cl::desc("make an input a constant (may be repeated)"),
             cl::sub(sub)),
      followLinks("follow-links",
                  cl::desc("read external data through links that leave the "
                           "model's folder"),
                  cl::sub(sub)) {}

Expected<frontend::ImportOptions> ImportFlags::options() const {
  frontend::ImportOptions options;
  options.followLinks = followLinks;
  for (const std::string &dim : dims)
    if (Error error = frontend::parseDimOption(dim, options))
      return error;
  for (const std::string &value : values)
    if (Error error = frontend::parseValueOption(value, options))
      return error;
  return options;
}

} // namespace tenon::tools
