//===- support.h - tensors and a thread team for kernel tests -------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_TEST_KERNELS_SUPPORT_H
#define TENON_TEST_KERNELS_SUPPORT_H

#include "runtime/format/abi.h"

#include <barrier>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <gtest/gtest.h>
#include <initializer_list>
#include <limits>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace test {

using Dims = std::vector<int64_t>;

inline int64_t product(const Dims &d) {
  int64_t n = 1;
  for (int64_t x : d)
    n *= x;
  return n;
}

inline Dims rowMajor(const Dims &shape) {
  Dims stride(shape.size(), 1);
  for (int d = int(shape.size()) - 2; d >= 0; --d)
    stride[d] = stride[d + 1] * shape[d + 1];
  return stride;
}

/// Calls f with every index of a shape, in row-major order.
inline void forEachIndex(const Dims &shape,
                         const std::function<void(const Dims &)> &f) {
  Dims index(shape.size(), 0);
  for (int64_t n = product(shape); n > 0; --n) {
    f(index);
    for (int d = int(shape.size()) - 1; d >= 0 && ++index[d] == shape[d]; --d)
      index[d] = 0;
  }
}

/// A strided window, as a kernel gets it.
struct View {
  char *data;
  Dims shape, stride;
  int64_t elementSize;

  tn_view get() const { return {data, shape.data(), stride.data()}; }

  View permuted(const std::vector<int> &order) const {
    View v = *this;
    for (size_t d = 0; d < order.size(); ++d) {
      v.shape[d] = shape[order[d]];
      v.stride[d] = stride[order[d]];
    }
    return v;
  }

  /// Prepends dimensions and gives those of size 1 stride 0.
  View broadcast(const Dims &to) const {
    View v = *this;
    v.shape = to;
    v.stride.assign(to.size(), 0);
    size_t lead = to.size() - shape.size();
    for (size_t d = 0; d < shape.size(); ++d)
      v.stride[lead + d] = shape[d] == 1 ? 0 : stride[d];
    return v;
  }

  View slice(int d, int64_t begin, int64_t size, int64_t step = 1) const {
    View v = *this;
    v.data += begin * stride[d] * elementSize;
    v.shape[d] = size;
    v.stride[d] *= step;
    return v;
  }

  template <class T> T &at(const Dims &index) const {
    int64_t offset = 0;
    for (size_t d = 0; d < index.size(); ++d)
      offset += index[d] * stride[d];
    return ((T *)data)[offset];
  }
  template <class T> T &at(std::initializer_list<int64_t> index) const {
    int64_t offset = 0;
    const int64_t *s = stride.data();
    for (int64_t i : index)
      offset += i * *s++;
    return ((T *)data)[offset];
  }
};

/// A tensor of its own. The memory is exactly as large as the elements, so that
/// a sanitizer sees a kernel that reads past them.
template <class T> struct Tensor {
  Dims shape;
  std::vector<T> data;

  explicit Tensor(Dims s, T fill = T()) : shape(std::move(s)) {
    data.assign(size_t(product(shape)), fill);
  }
  View view() {
    return {(char *)data.data(), shape, rowMajor(shape), sizeof(T)};
  }
  operator View() { return view(); }
};

inline std::mt19937 &generator() {
  static std::mt19937 g(12345);
  return g;
}

inline Tensor<float> randomTensor(Dims shape, float low = -1, float high = 1) {
  Tensor<float> t(std::move(shape));
  std::uniform_real_distribution<float> d(low, high);
  for (float &x : t.data)
    x = d(generator());
  return t;
}

template <class T>
Tensor<T> randomIntegers(Dims shape, int64_t low, int64_t high) {
  Tensor<T> t(std::move(shape));
  std::uniform_int_distribution<int64_t> d(low, high);
  for (T &x : t.data)
    x = T(d(generator()));
  return t;
}

struct Team {
  std::barrier<> barrier;
};

/// Calls a unit as the runtime would, with a team of threads. Gives the fault
/// with the smallest position, or one of kind TN_FAULT_NONE.
inline tn_fault launch(tn_unit unit, const std::vector<View> &views,
                       int threads = 1, const Dims &params = {},
                       int64_t scratchBytes = 0) {
  std::vector<tn_view> raw;
  for (const View &v : views)
    raw.push_back(v.get());
  std::vector<char> memory(size_t(scratchBytes) + 64, char(0xab));
  char *scratch = (char *)((uintptr_t(memory.data()) + 63) & ~uintptr_t(63));
  Team team{std::barrier<>(threads)};
  std::vector<tn_fault> faults(threads);
  auto body = [&](int thread) {
    tn_args a = {};
    a.views = raw.data();
    a.params = params.data();
    a.scratch = scratchBytes ? scratch : nullptr;
    a.barrier = [](const tn_args *args) {
      ((Team *)args->team)->barrier.arrive_and_wait();
    };
    a.team = &team;
    a.fault = &faults[thread];
    a.thread = thread;
    a.threads = threads;
    unit(&a);
  };
  std::vector<std::thread> pool;
  for (int t = 1; t < threads; ++t)
    pool.emplace_back(body, t);
  body(0);
  for (std::thread &t : pool)
    t.join();
  tn_fault first = {};
  for (const tn_fault &fault : faults)
    if (fault.kind != TN_FAULT_NONE &&
        (first.kind == TN_FAULT_NONE || fault.position < first.position))
      first = fault;
  return first;
}

/// A unit must find this fault with any number of threads.
inline void expectFault(tn_unit unit, const std::vector<View> &views,
                        const tn_fault &want) {
  for (int threads = 1; threads <= 4; ++threads) {
    tn_fault got = launch(unit, views, threads);
    EXPECT_EQ(got.kind, want.kind) << "with " << threads << " threads";
    EXPECT_EQ(got.operand, want.operand);
    EXPECT_EQ(got.axis, want.axis);
    EXPECT_EQ(got.position, want.position) << "with " << threads << " threads";
    EXPECT_EQ(got.value, want.value);
    EXPECT_EQ(got.limit, want.limit);
  }
}

/// Runs a unit with 1 to 4 threads; the results must be the same to the bit.
/// `result` is left with what one thread gives.
template <class T>
void launchAll(tn_unit unit, std::vector<View> views, Tensor<T> &result,
               const Dims &params = {}, int64_t scratchBytes = 0) {
  std::vector<T> before = result.data;
  ASSERT_EQ(launch(unit, views, 1, params, scratchBytes).kind, TN_FAULT_NONE);
  std::vector<T> first = result.data;
  for (int threads = 2; threads <= 4; ++threads) {
    result.data.assign(before.begin(), before.end());
    launch(unit, views, threads, params, scratchBytes);
    ASSERT_TRUE(first.empty() || !memcmp(first.data(), result.data.data(),
                                         first.size() * sizeof(T)))
        << "with " << threads << " threads";
  }
}

/// |got - want| <= absolute + relative |want|; NaN equals NaN.
inline bool isClose(double got, double want, double relative, double absolute) {
  if (std::isnan(want) || std::isnan(got))
    return std::isnan(want) && std::isnan(got);
  if (std::isinf(want) || std::isinf(got))
    return want == got;
  return std::fabs(got - want) <= absolute + relative * std::fabs(want);
}

inline std::string name(const Dims &index) {
  std::string s = "[";
  for (int64_t i : index)
    s += std::to_string(i) + " ";
  return s + "]";
}

} // namespace test

#endif // TENON_TEST_KERNELS_SUPPORT_H
