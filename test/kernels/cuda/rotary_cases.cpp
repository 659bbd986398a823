//===- rotary_cases.cpp - launches of the rotary kernel -------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "cases.h"

namespace test {

namespace {

std::string number(int64_t x) { return std::to_string(x); }

std::string rotarySource(const RotaryCase &c) {
  std::string from = c.from->name, to = c.to->name;
  return "#include \"kernels/cuda/rotary.cuh\"\nstruct Cfg0 {\n"
         "  static constexpr int parts = 3;\n"
         "  static constexpr int64_t rotated = 3, rotary_dim = " +
         number(2 * c.half) + ", half = " + number(c.half) +
         ";\n  static constexpr bool interleaved = " +
         (c.interleaved ? "true" : "false") + ";\n  using Inputs = tn::types<" +
         from + ", " + from + ", " + from + ">;\n  using Results = tn::types<" +
         to + ", " + to + ", " + to +
         ">;\n  static constexpr int num_views = 8, num_params = 0, view_rank "
         "= "
         "4, threads = 64;\n};\nTN_UNIT(0, tn::rotary_parts<Cfg0>)\n";
}

/// A part of the product and its place.
struct Part {
  DeviceTensor to;
  int64_t heads, offset; ///< of its first column in the product
  bool rotated;
};

std::string compare(const RotaryCase &c, const Part &part,
                    const DeviceTensor &product, const DeviceTensor &cos,
                    const DeviceTensor &sin, int64_t columns) {
  Comparison result;
  for (int64_t b = 0; b < c.batch; ++b)
    for (int64_t s = 0; s < c.positions; ++s)
      for (int64_t h = 0; h < part.heads; ++h)
        for (int64_t i = 0; i < c.d; ++i) {
          int64_t row = b * c.positions + s;
          int64_t first = row * columns + part.offset + h * c.d;
          double want = product.at(first + i);
          if (part.rotated && i < 2 * c.half) {
            bool second = c.interleaved ? i % 2 : i >= c.half;
            int64_t pair = c.interleaved ? i / 2 : i % c.half;
            int64_t other = c.interleaved ? (i ^ 1)
                            : second      ? i - c.half
                                          : i + c.half;
            double cosine = cos.at(row * c.half + pair),
                   sine = sin.at(row * c.half + pair);
            want = want * cosine +
                   (second ? 1 : -1) * product.at(first + other) * sine;
          }
          const std::vector<int64_t> &t = part.to.stride;
          double got = part.to.at(b * t[0] + s * t[1] + h * t[2] + i * t[3]);
          result.add(got, want, c.to->rounding * 4,
                     "[" + number(b) + " " + number(s) + " " + number(h) + " " +
                         number(i) + "]");
        }
  return result.verdict(c.to->rounding * 4);
}

} // namespace

std::string runRotary(const RotaryCase &c, const Headers &headers) {
  Compiled unit = compile(rotarySource(c), runArch(75), headers);
  if (!unit.ok)
    return "does not compile: " + unit.log;
  int64_t columns = (c.heads + 2 * c.keyHeads) * c.d, room = c.positions + 2;
  auto product = makeTensor(*c.from, {c.batch, c.positions, columns},
                            {c.positions * columns, columns, 1}, uniform);
  std::vector<int64_t> table = {c.batch, c.positions, c.half},
                       steps = {c.positions * c.half, c.half, 1};
  auto cos = makeTensor(f32, table, steps, uniform),
       sin = makeTensor(f32, table, steps, uniform);
  auto place = [&](int64_t heads, bool cache) {
    // A cache is [B, H, room, D].
    std::vector<int64_t> stride =
        cache ? std::vector<int64_t>{heads * room * c.d, c.d, room * c.d, 1}
              : std::vector<int64_t>{c.positions * heads * c.d, heads * c.d,
                                     c.d, 1};
    return makeTensor(*c.to, {c.batch, c.positions, heads, c.d}, stride,
                      [] { return 77.0; });
  };
  std::vector<Part> parts = {
      {place(c.heads, false), c.heads, 0, true},
      {place(c.keyHeads, true), c.keyHeads, c.heads * c.d, true},
      {place(c.keyHeads, true), c.keyHeads, (c.heads + c.keyHeads) * c.d,
       false}};
  LaunchSpec spec;
  spec.views = {cos.view(), sin.view()};
  for (const Part &part : parts)
    spec.views.push_back(
        {product.buffer.address + size_t(part.offset) * c.from->size,
         {c.batch, c.positions, part.heads, c.d},
         {c.positions * columns, columns, c.d, 1}});
  for (const Part &part : parts)
    spec.views.push_back(part.to.view());
  spec.rank = 4;
  spec.grid.x = unsigned(c.blocks);
  spec.threads = 64;
  Device *device = Device::get();
  std::string error = device->launch(unit.image, "tn_unit_0", spec);
  for (Part &part : parts) {
    part.to.bytes = device->download(part.to.buffer);
    if (error.empty())
      error = compare(c, part, product, cos, sin, columns);
    device->release(part.to.buffer);
  }
  for (const DeviceTensor *t : {&product, &cos, &sin})
    device->release(t->buffer);
  return error;
}

} // namespace test
