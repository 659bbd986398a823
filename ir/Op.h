//===- Op.h - values, ops, blocks and functions --------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_IR_OP_H
#define TENON_IR_OP_H

#include "ir/Attrs.h"
#include "ir/OpKind.h"
#include "ir/Type.h"
#include "ir/support/Location.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/iterator_range.h"
#include <cassert>
#include <list>
#include <memory>
#include <string>
#include <vector>

namespace tenon::ir {

class Op;
class Block;
class Func;
class Module;

/// One use of a value: operand number `index` of `op`.
struct Use {
  Op *op;
  unsigned index;
  bool operator==(const Use &) const = default;
};

/// An SSA value: the result of an op or an argument of a block.
class Value {
public:
  TensorType type;
  /// A hint for printing; never an identity. Arguments and results of a
  /// function's signature keep their interface names in Func instead.
  std::string name;

  ElementType element() const { return type.element; }
  ShapeRef shape() const { return type.shape; }
  unsigned rank() const { return type.rank(); }

  /// The op that makes it, or null for a block argument.
  Op *def() const { return definingOp; }
  /// The defining op if it has kind \p kind, else null.
  Op *def(OpKind kind) const;
  Block *owner() const;
  /// Which result or argument it is.
  unsigned index() const { return number; }

  llvm::ArrayRef<Use> uses() const { return useList; }
  bool hasOneUse() const { return useList.size() == 1; }
  void replaceAllUsesWith(Value *other);

private:
  friend class Op;
  friend class Block;
  void removeUse(Use use);
  Op *definingOp = nullptr;
  Block *ownerBlock = nullptr;
  unsigned number = 0;
  llvm::SmallVector<Use, 2> useList;
};

/// One operation. Created through Builder (or Block::insert), owned by its
/// block.
class Op {
public:
  ~Op();
  Op(const Op &) = delete;
  Op &operator=(const Op &) = delete;

  OpKind kind() const { return opKind; }
  Location loc;

  unsigned numOperands() const { return operandList.size(); }
  /// Null for an optional operand that is left out.
  Value *operand(unsigned i) const {
    return i < operandList.size() ? operandList[i] : nullptr;
  }
  llvm::ArrayRef<Value *> operands() const { return operandList; }
  void setOperand(unsigned i, Value *value);
  void setOperands(llvm::ArrayRef<Value *> values);

  unsigned numResults() const { return resultList.size(); }
  Value *result(unsigned i = 0) const { return resultList[i].get(); }
  llvm::SmallVector<Value *, 2> results() const;
  bool hasUses() const;

  /// The attributes, which must be of this op kind's struct.
  template <class T> const T &attrs() const {
    assert(attributes->id() == attrsId<T>() && "attributes of another op");
    return static_cast<const T &>(*attributes);
  }
  template <class T> T &attrs() {
    assert(attributes->id() == attrsId<T>() && "attributes of another op");
    return static_cast<T &>(*attributes);
  }
  const Attrs &rawAttrs() const { return *attributes; }
  Attrs &rawAttrs() { return *attributes; }

  /// The epilogue of a contraction or the body of a map: a block of scalar ops
  /// that ends in `yield`. Null when there is none.
  Block *region() const { return body.get(); }
  /// Makes an empty region (dropping a previous one).
  Block *makeRegion();
  /// Takes over \p region, which has no parent yet.
  void setRegion(std::unique_ptr<Block> region);
  void takeRegion(Op &other);

  Block *block() const { return parent; }
  Op *next() const;
  Op *prev() const;
  /// Whether this op comes before \p other in the same block. O(1) amortised.
  bool isBefore(const Op *other) const;
  void moveBefore(Op *other);
  /// Unlinks and deletes; no result may have uses.
  void erase();

private:
  friend class Block;
  friend class Value;
  void addUse(unsigned i);
  void removeUse(unsigned i);
  Op(OpKind kind, std::unique_ptr<Attrs> attrs);
  OpKind opKind;
  llvm::SmallVector<Value *, 4> operandList;
  llvm::SmallVector<std::unique_ptr<Value>, 1> resultList;
  std::unique_ptr<Attrs> attributes;
  std::unique_ptr<Block> body;
  Block *parent = nullptr;
  std::list<std::unique_ptr<Op>>::iterator position;
  mutable unsigned order = 0;
};

/// A list of ops with arguments: a function's body or an op's region.
class Block {
public:
  explicit Block(Op *parentOp = nullptr) : parentOp(parentOp) {}
  ~Block();
  Block(const Block &) = delete;
  Block &operator=(const Block &) = delete;

  Value *addArgument(TensorType type, llvm::StringRef name = "");
  void eraseArgument(unsigned i);
  unsigned numArguments() const { return arguments.size(); }
  Value *argument(unsigned i) const { return arguments[i].get(); }

  /// Iterates over Op&. Erasing the current op while iterating is allowed in
  /// `for (Op &op : llvm::make_early_inc_range(block))`.
  class iterator {
  public:
    using iterator_category = std::bidirectional_iterator_tag;
    using value_type = Op;
    using difference_type = std::ptrdiff_t;
    using pointer = Op *;
    using reference = Op &;
    using Base = std::list<std::unique_ptr<Op>>::const_iterator;
    explicit iterator(Base it) : it(it) {}
    Op &operator*() const { return **it; }
    Op *operator->() const { return it->get(); }
    iterator &operator++() {
      ++it;
      return *this;
    }
    iterator operator++(int) {
      iterator old = *this;
      ++it;
      return old;
    }
    iterator &operator--() {
      --it;
      return *this;
    }
    iterator operator--(int) {
      iterator old = *this;
      --it;
      return old;
    }
    bool operator==(const iterator &) const = default;

  private:
    Base it;
  };
  iterator begin() const { return iterator(ops.begin()); }
  iterator end() const { return iterator(ops.end()); }
  bool empty() const { return ops.empty(); }
  size_t size() const { return ops.size(); }
  Op &front() const { return *ops.front(); }
  Op &back() const { return *ops.back(); }
  /// The `return` or `yield` at the end, or null.
  Op *terminator() const;

  /// Makes an op before \p before (null: at the end). Result types are left
  /// for the caller; prefer Builder, which infers them.
  Op *insert(OpKind kind, std::unique_ptr<Attrs> attrs,
             llvm::ArrayRef<Value *> operands,
             llvm::ArrayRef<TensorType> resultTypes, Op *before = nullptr);

  Op *parent() const { return parentOp; }

private:
  friend class Op;
  void place(Op *op, std::list<std::unique_ptr<Op>>::iterator position) const;
  void renumber() const;
  void dropReferences();
  std::list<std::unique_ptr<Op>> ops;
  std::vector<std::unique_ptr<Value>> arguments;
  Op *parentOp;
  mutable bool ordered = false;
};

/// From a value to its copy.
using ValueMap = llvm::DenseMap<const Value *, Value *>;
/// Appends copies of \p from's ops to \p to; arguments too, unless \p map has
/// copies of them already. Operands that are not in \p map stay as they are
/// (values from outside). Adds every value of \p from to \p map.
void cloneBlock(const Block &from, Block &to, ValueMap &map);

/// A named input or output of a function.
struct Port {
  std::string name;
};

/// Two expressions that must have the same value at run time (a mask's `total`
/// and a cache's `past + seq`); checked when a call's shapes are bound.
struct DimConstraint {
  Dim a, b;
  /// Which node asks for it, for the message.
  Location loc;
  bool operator==(const DimConstraint &) const = default;
};

/// A function: `func @main(%ids: i64[batch, seq]) -> (...) { ... }`.
class Func {
public:
  explicit Func(llvm::StringRef name) : name(name.str()) {}

  std::string name;
  Block body;
  /// One for each argument and each operand of `return`.
  std::vector<Port> inputs, outputs;
  std::vector<DimConstraint> constraints;
};

/// Bounds of a symbol, inclusive; `high` is INT64_MAX when open.
struct DimRange {
  int64_t low = 0, high = INT64_MAX;
  bool operator==(const DimRange &) const = default;
};

/// How far a module has come through the pipelines.
enum class Stage : uint8_t { Imported, Canonical, Fused };
llvm::StringRef stageName(Stage stage);

/// A model: symbols and functions. The entry is the first function.
class Module {
public:
  std::vector<std::unique_ptr<Func>> funcs;
  Stage stage = Stage::Imported;
  Func &entry() const { return *funcs.front(); }

  /// Declared symbols in order of declaration.
  struct Symbol {
    std::string name;
    DimRange range;
    bool operator==(const Symbol &) const = default;
  };
  std::vector<Symbol> symbols;
  DimRange rangeOf(llvm::StringRef symbol) const;
  void declare(llvm::StringRef symbol, DimRange range = {});
  /// A symbol named like \p hint that is not in use yet; declares it.
  Dim freshSymbol(llvm::StringRef hint, DimRange range = {});
  /// Replaces a symbol everywhere: types, attributes, constraints; drops its
  /// declaration.
  void substituteSymbol(llvm::StringRef symbol, Dim value);

  std::unique_ptr<Module> clone() const;
};

} // namespace tenon::ir

#endif // TENON_IR_OP_H
