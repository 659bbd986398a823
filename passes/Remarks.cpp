//===- Remarks.cpp - what was and was not done ---------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/Remarks.h"
#include "ir/support/Output.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/JSON.h"

using namespace tenon;
using namespace tenon::passes;

void Remark::print(llvm::raw_ostream &os) const {
  os << "remark: " << pass << ": " << (applied ? "fused" : "not fused")
     << " at '" << loc.name() << "'";
  if (!reason.empty())
    os << ": " << reason;
  os << '\n';
}

unsigned Remarks::countApplied(llvm::StringRef pass) const {
  return llvm::count_if(
      list, [&](const Remark &r) { return r.applied && r.pass == pass; });
}

void Remarks::writeJson(llvm::raw_ostream &os) const {
  llvm::json::OStream json(os, /*IndentSize=*/2);
  json.array([&] {
    for (const Remark &remark : list)
      json.object([&] {
        json.attribute("pass", remark.pass);
        json.attribute("applied", remark.applied);
        json.attributeArray("nodes", [&] {
          for (const std::string &node : remark.loc.nodes)
            json.value(llvm::json::fixUTF8(node));
        });
        if (!remark.reason.empty())
          json.attribute("reason", llvm::json::fixUTF8(remark.reason));
      });
  });
  os << '\n';
}

/// A double-quoted YAML scalar is a JSON string.
static std::string quoted(llvm::StringRef text) {
  std::string result;
  llvm::raw_string_ostream os(result);
  os << llvm::json::Value(llvm::json::fixUTF8(text));
  return result;
}

void Remarks::writeYaml(llvm::raw_ostream &os) const {
  if (list.empty())
    os << "[]\n";
  for (const Remark &remark : list) {
    os << "- pass: " << remark.pass << '\n'
       << "  applied: " << (remark.applied ? "true" : "false") << '\n'
       << "  nodes: [";
    llvm::interleaveComma(remark.loc.nodes, os,
                          [&](const std::string &n) { os << quoted(n); });
    os << "]\n";
    if (!remark.reason.empty())
      os << "  reason: " << quoted(remark.reason) << '\n';
  }
}

llvm::Error Remarks::write(llvm::StringRef path) const {
  bool yaml = path.ends_with(".yaml") || path.ends_with(".yml");
  return writeWhole(path, [&](llvm::raw_ostream &os) {
    yaml ? writeYaml(os) : writeJson(os);
  });
}
