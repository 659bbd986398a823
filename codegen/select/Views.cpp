//===- Views.cpp - views instead of copies -------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/select/Views.h"
#include "llvm/ADT/STLExtras.h"

namespace tenon::codegen {

bool isContiguous(const View &view) {
  Dim expected = 1;
  for (unsigned i = view.rank(); i-- > 0;) {
    if (view.shape[i].isConstant(1))
      continue;
    if (view.strides[i] != expected)
      return false;
    expected = expected * view.shape[i];
  }
  return true;
}

bool canMerge(const View &view, unsigned i) {
  return view.shape[i].isConstant(1) || view.shape[i + 1].isConstant(1) ||
         view.strides[i] == view.strides[i + 1] * view.shape[i + 1];
}

namespace {

/// The dimensions of a view, sizes of 1 left out and mergeable ones merged.
struct Runs {
  Dims sizes, strides;
};

Runs collapse(const View &view) {
  Runs runs;
  for (unsigned i = 0; i < view.rank(); ++i) {
    if (view.shape[i].isConstant(1))
      continue;
    if (!runs.sizes.empty() &&
        runs.strides.back() == view.strides[i] * view.shape[i]) {
      runs.sizes.back() = runs.sizes.back() * view.shape[i];
      runs.strides.back() = view.strides[i];
      continue;
    }
    runs.sizes.push_back(view.shape[i]);
    runs.strides.push_back(view.strides[i]);
  }
  return runs;
}

} // namespace

std::optional<View> reshapeView(const View &view, ir::ShapeRef shape) {
  View result = view;
  result.shape.assign(shape.begin(), shape.end());
  if (isContiguous(view)) {
    result.strides = kernel::contiguousStrides(shape);
    return result;
  }
  // Each run of old dimensions must be cut into whole new dimensions, from the
  // innermost: what is left of the run says where the next stride stands.
  Runs runs = collapse(view);
  result.strides.assign(shape.size(), Dim(0));
  Dim left = 1, stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    if (shape[i].isConstant(1)) {
      result.strides[i] = stride;
      continue;
    }
    if (left.isConstant(1)) {
      if (runs.sizes.empty())
        return std::nullopt;
      left = runs.sizes.pop_back_val();
      stride = runs.strides.pop_back_val();
    }
    std::optional<Dim> rest = Dim::divideExactly(left, shape[i]);
    if (!rest)
      return std::nullopt;
    result.strides[i] = stride;
    stride = stride * shape[i];
    left = *rest;
  }
  if (!left.isConstant(1) || !runs.sizes.empty())
    return std::nullopt;
  return result;
}

View transposeView(const View &view, llvm::ArrayRef<int64_t> perm) {
  View result = view;
  for (const auto &[i, from] : llvm::enumerate(perm)) {
    result.shape[i] = view.shape[from];
    result.strides[i] = view.strides[from];
  }
  return result;
}

View sliceView(const View &view, llvm::ArrayRef<Dim> starts,
               llvm::ArrayRef<Dim> sizes, llvm::ArrayRef<int64_t> steps) {
  View result = view;
  for (unsigned i = 0; i < view.rank(); ++i) {
    result.offset = result.offset + starts[i] * view.strides[i];
    result.shape[i] = sizes[i];
    result.strides[i] = view.strides[i] * Dim(steps[i]);
  }
  return result;
}

View broadcastView(const View &view, ir::ShapeRef shape,
                   llvm::function_ref<bool(Dim, Dim)> provedEqual) {
  View result = view;
  result.shape.assign(shape.begin(), shape.end());
  result.strides.assign(shape.size(), Dim(0));
  unsigned lead = shape.size() - view.rank();
  for (unsigned i = 0; i < view.rank(); ++i) {
    Dim from = view.shape[i], to = shape[lead + i], stride = view.strides[i];
    if (from.isConstant(1) && !to.isConstant(1))
      continue;
    bool same =
        from == to || (from - Dim(2)).isAtLeast(0) || provedEqual(from, to);
    // 0 where `from` is 1; where it is 0 nothing is read.
    Dim isMany = Dim::min(Dim::max(from - Dim(1), 0), 1);
    result.strides[lead + i] = same ? stride : stride * isMany;
  }
  return result;
}

View dropDim(View view, unsigned i) {
  view.shape.erase(view.shape.begin() + i);
  view.strides.erase(view.strides.begin() + i);
  return view;
}

View insertDim(View view, unsigned i) {
  Dim stride = i < view.rank() ? view.strides[i] * view.shape[i] : Dim(1);
  view.shape.insert(view.shape.begin() + i, Dim(1));
  view.strides.insert(view.strides.begin() + i, stride);
  return view;
}

std::optional<View> mergeDims(const View &view, unsigned first, unsigned last) {
  if (first == last)
    return insertDim(view, first);
  View part = view;
  part.shape.assign(view.shape.begin() + first, view.shape.begin() + last);
  part.strides.assign(view.strides.begin() + first,
                      view.strides.begin() + last);
  Runs runs = collapse(part);
  if (runs.sizes.size() > 1)
    return std::nullopt;
  View result = view;
  result.shape.erase(result.shape.begin() + first + 1,
                     result.shape.begin() + last);
  result.strides.erase(result.strides.begin() + first + 1,
                       result.strides.begin() + last);
  // With all sizes 1 any stride does; keep the innermost one.
  result.shape[first] = runs.sizes.empty() ? Dim(1) : runs.sizes[0];
  result.strides[first] =
      runs.sizes.empty() ? view.strides[last - 1] : runs.strides[0];
  return result;
}

} // namespace tenon::codegen
