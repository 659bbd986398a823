//===- attention_cases.cpp - launches of the attention kernels ------------===//
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
std::string bound(int64_t x) { return x < 0 ? "tn::dynamic" : number(x); }

const Element tn_bool_type = {"tn_bool", 1, decodeAs<uint8_t>,
                              encodeAs<uint8_t>, 0};

const Element &maskType(const AttentionCase &c) {
  if (c.mask == "boolean")
    return tn_bool_type;
  return c.maskIsF32 ? f32 : *c.type;
}

double scaleOf(const AttentionCase &c) { return float(1 / std::sqrt(c.d)); }

struct Operands {
  DeviceTensor q, k, v, mask, slope, o;

  explicit Operands(const AttentionCase &c) {
    auto rows = [&](int64_t s, int64_t h, int64_t d,
                    std::function<double()> draw) {
      int64_t pitch = d + c.gap;
      return makeTensor(*c.type, {c.batch, s, h, d},
                        {s * h * pitch, h * pitch, pitch, 1}, draw);
    };
    auto wide = [] { return 2 * uniform(); };
    q = rows(c.queries, c.heads, c.d, wide);
    k = rows(c.keys, c.kvHeads, c.d, wide);
    v = rows(c.keys, c.kvHeads, c.dv, uniform);
    o = rows(c.queries, c.heads, c.dv, [] { return 77.0; });
    slope = makeTensor(f32, {c.heads}, {1}, [] { return 0.1 * uniform(); });
    makeMask(c);
  }

  /// [B, 1, Sq or 1, Skv]: broadcast along heads.
  void makeMask(const AttentionCase &c) {
    bool boolean = c.mask == "boolean";
    int64_t lines = c.maskRowShared ? 1 : c.queries, element = 0;
    auto draw = [&]() -> double {
      int64_t line = c.keys ? element++ / c.keys : 0;
      bool hidden = c.hideEvery && line % c.hideEvery == c.hideEvery - 1;
      bool some = generator()() % 4 == 0;
      if (boolean)
        return hidden || some ? 0 : 1;
      return hidden ? (c.maskedRow == "uniform" ? -3.4028234663852886e38
                                                : -INFINITY)
             : some ? -INFINITY
                    : 2 * uniform();
    };
    mask =
        makeTensor(maskType(c), {c.batch, c.heads, c.queries, c.keys},
                   {lines * c.keys, 0, c.maskRowShared ? 0 : c.keys, 1}, draw);
  }

  void release() {
    for (DeviceTensor *t : {&q, &k, &v, &mask, &slope, &o})
      Device::get()->release(t->buffer);
  }
};

/// A row of the result in double.
struct Row {
  const AttentionCase &c;
  const Operands &x;
  int64_t b, h, i;

  double dot(int64_t j) const {
    double s = 0;
    int64_t g = h / (c.heads / c.kvHeads);
    for (int64_t d = 0; d < c.d; ++d)
      s +=
          x.q.at(b * x.q.stride[0] + i * x.q.stride[1] + h * x.q.stride[2] +
                 d) *
          x.k.at(b * x.k.stride[0] + j * x.k.stride[1] + g * x.k.stride[2] + d);
    return s;
  }

  double score(int64_t j, int64_t place, bool &seen) const {
    double s = dot(j) * scaleOf(c);
    if (c.softcap != 0)
      s = c.softcap * std::tanh(s / c.softcap);
    if (c.alibi)
      s += x.slope.at(h) * double(j - place);
    double m = c.mask == "none"
                   ? 0
                   : x.mask.at(b * x.mask.stride[0] + i * x.mask.stride[2] + j);
    if (c.mask == "additive")
      s = float(float(s) + float(m));
    if (c.mask == "boolean" && m == 0)
      s = c.maskedRow == "uniform" ? -3.4028234663852886e38 : -INFINITY;
    seen = (c.left < 0 || j >= place - c.left) &&
           (c.right < 0 || j <= place + c.right);
    return seen ? s : -INFINITY;
  }

  std::vector<double> values() const {
    std::vector<double> o(c.dv, 0), s(c.keys);
    if (c.keys == 0)
      return o;
    int64_t place = i + (c.align == "bottom_right" ? c.keys - c.queries
                         : c.align == "param"      ? c.offset
                                                   : 0);
    double max = -INFINITY, sum = 0;
    bool any = false;
    for (int64_t j = 0; j < c.keys; ++j) {
      bool seen;
      s[j] = score(j, place, seen);
      any |= seen;
      max = std::max(max, s[j]);
    }
    bool low = max <= -1.7e38 && max > -INFINITY;
    bool uniformRow =
        c.maskedRow == "uniform" && (!any || (low && c.mask == "boolean"));
    for (double &w : s) {
      w = uniformRow ? 1 : std::exp(w - (max == -INFINITY ? 0 : max));
      sum += w;
    }
    int64_t g = h / (c.heads / c.kvHeads);
    for (int64_t d = 0; d < c.dv; ++d) {
      for (int64_t j = 0; j < c.keys; ++j)
        o[d] += s[j] / sum *
                x.v.at(b * x.v.stride[0] + j * x.v.stride[1] +
                       g * x.v.stride[2] + d);
      if (sum == 0)
        o[d] = c.maskedRow == "zero" ? 0 : NAN;
    }
    return o;
  }
};

std::string where(std::initializer_list<int64_t> index) {
  std::string s = "[";
  for (int64_t i : index)
    s += number(i) + " ";
  return s + "]";
}

/// One number may be off by the rounding of the weights and of the result: a
/// few units of T, as values are at most 1.
std::string compare(const AttentionCase &c, const Operands &x) {
  Comparison result;
  double single = c.type->size == 4 ? 1e-5 : 4 * c.type->rounding;
  for (int64_t b = 0; b < c.batch; ++b)
    for (int64_t i = 0; i < c.queries; ++i)
      for (int64_t h = 0; h < c.heads; ++h) {
        std::vector<double> want = Row{c, x, b, h, i}.values();
        int64_t at = b * x.o.stride[0] + i * x.o.stride[1] + h * x.o.stride[2];
        for (int64_t d = 0; d < c.dv; ++d)
          result.add(x.o.at(at + d), want[d], single, where({b, i, h, d}));
        bool last = b + 1 == c.batch && i + 1 == c.queries && h + 1 == c.heads;
        for (int64_t d = c.dv; d < c.dv + c.gap && !last; ++d)
          result.add(x.o.at(at + d), 77, 0, "between rows");
      }
  return result.verdict(c.type->size == 4 ? 1e-5
                        : c.type == &f16  ? 5e-3
                                          : 2e-2);
}

} // namespace

const std::vector<AttentionTuning> &attentionTunings() {
  static const std::vector<AttentionTuning> all = {
#define TN_ATTENTION_TUNING(NAME, ELEMENT, ...) {#NAME, #ELEMENT, __VA_ARGS__},
#include "kernels/cuda/tunings.def"
  };
  return all;
}

const AttentionTuning &attentionTuning(const std::string &name) {
  for (const AttentionTuning &t : attentionTunings())
    if (name == t.name)
      return t;
  ADD_FAILURE() << "no tuning " << name;
  return attentionTunings()[0];
}

std::string attentionSource(const AttentionCase &c) {
  bool hasMask = c.mask != "none";
  int threads = c.tuning ? c.tuning->threads() : 128;
  int64_t size = c.type->size;
  int align = std::min(alignmentOf((c.d + c.gap) * size),
                       alignmentOf((c.dv + c.gap) * size));
  char scale[64];
  snprintf(scale, sizeof scale, "%.9ef", scaleOf(c));
  bool half = c.type->size == 2;
  std::string header = !c.tuning ? "attention_decode"
                       : half    ? "attention"
                                 : "attention_fma";
  std::string entry = c.tuning && half ? "attention_mma" : header;
  std::string special =
      c.tuning ? "  using Tiling = tn::AttentionTiling<" +
                     number(c.tuning->bm) + ", " + number(c.tuning->bn) + ">;\n"
               : "  static constexpr int rows = " + number(c.rows) +
                     ", split = " + number(c.split) + ";\n";
  return "#include \"kernels/cuda/" + header +
         ".cuh\"\nstruct Cfg0 {\n  using T = " + c.type->name +
         "; using MaskT = " + maskType(c).name + ";\n" + special +
         "  static constexpr int64_t D = " + number(c.d) +
         ", Dv = " + number(c.dv) + ", left = " + bound(c.left) +
         ", right = " + bound(c.right) +
         ";\n  static constexpr float scale = " + scale +
         ", softcap = " + std::to_string(c.softcap) +
         "f;\n  static constexpr tn::Mask mask = tn::Mask::" + c.mask +
         ";\n  static constexpr tn::Align align = tn::Align::" + c.align +
         ";\n  static constexpr tn::MaskedRow masked_row = tn::MaskedRow::" +
         c.maskedRow +
         ";\n  static constexpr bool alibi = " + (c.alibi ? "true" : "false") +
         ", has_mask = " + (hasMask ? "true" : "false") +
         ";\n  static constexpr int align_rows = " + number(align) +
         ", threads = " + number(threads) +
         ", num_views = " + number(4 + hasMask + c.alibi) +
         ", num_params = 1, view_rank = 4;\n};\nTN_UNIT(0, tn::" + entry +
         "<Cfg0>)\n";
}

namespace {

int64_t paddedBytes(int64_t bytes) {
  return bytes <= 32 ? 32 : bytes <= 64 ? 64 : ceilDiv(bytes, 128) * 128;
}

/// Grid, shared memory and scratch as the kernels' contracts say.
void shapeLaunch(const AttentionCase &c, LaunchSpec &spec, Buffer &scratch,
                 Buffer &counters) {
  spec.grid.z = unsigned(c.batch);
  if (const AttentionTuning *t = c.tuning) {
    spec.grid.x = unsigned(ceilDiv(c.queries, t->bm));
    spec.grid.y = unsigned(c.heads);
    spec.threads = t->threads();
    int64_t row = paddedBytes(c.d * c.type->size),
            value = paddedBytes(c.dv * c.type->size);
    if (!t->isHalf())
      value = std::max<int64_t>(value, 128);
    spec.sharedBytes =
        unsigned(t->bm * (t->isHalf() ? std::max(row, value) : row) +
                 t->bn * (row + value));
    if (c.mask != "none" || !t->isHalf())
      spec.sharedBytes += t->bm * (t->bn + 8) * 4;
    return;
  }
  int64_t groups = ceilDiv(c.heads / c.kvHeads * c.queries, c.rows);
  spec.grid.x = unsigned(std::max<int64_t>(1, ceilDiv(c.keys, c.split)));
  spec.grid.y = unsigned(c.kvHeads * groups);
  spec.threads = 128;
  int64_t vectors = ceilDiv(c.dv * c.type->size, 16);
  int64_t across = vectors > 16 ? 32 : vectors > 8 ? 16 : vectors > 4 ? 8 : 4;
  int64_t padded = ceilDiv(vectors, across) * across * 16 / c.type->size;
  spec.sharedBytes =
      unsigned(c.rows * c.split * 4 + c.rows * 8 + 128 / across * padded * 4);
  scratch = Device::get()->allocate(
      4 * c.batch * spec.grid.y * spec.grid.x * c.rows * (c.dv + 2), 0);
  spec.scratch = scratch.address;
  size_t counterBytes = c.batch * spec.grid.y * 4;
  counters = Device::get()->allocate(counterBytes, counterBytes);
  spec.counters = counters.address;
}

} // namespace

std::string runAttention(const AttentionCase &c, const Headers &headers) {
  int arch = c.tuning ? c.tuning->arch : c.arch;
  if (c.type == &bf16)
    arch = std::max(arch, 80);
  Compiled unit = compile(attentionSource(c), runArch(arch), headers);
  if (!unit.ok)
    return "does not compile: " + unit.log;
  Operands x(c);
  LaunchSpec spec;
  spec.rank = 4;
  spec.views = {x.q.view(), x.k.view(), x.v.view()};
  if (c.mask != "none")
    spec.views.push_back(x.mask.view());
  if (c.alibi)
    spec.views.push_back(x.slope.view());
  spec.views.push_back(x.o.view());
  spec.params = {c.offset};
  Buffer scratch, counters;
  shapeLaunch(c, spec, scratch, counters);
  Device *device = Device::get();
  std::string error = device->launch(unit.image, "tn_unit_0", spec);
  x.o.bytes = device->download(x.o.buffer);
  if (error.empty())
    error = compare(c, x);
  if (counters.address && error.empty())
    for (char byte : device->download(counters))
      if (byte != 0)
        error = "a counter is not 0 again";
  x.release();
  for (const Buffer &buffer : {scratch, counters})
    if (buffer.address)
      device->release(buffer);
  return error;
}

} // namespace test
