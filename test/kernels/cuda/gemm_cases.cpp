//===- gemm_cases.cpp - launches of the GEMM kernels ----------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "cases.h"

#include <algorithm>
#include <memory>

namespace test {

namespace {

int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

std::string number(int64_t x) { return std::to_string(x); }

/// The functor of a case, for operands of type `name`.
std::string functorText(bool epilogue, const char *name) {
  if (!epilogue)
    return "using E = tn::Identity;\n";
  std::string type = name;
  return "struct E { // relu(x0 + x1) + x2\n"
         "  template <class V, class A> static TN_FN auto apply(V x0, const A "
         "&e, int64_t row, int64_t col) {\n"
         "    return tn_add(tn_relu(tn_add(tn_cast<float>(x0), "
         "tn_cast<float>(tn::load_row<" +
         type + ">(e, 0, row, col)))), tn_cast<float>(tn::load_full<" + type +
         ">(e, 1, row, col)));\n  }\n};\n";
}

/// What a product's elements may be off by: the rounding of the result, and a
/// relative error of each product, which adds up like a random walk.
struct Tolerance {
  double product, rounding;
  double bound(double want, double magnitude) const {
    return rounding * 2 * std::fabs(want) + product * magnitude + 1e-30;
  }
};

Tolerance toleranceOf(const std::string &math, const Element &out) {
  Tolerance t;
  t.rounding = out.rounding;
  t.product = math == "tf32" ? 0x1p-10 : math == "tf32x3" ? 0x1p-19 : 0x1p-20;
  return t;
}

/// Relative rms errors that issue 4 allows for f16 and bf16; for f32 ones that
/// its arithmetic reaches.
double rmsLimit(const std::string &math, const Element &out) {
  if (out.size == 2)
    return out.rounding < 0x1p-9 ? 5e-3 : 2e-2;
  return math == "tf32" ? 1e-3 : 2e-6;
}

struct Operands {
  DeviceTensor a, b, bias, residual, c;
  void release() {
    for (DeviceTensor *t : {&a, &b, &bias, &residual, &c})
      if (t->buffer.address)
        Device::get()->release(t->buffer);
  }
};

double draw(const Element &type) {
  return type.rounding == 0 ? std::floor(uniform() * 100) : uniform();
}

Operands makeOperands(const GemmCase &c) {
  Operands o;
  const Element &right = c.in == &u8ByS8 ? i8 : *c.in;
  double least = c.in == &u8ByS8 ? 120 : 0; // most of them above 127
  int64_t lda = c.k + c.gapA, ldb = (c.nk ? c.k : c.n) + c.gapB,
          ldc = c.n + c.gapC;
  int64_t bRows = c.nk ? c.n : c.k;
  o.a = makeTensor(*c.in, {c.batch, c.m, c.k}, {c.m * lda, lda, 1},
                   [&] { return draw(*c.in) + least; });
  o.b =
      makeTensor(right, {c.batch, c.k, c.n},
                 {c.sharedB ? 0 : bRows * ldb, c.nk ? 1 : ldb, c.nk ? ldb : 1},
                 [&] { return draw(right); });
  const Element &extra = c.out->size == 2 ? *c.out : f32;
  if (c.epilogue) {
    o.bias = makeTensor(extra, {c.batch, c.m, c.n}, {0, 0, 1}, uniform);
    o.residual =
        makeTensor(extra, {c.batch, c.m, c.n}, {c.m * ldc, ldc, 1}, uniform);
  }
  o.c = makeTensor(*c.out, {c.batch, c.m, c.n}, {c.m * ldc, ldc, 1},
                   [] { return 77.0; });
  return o;
}

/// Compares C; elements between its rows must be as they were.
std::string compareProduct(const GemmCase &c, const Operands &o,
                           const std::string &math) {
  Comparison result;
  Tolerance tolerance = toleranceOf(math, *c.out);
  for (int64_t b = 0; b < c.batch; ++b)
    for (int64_t i = 0; i < c.m; ++i)
      for (int64_t j = 0; j < c.n + (i + 1 < c.m ? c.gapC : 0); ++j) {
        int64_t at = b * o.c.stride[0] + i * o.c.stride[1] + j;
        double want = 0, magnitude = 0;
        for (int64_t k = 0; k < c.k && j < c.n; ++k) {
          double x =
              o.a.at(b * o.a.stride[0] + i * o.a.stride[1] + k) *
              o.b.at(b * o.b.stride[0] + k * o.b.stride[1] + j * o.b.stride[2]);
          want += x;
          magnitude += std::fabs(x);
        }
        if (c.epilogue && j < c.n)
          want = std::max(0.0, want + o.bias.at(j)) + o.residual.at(at);
        if (j >= c.n)
          want = 77;
        result.add(o.c.at(at), want, tolerance.bound(want, magnitude),
                   "[" + number(b) + " " + number(i) + " " + number(j) + "]");
      }
  return result.verdict(rmsLimit(math, *c.out));
}

std::string operandTypes(const GemmCase &c) {
  if (!c.epilogue)
    return "tn::types<>";
  std::string extra = c.out->size == 2 ? c.out->name : "float";
  return "tn::types<" + extra + ", " + extra + ">";
}

} // namespace

const std::vector<GemmTuning> &gemmTunings() {
  static const std::vector<GemmTuning> all = {
#define TN_GEMM_TUNING(NAME, MATH, ELEMENT, ...)                               \
  {#NAME, #MATH, #ELEMENT, __VA_ARGS__},
#include "kernels/cuda/tunings.def"
  };
  return all;
}

const GemmTuning &gemmTuning(const std::string &name) {
  for (const GemmTuning &t : gemmTunings())
    if (name == t.name)
      return t;
  ADD_FAILURE() << "no tuning " << name;
  return gemmTunings()[0];
}

std::string GemmTuning::text() const {
  std::string s = "tn::GemmTiling<";
  for (int x : {bm, bn, kBytes, wm, wn})
    s += number(x) + ", ";
  return s + number(stages) + ">";
}

const std::vector<BulkTuning> &bulkTunings() {
  static const std::vector<BulkTuning> all = {
#define TN_BULK_TUNING(NAME, ...) {#NAME, __VA_ARGS__},
#include "kernels/cuda/tunings.def"
  };
  return all;
}

namespace {

/// The unit of a case for sm_90a.
std::string bulkSource(const GemmCase &c) {
  std::string extra = c.out->size == 2 ? c.out->name : "float";
  return "#include \"kernels/cuda/gemm_sm90.cuh\"\nstruct Cfg0 {\n  using In "
         "= " +
         std::string(c.in->name) + "; using Out = " + c.out->name +
         ";\n  using Operands = " + operandTypes(c) +
         ";\n  using Tiling = tn::BulkTiling<" + number(c.bulk->bn) + ", " +
         number(c.bulk->stages) +
         ">;\n  static constexpr tn::Layout b = tn::Layout::" +
         (c.nk ? "nk" : "kn") +
         ";\n  static constexpr bool shared_a = false, shared_b = " +
         (c.sharedB ? "true" : "false") +
         ";\n  static constexpr int rank = 3, threads = 384, num_views = " +
         (c.epilogue ? "5" : "3") + ", num_params = 0, view_rank = 3;\n};\n" +
         functorText(c.epilogue, extra.c_str()) +
         "TN_UNIT_MAPS(0, tn::gemm_sm90<Cfg0, E>)\n";
}

/// Grid, shared memory and tensor maps as the kernel's contract says.
void shapeBulk(const GemmCase &c, const Operands &o, LaunchSpec &spec) {
  const BulkTuning &t = *c.bulk;
  spec.grid.x = unsigned(ceilDiv(c.m, 128) * ceilDiv(c.n, t.bn));
  spec.threads = 384;
  int64_t stages = t.stages * (128 + t.bn) * 128;
  spec.sharedBytes = unsigned(
      std::max<int64_t>(stages, 8 * 16 * (t.bn + 8) * 4) + t.stages * 16);
  auto map = [&](const DeviceTensor &x, int64_t across, int64_t rows,
                 int64_t pitch, int64_t batches, unsigned boxRows) {
    BulkMap m = {};
    m.data = x.buffer.address;
    constexpr int bytes = 0, float16 = 6, bfloat16 = 9;
    m.type = x.type->size == 1 ? bytes : x.type == &bf16 ? bfloat16 : float16;
    m.size[0] = across;
    m.size[1] = rows;
    m.size[2] = batches;
    m.strideBytes[0] = pitch * x.type->size;
    m.strideBytes[1] = rows * pitch * x.type->size;
    m.box[0] = unsigned(128 / x.type->size);
    m.box[1] = boxRows;
    m.box[2] = 1;
    return m;
  };
  int64_t lda = c.k + c.gapA, ldb = (c.nk ? c.k : c.n) + c.gapB;
  int64_t bBatches = c.sharedB ? 1 : c.batch;
  spec.maps = {map(o.a, c.k, c.m, lda, c.batch, 128),
               c.nk ? map(o.b, c.k, c.n, ldb, bBatches, t.bn)
                    : map(o.b, c.n, c.k, ldb, bBatches, 64)};
}

} // namespace

std::string gemmSource(const GemmCase &c) {
  if (c.bulk)
    return bulkSource(c);
  int64_t size = c.in->size;
  int64_t lda = c.k + c.gapA, ldb = (c.nk ? c.k : c.n) + c.gapB;
  int threads = c.tuning.bm / c.tuning.wm * (c.tuning.bn / c.tuning.wn) * 32;
  std::string extra = c.out->size == 2 ? c.out->name : "float";
  return "#include \"kernels/cuda/gemm.cuh\"\nstruct Cfg0 {\n  using In = " +
         std::string(c.in->name) + "; using Out = " + c.out->name +
         ";\n  using Operands = " + operandTypes(c) +
         ";\n  using Tiling = " + c.tuning.text() +
         ";\n  static constexpr tn::Math math = tn::Math::" + c.tuning.math +
         ";\n  static constexpr tn::Layout b = tn::Layout::" +
         (c.nk ? "nk" : "kn") + ";\n  static constexpr int align_a = " +
         number(alignmentOf(lda * size)) +
         ", align_b = " + number(alignmentOf(ldb * size)) +
         ";\n  static constexpr bool stream = " +
         (c.stream ? "true" : "false") +
         ";\n  static constexpr int rank = 3, threads = " + number(threads) +
         ", num_views = " + (c.epilogue ? "5" : "3") +
         ", num_params = 0, view_rank = 3;\n};\n" +
         functorText(c.epilogue, extra.c_str()) +
         "TN_UNIT(0, tn::gemm_mma<Cfg0, E>)\n";
}

std::string runGemm(const GemmCase &c, const Headers &headers) {
  std::string source = gemmSource(c);
  Compiled unit =
      compile(source, runArch(c.bulk ? 90 : c.tuning.arch), headers);
  if (!unit.ok)
    return "does not compile: " + unit.log;
  Operands o = makeOperands(c);
  const GemmTuning &t = c.tuning;
  LaunchSpec spec;
  int64_t tiles = ceilDiv(c.m, t.bm) * ceilDiv(c.n, t.bn);
  spec.grid.x = c.stream ? c.blocks : unsigned(tiles);
  spec.grid.z = unsigned(c.batch);
  int warps = t.bm / t.wm * (t.bn / t.wn);
  spec.threads = warps * 32;
  int stage = (t.bm + t.bn) * t.kBytes;
  spec.sharedBytes = std::max(t.stages * stage, warps * 16 * (t.wn + 8) * 4);
  spec.rank = 3;
  spec.views = {o.a.view(), o.b.view()};
  if (c.epilogue) {
    spec.views.push_back(o.bias.view());
    spec.views.push_back(o.residual.view());
  }
  spec.views.push_back(o.c.view());
  if (c.bulk)
    shapeBulk(c, o, spec);
  Device *device = Device::get();
  Buffer scratch, counters;
  if (c.stream) {
    // Partial sums are not to be read before they are written.
    scratch = device->allocate(c.batch * c.blocks * 2 * t.bm * t.bn * 4, 0);
    spec.scratch = scratch.address;
    counters = device->allocate(tiles * c.batch * 4, tiles * c.batch * 4);
    spec.counters = counters.address;
  }
  std::string error;
  const std::vector<char> before = o.c.bytes;
  for (int i = 0; i < c.repeat && error.empty(); ++i) {
    device->write(o.c.buffer, before);
    error = device->launch(unit.image, "tn_unit_0", spec);
    o.c.bytes = device->download(o.c.buffer);
    if (error.empty())
      error = compareProduct(c, o, c.bulk ? "tensor" : t.math);
  }
  if (c.stream) {
    for (char byte : device->download(counters))
      if (byte && error.empty())
        error = "a counter is not 0 again";
    device->release(scratch);
    device->release(counters);
  }
  o.release();
  return error;
}

} // namespace test
