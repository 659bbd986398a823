//===- Einsum.cpp - importer of Einsum -----------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

/// \file
/// Einsum as transposes, reductions and matrix products: operands are brought
/// to one dimension for each label (repeated labels take the diagonal), labels
/// that only one of them has and nobody needs are summed, and then operands are
/// contracted from left to right.

#include "frontend/DimMath.h"
#include "frontend/Emitter.h"
#include "frontend/NodeView.h"
#include "frontend/OnnxOps.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <map>

using namespace llvm;
using namespace tenon::ir;

namespace tenon::frontend {

namespace {

/// A letter, or for the k-th dimension of the ellipsis 256 + k.
using Label = int;
using Labels = SmallVector<Label, 8>;
constexpr Label firstEllipsis = 256;

struct Term {
  Value *value = nullptr;
  Labels labels;
};

bool has(ArrayRef<Label> labels, Label label) {
  return llvm::is_contained(labels, label);
}

//===----------------------------------------------------------------------===//
// The equation
//===----------------------------------------------------------------------===//

struct Equation {
  SmallVector<std::string> terms;
  std::optional<std::string> output;
};

std::optional<Equation> split(NodeView &node, StringRef text) {
  std::string tight;
  for (char c : text)
    if (c != ' ')
      tight.push_back(c);
  auto [left, right] = StringRef(tight).split("->");
  Equation result;
  if (StringRef(tight).contains("->"))
    result.output = right.str();
  SmallVector<StringRef> parts;
  left.split(parts, ',');
  for (StringRef part : parts)
    result.terms.push_back(part.str());
  if (result.terms.size() == node.numInputs())
    return result;
  node.fail("attribute 'equation' ('{0}') has {1} terms for {2} inputs", text,
            result.terms.size(), node.numInputs());
  return std::nullopt;
}

/// Reads one term; its ellipsis stands for \p ellipsis dimensions, the last of
/// the longest one.
std::optional<Labels> labelsOf(NodeView &node, StringRef term, size_t ellipsis,
                               size_t longest) {
  Labels labels;
  bool seen = false;
  while (!term.empty()) {
    if (term.consume_front("...")) {
      if (seen) {
        node.fail("attribute 'equation' has a term with two ellipses");
        return std::nullopt;
      }
      seen = true;
      for (size_t i = longest - ellipsis; i < longest; ++i)
        labels.push_back(firstEllipsis + Label(i));
    } else if (isAlpha(term.front())) {
      labels.push_back(term.front());
      term = term.drop_front();
    } else {
      node.fail("attribute 'equation' holds '{0}'; expected letters, commas, "
                "'...' and '->'",
                term.take_front(1));
      return std::nullopt;
    }
  }
  return labels;
}

size_t countLetters(StringRef term) {
  return llvm::count_if(term, [](char c) { return isAlpha(c); });
}

/// Without `->`: the ellipsis, then the labels that occur once, sorted.
Labels implicitOutput(ArrayRef<Term> terms, size_t longest) {
  Labels all, output;
  for (const Term &term : terms)
    all.append(term.labels);
  for (size_t i = 0; i < longest; ++i)
    output.push_back(firstEllipsis + Label(i));
  llvm::sort(all);
  for (Label label : all)
    if (label < firstEllipsis && llvm::count(all, label) == 1)
      output.push_back(label);
  return output;
}

//===----------------------------------------------------------------------===//
// Building
//===----------------------------------------------------------------------===//

class Einsum {
public:
  Einsum(NodeView &node, Emitter &emit) : node(node), emit(emit) {}
  Value *build(SmallVector<Term> terms, const Labels &output);

private:
  Dim size(Label label) const { return sizes.at(label); }
  bool collectSizes(const Term &term);
  Term diagonal(Term term);
  Term sumOut(Term term, function_ref<bool(Label)> needed);
  Term arrange(const Term &term, ArrayRef<Label> order);
  Term contract(Term a, Term b, function_ref<bool(Label)> needed);

  NodeView &node;
  Emitter &emit;
  std::map<Label, Dim> sizes;
};

/// The size of each label; a dimension of the ellipsis may be 1 in some terms.
bool Einsum::collectSizes(const Term &term) {
  for (auto [label, dim] : llvm::zip(term.labels, term.value->shape())) {
    auto [it, isNew] = sizes.insert({label, dim});
    if (isNew || it->second == dim)
      continue;
    std::optional<Shape> common = broadcastShapes({it->second}, {dim});
    if (label >= firstEllipsis && common) {
      it->second = common->front();
      continue;
    }
    if (it->second.constant() && dim.constant()) {
      node.fail("label '{0}' has sizes {1} and {2}", char(label), it->second,
                dim);
      return false;
    }
    emit.require(it->second, dim, "sizes of one label");
  }
  return true;
}

/// Keeps the elements where the dimensions of a repeated label agree.
Term Einsum::diagonal(Term term) {
  for (size_t i = 0; i < term.labels.size() && !emit.failed();) {
    auto *again = std::find(term.labels.begin() + i + 1, term.labels.end(),
                            term.labels[i]);
    if (again == term.labels.end()) {
      ++i;
      continue;
    }
    unsigned j = again - term.labels.begin(), rank = term.labels.size();
    Value *same =
        emit.op(OpKind::Equal, {emit.iota(term.value->shape()[i], rank, i),
                                emit.iota(term.value->shape()[j], rank, j)});
    Value *zero = emit.scalar(term.value->element(), 0);
    Value *masked = emit.where(same, term.value, zero);
    term.value = emit.reduce(OpKind::ReduceSum, masked, {int64_t(j)}, false);
    term.labels.erase(again);
  }
  return term;
}

Term Einsum::sumOut(Term term, function_ref<bool(Label)> needed) {
  SmallVector<int64_t> axes;
  Labels kept;
  for (auto [i, label] : llvm::enumerate(term.labels)) {
    if (needed(label))
      kept.push_back(label);
    else
      axes.push_back(i);
  }
  if (axes.empty())
    return term;
  return {emit.reduce(OpKind::ReduceSum, term.value, axes, false), kept};
}

/// Transposes to \p order, with a size of 1 for labels that the term lacks.
Term Einsum::arrange(const Term &term, ArrayRef<Label> order) {
  SmallVector<int64_t> perm;
  Shape shape;
  if (emit.failed())
    return {};
  for (Label label : order) {
    const auto *found = llvm::find(term.labels, label);
    if (found == term.labels.end()) {
      shape.push_back(Dim(1));
      continue;
    }
    perm.push_back(found - term.labels.begin());
    shape.push_back(term.value->shape()[perm.back()]);
  }
  return {emit.reshape(emit.transpose(term.value, perm), shape),
          Labels(order.begin(), order.end())};
}

/// a * b summed over the labels that both have and nobody needs.
Term Einsum::contract(Term a, Term b, function_ref<bool(Label)> needed) {
  Labels batch, rows, columns, summed;
  for (Label label : a.labels)
    (!has(b.labels, label) ? rows
     : needed(label)       ? batch
                           : summed)
        .push_back(label);
  for (Label label : b.labels)
    if (!has(a.labels, label))
      columns.push_back(label);

  Labels result = batch;
  result.append(rows);
  result.append(columns);
  if (summed.empty())
    return {emit.mul(arrange(a, result).value, arrange(b, result).value),
            result};

  Labels left = batch, right = batch;
  left.append(rows);
  left.append(summed);
  right.append(summed);
  right.append(columns);
  Value *x = arrange(a, left).value, *y = arrange(b, right).value;
  if (emit.failed())
    return {};
  // Summed dimensions of the ellipsis may be 1 on one side.
  Dim m(1), n(1), k(1);
  Shape fullX(x->shape()), fullY(y->shape());
  for (auto [i, label] : llvm::enumerate(summed)) {
    fullX[batch.size() + rows.size() + i] = size(label);
    fullY[batch.size() + i] = size(label);
    k = k * size(label);
  }
  x = emit.broadcast(x, fullX);
  y = emit.broadcast(y, fullY);
  Shape shapeX(ShapeRef(fullX).take_front(batch.size())),
      shapeY(ShapeRef(fullY).take_front(batch.size())), shape;
  for (Label label : rows)
    m = m * size(label);
  for (Label label : columns)
    n = n * size(label);
  shapeX.append({m, k});
  shapeY.append({k, n});
  Value *product =
      emit.matmul(emit.reshape(x, shapeX), emit.reshape(y, shapeY));
  if (emit.failed())
    return {};
  shape.assign(product->shape().begin(),
               product->shape().begin() + batch.size());
  for (Label label : rows)
    shape.push_back(size(label));
  for (Label label : columns)
    shape.push_back(size(label));
  return {emit.reshape(product, shape), result};
}

Value *Einsum::build(SmallVector<Term> terms, const Labels &output) {
  for (const Term &term : terms)
    if (!collectSizes(term))
      return nullptr;
  for (Label label : output)
    if (!sizes.count(label) || llvm::count(output, label) != 1)
      return node.fail("output label '{0}' must occur in an input, and once in "
                       "the output",
                       char(label));
  for (Term &term : terms)
    term = diagonal(std::move(term));
  Term result;
  for (size_t i = 0; i < terms.size() && !emit.failed(); ++i) {
    auto neededLater = [&](Label label) {
      return has(output, label) ||
             llvm::any_of(ArrayRef(terms).drop_front(i + 1),
                          [&](const Term &t) { return has(t.labels, label); });
    };
    Term next = sumOut(std::move(terms[i]), [&](Label label) {
      return neededLater(label) || (i > 0 && has(result.labels, label));
    });
    if (i == 0) {
      result = std::move(next);
      continue;
    }
    result = sumOut(std::move(result), [&](Label label) {
      return neededLater(label) || has(next.labels, label);
    });
    result = contract(std::move(result), std::move(next), neededLater);
  }
  return emit.failed() ? nullptr : arrange(result, output).value;
}

} // namespace

Value *importEinsum(NodeView &node, Emitter &emit) {
  StringRef text = node.strAttr("equation", "");
  if (!node.hasAttr("equation"))
    return node.fail("required attribute 'equation' is missing");
  ArrayRef<Value *> inputs = node.allInputs();
  std::optional<Equation> equation = split(node, text);
  if (!equation)
    return nullptr;

  // How many dimensions each ellipsis stands for.
  SmallVector<size_t> ellipsis;
  size_t longest = 0;
  for (auto [input, term] : llvm::zip(inputs, equation->terms)) {
    size_t letters = countLetters(term), rank = input->rank();
    bool dots = StringRef(term).contains("...");
    if (letters > rank || (!dots && letters != rank))
      return node.fail("term '{0}' of 'equation' does not fit its operand, {1}",
                       term, input->type);
    ellipsis.push_back(dots ? rank - letters : 0);
    longest = std::max(longest, ellipsis.back());
  }
  SmallVector<Term> terms;
  for (auto [i, input] : llvm::enumerate(inputs)) {
    auto labels = labelsOf(node, equation->terms[i], ellipsis[i], longest);
    if (!labels)
      return nullptr;
    terms.push_back({input, *labels});
  }
  Labels output = implicitOutput(terms, longest);
  if (equation->output) {
    auto labels = labelsOf(node, *equation->output, longest, longest);
    if (!labels)
      return nullptr;
    output = *labels;
  }
  return Einsum(node, emit).build(std::move(terms), output);
}

} // namespace tenon::frontend
