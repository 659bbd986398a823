//===- Attrs.h - attribute structs ---------------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_IR_ATTRS_H
#define TENON_IR_ATTRS_H

/// \file
/// Every op kind has one attribute struct. Its `fields` names each member once;
/// printing, parsing, hashing, equality and documentation all walk it. There
/// are no string-keyed attribute maps.
///
/// \code
///   struct ReduceAttrs final : AttrsBase<ReduceAttrs> {
///     llvm::SmallVector<int64_t, 4> axes;
///     bool keepdims = true;
///     void fields(FieldVisitor &v) override {
///       v.field("axes", axes);
///       v.optional("keepdims", keepdims, true);
///     }
///   };
/// \endcode
///
/// To give an enum a text form, add a TN_ENUM line to Attrs.cpp's table.

#include "ir/Constant.h"
#include "ir/Dim.h"
#include "ir/Type.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <memory>
#include <type_traits>

namespace tenon::ir {

using Ints = llvm::SmallVector<int64_t, 4>;
using Dims = llvm::SmallVector<Dim, 4>;

/// What a field's enum looks like to a visitor: its spellings by value.
struct EnumRef {
  int *value;
  llvm::ArrayRef<llvm::StringLiteral> names;
};

/// Visits the members of an attribute struct in declaration order.
class FieldVisitor {
public:
  virtual ~FieldVisitor() = default;
  virtual void visit(llvm::StringRef name, int64_t &value) = 0;
  virtual void visit(llvm::StringRef name, bool &value) = 0;
  virtual void visit(llvm::StringRef name, double &value) = 0;
  virtual void visit(llvm::StringRef name, Ints &value) = 0;
  virtual void visit(llvm::StringRef name, Dim &value) = 0;
  virtual void visit(llvm::StringRef name, Dims &value) = 0;
  virtual void visit(llvm::StringRef name, ElementType &value) = 0;
  virtual void visit(llvm::StringRef name, ConstantRef &value) = 0;
  virtual void visit(llvm::StringRef name, EnumRef value) = 0;
  /// Told before each field whether it equals its default; a printer skips
  /// those, a parser may leave them out.
  virtual void nextIsOptional(bool isDefault) = 0;

  /// A member that is always printed and must be given.
  template <class T> void field(llvm::StringRef name, T &value) {
    dispatch(name, value);
  }
  /// A member that is left out of the text when it equals \p byDefault.
  template <class T, class D>
  void optional(llvm::StringRef name, T &value, const D &byDefault) {
    nextIsOptional(value == T(byDefault));
    dispatch(name, value);
  }

private:
  template <class T> void dispatch(llvm::StringRef name, T &value) {
    if constexpr (std::is_enum_v<T> && !std::is_same_v<T, ElementType>) {
      int number = static_cast<int>(value);
      visit(name, EnumRef{&number, enumNames(T{})});
      value = static_cast<T>(number);
    } else {
      visit(name, value);
    }
  }
};

/// The base of all attribute structs.
struct Attrs {
  virtual ~Attrs() = default;
  virtual void fields(FieldVisitor &v) = 0;
  virtual std::unique_ptr<Attrs> clone() const = 0;
  /// Identifies the struct; see `attrsId`.
  virtual const void *id() const = 0;
};

template <class T> const void *attrsId() {
  static const char anchor = 0;
  return &anchor;
}

template <class T> struct AttrsBase : Attrs {
  std::unique_ptr<Attrs> clone() const override {
    return std::make_unique<T>(static_cast<const T &>(*this));
  }
  const void *id() const override { return attrsId<T>(); }
};

bool equal(const Attrs &a, const Attrs &b);
llvm::hash_code hashAttrs(const Attrs &attrs);

//===----------------------------------------------------------------------===//
// Enumerations
//===----------------------------------------------------------------------===//

enum class PadMode { Constant, Reflect, Edge, Wrap };
enum class ScatterReduction { None, Add, Mul, Min, Max };
/// What a row gives whose every key is masked: 0, the mean of all values (what
/// a finite mask such as -FLT_MAX gives), or NaN (what -inf gives).
enum class MaskedRow { Zero, Uniform, Nan };
/// Which keys a query may see besides what the mask says. `query_offset` in
/// AttentionAttrs says at which key position query 0 stands.
enum class Causality { None, Causal };

llvm::ArrayRef<llvm::StringLiteral> enumNames(PadMode);
llvm::ArrayRef<llvm::StringLiteral> enumNames(ScatterReduction);
llvm::ArrayRef<llvm::StringLiteral> enumNames(MaskedRow);
llvm::ArrayRef<llvm::StringLiteral> enumNames(Causality);

//===----------------------------------------------------------------------===//
// The structs
//===----------------------------------------------------------------------===//

struct NoAttrs final : AttrsBase<NoAttrs> {
  void fields(FieldVisitor &) override {}
};

struct MatMulAttrs final : AttrsBase<MatMulAttrs> {
  /// A kernel may round a's rows to 8 bits, each in blocks with a scale of
  /// their own: the model allows the error.
  bool eightBitRows = false;
  void fields(FieldVisitor &v) override {
    v.optional("eight_bit_rows", eightBitRows, false);
  }
};

struct ConstAttrs final : AttrsBase<ConstAttrs> {
  ConstantRef value;
  void fields(FieldVisitor &v) override { v.field("value", value); }
};

/// `dims`: integers known as expressions. `scalar` makes a rank-0 result.
struct DimsAttrs final : AttrsBase<DimsAttrs> {
  Dims values;
  bool scalar = false;
  void fields(FieldVisitor &v) override {
    v.field("values", values);
    v.optional("scalar", scalar, false);
  }
};

/// `bind_dims`: the symbols that the elements of the operand define.
struct BindDimsAttrs final : AttrsBase<BindDimsAttrs> {
  Dims symbols;
  void fields(FieldVisitor &v) override { v.field("symbols", symbols); }
};

/// leaky_relu, elu, celu, thresholded_relu, quick_gelu, swish.
struct AlphaAttrs final : AttrsBase<AlphaAttrs> {
  double alpha = 1.0;
  void fields(FieldVisitor &v) override { v.field("alpha", alpha); }
};

/// selu (alpha, gamma as beta), hard_sigmoid.
struct AlphaBetaAttrs final : AttrsBase<AlphaBetaAttrs> {
  double alpha = 0.2, beta = 0.5;
  void fields(FieldVisitor &v) override {
    v.field("alpha", alpha);
    v.field("beta", beta);
  }
};

struct IsInfAttrs final : AttrsBase<IsInfAttrs> {
  bool positive = true, negative = true;
  void fields(FieldVisitor &v) override {
    v.optional("positive", positive, true);
    v.optional("negative", negative, true);
  }
};

struct CastAttrs final : AttrsBase<CastAttrs> {
  ElementType to = ElementType::F32;
  /// For float8 targets: out-of-range values become the largest finite one.
  bool saturate = true;
  void fields(FieldVisitor &v) override {
    v.field("to", to);
    v.optional("saturate", saturate, true);
  }
};

/// reshape, broadcast: the result's shape.
struct ShapeAttrs final : AttrsBase<ShapeAttrs> {
  Dims shape;
  void fields(FieldVisitor &v) override { v.field("shape", shape); }
};

struct TransposeAttrs final : AttrsBase<TransposeAttrs> {
  Ints perm;
  void fields(FieldVisitor &v) override { v.field("perm", perm); }
};

/// softmax, log_softmax, concat, gather, gather_elements. Not negative.
struct AxisAttrs final : AttrsBase<AxisAttrs> {
  int64_t axis = 0;
  void fields(FieldVisitor &v) override { v.field("axis", axis); }
};

/// One entry for each dimension: result[i] = x[starts + i * steps], for
/// 0 <= i < sizes. Starts are in range and not negative; a step may be
/// negative.
struct SliceAttrs final : AttrsBase<SliceAttrs> {
  Dims starts, sizes;
  Ints steps;
  void fields(FieldVisitor &v) override {
    v.field("starts", starts);
    v.field("sizes", sizes);
    v.field("steps", steps);
  }
};

/// One entry for each dimension; negative amounts crop.
struct PadAttrs final : AttrsBase<PadAttrs> {
  Dims low, high;
  PadMode mode = PadMode::Constant;
  void fields(FieldVisitor &v) override {
    v.field("low", low);
    v.field("high", high);
    v.optional("mode", mode, PadMode::Constant);
  }
};

struct GatherNdAttrs final : AttrsBase<GatherNdAttrs> {
  int64_t batchDims = 0;
  void fields(FieldVisitor &v) override {
    v.optional("batch_dims", batchDims, 0);
  }
};

struct ScatterNdAttrs final : AttrsBase<ScatterNdAttrs> {
  ScatterReduction reduction = ScatterReduction::None;
  void fields(FieldVisitor &v) override {
    v.optional("reduction", reduction, ScatterReduction::None);
  }
};

struct ScatterElementsAttrs final : AttrsBase<ScatterElementsAttrs> {
  int64_t axis = 0;
  ScatterReduction reduction = ScatterReduction::None;
  void fields(FieldVisitor &v) override {
    v.field("axis", axis);
    v.optional("reduction", reduction, ScatterReduction::None);
  }
};

/// Keeps the triangle of the last two dimensions: upper keeps column - row >=
/// k, lower keeps column - row <= k.
struct TriluAttrs final : AttrsBase<TriluAttrs> {
  bool upper = true;
  Dim k;
  void fields(FieldVisitor &v) override {
    v.field("upper", upper);
    v.optional("k", k, 0);
  }
};

/// range, non_zero: how many elements; for non_zero a symbol that it defines.
struct CountAttrs final : AttrsBase<CountAttrs> {
  Dim count;
  void fields(FieldVisitor &v) override { v.field("count", count); }
};

struct OneHotAttrs final : AttrsBase<OneHotAttrs> {
  int64_t axis = 0;
  Dim depth;
  void fields(FieldVisitor &v) override {
    v.field("axis", axis);
    v.field("depth", depth);
  }
};

struct CumSumAttrs final : AttrsBase<CumSumAttrs> {
  int64_t axis = 0;
  bool exclusive = false, reverse = false;
  void fields(FieldVisitor &v) override {
    v.field("axis", axis);
    v.optional("exclusive", exclusive, false);
    v.optional("reverse", reverse, false);
  }
};

struct TopKAttrs final : AttrsBase<TopKAttrs> {
  int64_t axis = 0;
  Dim k;
  bool largest = true, sorted = true;
  void fields(FieldVisitor &v) override {
    v.field("axis", axis);
    v.field("k", k);
    v.optional("largest", largest, true);
    v.optional("sorted", sorted, true);
  }
};

/// Axes are sorted, unique and not negative; none means no reduction at all.
struct ReduceAttrs final : AttrsBase<ReduceAttrs> {
  Ints axes;
  bool keepdims = true;
  void fields(FieldVisitor &v) override {
    v.field("axes", axes);
    v.optional("keepdims", keepdims, true);
  }
};

struct ArgReduceAttrs final : AttrsBase<ArgReduceAttrs> {
  int64_t axis = 0;
  bool keepdims = true, selectLast = false;
  void fields(FieldVisitor &v) override {
    v.field("axis", axis);
    v.optional("keepdims", keepdims, true);
    v.optional("select_last", selectLast, false);
  }
};

/// Spatial attributes, one entry for each spatial dimension.
struct ConvAttrs final : AttrsBase<ConvAttrs> {
  Ints strides, dilations, padLow, padHigh;
  int64_t groups = 1;
  void fields(FieldVisitor &v) override {
    v.field("strides", strides);
    v.field("dilations", dilations);
    v.field("pad_low", padLow);
    v.field("pad_high", padHigh);
    v.optional("groups", groups, 1);
  }
};

struct PoolAttrs final : AttrsBase<PoolAttrs> {
  Ints kernel, strides, dilations, padLow, padHigh;
  bool ceilMode = false, countIncludePad = false;
  /// max_pool's indices count in column-major order.
  bool columnMajor = false;
  void fields(FieldVisitor &v) override {
    v.field("kernel", kernel);
    v.field("strides", strides);
    v.field("dilations", dilations);
    v.field("pad_low", padLow);
    v.field("pad_high", padHigh);
    v.optional("ceil_mode", ceilMode, false);
    v.optional("count_include_pad", countIncludePad, false);
    v.optional("column_major", columnMajor, false);
  }
};

/// layer_norm, rms_norm: normalised over the dimensions axis..rank-1.
struct NormAttrs final : AttrsBase<NormAttrs> {
  int64_t axis = 0;
  double epsilon = 1e-5;
  void fields(FieldVisitor &v) override {
    v.field("axis", axis);
    v.field("epsilon", epsilon);
  }
};

struct AttentionAttrs final : AttrsBase<AttentionAttrs> {
  /// Factor of the scores, applied before softcap and mask.
  double scale = 1.0;
  Causality causality = Causality::None;
  /// Key position of query 0: query i sees keys j <= i + queryOffset when
  /// causal, and windows are counted from i + queryOffset.
  Dim queryOffset;
  /// Keys before (after) the query's own that stay visible; -1 is no limit.
  int64_t windowLeft = -1, windowRight = -1;
  /// softcap * tanh(score / softcap) before the mask; 0 is off.
  double softcap = 0.0;
  MaskedRow maskedRow = MaskedRow::Nan;
  void fields(FieldVisitor &v) override {
    v.field("scale", scale);
    v.optional("causality", causality, Causality::None);
    v.optional("query_offset", queryOffset, 0);
    v.optional("window_left", windowLeft, -1);
    v.optional("window_right", windowRight, -1);
    v.optional("softcap", softcap, 0.0);
    v.field("masked_row", maskedRow);
  }
};

struct RotaryAttrs final : AttrsBase<RotaryAttrs> {
  /// Pairs are (2i, 2i + 1) when interleaved, else (i, i + rotaryDim / 2).
  bool interleaved = false;
  /// How many leading elements of a head are rotated; the rest is copied.
  int64_t rotaryDim = 0;
  void fields(FieldVisitor &v) override {
    v.optional("interleaved", interleaved, false);
    v.field("rotary_dim", rotaryDim);
  }
};

} // namespace tenon::ir

#endif // TENON_IR_ATTRS_H
