//===- Fingerprint.cpp - what a function computes, as a number -----------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ir/Fingerprint.h"
#include "ir/OpDef.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"

using namespace llvm;
using namespace tenon;
using namespace tenon::ir;

namespace {

/// Collects what is hashed as text and numbers.
class Digest {
public:
  Digest &add(StringRef text) {
    bytes.append(text.data(), text.size());
    bytes.push_back('\0');
    return *this;
  }
  Digest &add(uint64_t number) {
    bytes.append(reinterpret_cast<const char *>(&number), sizeof number);
    return *this;
  }
  template <class T> Digest &addPrinted(const T &value) {
    std::string text;
    raw_string_ostream(text) << value;
    return add(text);
  }
  uint64_t hash() const { return xxh3_64bits(bytes); }

private:
  std::string bytes;
};

/// Writes an op's attributes into a Digest; constants by their contents.
class AttrDigest final : public FieldVisitor {
public:
  explicit AttrDigest(Digest &digest) : digest(digest) {}
  void visit(StringRef name, int64_t &v) override { digest.add(name).add(v); }
  void visit(StringRef name, bool &v) override { digest.add(name).add(v); }
  void visit(StringRef name, double &v) override {
    // Exporters spell one f32 number with different digits.
    digest.add(name).addPrinted(float(v));
  }
  void visit(StringRef name, Ints &v) override {
    digest.add(name).add(v.size());
    for (int64_t i : v)
      digest.add(i);
  }
  void visit(StringRef name, Dim &v) override {
    digest.add(name).addPrinted(v);
  }
  void visit(StringRef name, Dims &v) override {
    digest.add(name).add(v.size());
    for (Dim dim : v)
      digest.addPrinted(dim);
  }
  void visit(StringRef name, ElementType &v) override {
    digest.add(name).add(mnemonic(v));
  }
  void visit(StringRef name, ConstantRef &v) override {
    digest.add(name).add(v->contentHash());
  }
  void visit(StringRef name, EnumRef v) override {
    digest.add(name).add(v.names[*v.value]);
  }
  void nextIsOptional(bool) override {}

private:
  Digest &digest;
};

class Fingerprinter {
public:
  /// Hashes the ops of \p block in order (operands come first) and returns the
  /// hashes of its terminator's operands.
  uint64_t block(const Block &block) {
    for (unsigned i = 0; i < block.numArguments(); ++i)
      values[block.argument(i)] = Digest()
                                      .add("argument")
                                      .add(i)
                                      .addPrinted(block.argument(i)->type)
                                      .hash();
    Digest results;
    for (Op &op : block) {
      if (opDef(op).is(Terminator)) {
        for (Value *operand : op.operands())
          results.add(values.lookup(operand));
        break;
      }
      uint64_t hash = opHash(op);
      for (unsigned i = 0; i < op.numResults(); ++i)
        values[op.result(i)] =
            Digest().add(hash).add(i).addPrinted(op.result(i)->type).hash();
    }
    return results.hash();
  }

private:
  DenseMap<const Value *, uint64_t> values;

  uint64_t opHash(const Op &op) {
    Digest digest;
    digest.add(opDef(op).mnemonic);
    SmallVector<uint64_t, 4> operands;
    for (Value *operand : op.operands())
      operands.push_back(operand ? values.lookup(operand) : 0);
    if (is(op, Commutative))
      llvm::sort(operands);
    for (uint64_t operand : operands)
      digest.add(operand);
    AttrDigest attributes(digest);
    const_cast<Attrs &>(op.rawAttrs()).fields(attributes);
    if (op.region())
      digest.add(block(*op.region()));
    return digest.hash();
  }
};

} // namespace

uint64_t ir::fingerprint(const Func &func) {
  Digest digest;
  digest.add(Fingerprinter().block(func.body));
  for (const Port &port : func.inputs)
    digest.add(port.name);
  for (const Port &port : func.outputs)
    digest.add(port.name);
  return digest.hash();
}
