//===- Weights.cpp - weights as an artifact stores them ------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/plan/Weights.h"
#include "codegen/kernels/cpu/codes_pack.h"
#include "ir/support/WeightMemory.h"
#include "llvm/Support/MathExtras.h"
#include <cassert>
#include <cstring>

namespace tenon::codegen {

using kernel::Weight;
using Write = llvm::function_ref<llvm::Error(llvm::ArrayRef<uint8_t>)>;

namespace {

/// Panels packed at a time: about a megabyte.
constexpr int64_t pieceFloats = 1 << 18;

template <class T>
llvm::Error storePanels(const T *elements, const Weight::Matrix &m,
                        Write write) {
  int64_t panels = llvm::divideCeil(m.n, tn::panel_columns);
  int64_t panelFloats = m.k * tn::panel_columns;
  if (panels == 0 || panelFloats == 0)
    return llvm::Error::success();
  int64_t step = std::max<int64_t>(1, pieceFloats / panelFloats);
  std::vector<T> piece(step * panelFloats);
  for (int64_t b = 0; b < m.batch; ++b) {
    const T *matrix = elements + m.offset + b * m.batchStride;
    for (int64_t first = 0; first < panels; first += step) {
      int64_t last = std::min(panels, first + step);
      tn::pack_b(matrix, m.k, m.n, m.rowStride, m.columnStride, first, last,
                 piece.data());
      llvm::ArrayRef<uint8_t> bytes(
          reinterpret_cast<const uint8_t *>(piece.data()),
          (last - first) * panelFloats * sizeof(T));
      if (llvm::Error error = write(bytes))
        return error;
    }
  }
  return llvm::Error::success();
}

/// Elements of a form that computes them, a piece at a time.
llvm::Error storeComputed(const ir::Constant &value, Write write) {
  std::vector<uint8_t> piece(pieceFloats * 8);
  for (uint64_t at = 0; at < value.numElements(); at += pieceFloats) {
    uint64_t count = std::min<uint64_t>(pieceFloats, value.numElements() - at);
    value.read(at, count, piece.data());
    llvm::ArrayRef<uint8_t> bytes(piece);
    if (llvm::Error error =
            write(bytes.take_front(*ir::byteSize(value.element(), count))))
      return error;
  }
  return llvm::Error::success();
}

/// \p elements of \p bits bits, the first in the low bits of a byte.
llvm::Error storeCodes(llvm::ArrayRef<uint8_t> elements, unsigned bits,
                       const Weight::Matrix &m, Write write) {
  constexpr int64_t columns = tn::panel_columns;
  unsigned perByte = std::max(1u, 8 / bits), size = std::max(1u, bits / 8);
  std::vector<uint8_t> panel(tn::panel_bytes(m.k, bits));
  auto code = [&](int64_t i, int64_t j) {
    uint64_t index = m.offset + i * m.rowStride + j * m.columnStride;
    if (size == 2)
      return unsigned(elements[2 * index] | elements[2 * index + 1] << 8);
    unsigned byte = elements[index / perByte];
    return byte >> (index % perByte * bits) & ((1u << bits) - 1);
  };
  for (int64_t first = 0; first < m.n; first += columns) {
    tn::pack_codes(code, m.k, bits, first, std::min(columns, m.n - first),
                   panel.data());
    if (llvm::Error error = write(panel))
      return error;
  }
  return llvm::Error::success();
}

/// Columns are gathered a few at a time, so that lines of the matrix are read
/// whole.
template <int64_t size>
llvm::Error storeColumns(const uint8_t *elements, const Weight::Matrix &m,
                         Write write) {
  int64_t pitch = llvm::alignTo(m.k * size, 16);
  if (pitch == 0)
    return llvm::Error::success();
  int64_t step = std::clamp<int64_t>(pieceFloats * 4 / pitch, 1, m.n);
  std::vector<uint8_t> piece(step * pitch);
  for (int64_t first = 0; first < m.n; first += step) {
    int64_t count = std::min(step, m.n - first);
    for (int64_t i = 0; i < m.k; ++i)
      for (int64_t j = 0; j < count; ++j) {
        int64_t at = m.offset + i * m.rowStride + (first + j) * m.columnStride;
        std::memcpy(piece.data() + j * pitch + i * size, elements + at * size,
                    size);
      }
    if (llvm::Error error =
            write(llvm::ArrayRef(piece).take_front(count * pitch)))
      return error;
  }
  return llvm::Error::success();
}

} // namespace

llvm::Error storeWeight(const Weight &weight, Write write) {
  const ir::Constant &value = *weight.value;
  bool dense = value.form() == ir::Constant::Form::Dense;
  if (weight.layout == kernel::WeightLayout::RowMajor)
    return dense ? write(value.bytes()) : storeComputed(value, write);
  if (weight.layout == kernel::WeightLayout::Panels16Codes) {
    unsigned bits = ir::bitWidth(value.element());
    return dense ? storeCodes(value.bytes(), bits, weight.matrix, write)
                 : storeCodes(value.materialize(), bits, weight.matrix, write);
  }
  unsigned size = ir::bitWidth(value.element()) / 8;
  const uint8_t *elements = value.bytes().data();
  ir::WeightMemory expanded;
  if (!dense || reinterpret_cast<uintptr_t>(elements) % size != 0) {
    uint64_t count = value.numElements();
    expanded = ir::allocateWeight(count * size);
    value.read(0, count, expanded.bytes.data());
    elements = expanded.bytes.data();
  }
  if (weight.layout == kernel::WeightLayout::Columns)
    switch (size) {
    case 1:
      return storeColumns<1>(elements, weight.matrix, write);
    case 2:
      return storeColumns<2>(elements, weight.matrix, write);
    default:
      assert(size == 4 && "elements of 1, 2 or 4 bytes");
      return storeColumns<4>(elements, weight.matrix, write);
    }
  if (size == sizeof(uint16_t))
    return storePanels(reinterpret_cast<const uint16_t *>(elements),
                       weight.matrix, write);
  return storePanels(reinterpret_cast<const float *>(elements), weight.matrix,
                     write);
}

} // namespace tenon::codegen
