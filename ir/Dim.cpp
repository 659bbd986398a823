//===- Dim.cpp - symbolic dimensions: the polynomials --------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ir/DimImpl.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/CheckedArithmetic.h"
#include "llvm/Support/xxhash.h"
#include <mutex>
#include <unordered_map>

using namespace llvm;

namespace tenon::ir {

//===----------------------------------------------------------------------===//
// Interning
//===----------------------------------------------------------------------===//

namespace {

/// A hash of two hashes that keeps their order; the same in every run.
uint64_t mix(uint64_t a, uint64_t b) {
  uint64_t h = (a ^ (b + 0x9e3779b97f4a7c15u + (a << 6) + (a >> 2)));
  h ^= h >> 32;
  h *= 0xd6e8feb86659fd93u;
  return h ^ (h >> 32);
}

std::optional<int64_t> multiply(std::optional<int64_t> a,
                                std::optional<int64_t> b) {
  return a && b ? checkedMul(*a, *b) : std::nullopt;
}

std::optional<int64_t> add(std::optional<int64_t> a, std::optional<int64_t> b) {
  return a && b ? checkedAdd(*a, *b) : std::nullopt;
}

/// Bounds of coefficient * the product of atoms.
DimBounds boundsOf(const Dim::Term &term) {
  DimBounds b{1, 1};
  if (term.atoms.size() == 1) {
    b = impl(term.atoms.front())->bounds;
  } else {
    for (const Dim::Atom *atom : term.atoms) {
      const DimBounds &a = impl(atom)->bounds;
      if (!a.low || *a.low < 0)
        return {};
      b.low = multiply(b.low, a.low);
      b.high = multiply(b.high, a.high);
    }
  }
  bool flips = term.coefficient < 0;
  return {multiply(flips ? b.high : b.low, term.coefficient),
          multiply(flips ? b.low : b.high, term.coefficient)};
}

/// Every expression of the process. Leaked on purpose: a Dim may outlive any
/// static object.
class Pool {
public:
  static Pool &get() {
    static Pool *pool = new Pool;
    return *pool;
  }

  const DimNode *constant(int64_t value) {
    if (value >= 0 && value < int64_t(std::size(small)))
      return small[value];
    DimTerms terms;
    terms.push_back({value, {}});
    return polynomial(std::move(terms));
  }

  const AtomNode *symbol(StringRef name) {
    std::lock_guard<std::mutex> lock(mutex);
    AtomNode *&slot = symbols[name];
    if (!slot)
      slot = newSymbol(name);
    return slot;
  }

  /// Null when the atom is nested too deeply or too large.
  const AtomNode *application(DimFunc f, Dim a, Dim b);
  const DimNode *polynomial(DimTerms terms);

  const DimNode *overflow;

private:
  Pool() {
    for (auto [value, slot] : enumerate(small)) {
      DimTerms terms;
      if (value != 0)
        terms.push_back({int64_t(value), {}});
      slot = polynomial(std::move(terms));
    }
    // Not in `symbols`: no name in a file can stand for it.
    AtomNode *atom = newSymbol("<overflow>");
    atom->hash = ~uint64_t(0);
    atom->bounds = {};
    DimTerms terms;
    terms.push_back({1, {atom}});
    overflow = polynomial(std::move(terms));
  }

  AtomNode *newSymbol(StringRef name) {
    auto *atom = new AtomNode;
    atom->name = name.str();
    atom->symbol = StringRef(atom->name);
    atom->func = DimFunc::FloorDiv;
    atom->a = atom->b = nullptr;
    atom->hash = xxh3_64bits(name);
    atom->bounds.low = 0;
    return atom;
  }

  std::mutex mutex;
  StringMap<AtomNode *> symbols;
  std::unordered_multimap<uint64_t, const AtomNode *> applications;
  std::unordered_multimap<uint64_t, const DimNode *> polynomials;
  const DimNode *small[1025];
};

const AtomNode *Pool::application(DimFunc f, Dim a, Dim b) {
  const DimNode *x = DimPool::node(a), *y = DimPool::node(b);
  unsigned depth = std::max(x->depth, y->depth) + 1;
  unsigned size = x->size + y->size + 1;
  if (depth > maxDimDepth || size > maxDimSize)
    return nullptr;
  uint64_t hash = mix(mix(uint64_t(f) + 1, x->hash), y->hash);
  DimBounds bounds = ir::boundsOf(f, a, b);

  std::lock_guard<std::mutex> lock(mutex);
  auto [first, last] = applications.equal_range(hash);
  for (auto it = first; it != last; ++it) {
    const AtomNode *atom = it->second;
    if (atom->func == f && atom->a == x && atom->b == y)
      return atom;
  }
  auto *atom = new AtomNode;
  atom->func = f;
  atom->a = x;
  atom->b = y;
  atom->hash = hash;
  atom->bounds = bounds;
  atom->depth = depth;
  atom->size = size;
  applications.emplace(hash, atom);
  return atom;
}

/// Interns canonical terms: sorted, merged, no zero coefficient.
const DimNode *Pool::polynomial(DimTerms terms) {
  uint64_t hash = 0x7e40;
  uint64_t size = 0;
  unsigned depth = 0;
  DimBounds bounds{0, 0};
  for (const Dim::Term &term : terms) {
    hash = mix(hash, uint64_t(term.coefficient));
    ++size;
    for (const Dim::Atom *atom : term.atoms) {
      hash = mix(hash, impl(atom)->hash);
      size += impl(atom)->size;
      depth = std::max(depth, impl(atom)->depth);
    }
    if (term.atoms.size() > maxDimDegree)
      return overflow;
    DimBounds b = boundsOf(term);
    bounds = {add(bounds.low, b.low), add(bounds.high, b.high)};
  }
  if (terms.size() > maxDimTerms || size > maxDimSize)
    return overflow;

  std::lock_guard<std::mutex> lock(mutex);
  auto [first, last] = polynomials.equal_range(hash);
  for (auto it = first; it != last; ++it)
    if (llvm::equal(it->second->terms, terms,
                    [](const Dim::Term &a, const Dim::Term &b) {
                      return a.coefficient == b.coefficient &&
                             a.atoms == b.atoms;
                    }))
      return it->second;
  auto *node = new DimNode;
  node->terms = std::move(terms);
  node->hash = hash;
  node->bounds = bounds;
  node->depth = depth;
  node->size = size;
  polynomials.emplace(hash, node);
  return node;
}

//===----------------------------------------------------------------------===//
// Order
//===----------------------------------------------------------------------===//

template <class T> int threeWay(const T &a, const T &b) {
  return a < b ? -1 : b < a ? 1 : 0;
}

/// Symbols by name, then applications by function and operands. Two different
/// atoms are never equal, so each level descends into one pair only.
int compareAtoms(const Dim::Atom *a, const Dim::Atom *b) {
  if (a == b)
    return 0;
  if (a->symbol && b->symbol)
    return a->symbol->compare(*b->symbol);
  if (a->symbol || b->symbol)
    return a->symbol ? -1 : 1;
  if (int order = threeWay(a->func, b->func))
    return order;
  if (int order = Dim::compare(a->lhs(), b->lhs()))
    return order;
  return Dim::compare(a->rhs(), b->rhs());
}

} // namespace

int compareMonomials(ArrayRef<const Dim::Atom *> a,
                     ArrayRef<const Dim::Atom *> b) {
  if (a.size() != b.size())
    return a.size() > b.size() ? -1 : 1;
  for (auto [x, y] : zip_equal(a, b))
    if (int order = compareAtoms(x, y))
      return order;
  return 0;
}

int Dim::compare(Dim a, Dim b) {
  if (a == b)
    return 0;
  ArrayRef<Term> x = a.terms(), y = b.terms();
  for (size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
    if (int order = compareMonomials(x[i].atoms, y[i].atoms))
      return order;
    if (int order = threeWay(x[i].coefficient, y[i].coefficient))
      return order;
  }
  return threeWay(x.size(), y.size());
}

//===----------------------------------------------------------------------===//
// Making polynomials
//===----------------------------------------------------------------------===//

Dim makePolynomial(DimTerms terms) {
  llvm::stable_sort(terms, [](const Dim::Term &a, const Dim::Term &b) {
    return compareMonomials(a.atoms, b.atoms) < 0;
  });
  DimTerms merged;
  for (Dim::Term &term : terms) {
    if (!merged.empty() && merged.back().atoms == term.atoms) {
      int64_t &sum = merged.back().coefficient;
      if (__builtin_add_overflow(sum, term.coefficient, &sum))
        return Dim::overflow();
      continue;
    }
    if (!merged.empty() && merged.back().coefficient == 0)
      merged.pop_back();
    merged.push_back(std::move(term));
  }
  if (!merged.empty() && merged.back().coefficient == 0)
    merged.pop_back();
  return DimPool::dim(Pool::get().polynomial(std::move(merged)));
}

Dim makeTerm(int64_t coefficient, ArrayRef<const Dim::Atom *> atoms) {
  DimTerms terms;
  if (coefficient != 0)
    terms.push_back({coefficient, {atoms.begin(), atoms.end()}});
  return DimPool::dim(Pool::get().polynomial(std::move(terms)));
}

Dim makeAtom(DimFunc f, Dim a, Dim b) {
  if (a.isOverflow() || b.isOverflow())
    return Dim::overflow();
  const AtomNode *atom = Pool::get().application(f, a, b);
  return atom ? makeTerm(1, {atom}) : Dim::overflow();
}

Dim Dim::fromNode(const DimNode *node) { return Dim(FromNode{}, node); }

Dim::Dim(int64_t value) : node(Pool::get().constant(value)) {}

Dim Dim::symbol(StringRef name) {
  return makeTerm(1, {Pool::get().symbol(name)});
}

Dim Dim::overflow() { return fromNode(Pool::get().overflow); }
bool Dim::isOverflow() const { return node == Pool::get().overflow; }

Dim Dim::Atom::lhs() const { return fromNode(a); }
Dim Dim::Atom::rhs() const { return fromNode(b); }
ArrayRef<Dim::Term> Dim::terms() const { return node->terms; }
hash_code hash_value(Dim dim) { return hash_code(size_t(dim.node->hash)); }

std::optional<int64_t> Dim::constant() const {
  if (node->terms.empty())
    return 0;
  if (node->terms.size() == 1 && node->terms.front().atoms.empty())
    return node->terms.front().coefficient;
  return std::nullopt;
}

std::optional<StringRef> Dim::symbolName() const {
  if (node->terms.size() != 1)
    return std::nullopt;
  const Term &term = node->terms.front();
  if (term.coefficient != 1 || term.atoms.size() != 1)
    return std::nullopt;
  return term.atoms.front()->symbol;
}

Dim operator+(Dim a, Dim b) {
  if (a.isOverflow() || b.isOverflow())
    return Dim::overflow();
  DimTerms terms(a.terms());
  append_range(terms, b.terms());
  return makePolynomial(std::move(terms));
}

Dim operator-(Dim a, Dim b) {
  if (a.isOverflow() || b.isOverflow())
    return Dim::overflow();
  DimTerms terms(a.terms());
  for (Dim::Term term : b.terms()) {
    if (__builtin_sub_overflow(int64_t(0), term.coefficient, &term.coefficient))
      return Dim::overflow();
    terms.push_back(std::move(term));
  }
  return makePolynomial(std::move(terms));
}

Dim operator*(Dim a, Dim b) {
  if (a.isOverflow() || b.isOverflow())
    return Dim::overflow();
  if (a.terms().size() * b.terms().size() > 16 * maxDimTerms)
    return Dim::overflow();
  DimTerms terms;
  for (const Dim::Term &x : a.terms()) {
    for (const Dim::Term &y : b.terms()) {
      Dim::Term product;
      if (__builtin_mul_overflow(x.coefficient, y.coefficient,
                                 &product.coefficient))
        return Dim::overflow();
      product.atoms.resize(x.atoms.size() + y.atoms.size());
      std::merge(x.atoms.begin(), x.atoms.end(), y.atoms.begin(), y.atoms.end(),
                 product.atoms.begin(),
                 [](const Dim::Atom *p, const Dim::Atom *q) {
                   return compareAtoms(p, q) < 0;
                 });
      terms.push_back(std::move(product));
    }
  }
  return makePolynomial(std::move(terms));
}

//===----------------------------------------------------------------------===//
// Values and substitution
//===----------------------------------------------------------------------===//

std::optional<int64_t> Dim::evaluate(Env env) const {
  if (isOverflow())
    return std::nullopt;
  int64_t sum = 0;
  for (const Term &term : terms()) {
    int64_t product = term.coefficient;
    for (const Atom *atom : term.atoms) {
      std::optional<int64_t> value;
      if (atom->symbol) {
        value = env(*atom->symbol);
      } else {
        std::optional<int64_t> a = atom->lhs().evaluate(env);
        std::optional<int64_t> b = atom->rhs().evaluate(env);
        if (a && b)
          value = evaluateFunc(atom->func, *a, *b);
      }
      if (!value || __builtin_mul_overflow(product, *value, &product))
        return std::nullopt;
    }
    if (__builtin_add_overflow(sum, product, &sum))
      return std::nullopt;
  }
  return sum;
}

namespace {

/// Rebuilds expressions with symbols replaced; each shared part once. Depth is
/// bounded by maxDimDepth.
class Substitution {
public:
  using Map = function_ref<std::optional<Dim>(StringRef)>;
  explicit Substitution(Map map) : map(map) {}

  Dim apply(Dim dim) {
    if (dim.isOverflow() || dim.constant())
      return dim;
    Dim sum = 0;
    bool changed = false;
    for (const Dim::Term &term : dim.terms()) {
      Dim product = term.coefficient;
      for (const Dim::Atom *atom : term.atoms) {
        Dim value = apply(atom);
        changed |= value != makeTerm(1, {atom});
        product = product * value;
      }
      sum = sum + product;
    }
    return changed ? sum : dim;
  }

private:
  Dim apply(const Dim::Atom *atom) {
    if (auto it = memo.find(atom); it != memo.end())
      return it->second;
    Dim value = makeTerm(1, {atom});
    if (atom->symbol) {
      value = map(*atom->symbol).value_or(value);
    } else {
      Dim a = apply(atom->lhs()), b = apply(atom->rhs());
      if (a != atom->lhs() || b != atom->rhs())
        value = Dim::func(atom->func, a, b);
    }
    memo.try_emplace(atom, value);
    return value;
  }

  Map map;
  DenseMap<const Dim::Atom *, Dim> memo;
};

using Visited = SmallPtrSet<const Dim::Atom *, 8>;

void collect(Dim dim, Visited &visited, function_ref<void(StringRef)> visit) {
  for (const Dim::Term &term : dim.terms()) {
    for (const Dim::Atom *atom : term.atoms) {
      if (!visited.insert(atom).second)
        continue;
      if (atom->symbol) {
        visit(*atom->symbol);
        continue;
      }
      collect(atom->lhs(), visited, visit);
      collect(atom->rhs(), visited, visit);
    }
  }
}

} // namespace

Dim Dim::substitute(function_ref<std::optional<Dim>(StringRef)> map) const {
  return Substitution(map).apply(*this);
}

void Dim::collectSymbols(function_ref<void(StringRef)> visit) const {
  Visited visited;
  collect(*this, visited, visit);
}

std::optional<int64_t> Dim::lowerBound() const { return node->bounds.low; }
std::optional<int64_t> Dim::upperBound() const { return node->bounds.high; }

} // namespace tenon::ir
