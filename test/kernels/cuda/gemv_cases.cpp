//===- gemv_cases.cpp - launches of the GEMV kernels ----------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "cases.h"

#include <algorithm>

namespace test {

const std::vector<GemvTuning> &gemvTunings() {
  static const std::vector<GemvTuning> all = {
#define TN_GEMV_TUNING(NAME, ...) {#NAME, __VA_ARGS__},
#include "kernels/cuda/tunings.def"
  };
  return all;
}

const GemvTuning &gemvTuning(const std::string &name) {
  for (const GemvTuning &t : gemvTunings())
    if (name == t.name)
      return t;
  ADD_FAILURE() << "no tuning " << name;
  return gemvTunings()[0];
}

namespace {

constexpr double epsilon = 1e-5;

int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
std::string number(int64_t x) { return std::to_string(x); }
std::string flag(bool x) { return x ? "true" : "false"; }

const Element &rowType(const GemvCase &c) {
  return c.singleRows ? f32 : *c.type;
}
bool hasGamma(const GemvCase &c) { return c.norm != "none" && c.affine; }
bool hasBeta(const GemvCase &c) { return c.norm == "layer" && c.affine; }

/// relu(sum + bias) + residual, or the sum of a column times that of its pair.
std::string functorText(const GemvCase &c) {
  std::string type = c.type->name, body;
  if (c.pair)
    body = "tn_mul(x0, tn::load_scalar<float>(e, 0, row, col))";
  else if (c.epilogue)
    body = "tn_add(tn_relu(tn_add(x0, tn_cast<float>(tn::load_row<" + type +
           ">(e, 0, row, col)))), tn_cast<float>(tn::load_full<" + type +
           ">(e, 1, row, col)))";
  else
    return "using E = tn::Identity;\n";
  return "struct E {\n  template <class V, class A> static TN_FN auto apply(V "
         "x0, const A &e, int64_t row, int64_t col) {\n    return " +
         body + ";\n  }\n};\n";
}

/// All of a case's operands, and its matrix as numbers.
struct Operands {
  DeviceTensor a, b, scales, zeros, gamma, beta, bias, residual, c;
  std::vector<double> weights; ///< [columns of b, k]

  explicit Operands(const GemvCase &c) : columns(c.n * (c.pair ? 2 : 1)) {
    const Element &type = *c.type;
    // With a mean that is not 0.
    a = makeTensor(rowType(c), {c.m, c.k}, {c.k + c.gap, 1},
                   [] { return uniform() + 0.25; });
    if (c.block)
      makeCodes(c);
    else
      makeMatrix(c);
    gamma = makeTensor(type, {c.k}, {1}, uniform);
    beta = makeTensor(type, {c.k}, {1}, uniform);
    bias = makeTensor(type, {c.m, c.n}, {0, 1}, uniform);
    residual = makeTensor(type, {c.m, c.n}, {c.n, 1}, uniform);
    this->c = makeTensor(type, {c.m, c.n}, {c.n, 1}, [] { return 77.0; });
  }
  ~Operands() {
    for (DeviceTensor *t :
         {&a, &b, &scales, &zeros, &gamma, &beta, &bias, &residual, &c})
      if (t->buffer.address)
        Device::get()->release(t->buffer);
  }

  std::vector<DeviceView> views(const GemvCase &c) const {
    std::vector<DeviceView> v = {a.view(), b.view()};
    if (c.block)
      v.push_back(scales.view());
    if (c.block && c.zeros != "none")
      v.push_back(zeros.view());
    if (hasGamma(c))
      v.push_back(gamma.view());
    if (hasBeta(c))
      v.push_back(beta.view());
    if (c.epilogue) {
      v.push_back(bias.view());
      v.push_back(residual.view());
    }
    v.push_back(this->c.view());
    return v;
  }

private:
  int64_t columns;

  void makeMatrix(const GemvCase &c) {
    b = makeTensor(*c.type, {c.k, columns}, {1, c.k + c.gap}, uniform);
    for (int64_t n = 0; n < columns; ++n)
      for (int64_t k = 0; k < c.k; ++k)
        weights.push_back(b.at(n * (c.k + c.gap) + k));
  }

  void makeCodes(const GemvCase &c) {
    int64_t blocks = ceilDiv(c.k, c.block), bytes = c.block * c.bits / 8;
    auto random = [] { return double(generator()() & 255); };
    b = makeTensor(u8, {columns, blocks, bytes}, {blocks * bytes, bytes, 1},
                   random);
    scales = makeTensor(*c.type, {columns, blocks}, {blocks, 1},
                        [] { return 0.02 + 0.01 * uniform(); });
    int64_t pairs = ceilDiv(blocks, 2);
    bool real = c.zeros == "real";
    zeros = real ? makeTensor(f32, {columns, blocks}, {blocks, 1},
                              [] { return 8 + 7 * uniform(); })
                 : makeTensor(u8, {columns, pairs}, {pairs, 1}, random);
    for (int64_t n = 0; n < columns; ++n)
      for (int64_t k = 0; k < c.k; ++k) {
        int64_t block = k / c.block;
        double zero = 8;
        if (real) {
          zero = zeros.at(n * blocks + block);
        } else if (c.zeros == "packed") {
          int both = int(zeros.at(n * pairs + block / 2));
          zero = block % 2 ? both >> 4 : both & 15;
        }
        int per = 8 / c.bits, byte = int(b.at(n * blocks * bytes + k / per));
        int code = byte >> (k % per * c.bits) & ((1 << c.bits) - 1);
        weights.push_back((code - zero) * scales.at(n * blocks + block));
      }
  }
};

/// Row i of A as it is multiplied.
std::vector<double> rowOf(const GemvCase &c, const Operands &o, int64_t i) {
  std::vector<double> x(c.k);
  double sum = 0, squares = 0;
  for (int64_t k = 0; k < c.k; ++k)
    sum += x[k] = o.a.at(i * (c.k + c.gap) + k);
  if (c.norm == "none")
    return x;
  double mean = c.norm == "layer" ? sum / c.k : 0;
  for (double &e : x)
    squares += (e - mean) * (e - mean);
  double factor = 1 / std::sqrt(squares / c.k + epsilon);
  for (int64_t k = 0; k < c.k; ++k)
    x[k] = (x[k] - mean) * factor * (hasGamma(c) ? o.gamma.at(k) : 1) +
           (hasBeta(c) ? o.beta.at(k) : 0);
  return x;
}

bool isTf32(const GemvCase &c) {
  return c.tile && std::string(c.tile->math) == "tf32";
}

std::string compare(const GemvCase &c, const Operands &o) {
  Comparison result;
  double product = 0x1p-20;
  for (int64_t i = 0; i < c.m; ++i) {
    std::vector<double> x = rowOf(c, o, i);
    auto sumOf = [&](int64_t column, double &magnitude) {
      double sum = 0;
      for (int64_t k = 0; k < c.k; ++k) {
        double term = x[k] * o.weights[column * c.k + k];
        sum += term;
        magnitude += std::fabs(term);
      }
      return sum;
    };
    for (int64_t j = 0; j < c.n; ++j) {
      double magnitude = 0, other = 0, want = sumOf(j, magnitude);
      if (c.pair) {
        double second = sumOf(c.n + j, other);
        magnitude = magnitude * std::fabs(second) + other * std::fabs(want);
        want *= second;
      }
      if (c.epilogue)
        want = std::max(0.0, want + o.bias.at(j)) + o.residual.at(i * c.n + j);
      // Tiles hold weights rounded; tf32 rounds both factors to 10 bits.
      double each = product + (c.tile ? c.type->rounding : 0.0) +
                    (isTf32(c) ? 0x1p-10 : 0.0);
      double bound =
          c.type->rounding * 2 * std::fabs(want) + each * magnitude + 1e-30;
      result.add(o.c.at(i * c.n + j), want, bound,
                 "[" + number(i) + " " + number(j) + "]");
    }
  }
  return result.verdict(isTf32(c)           ? 1e-3
                        : c.type->size == 4 ? 2e-6
                                            : c.type->rounding * 4);
}

} // namespace

namespace {

int tileThreads(const GemmTuning &t) {
  return t.bm / t.wm * (t.bn / t.wn) * 32;
}

int64_t rowAlignment(const GemvCase &c) {
  int64_t bytes = (c.k + c.gap) * c.type->size;
  return std::min<int64_t>(16, bytes & -bytes);
}

} // namespace

std::string gemvSource(const GemvCase &c) {
  std::string type = c.type->name;
  const GemvTuning &t = c.tuning;
  bool zeros = c.block && c.zeros != "none";
  int views =
      3 + (c.block != 0) + zeros + hasGamma(c) + hasBeta(c) + 2 * c.epilogue;
  int threads = c.tile ? tileThreads(*c.tile) : t.warps * 32;
  std::string tiling = c.tile ? c.tile->text()
                              : "tn::GemvTiling<" + number(t.warps) + ", " +
                                    number(t.kSplit) + ", " +
                                    number(t.columns) + ">";
  std::string tile =
      c.tile
          ? std::string("  static constexpr tn::Math math = tn::Math::") +
                c.tile->math +
                ";\n  static constexpr tn::Layout b = tn::Layout::nk;\n"
                "  static constexpr int align_a = " +
                number(rowAlignment(c)) +
                ";\n  static constexpr bool stream = " + flag(c.blocks != 0) +
                ";\n"
          : "";
  std::string codes =
      c.block
          ? "  using Scale = " + type +
                "; using Zero = " + (c.zeros == "real" ? "float" : "uint8_t") +
                ";\n  static constexpr int bits = " + number(c.bits) +
                ";\n  static constexpr int64_t block = " + number(c.block) +
                ";\n  static constexpr bool zeros = " + flag(zeros) +
                ";\n  static constexpr float zero = 8;\n"
          : "";
  std::string kernel = c.tile ? "gemm_codes" : c.block ? "gemv_codes" : "gemv";
  return "#include \"kernels/cuda/" + kernel +
         ".cuh\"\nstruct Cfg0 {\n  using In = " + type +
         "; using Out = " + type + "; using A = " + rowType(c).name +
         ";\n  using Operands = tn::types<" +
         (c.epilogue ? type + ", " + type : "") +
         ">;\n  using Tiling = " + tiling + ";\n" + tile + codes +
         "  static constexpr tn::RowNorm norm = tn::RowNorm::" + c.norm +
         ";\n  static constexpr float epsilon = 1e-5f;\n"
         "  static constexpr bool has_gamma = " +
         flag(hasGamma(c)) + ", has_beta = " + flag(hasBeta(c)) +
         ", pair = " + flag(c.pair) +
         ";\n  static constexpr int rows = " + number(c.rows) +
         ", rank = 2, threads = " + number(threads) +
         ", num_views = " + number(views) +
         ", num_params = 0, view_rank = 3;\n};\n" + functorText(c) +
         "TN_UNIT(0, tn::" + kernel + "<Cfg0, E>)\n";
}

std::string runGemv(const GemvCase &c, const Headers &headers) {
  Compiled unit =
      compile(gemvSource(c), runArch(c.tile ? c.tile->arch : c.arch), headers);
  if (!unit.ok)
    return "does not compile: " + unit.log;
  Operands o(c);
  LaunchSpec spec;
  spec.views = o.views(c);
  spec.rank = 3;
  const GemvTuning &t = c.tuning;
  spec.grid.x = unsigned(ceilDiv(c.n, t.warps / t.kSplit * t.columns));
  spec.grid.y = unsigned(ceilDiv(c.m, c.rows));
  spec.threads = t.warps * 32;
  Device *device = Device::get();
  Buffer scratch, counters;
  if (c.tile) {
    const GemmTuning &tile = *c.tile;
    int64_t tiles = ceilDiv(c.m, tile.bm) * ceilDiv(c.n, tile.bn);
    int threads = tileThreads(tile), sums = tile.bm * tile.bn;
    spec.grid = {};
    spec.grid.x = unsigned(c.blocks ? c.blocks : tiles);
    spec.threads = threads;
    spec.sharedBytes = std::max(tile.stages * (tile.bm + tile.bn) * tile.kBytes,
                                threads / 32 * 16 * (tile.wn + 8) * 4);
    scratch = device->allocate(std::max(c.blocks, 1) * 2 * sums * 4, 0);
    counters = device->allocate(tiles * 4, tiles * 4);
    spec.scratch = scratch.address;
    spec.counters = counters.address;
  }
  std::string error = device->launch(unit.image, "tn_unit_0", spec);
  o.c.bytes = device->download(o.c.buffer);
  for (const Buffer &buffer : {scratch, counters})
    if (buffer.address)
      device->release(buffer);
  return error.empty() ? compare(c, o) : error;
}

} // namespace test
