//===- window_cases.cpp - launches of conv_gemm and quantise_rows ---------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "cases.h"

#include <algorithm>

namespace test {

namespace {

int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
std::string number(int64_t x) { return std::to_string(x); }
std::string member(const std::string &name, int64_t value) {
  return "  static constexpr int64_t " + name + " = " + number(value) + ";\n";
}
std::string pair(const std::string &name, int64_t a, int64_t b) {
  return "  static constexpr int64_t " + name + "[2] = {" + number(a) + ", " +
         number(b) + "};\n";
}

/// relu(x0 + bias[filter]) + residual
std::string convFunctor(const std::string &type) {
  return "struct E {\n  template <class V, class A> static TN_FN auto apply(V "
         "x0, const A &e, int64_t row, int64_t col) {\n    return "
         "tn_add(tn_relu(tn_add(x0, tn_cast<float>(tn::load_col<" +
         type + ">(e, 0, row, col)))), tn_cast<float>(tn::load_full<" + type +
         ">(e, 1, row, col)));\n  }\n};\n";
}

} // namespace

int64_t ConvCase::outHeight() const {
  return (height + 2 * pad - dilation * (kernelHeight - 1) - 1) / stride + 1;
}
int64_t ConvCase::outWidth() const {
  return (width + 2 * pad - dilation * (kernelWidth - 1) - 1) / stride + 1;
}

std::string convSource(const ConvCase &c) {
  const GemmTuning &t = c.tuning;
  std::string type = c.type->name;
  int64_t depth = c.channels * c.kernelHeight * c.kernelWidth;
  bool chunks = c.kernelWidth % (16 / c.type->size) == 0 && c.dilation == 1;
  return "#include \"kernels/cuda/conv_gemm.cuh\"\nstruct Cfg0 {\n  using In "
         "= " +
         type + "; using Out = " + type + ";\n  using Operands = tn::types<" +
         type + ", " + type + ">;\n  using Tiling = " + t.text() +
         ";\n  static constexpr tn::Math math = tn::Math::" + t.math +
         ";\n  static constexpr tn::Layout b = tn::Layout::" +
         (chunks ? "nk" : "kn") + ";\n  static constexpr int align_a = " +
         number(alignmentOf(depth * c.type->size)) +
         ", spatial = 2;\n  static constexpr bool stream = " +
         (c.blocks ? "true" : "false") + ";\n" + member("groups", 1) +
         member("channels", c.channels) + member("filters", c.filters) +
         pair("kernel", c.kernelHeight, c.kernelWidth) +
         pair("strides", c.stride, c.stride) +
         pair("dilations", c.dilation, c.dilation) +
         pair("pad_low", c.pad, c.pad) +
         "  static constexpr int num_views = 5, num_params = 0, view_rank = 4, "
         "threads = " +
         number(t.bm / t.wm * (t.bn / t.wn) * 32) + ";\n};\n" +
         convFunctor(type) + "TN_UNIT(0, tn::conv_gemm<Cfg0, E>)\n";
}

namespace {

struct ConvTensors {
  DeviceTensor x, w, bias, residual, y;
};

double convolved(const ConvCase &c, const ConvTensors &t, int64_t n, int64_t m,
                 int64_t row, int64_t column, double &magnitude) {
  double sum = 0;
  for (int64_t ch = 0; ch < c.channels; ++ch)
    for (int64_t a = 0; a < c.kernelHeight; ++a)
      for (int64_t b = 0; b < c.kernelWidth; ++b) {
        int64_t i = row * c.stride + a * c.dilation - c.pad,
                j = column * c.stride + b * c.dilation - c.pad;
        if (i < 0 || i >= c.height || j < 0 || j >= c.width)
          continue;
        double term =
            t.x.at(((n * c.channels + ch) * c.height + i) * c.width + j) *
            t.w.at(((m * c.channels + ch) * c.kernelHeight + a) *
                       c.kernelWidth +
                   b);
        sum += term;
        magnitude += std::fabs(term);
      }
  return sum;
}

std::string compareConv(const ConvCase &c, const ConvTensors &t) {
  Comparison result;
  int64_t h = c.outHeight(), w = c.outWidth();
  for (int64_t n = 0; n < c.images; ++n)
    for (int64_t m = 0; m < c.filters; ++m)
      for (int64_t p = 0; p < h * w; ++p) {
        double magnitude = 0;
        double want = convolved(c, t, n, m, p / w, p % w, magnitude);
        int64_t at = (n * c.filters + m) * h * w + p;
        want = std::max(0.0, want + t.bias.at(m)) + t.residual.at(at);
        result.add(t.y.at(at), want,
                   c.type->rounding * 2 * std::fabs(want) +
                       0x1p-20 * magnitude + 1e-30,
                   "[" + number(n) + " " + number(m) + " " + number(p) + "]");
      }
  return result.verdict(c.type->size == 2 ? 5e-3 : 2e-6);
}

std::vector<int64_t> dense(const std::vector<int64_t> &shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t d = shape.size() - 1; d-- > 0;)
    strides[d] = strides[d + 1] * shape[d + 1];
  return strides;
}

} // namespace

std::string runConv(const ConvCase &c, const Headers &headers) {
  const GemmTuning &t = c.tuning;
  Compiled unit = compile(convSource(c), runArch(t.arch), headers);
  if (!unit.ok)
    return "does not compile: " + unit.log;
  int64_t h = c.outHeight(), w = c.outWidth();
  auto make = [&](std::vector<int64_t> shape) {
    return makeTensor(*c.type, shape, dense(shape), uniform);
  };
  ConvTensors o = {make({c.images, c.channels, c.height, c.width}),
                   make({c.filters, c.channels, c.kernelHeight, c.kernelWidth}),
                   make({c.filters}), make({c.images, c.filters, h, w}),
                   make({c.images, c.filters, h, w})};
  LaunchSpec spec;
  DeviceView bias = {o.bias.buffer.address, o.y.shape, {0, 1, 0, 0}};
  spec.views = {o.x.view(), o.w.view(), bias, o.residual.view(), o.y.view()};
  spec.rank = 4;
  int64_t tiles = ceilDiv(c.filters, t.bm) * ceilDiv(h * w, t.bn);
  spec.grid.x = c.blocks ? c.blocks : unsigned(tiles);
  spec.grid.z = unsigned(c.images);
  int warps = t.bm / t.wm * (t.bn / t.wn);
  spec.threads = warps * 32;
  spec.sharedBytes = std::max(t.stages * (t.bm + t.bn) * t.kBytes,
                              warps * 16 * (t.wn + 8) * 4);
  Device *device = Device::get();
  Buffer scratch = device->allocate(
             c.blocks ? c.images * c.blocks * 2 * t.bm * t.bn * 4 : 1, 0),
         counters =
             device->allocate(tiles * c.images * 4, tiles * c.images * 4);
  spec.scratch = scratch.address;
  spec.counters = counters.address;
  std::string error = device->launch(unit.image, "tn_unit_0", spec);
  o.y.bytes = device->download(o.y.buffer);
  if (error.empty())
    error = compareConv(c, o);
  for (const Buffer &b : {scratch, counters, o.x.buffer, o.w.buffer,
                          o.bias.buffer, o.residual.buffer, o.y.buffer})
    device->release(b);
  return error;
}

//===----------------------------------------------------------------------===//
// Codes of rows
//===----------------------------------------------------------------------===//

std::string quantiseSource(const QuantiseCase &c) {
  return "#include \"kernels/cuda/quantise.cuh\"\nstruct Cfg0 {\n  using X = " +
         std::string(c.in->name) +
         "; using Y = " + (c.fp8 ? "tn::e4m3" : "int8_t") +
         ";\n  static constexpr int rank = 2, axes = 1, num_views = 3, "
         "num_params = 0, view_rank = 2, threads = 256;\n" +
         "  static constexpr int64_t N = " +
         (c.known ? number(c.n) : "tn::dynamic") +
         ";\n  static constexpr bool row_per_warp = " +
         (c.perWarp ? "true" : "false") +
         ";\n};\nTN_UNIT(0, tn::quantise_rows<Cfg0>)\n";
}

namespace {

/// A code is the nearest, or nearly so where the scale's rounding decides.
std::string compareCodes(const QuantiseCase &c, const DeviceTensor &x,
                         const DeviceTensor &codes,
                         const DeviceTensor &scales) {
  double top = c.fp8 ? 448 : 127;
  int64_t pitch = ceilDiv(c.n, 16) * 16;
  for (int64_t r = 0; r < c.rows; ++r) {
    double most = 0;
    bool isNaN = false;
    for (int64_t i = 0; i < c.n; ++i) {
      double v = x.at(r * (c.n + c.gap) + i);
      isNaN |= std::isnan(v);
      most = std::max(most, std::fabs(v));
    }
    double scale = scales.at(r);
    std::string row = "row " + number(r) + ": ";
    if (isNaN != std::isnan(scale))
      return row + "scale " + std::to_string(scale);
    if (isNaN)
      continue;
    if (std::fabs(scale - most / top) > 1e-6 * most)
      return row + "scale " + std::to_string(scale) + ", want " +
             std::to_string(most / top);
    for (int64_t i = 0; i < pitch; ++i) {
      double code = codes.at(r * pitch + i);
      double want =
          i < c.n && scale > 0 ? x.at(r * (c.n + c.gap) + i) / scale : 0;
      // Half a step: of integers, or of three bits of mantissa (2^-9 at least).
      double step = c.fp8 ? std::max(std::fabs(want) / 16, 0x1p-10) : 0.5;
      if (!(std::fabs(code - want) <= step * 1.001 + 1e-3 * !c.fp8))
        return row + "code " + number(i) + " is " + std::to_string(code) +
               ", want " + std::to_string(want);
    }
  }
  return "";
}

} // namespace

std::string runQuantise(const QuantiseCase &c, const Headers &headers) {
  Compiled unit = compile(quantiseSource(c), runArch(c.fp8 ? 89 : 75), headers);
  if (!unit.ok)
    return "does not compile: " + unit.log;
  int64_t pitch = ceilDiv(c.n, 16) * 16, drawn = 0;
  // Row 1 is all zeros, row 2 has a NaN.
  int64_t width = c.n + c.gap;
  auto draw = [&] {
    int64_t at = drawn++, row = at / width;
    return row == 1 ? 0.0 : row == 2 && at % width == 3 ? NAN : uniform() * 3;
  };
  DeviceTensor x = makeTensor(*c.in, {c.rows, c.n}, {width, 1}, draw);
  const Element &code = c.fp8 ? e4m3 : i8;
  auto junk = [] { return 5.0; };
  DeviceTensor codes = makeTensor(code, {c.rows, pitch}, {pitch, 1}, junk),
               scales = makeTensor(f32, {c.rows, 1}, {1, 1}, junk);
  LaunchSpec spec;
  spec.views = {x.view(), codes.view(), scales.view()};
  spec.rank = 2;
  spec.threads = 256;
  spec.grid.x = unsigned(c.perWarp ? ceilDiv(c.rows, 8) : c.rows);
  Device *device = Device::get();
  std::string error = device->launch(unit.image, "tn_unit_0", spec);
  codes.bytes = device->download(codes.buffer);
  scales.bytes = device->download(scales.buffer);
  if (error.empty())
    error = compareCodes(c, x, codes, scales);
  for (const DeviceTensor *t : {&x, &codes, &scales})
    device->release(t->buffer);
  return error;
}

} // namespace test
