//===- Spectral.cpp - importers of Fourier transforms and their helpers ---===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontend/Emitter.h"
#include "frontend/NodeView.h"
#include "frontend/OnnxOps.h"
#include "frontend/Weights.h"
#include "llvm/ADT/Sequence.h"
#include <algorithm>
#include <cmath>

using namespace llvm;
using namespace tenon::ir;

/// \file
/// A Fourier transform is a product with a constant matrix: real and imaginary
/// parts lie beside each other on both sides.

namespace tenon::frontend {

namespace {

constexpr double pi = 3.14159265358979323846;
/// No larger constant is made.
constexpr int64_t largestTable = int64_t(1) << 26;

struct Transform {
  /// Elements of the input along the axis, the transform's length, and elements
  /// of the result.
  int64_t in = 0, length = 0, out = 0;
  /// Parts on both sides: 1 is real alone.
  int64_t partsIn = 1, partsOut = 2;
  bool inverse = false, oneSided = false;
};

/// How often element \p i of the input stands: a one-sided one leaves out what
/// is conjugate to the rest.
double weightOf(const Transform &t, int64_t i) {
  if (i >= (t.inverse && t.oneSided ? t.length / 2 + 1 : t.length))
    return 0;
  bool isPair = i != 0 && 2 * i != t.length;
  double weight = t.inverse && t.oneSided && isPair ? 2 : 1;
  return t.inverse ? weight / double(t.length) : weight;
}

/// [in * partsIn, out * partsOut]
Value *matrixOf(Emitter &emit, const Transform &t, ElementType element) {
  int64_t rows = t.in * t.partsIn, columns = t.out * t.partsOut;
  if (rows < 1 || columns < 1 || rows > largestTable / columns)
    return emit.fail("a transform from {0} to {1} numbers is not supported",
                     rows, columns);
  std::vector<double> matrix(rows * columns);
  for (int64_t i = 0; i < t.in; ++i) {
    double weight = weightOf(t, i);
    for (int64_t k = 0; k < t.out; ++k) {
      // The product modulo the length keeps the angle exact.
      double angle = 2 * pi * double(i * k % t.length) / double(t.length);
      double c = weight * std::cos(angle),
             s = weight * std::sin(angle) * (t.inverse ? 1 : -1);
      // (re + i im) (c + i s)
      double entries[2][2] = {{c, s}, {-s, c}};
      for (int64_t p = 0; p < t.partsIn; ++p)
        for (int64_t q = 0; q < t.partsOut; ++q)
          matrix[(i * t.partsIn + p) * columns + k * t.partsOut + q] =
              entries[p][q];
    }
  }
  return emit.table(element, {rows, columns}, matrix);
}

/// Transforms x[..., n, ..., parts] along \p axis.
Value *transform(Emitter &emit, Value *x, int64_t axis, const Transform &t) {
  Value *matrix = matrixOf(emit, t, x->element());
  if (emit.failed())
    return nullptr;
  int64_t last = int64_t(x->rank()) - 1;
  // The axis beside the parts.
  auto perm = llvm::to_vector(llvm::seq<int64_t>(0, last));
  perm.erase(perm.begin() + axis);
  perm.push_back(axis);
  perm.push_back(last);
  Value *moved = emit.transpose(x, perm);
  Shape flat(moved->shape().drop_back(2)), split(flat);
  flat.push_back(Dim(t.in * t.partsIn));
  split.append({Dim(t.out), Dim(t.partsOut)});
  Value *y =
      emit.reshape(emit.matmul(emit.reshape(moved, flat), matrix), split);
  SmallVector<int64_t> back(perm.size());
  for (auto [i, from] : llvm::enumerate(perm))
    back[from] = i;
  return emit.transpose(y, back);
}

/// A size that must be known.
int64_t knownSize(NodeView &node, Dim size, StringRef what) {
  if (!size.constant())
    node.fail("{0} is {1}; it must be known when compiling", what, size);
  return size.constant().value_or(1);
}

std::optional<int64_t> partsOf(NodeView &node, Value *x) {
  std::optional<int64_t> parts =
      x->rank() < 2 ? std::nullopt : x->shape().back().constant();
  if (parts == 1 || parts == 2)
    return parts;
  node.fail("its input is {0}; expected a last dimension of 1 or 2", x->type);
  return std::nullopt;
}

} // namespace

Value *importDft(NodeView &node, Emitter &emit) {
  Value *x = node.input(0);
  Transform t;
  t.inverse = node.flagAttr("inverse", false);
  t.oneSided = node.flagAttr("onesided", false);
  int64_t axis = node.version() < 20 ? node.intAttr("axis", 1) : -2;
  if (node.version() >= 20)
    if (Value *given = node.input(2)) {
      SmallVector<int64_t, 4> numbers = emit.constantInts(given, "axis");
      if (!emit.failed() && numbers.size() == 1)
        axis = numbers[0];
    }
  axis = node.checkedAxis(axis, x->rank());
  std::optional<int64_t> parts = partsOf(node, x);
  if (!parts || emit.failed())
    return nullptr;
  if (axis + 1 == int64_t(x->rank()))
    return node.fail("its axis is the dimension of the parts");
  t.partsIn = *parts;
  t.in = knownSize(node, x->shape()[axis], "the size of its axis");
  bool toReal = t.inverse && t.oneSided;
  t.length = toReal ? 2 * (t.in - 1) : t.in;
  if (Value *length = node.input(1))
    t.length = knownSize(node, emit.size(length, "dft_length"), "'dft_length'");
  if (emit.failed())
    return nullptr;
  if (t.length < 1 || t.length > INT32_MAX)
    return node.fail("its length is {0}", t.length);
  t.out = t.oneSided && !t.inverse ? t.length / 2 + 1 : t.length;
  t.partsOut = toReal ? 1 : 2;
  return transform(emit, x, axis, t);
}

/// Frames of the signal, times the window, transformed.
Value *importStft(NodeView &node, Emitter &emit) {
  Value *x = node.input(0), *window = node.input(2);
  Transform t;
  t.oneSided = node.flagAttr("onesided", true);
  if (x->rank() == 2)
    x = emit.reshape(x, {x->shape()[0], x->shape()[1], Dim(1)});
  int64_t step =
      knownSize(node, emit.size(node.input(1), "frame_step"), "'frame_step'");
  if (emit.failed())
    return nullptr;
  std::optional<int64_t> parts = partsOf(node, x);
  if (x->rank() != 3 || !parts || step < 1)
    return node.fail("its signal is {0} and its step {1}; expected [batch, "
                     "length, 1 or 2] and a positive step",
                     x->type, step);
  Dim length = x->shape()[1], frame = window ? window->shape()[0] : length;
  if (Value *given = node.input(3))
    frame = emit.size(given, "frame_length");
  t.length = knownSize(node, frame, "'frame_length'");
  t.in = window ? knownSize(node, window->shape()[0], "the window's length")
                : t.length;
  if (emit.failed())
    return nullptr;
  if (t.in > t.length || t.length < 1 || t.length > INT32_MAX)
    return node.fail("its window has {0} elements and its frames {1}", t.in,
                     t.length);
  t.partsIn = *parts;
  t.out = t.oneSided ? t.length / 2 + 1 : t.length;
  Dim frames = Dim::floorDiv(length - Dim(t.length), Dim(step)) + Dim(1);
  Value *starts = emit.mulScalar(emit.iota(frames, 2, 0), double(step));
  Value *places = emit.add(starts, emit.iota(Dim(t.in), 2, 1));
  Value *framed = emit.gather(x, places, 1);
  if (window)
    framed = emit.mul(framed, emit.reshape(window, {Dim(t.in), Dim(1)}));
  return transform(emit, framed, 2, t);
}

namespace {

double melOf(double hertz) { return 2595 * std::log10(1 + hertz / 700); }
double hertzOf(double mel) { return 700 * (std::pow(10, mel / 2595) - 1); }

/// [length / 2 + 1, bins]: triangles between neighbouring edges.
std::vector<double> melMatrix(int64_t bins, int64_t length, double rate,
                              double low, double high) {
  int64_t rows = length / 2 + 1;
  std::vector<int64_t> edges;
  double first = melOf(low), step = (melOf(high) - first) / double(bins + 2);
  for (int64_t i = 0; i < bins + 2; ++i) {
    double hertz = hertzOf(first + double(i) * step);
    double edge = std::floor(double(length + 1) * hertz / rate);
    edges.push_back(int64_t(std::clamp(edge, 0.0, double(rows))));
  }
  std::vector<double> matrix(rows * bins);
  for (int64_t i = 0; i < bins; ++i) {
    int64_t left = edges[i], centre = edges[i + 1], right = edges[i + 2];
    auto put = [&](int64_t row, double value) {
      if (row < rows)
        matrix[row * bins + i] = value;
    };
    if (left == centre)
      put(centre, 1);
    for (int64_t j = left; j <= centre && left != centre; ++j)
      put(j, double(j - left) / double(centre - left));
    for (int64_t j = centre; j < right; ++j)
      put(j, double(right - j) / double(right - centre));
  }
  return matrix;
}

} // namespace

Value *importMelWeightMatrix(NodeView &node, Emitter &emit) {
  static constexpr StringLiteral names[] = {"num_mel_bins", "dft_length",
                                            "sample_rate", "lower_edge_hertz",
                                            "upper_edge_hertz"};
  double numbers[5];
  for (unsigned i = 0; i < 5; ++i) {
    std::optional<double> number = emit.constantScalar(node.input(i));
    if (!number)
      return node.fail("'{0}' depends on data; it must be known when compiling",
                       names[i]);
    numbers[i] = *number;
  }
  Expected<ElementType> type =
      elementTypeOf(node.intAttr("output_datatype", 1));
  if (!type)
    return node.fail("attribute 'output_datatype': {0}",
                     toString(type.takeError()));
  double bins = numbers[0], length = numbers[1];
  if (!(bins >= 1 && length >= 1 && numbers[2] > 0 && numbers[3] >= 0 &&
        numbers[4] >= numbers[3] && bins * length < double(largestTable)))
    return node.fail("its inputs are out of range");
  std::vector<double> matrix = melMatrix(int64_t(bins), int64_t(length),
                                         numbers[2], numbers[3], numbers[4]);
  return emit.table(*type, {int64_t(length) / 2 + 1, int64_t(bins)}, matrix);
}

} // namespace tenon::frontend
