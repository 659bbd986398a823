//===- Oracle.cpp - what may be found where the reference finds something ===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/differential/Oracle.h"

#include "ir/OpDef.h"
#include "ir/eval/Compare.h"
#include "ir/eval/Evaluator.h"
#include "ir/support/Diag.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>

using namespace tenon;
using namespace tenon::test;
using ir::ElementType;
using ir::OpKind;
using ir::Tensor;

namespace {

/// How many times the largest deviation that noise gives is allowed. With two
/// pairs of runs the largest of four deviations is seldom much smaller than
/// what is usual.
constexpr double factor = 16;
/// Pairs of noisy runs before anything is compared, and before anything is
/// called different.
constexpr unsigned firstPairs = 2, allPairs = 12;

/// The noise on values of \p type, relative.
double amplitude(ElementType type) {
  switch (type) {
  case ElementType::F64:
    return 0x1p-50;
  case ElementType::F32:
    return 0x1p-21;
  case ElementType::F16:
    return 0x1p-9;
  case ElementType::BF16:
    return 0x1p-6;
  default:
    return 0; // what is only stored is rounded exactly
  }
}

/// Numbers below this may be taken for 0 by a kernel.
double smallest(ElementType type) {
  switch (type) {
  case ElementType::F64:
    return 0x1p-1020;
  case ElementType::F16:
    return 0x1p-13;
  default:
    return 0x1p-124;
  }
}

/// Ops whose results are some of their operands' elements, bit for bit, or
/// integers.
bool isExact(const ir::Op &op) {
  if (is(op, ir::Trait::ViewLike))
    return true;
  switch (op.kind()) {
  case OpKind::Neg:
  case OpKind::Abs:
  case OpKind::Sign:
  case OpKind::Relu:
  case OpKind::ThresholdedRelu:
  case OpKind::Floor:
  case OpKind::Ceil:
  case OpKind::Round:
  case OpKind::Min:
  case OpKind::Max:
  case OpKind::Where:
  case OpKind::BitCast:
  case OpKind::Concat:
  case OpKind::Pad:
  case OpKind::Gather:
  case OpKind::GatherElements:
  case OpKind::GatherNd:
  case OpKind::ScatterNd:
  case OpKind::ScatterElements:
  case OpKind::Trilu:
  case OpKind::OneHot:
  case OpKind::TopK:
  case OpKind::ReduceMax:
  case OpKind::ReduceMin:
  case OpKind::MaxPool:
    return true;
  case OpKind::Cast: {
    ElementType from = op.operand(0)->element();
    return !ir::isFloat(from) ||
           ir::bitWidth(op.result()->element()) >= ir::bitWidth(from);
  }
  default:
    return false;
  }
}

/// Noise of one run; `sign` makes it the opposite of another's.
struct Noise {
  std::mt19937_64 random;
  double sign;

  /// A power of two times between 1/2 and 1, of either sign: none is so small
  /// that it is none.
  double draw() {
    double u = static_cast<double>(random() >> 11) * 0x1p-53;
    return sign * (random() & 1 ? 1 : -1) * (0.5 + u / 2);
  }
  void disturb(Tensor &tensor, bool integersToo) {
    double relative = amplitude(tensor.element);
    if (relative == 0)
      return;
    for (uint64_t i = 0, n = tensor.numElements(); i != n; ++i) {
      double value = tensor.at(i), change = draw();
      if (std::isfinite(value) && (integersToo || value != std::rint(value)))
        tensor.set(i, value * (1 + relative * change));
    }
  }
};

bool containsHalves(const ir::Func &func) {
  auto isHalf = [](const ir::Value &value) {
    return ir::isFloat(value.element()) && ir::bitWidth(value.element()) < 32;
  };
  for (unsigned i = 0; i != func.body.numArguments(); ++i)
    if (isHalf(*func.body.argument(i)))
      return true;
  for (ir::Op &op : func.body)
    for (ir::Value *result : op.results())
      if (isHalf(*result))
        return true;
  return false;
}

bool sameTypes(const Tensors &a, const Tensors &b) {
  if (a.size() != b.size())
    return false;
  for (size_t i = 0; i != a.size(); ++i)
    if (a[i].element != b[i].element || a[i].shape != b[i].shape)
      return false;
  return true;
}

std::string elementText(const Tensor &tensor, uint64_t i) {
  std::string text;
  if (tensor.isFloatTensor())
    llvm::raw_string_ostream(text) << llvm::format("%.9g", tensor.at(i));
  else
    llvm::raw_string_ostream(text) << tensor.intAt(i);
  return text;
}

/// What \p who may lose inside of one op at results of \p type, relative to the
/// largest element, or to 1.
double insideOps(Evaluation who, ElementType type) {
  switch (who) {
  case Evaluation::Reference:
    return 0;
  case Evaluation::Kernels:
    return type == ElementType::F64 ? 8 * amplitude(type) : 0x1p-18;
  case Evaluation::OtherRuntime:
    return std::clamp(512 * amplitude(type), 0x1p-20, 0x1p-5);
  }
  llvm_unreachable("no evaluation");
}

/// The largest finite element of \p tensor, and no less than 1.
double largest(const Tensor &tensor) {
  double result = 1;
  if (tensor.isFloatTensor())
    for (uint64_t i = 0, n = tensor.numElements(); i != n; ++i)
      if (std::isfinite(tensor.at(i)))
        result = std::max(result, std::abs(tensor.at(i)));
  return result;
}

/// Both are NaN, or equal.
bool same(double a, double b) {
  return a == b || (std::isnan(a) && std::isnan(b));
}

} // namespace

llvm::Expected<Oracle> Oracle::create(const ir::Func &func, Tensors inputs,
                                      uint64_t seed) {
  Oracle oracle(func, std::move(inputs), seed);
  oracle.hasHalves = containsHalves(func);
  llvm::Expected<Tensors> wanted = ir::evaluate(func, oracle.given);
  if (!wanted)
    return wanted.takeError();
  oracle.wanted = std::move(*wanted);
  oracle.addRuns(firstPairs);
  return oracle;
}

void Oracle::addRuns(unsigned pairs) {
  for (unsigned pair = 0; pair != pairs && !isUnstable; ++pair) {
    std::mt19937_64 start(random());
    for (double sign : {1.0, -1.0}) {
      Noise noise{start, sign};
      Tensors inputs = given;
      for (Tensor &input : inputs)
        noise.disturb(input, /*integersToo=*/false);
      auto results = ir::evaluate(
          *func, inputs,
          [&](const ir::Op &op, llvm::MutableArrayRef<Tensor> results) {
            if (!isExact(op))
              for (Tensor &result : results)
                noise.disturb(result, op.kind() != OpKind::Const);
          });
      if (!results) {
        llvm::consumeError(results.takeError());
        isUnstable = true;
      } else if (!sameTypes(*results, wanted)) {
        isUnstable = true;
      } else {
        noisy.push_back(std::move(*results));
      }
    }
  }
}

bool Oracle::fits(const Tensor &found, unsigned output, uint64_t i,
                  Evaluation who, double absolute) const {
  const Tensor &want = wanted[output];
  if (!want.isFloatTensor()) {
    // Other runtimes compute halves in f32 as far as they please.
    if (found.intAt(i) == want.intAt(i) ||
        (hasHalves && who == Evaluation::OtherRuntime))
      return true;
    return llvm::any_of(noisy, [&](const Tensors &run) {
      return run[output].intAt(i) != want.intAt(i);
    });
  }
  double f = found.at(i), e = want.at(i), spread = 0;
  if (same(f, e))
    return true;
  for (const Tensors &run : noisy) {
    double n = run[output].at(i);
    if (!std::isfinite(n) || !std::isfinite(e)) {
      if (!same(n, e))
        return true;
      continue;
    }
    spread = std::max(spread, std::abs(n - e));
  }
  if (!std::isfinite(e) || !std::isfinite(f))
    return hasHalves;
  return std::abs(f - e) <= factor * spread +
                                4 * amplitude(want.element) * std::abs(e) +
                                smallest(want.element) + absolute;
}

std::string Oracle::compareOnce(const Tensors &found, Evaluation who) const {
  if (found.size() != wanted.size())
    return llvm::formatv("{0} outputs, expected {1}", found.size(),
                         wanted.size());
  for (unsigned output = 0; output != wanted.size(); ++output) {
    const Tensor &want = wanted[output], &got = found[output];
    // Says what is wrong with types and shapes.
    if (got.element != want.element || got.shape != want.shape) {
      if (isUnstable && got.element == want.element)
        continue;
      return llvm::formatv("output {0}: {1}", output,
                           ir::compare(got, want, {}).message);
    }
    if (isUnstable)
      continue;
    double absolute = insideOps(who, want.element) * largest(want);
    uint64_t wrong = 0, first = 0;
    for (uint64_t i = 0, n = want.numElements(); i != n; ++i)
      if (!fits(got, output, i, who, absolute) && wrong++ == 0)
        first = i;
    // A comparison of what an op has lost something in falls to either side.
    bool isRare = !want.isFloatTensor() && 20 * wrong <= want.numElements();
    if (wrong && !(who == Evaluation::OtherRuntime && isRare))
      return llvm::formatv(
          "output {0}: {1} of {2} elements differ, first {3}: found {4}, "
          "expected {5}",
          output, wrong, want.numElements(), first, elementText(got, first),
          elementText(want, first));
  }
  return "";
}

std::string Oracle::compare(const Tensors &found, Evaluation who) {
  std::string message = compareOnce(found, who);
  if (message.empty() || noisy.size() >= 2 * allPairs)
    return message;
  addRuns(allPairs - noisy.size() / 2);
  return compareOnce(found, who);
}

Oracle::Counts Oracle::count() const {
  Counts counts;
  for (unsigned output = 0; output != wanted.size(); ++output) {
    const Tensor &want = wanted[output];
    for (uint64_t i = 0, n = want.numElements(); i != n; ++i) {
      double e = want.at(i), spread = 0;
      bool other = false;
      for (const Tensors &run : noisy) {
        double value = run[output].at(i);
        bool finite = std::isfinite(value) && std::isfinite(e);
        if (finite)
          spread = std::max(spread, std::abs(value - e));
        other |= finite ? !want.isFloatTensor() && value != e : !same(value, e);
      }
      ++counts.elements;
      counts.nans += want.isFloatTensor() && std::isnan(e);
      // A tenth of the value is more than any tolerance should be.
      counts.unstable +=
          isUnstable || other ||
          (want.isFloatTensor() && factor * spread > 0.1 * std::abs(e) + 1e-3);
    }
  }
  return counts;
}
