//===- tensor.h - tensors of several element types, for CUDA tests --------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_TEST_KERNELS_CUDA_TENSOR_H
#define TENON_TEST_KERNELS_CUDA_TENSOR_H

#include "device.h"
#include "kernels/common/half.h"

#include <cmath>
#include <cstring>
#include <functional>
#include <gtest/gtest.h>
#include <random>

namespace test {

/// An element type: how units spell it, its size, and how numbers become it.
struct Element {
  const char *name;
  int size;
  double (*decode)(const char *);
  void (*encode)(double, char *);
  /// Half the distance of neighbouring numbers near 1: a relative rounding
  /// error.
  double rounding;
};

template <class T> double decodeHalf(const char *p) {
  T x;
  memcpy(&x, p, 2);
  return tn_to_float(x);
}
template <class T> void encodeHalf(double x, char *p) {
  T h = tn_round_to<T>(x);
  memcpy(p, &h, 2);
}
template <class T> double decodeAs(const char *p) {
  T x;
  memcpy(&x, p, sizeof x);
  return double(x);
}
template <class T> void encodeAs(double v, char *p) {
  T x = T(v);
  memcpy(p, &x, sizeof x);
}

/// fp8 with 4 bits of exponent (bias 7) and 3 of mantissa; 0x7f is NaN.
inline double decodeE4M3(const char *p) {
  int bits = uint8_t(*p), exponent = bits >> 3 & 15, mantissa = bits & 7;
  double x = exponent ? std::ldexp(8 + mantissa, exponent - 10)
                      : std::ldexp(mantissa, -9);
  return bits & 128 ? -x : x;
}
inline void encodeE4M3(double x, char *p) {
  int best = 0;
  double least = INFINITY;
  for (int bits = 0; bits < 256; ++bits) {
    char c = char(bits);
    double error = std::fabs(decodeE4M3(&c) - x);
    if ((bits & 127) != 127 && error < least) {
      least = error;
      best = bits;
    }
  }
  *p = char(best);
}

inline const Element f16 = {"tn_f16", 2, decodeHalf<tn_f16>, encodeHalf<tn_f16>,
                            0x1p-11};
inline const Element bf16 = {"tn_bf16", 2, decodeHalf<tn_bf16>,
                             encodeHalf<tn_bf16>, 0x1p-8};
inline const Element f32 = {"float", 4, decodeAs<float>, encodeAs<float>,
                            0x1p-24};
inline const Element i8 = {"int8_t", 1, decodeAs<int8_t>, encodeAs<int8_t>, 0};
inline const Element u8 = {"uint8_t", 1, decodeAs<uint8_t>, encodeAs<uint8_t>,
                           0};
/// Of a left operand; the right one is i8.
inline const Element u8ByS8 = {"tn::u8_by_s8", 1, decodeAs<uint8_t>,
                               encodeAs<uint8_t>, 0};
inline const Element e4m3 = {"tn::e4m3", 1, decodeE4M3, encodeE4M3, 0x1p-4};

/// Numbers as they lie on the device, in memory of exactly their size.
struct DeviceTensor {
  const Element *type;
  std::vector<int64_t> shape, stride;
  std::vector<char> bytes;
  Buffer buffer;

  double at(int64_t offset) const {
    return type->decode(bytes.data() + offset * type->size);
  }
  DeviceView view() const { return {buffer.address, shape, stride}; }
};

inline int64_t span(const std::vector<int64_t> &shape,
                    const std::vector<int64_t> &stride) {
  int64_t n = 1;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 0)
      return 0;
    n += (shape[d] - 1) * stride[d];
  }
  return n;
}

inline std::mt19937_64 &generator() {
  static std::mt19937_64 g(20261130);
  return g;
}

/// A tensor whose elements `draw` gives, strides in elements.
inline DeviceTensor makeTensor(const Element &type, std::vector<int64_t> shape,
                               std::vector<int64_t> stride,
                               const std::function<double()> &draw) {
  DeviceTensor t;
  t.type = &type;
  t.bytes.resize(span(shape, stride) * type.size);
  for (size_t i = 0; i < t.bytes.size(); i += type.size)
    type.encode(draw(), t.bytes.data() + i);
  t.shape = std::move(shape);
  t.stride = std::move(stride);
  t.buffer = Device::get()->upload(t.bytes);
  return t;
}

inline double uniform() {
  return std::uniform_real_distribution<double>(-1, 1)(generator());
}

/// Differences of a result from what it should be.
struct Comparison {
  double squares = 0, wanted = 0;
  int64_t count = 0, wrong = 0;
  std::string first;

  /// A single number may be off by `bound`.
  void add(double got, double want, double bound, const std::string &where) {
    ++count;
    bool same = (std::isnan(got) && std::isnan(want)) || got == want ||
                std::fabs(got - want) <= bound;
    if (!same && wrong++ == 0)
      first = where + ": got " + std::to_string(got) + ", want " +
              std::to_string(want);
    if (std::isfinite(got) && std::isfinite(want)) {
      squares += (got - want) * (got - want);
      wanted += want * want;
    }
  }
  double rms() const { return wanted > 0 ? std::sqrt(squares / wanted) : 0; }

  /// Empty if all is well.
  std::string verdict(double limit) const {
    if (wrong)
      return std::to_string(wrong) + " of " + std::to_string(count) +
             " wrong, first " + first;
    if (rms() > limit)
      return "relative rms error " + std::to_string(rms());
    return "";
  }
};

/// The greatest power of two, at most 16, that divides `bytes`.
inline int alignmentOf(int64_t bytes) {
  int a = 16;
  while (bytes % a)
    a /= 2;
  return a;
}

/// The PTX architecture that a case of least architecture `least` runs as.
inline std::string runArch(int least) {
  return "compute_" + std::to_string(least) + (least == 90 ? "a" : "");
}

#define TN_NEED_DEVICE()                                                       \
  do {                                                                         \
    if (!nvrtcMissing().empty())                                               \
      GTEST_SKIP() << nvrtcMissing();                                          \
    if (!Device::get())                                                        \
      GTEST_SKIP() << Device::missing();                                       \
  } while (0)

} // namespace test

#endif // TENON_TEST_KERNELS_CUDA_TENSOR_H
