//===- Constant.h - tensor literals and weights --------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_IR_CONSTANT_H
#define TENON_IR_CONSTANT_H

#include "ir/Type.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tenon::ir {

/// The contents of a constant. Immutable and shared: a weight used by ten nodes
/// is one Constant, and a memory-mapped weight's bytes stay in the file's pages
/// (`owner` keeps the mapping alive).
class Constant {
public:
  enum class Form : uint8_t {
    Dense,  ///< `bytes` holds every element, packed, little-endian
    Splat,  ///< `bytes` holds one element
    Iota,   ///< element i is i; no bytes
    Random, ///< uniform in [-1, 1) (integers: [0, 256), bool: a coin), from
            ///< `seed`, element by element; no bytes
    Concat, ///< `parts` one after another along a dimension; no bytes of its
            ///< own, so that merged weights stay in their files' pages
    Converted, ///< the one of `parts` cast to another type whenever it is read;
               ///< no bytes of its own
  };

  static std::shared_ptr<const Constant>
  dense(ElementType element, llvm::ArrayRef<int64_t> shape,
        llvm::ArrayRef<uint8_t> bytes, std::shared_ptr<const void> owner,
        llvm::StringRef name = "");
  /// Copies \p bytes.
  static std::shared_ptr<const Constant> copy(ElementType element,
                                              llvm::ArrayRef<int64_t> shape,
                                              llvm::ArrayRef<uint8_t> bytes,
                                              llvm::StringRef name = "");
  static std::shared_ptr<const Constant>
  splat(ElementType element, llvm::ArrayRef<int64_t> shape, double value);
  /// As `splat`, from the bytes of one element: exact for any value.
  static std::shared_ptr<const Constant>
  splatBytes(ElementType element, llvm::ArrayRef<int64_t> shape,
             llvm::ArrayRef<uint8_t> bytes);
  static std::shared_ptr<const Constant> ints(llvm::ArrayRef<int64_t> values);
  static std::shared_ptr<const Constant> scalar(ElementType element,
                                                double value);
  static std::shared_ptr<const Constant>
  generated(Form form, ElementType element, llvm::ArrayRef<int64_t> shape,
            uint64_t seed);

  /// \p parts, of one type and of equal shapes but for dimension \p axis, one
  /// after another along it. Elements are of whole bytes.
  static std::shared_ptr<const Constant>
  concat(llvm::ArrayRef<std::shared_ptr<const Constant>> parts, unsigned axis);

  /// \p source as \p element, both floats of at least 8 bits, rounded to nearest
  /// even; a big one when it is read. A splat stays one.
  static std::shared_ptr<const Constant>
  converted(std::shared_ptr<const Constant> source, ElementType element);

  Form form() const { return kind; }
  ElementType element() const { return elementType; }
  llvm::ArrayRef<int64_t> shape() const { return dims; }
  uint64_t numElements() const { return count; }
  uint64_t seed() const { return randomSeed; }
  /// The raw bytes of Dense (all) and Splat (one element).
  llvm::ArrayRef<uint8_t> bytes() const { return data; }
  /// The weight's name in the model, for dumps; may be empty.
  llvm::StringRef name() const { return label; }

  /// Element \p i (row-major) as a double or an integer, whatever the form and
  /// type. Integers above 2^53 are exact only through intAt.
  double floatAt(uint64_t i) const;
  int64_t intAt(uint64_t i) const;
  /// All bytes, expanding the other forms.
  std::vector<uint8_t> materialize() const;
  /// Writes elements first..first+n-1 to \p out, packed; \p first must be even
  /// (a multiple of 4) for 4-bit (2-bit) types.
  void read(uint64_t first, uint64_t n, uint8_t *out) const;
  /// The one value that every element has, bit for bit, if so (looks at the
  /// bytes of small Dense constants too). nullopt if a double cannot hold it.
  std::optional<double> splatValue() const;
  /// Equal type, shape and contents.
  bool equals(const Constant &other) const;
  /// A hash of type, shape and contents, the same in every run.
  uint64_t contentHash() const;

private:
  Constant() = default;
  static std::shared_ptr<Constant> make(Form form, ElementType element,
                                        llvm::ArrayRef<int64_t> shape);
  bool elementsEqual(const Constant &other) const;
  void readParts(uint64_t first, uint64_t n, uint8_t *out) const;
  void readConverted(uint64_t first, uint64_t n, uint8_t *out) const;
  Form kind = Form::Dense;
  ElementType elementType = ElementType::F32;
  llvm::SmallVector<int64_t, 4> dims;
  uint64_t count = 0, randomSeed = 0;
  llvm::ArrayRef<uint8_t> data;
  std::shared_ptr<const void> owner;
  std::string label;
  /// Concat: the parts, and how many elements of each lie together. Converted:
  /// the source.
  std::vector<std::shared_ptr<const Constant>> parts;
  std::vector<uint64_t> runs;
  mutable std::atomic<uint64_t> cachedHash{0};
};

using ConstantRef = std::shared_ptr<const Constant>;

/// The product of \p shape; nullopt if an entry is negative or on overflow.
std::optional<uint64_t> elementCount(llvm::ArrayRef<int64_t> shape);
/// The largest finite value of a floating-point type (448 for f8e4m3fn).
double maxFinite(ElementType type);

/// Reads element \p index of packed storage of \p type as a double (f16, bf16,
/// f8, 4-bit ... included) and writes one: floats round to nearest even (beyond
/// the largest finite value to infinity, else to NaN where the type has one,
/// else to that value), integers truncate and wrap, NaN gives 0.
double loadElement(ElementType type, const uint8_t *bytes, uint64_t index);
void storeElement(ElementType type, uint8_t *bytes, uint64_t index,
                  double value);
/// The same for integers and bool, exact for 64 bits.
int64_t loadInteger(ElementType type, const uint8_t *bytes, uint64_t index);
void storeInteger(ElementType type, uint8_t *bytes, uint64_t index,
                  int64_t value);

} // namespace tenon::ir

#endif // TENON_IR_CONSTANT_H
