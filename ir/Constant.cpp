//===- Constant.cpp - tensor literals and weights ------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ir/Constant.h"
#include "ir/ElementConversion.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/xxhash.h"
#include <cassert>
#include <cstring>

using namespace llvm;

namespace tenon::ir {

namespace {

/// Elements read at a time when contents are compared or hashed; even for
/// every packed type.
constexpr uint64_t chunkElements = 4096;
constexpr uint64_t chunkBytes = chunkElements * 8;
/// Dense constants larger than this are not searched for one repeated value.
constexpr uint64_t maxSplatSearch = 4096;
/// Generated constants larger than this are hashed by what generates them: a
/// few bytes of a file may ask for any number of elements.
constexpr uint64_t maxHashedElements = uint64_t(1) << 24;

/// Number \p index of the sequence that \p seed starts (SplitMix64).
uint64_t randomBits(uint64_t seed, uint64_t index) {
  uint64_t z = seed + (index + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

void storeRandom(ElementType type, uint8_t *out, uint64_t i, uint64_t bits) {
  switch (category(type)) {
  case TypeCategory::Float: // 24 bits: exact in f32
    return storeElement(type, out, i, double(bits >> 40) * 0x1p-23 - 1.0);
  case TypeCategory::Bool:
    return storeInteger(type, out, i, bits >> 63);
  case TypeCategory::Signed:
  case TypeCategory::Unsigned:
    return storeInteger(type, out, i, bits >> 56);
  }
}

/// The value as a double if that is exact.
std::optional<double> exactDouble(ElementType type, const uint8_t *bytes,
                                  uint64_t i) {
  double value = loadElement(type, bytes, i);
  if (isFloat(type) || bitWidth(type) < 64)
    return value;
  // Storing would saturate what a double rounds up to 2^63 or 2^64.
  if (value >= (category(type) == TypeCategory::Signed ? 0x1p63 : 0x1p64))
    return std::nullopt;
  uint8_t back[8];
  storeElement(type, back, 0, value);
  bool exact = loadInteger(type, back, 0) == loadInteger(type, bytes, i);
  return exact ? std::optional(value) : std::nullopt;
}

std::vector<uint8_t> elementBytes(ElementType type) {
  return std::vector<uint8_t>(*byteSize(type, 1));
}

/// The bytes around element \p i of a constant, of which it is element
/// `number`.
struct OneElement {
  OneElement(const Constant &constant, uint64_t i) {
    uint64_t packed = 8 / std::min(8u, bitWidth(constant.element()));
    uint64_t first = i - i % packed;
    number = i - first;
    constant.read(first, std::min(packed, constant.numElements() - first),
                  bytes);
  }
  uint8_t bytes[8] = {};
  uint64_t number;
};

} // namespace

std::optional<uint64_t> elementCount(ArrayRef<int64_t> shape) {
  // A 0 anywhere makes the product 0, but the rest must not overflow either:
  // strides are computed from it.
  uint64_t count = 1, product = 1;
  for (int64_t dim : shape) {
    if (dim < 0 ||
        __builtin_mul_overflow(count, uint64_t(dim ? dim : 1), &count))
      return std::nullopt;
    product = dim == 0 ? 0 : product;
  }
  return count > uint64_t(INT64_MAX) ? std::nullopt
                                     : std::optional(product ? count : 0);
}

std::shared_ptr<Constant> Constant::make(Form form, ElementType element,
                                         ArrayRef<int64_t> shape) {
  std::optional<uint64_t> count = elementCount(shape);
  assert(count && "the caller checks the shape of a constant");
  std::shared_ptr<Constant> constant(new Constant);
  constant->kind = form;
  constant->elementType = element;
  constant->dims.assign(shape.begin(), shape.end());
  constant->count = count.value_or(0);
  return constant;
}

std::shared_ptr<const Constant>
Constant::dense(ElementType element, ArrayRef<int64_t> shape,
                ArrayRef<uint8_t> bytes, std::shared_ptr<const void> owner,
                StringRef name) {
  std::shared_ptr<Constant> constant = make(Form::Dense, element, shape);
  assert(byteSize(element, constant->count) == bytes.size() &&
         "the caller checks the size of a constant");
  constant->data = bytes;
  constant->owner = std::move(owner);
  constant->label = name.str();
  return constant;
}

std::shared_ptr<const Constant> Constant::copy(ElementType element,
                                               ArrayRef<int64_t> shape,
                                               ArrayRef<uint8_t> bytes,
                                               StringRef name) {
  auto storage = std::make_shared<std::vector<uint8_t>>(bytes.vec());
  ArrayRef<uint8_t> view(*storage);
  return dense(element, shape, view, std::move(storage), name);
}

std::shared_ptr<const Constant> Constant::splatBytes(ElementType element,
                                                     ArrayRef<int64_t> shape,
                                                     ArrayRef<uint8_t> bytes) {
  assert(bytes.size() == *byteSize(element, 1) && "not one element");
  auto storage = std::make_shared<std::vector<uint8_t>>(bytes.vec());
  std::shared_ptr<Constant> constant = make(Form::Splat, element, shape);
  constant->data = *storage;
  constant->owner = std::move(storage);
  return constant;
}

std::shared_ptr<const Constant>
Constant::splat(ElementType element, ArrayRef<int64_t> shape, double value) {
  std::vector<uint8_t> bytes = elementBytes(element);
  storeElement(element, bytes.data(), 0, value);
  return splatBytes(element, shape, bytes);
}

std::shared_ptr<const Constant> Constant::ints(ArrayRef<int64_t> values) {
  ArrayRef<uint8_t> bytes(reinterpret_cast<const uint8_t *>(values.data()),
                          values.size() * sizeof(int64_t));
  return copy(ElementType::I64, {int64_t(values.size())}, bytes);
}

std::shared_ptr<const Constant> Constant::scalar(ElementType element,
                                                 double value) {
  return splat(element, {}, value);
}

std::shared_ptr<const Constant> Constant::generated(Form form,
                                                    ElementType element,
                                                    ArrayRef<int64_t> shape,
                                                    uint64_t seed) {
  assert((form == Form::Iota || form == Form::Random) && "has contents");
  std::shared_ptr<Constant> constant = make(form, element, shape);
  constant->randomSeed = form == Form::Random ? seed : 0;
  return constant;
}

std::shared_ptr<const Constant>
Constant::concat(ArrayRef<std::shared_ptr<const Constant>> parts,
                 unsigned axis) {
  const Constant &first = *parts.front();
  SmallVector<int64_t, 4> shape(first.dims);
  shape[axis] = 0;
  std::string label;
  for (const std::shared_ptr<const Constant> &part : parts) {
    assert(part->elementType == first.elementType && "parts of one type");
    shape[axis] += part->dims[axis];
    label += (label.empty() ? "" : " + ") + part->label;
  }
  std::shared_ptr<Constant> constant =
      make(Form::Concat, first.elementType, shape);
  constant->label = std::move(label);
  constant->parts.assign(parts.begin(), parts.end());
  for (const std::shared_ptr<const Constant> &part : parts)
    constant->runs.push_back(
        *elementCount(ArrayRef(part->dims).drop_front(axis)));
  assert(llvm::all_of(constant->runs,
                      [&](uint64_t run) {
                        return run * bitWidth(first.elementType) % 8 == 0;
                      }) &&
         "runs of whole bytes");
  return constant;
}

/// Copies run by run: of each part in turn, the elements that lie together.
void Constant::readParts(uint64_t first, uint64_t n, uint8_t *out) const {
  uint64_t row = 0;
  for (uint64_t run : runs)
    row += run;
  while (n != 0) {
    uint64_t outer = first / row, within = first % row;
    for (size_t p = 0; p < parts.size() && n != 0; ++p) {
      if (within >= runs[p]) {
        within -= runs[p];
        continue;
      }
      uint64_t take = std::min(runs[p] - within, n);
      parts[p]->read(outer * runs[p] + within, take, out);
      out += *byteSize(elementType, take);
      first += take;
      n -= take;
      within = 0;
    }
  }
}

std::shared_ptr<const Constant>
Constant::converted(std::shared_ptr<const Constant> source,
                    ElementType element) {
  assert(isFloat(source->elementType) && isFloat(element) &&
         bitWidth(source->elementType) >= 8 && bitWidth(element) >= 8 &&
         "floats of whole bytes");
  if (source->kind == Form::Splat)
    return splat(element, source->dims,
                 loadElement(source->elementType, source->data.data(), 0));
  std::shared_ptr<Constant> constant =
      make(Form::Converted, element, source->dims);
  constant->label = source->label;
  constant->parts.push_back(std::move(source));
  if (constant->count <= chunkElements)
    return copy(element, constant->dims, constant->materialize(),
                constant->label);
  return constant;
}

void Constant::readConverted(uint64_t first, uint64_t n, uint8_t *out) const {
  const Constant &source = *parts.front();
  std::vector<uint8_t> chunk(std::min(n, chunkElements) * 8);
  for (uint64_t at = 0; at < n; at += chunkElements) {
    uint64_t count = std::min(chunkElements, n - at);
    source.read(first + at, count, chunk.data());
    convertElements(source.elementType, chunk.data(), elementType,
                    out + *byteSize(elementType, at), count);
  }
}

double Constant::floatAt(uint64_t i) const {
  assert(i < count && "element out of range");
  if (kind == Form::Dense || kind == Form::Splat)
    return loadElement(elementType, data.data(), kind == Form::Splat ? 0 : i);
  OneElement one(*this, i);
  return loadElement(elementType, one.bytes, one.number);
}

int64_t Constant::intAt(uint64_t i) const {
  assert(i < count && "element out of range");
  if (kind == Form::Dense || kind == Form::Splat)
    return loadInteger(elementType, data.data(), kind == Form::Splat ? 0 : i);
  OneElement one(*this, i);
  return loadInteger(elementType, one.bytes, one.number);
}

void Constant::read(uint64_t first, uint64_t n, uint8_t *out) const {
  assert(first % (8 / std::min(8u, bitWidth(elementType))) == 0 &&
         first + n <= count && "range of elements");
  if (n == 0) // and perhaps no memory at all
    return;
  uint64_t size = *byteSize(elementType, n);
  switch (kind) {
  case Form::Dense:
    std::memcpy(out, data.data() + *byteSize(elementType, first), size);
    return;
  case Form::Splat:
    if (bitWidth(elementType) >= 8) {
      for (uint64_t at = 0; at < size; at += data.size())
        std::memcpy(out + at, data.data(), data.size());
      return;
    }
    std::memset(out, 0, size);
    for (uint64_t i = 0; i < n; ++i)
      storeInteger(elementType, out, i, 0),
          storeElement(elementType, out, i,
                       loadElement(elementType, data.data(), 0));
    return;
  case Form::Iota:
    std::memset(out, 0, size);
    for (uint64_t i = 0; i < n; ++i)
      storeInteger(elementType, out, i, int64_t(first + i));
    return;
  case Form::Random:
    std::memset(out, 0, size);
    for (uint64_t i = 0; i < n; ++i)
      storeRandom(elementType, out, i, randomBits(randomSeed, first + i));
    return;
  case Form::Concat:
    readParts(first, n, out);
    return;
  case Form::Converted:
    readConverted(first, n, out);
    return;
  }
}

std::vector<uint8_t> Constant::materialize() const {
  std::vector<uint8_t> bytes(*byteSize(elementType, count));
  read(0, count, bytes.data());
  return bytes;
}

std::optional<double> Constant::splatValue() const {
  if (count == 0)
    return std::nullopt;
  if (kind == Form::Splat || count == 1) {
    uint8_t one[8] = {};
    read(0, 1, one);
    return exactDouble(elementType, one, 0);
  }
  if (kind != Form::Dense || count > maxSplatSearch)
    return std::nullopt;
  std::shared_ptr<const Constant> first = splat(elementType, dims, floatAt(0));
  if (bitWidth(elementType) >= 8)
    first = splatBytes(elementType, dims,
                       data.take_front(*byteSize(elementType, 1)));
  if (!elementsEqual(*first))
    return std::nullopt;
  return exactDouble(elementType, data.data(), 0);
}

/// Compares contents; types and shapes are equal.
bool Constant::elementsEqual(const Constant &other) const {
  if (kind == other.kind) {
    if (kind == Form::Iota ||
        (kind == Form::Random && randomSeed == other.randomSeed))
      return true;
    // The padding of a last, partly used byte is compared below, cleared.
    bool whole = bitWidth(elementType) >= 8;
    if (kind == Form::Splat && whole)
      return data == other.data;
    if (kind == Form::Dense && (data.data() == other.data.data() || whole))
      return data.data() == other.data.data() || data == other.data;
  }
  std::vector<uint8_t> a(chunkBytes), b(chunkBytes);
  for (uint64_t at = 0; at < count; at += chunkElements) {
    uint64_t n = std::min(chunkElements, count - at);
    read(at, n, a.data());
    other.read(at, n, b.data());
    if (bitWidth(elementType) >= 8) {
      if (std::memcmp(a.data(), b.data(), *byteSize(elementType, n)) != 0)
        return false;
      continue;
    }
    for (uint64_t i = 0; i < n; ++i)
      if (loadInteger(elementType, a.data(), i) !=
          loadInteger(elementType, b.data(), i))
        return false;
  }
  return true;
}

bool Constant::equals(const Constant &other) const {
  return this == &other || (elementType == other.elementType &&
                            dims == other.dims && elementsEqual(other));
}

uint64_t Constant::contentHash() const {
  if (uint64_t known = cachedHash.load(std::memory_order_relaxed))
    return known;
  uint64_t hash = uint64_t(elementType) + 1;
  auto append = [&](uint64_t value) {
    uint64_t pair[2] = {hash, value};
    hash = xxh3_64bits(ArrayRef(reinterpret_cast<const uint8_t *>(pair), 16));
  };
  append(dims.size());
  for (int64_t dim : dims)
    append(uint64_t(dim));
  bool isGenerated =
      kind == Form::Splat || kind == Form::Iota || kind == Form::Random;
  uint64_t hashed = count;
  if (isGenerated && count > maxHashedElements) {
    append(uint64_t(kind));
    append(randomSeed);
    hashed = chunkElements;
  }
  std::vector<uint8_t> chunk(chunkBytes);
  for (uint64_t at = 0; at < hashed; at += chunkElements) {
    uint64_t n = std::min(chunkElements, hashed - at);
    read(at, n, chunk.data());
    // Padding bits of the last byte are not contents.
    if (unsigned used = n * bitWidth(elementType) % 8)
      chunk[*byteSize(elementType, n) - 1] &= uint8_t((1u << used) - 1);
    append(xxh3_64bits(ArrayRef(chunk.data(), *byteSize(elementType, n))));
  }
  hash = hash ? hash : 1;
  cachedHash.store(hash, std::memory_order_relaxed);
  return hash;
}

} // namespace tenon::ir
