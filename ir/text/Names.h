//===- Names.h - the names that the printer gives ------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_IR_TEXT_NAMES_H
#define TENON_IR_TEXT_NAMES_H

#include "ir/Op.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

namespace tenon::ir {

/// Makes names different from each other.
class UniqueNames {
public:
  /// \p base, or `base_1` and so on if it is taken.
  std::string get(llvm::StringRef base);
  /// Whether \p name was free; takes it.
  bool take(llvm::StringRef name) { return taken.insert(name).second; }

private:
  llvm::StringSet<> taken;
  /// The suffix to try next, so that many equal names take linear time.
  llvm::StringMap<unsigned> next;
};

/// The names of the values of one block, without the `%`: hints made unique,
/// numbers for values without a hint. The same for the same block, and what is
/// parsed from them prints the same again.
class ValueNames {
public:
  explicit ValueNames(const Block &block, llvm::ArrayRef<Port> inputs = {});
  llvm::StringRef of(const Value *value) const;

private:
  void give(const Value *value, llvm::StringRef hint);
  llvm::DenseMap<const Value *, std::string> names;
  UniqueNames unique;
  unsigned nextNumber = 0;
};

/// Whether an input's name can be its argument's name in the text.
bool isValueName(llvm::StringRef name);

/// The names under which a module's large Dense and Concat constants print:
/// their labels made unique. One constant has one name however many ops use it.
class ConstantNames {
public:
  ConstantNames(const Module &module, uint64_t maxInlineElements);
  /// "" for a constant that prints in full.
  llvm::StringRef of(const Constant *constant) const;
  /// In the order of the module.
  llvm::ArrayRef<const Constant *> constants() const { return order; }

private:
  void visit(const Block &block, uint64_t maxInlineElements);
  llvm::DenseMap<const Constant *, std::string> names;
  UniqueNames unique;
  std::vector<const Constant *> order;
};

} // namespace tenon::ir

#endif // TENON_IR_TEXT_NAMES_H
