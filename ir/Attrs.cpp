//===- Attrs.cpp - attribute structs -------------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ir/Attrs.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/bit.h"
#include <vector>

using namespace llvm;

namespace tenon::ir {

namespace {

/// Flattens a struct into a sequence that has the same meaning; equality and
/// hashing look at nothing else.
class Flatten final : public FieldVisitor {
public:
  explicit Flatten(const Attrs &attrs) {
    // Visiting is not const because parsing shares it; this visitor only reads.
    const_cast<Attrs &>(attrs).fields(*this);
  }

  std::vector<int64_t> numbers;
  std::vector<Dim> dims;
  std::vector<ConstantRef> constants;

  void nextIsOptional(bool) override {}
  void visit(StringRef, int64_t &value) override { numbers.push_back(value); }
  void visit(StringRef, bool &value) override { numbers.push_back(value); }
  void visit(StringRef, double &value) override {
    numbers.push_back(bit_cast<int64_t>(value));
  }
  void visit(StringRef, Ints &value) override {
    numbers.push_back(value.size());
    append_range(numbers, value);
  }
  void visit(StringRef, Dim &value) override { dims.push_back(value); }
  void visit(StringRef, Dims &value) override {
    numbers.push_back(value.size());
    append_range(dims, value);
  }
  void visit(StringRef, ElementType &value) override {
    numbers.push_back(int64_t(value));
  }
  void visit(StringRef, ConstantRef &value) override {
    constants.push_back(value);
  }
  void visit(StringRef, EnumRef value) override {
    numbers.push_back(*value.value);
  }
};

bool sameConstant(const ConstantRef &a, const ConstantRef &b) {
  return a == b || (a && b && a->equals(*b));
}

} // namespace

bool equal(const Attrs &a, const Attrs &b) {
  if (a.id() != b.id())
    return false;
  Flatten x(a), y(b);
  return x.numbers == y.numbers && x.dims == y.dims &&
         std::equal(x.constants.begin(), x.constants.end(), y.constants.begin(),
                    y.constants.end(), sameConstant);
}

hash_code hashAttrs(const Attrs &attrs) {
  Flatten flat(attrs);
  hash_code hash = hash_combine_range(flat.numbers.begin(), flat.numbers.end());
  for (Dim dim : flat.dims)
    hash = hash_combine(hash, dim);
  for (const ConstantRef &constant : flat.constants)
    hash = hash_combine(hash, constant ? constant->contentHash() : 0);
  return hash;
}

#define TN_ENUM(Type, ...)                                                     \
  ArrayRef<StringLiteral> enumNames(Type) {                                    \
    static constexpr StringLiteral names[] = {__VA_ARGS__};                    \
    return names;                                                              \
  }
TN_ENUM(PadMode, "constant", "reflect", "edge", "wrap")
TN_ENUM(ScatterReduction, "none", "add", "mul", "min", "max")
TN_ENUM(MaskedRow, "zero", "uniform", "nan")
TN_ENUM(Causality, "none", "causal")
#undef TN_ENUM

} // namespace tenon::ir
