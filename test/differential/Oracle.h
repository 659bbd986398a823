//===- Oracle.h - what may be found where the reference finds something --===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TENON_TEST_DIFFERENTIAL_ORACLE_H
#define TENON_TEST_DIFFERENTIAL_ORACLE_H

#include "test/support/Cases.h"
#include <cstdint>
#include <random>
#include <string>

namespace tenon::test {

/// Who found something. The reference computes each op in double; others lose
/// something inside, in terms that cancel, which is relative to an output's
/// largest element: 2^-18 of it for kernels that compute in f32 (a GELU is
/// x / 2 * (1 + erf(...)), whose sum is 0 for some x), 2^-12 (f32) to 2^-5
/// (halves) for other runtimes (a variance is a mean of squares less a square
/// of a mean; constants of f64 are of f32).
enum class Evaluation { Reference, Kernels, OtherRuntime };

/// The reference's results of a function, and how far others may be from them.
///
/// A graph decides itself how much a rounding error grows: a subtraction of
/// equal numbers, an exponential or a comparison makes a difference of any size
/// of one. So the reference also runs with noise: each float that an op rounds
/// is changed by up to a few units in its last place, as are those inputs and
/// weights that are no integers (which stands for what a sum loses in another
/// order). The largest deviation that this gives at an element, times a factor,
/// is what another evaluation may deviate by. Integers that noise changes say
/// nothing; all others must be equal. Runs come in pairs of opposite noise, so
/// that what lies on an edge falls to either side in one of them.
///
/// The noise is 2^-21 of the value for f32 and 2^-50 for f64, eight times what
/// one operation may lose; 2^-9 for f16 and 2^-6 for bf16, four times that.
class Oracle {
public:
  /// An error if the reference refuses \p inputs.
  static llvm::Expected<Oracle> create(const ir::Func &func, Tensors inputs,
                                       uint64_t seed);

  const Tensors &inputs() const { return given; }
  const Tensors &expected() const { return wanted; }

  /// What differs in \p found, for a person; "" if nothing does. Asks for more
  /// noisy runs before it says so.
  std::string compare(const Tensors &found,
                      Evaluation who = Evaluation::Reference);

  /// Of the elements of all outputs: how many there are, say nothing under the
  /// noise, are NaN.
  struct Counts {
    uint64_t elements = 0, unstable = 0, nans = 0;
  };
  Counts count() const;

private:
  Oracle(const ir::Func &func, Tensors inputs, uint64_t seed)
      : func(&func), given(std::move(inputs)), random(seed) {}
  void addRuns(unsigned pairs);
  std::string compareOnce(const Tensors &found, Evaluation who) const;
  bool fits(const ir::Tensor &found, unsigned output, uint64_t i,
            Evaluation who, double absolute) const;

  const ir::Func *func;
  Tensors given, wanted;
  std::vector<Tensors> noisy;
  std::mt19937_64 random;
  /// Where halves are on the way, an infinity may be a rounding error.
  bool hasHalves = false;
  /// A noisy run was refused, or had other shapes: data decides about sizes.
  bool isUnstable = false;
};

} // namespace tenon::test

#endif // TENON_TEST_DIFFERENTIAL_ORACLE_H
