//===- NpzTest.cpp - reading and writing npz, hostile files included ----===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/Npz.h"

#include "runtime/Inflate.h"
#include "runtime/Npy.h"

#include <cstring>
#include <gtest/gtest.h>
#include <random>
#include <unistd.h>
#include <zlib.h>

using namespace tenon::rt;

namespace {

std::vector<uint8_t> deflated(const std::vector<uint8_t> &data, int level,
                              int strategy = Z_DEFAULT_STRATEGY) {
  z_stream stream = {};
  deflateInit2(&stream, level, Z_DEFLATED, -15, 8, strategy);
  std::vector<uint8_t> out(deflateBound(&stream, data.size()) + 16);
  stream.next_in = const_cast<uint8_t *>(data.data());
  stream.avail_in = unsigned(data.size());
  stream.next_out = out.data();
  stream.avail_out = unsigned(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::vector<uint8_t> sample(int kind, size_t size) {
  std::mt19937 random(7);
  std::vector<uint8_t> data(size);
  for (size_t i = 0; i < size; ++i)
    data[i] = kind == 0   ? uint8_t(random())
              : kind == 1 ? uint8_t(i / 100)
              : kind == 2 ? uint8_t("the quick brown fox "[i % 20])
                          : uint8_t(random() % 3 ? 0 : random() % 17);
  return data;
}

TEST(Inflate, ReadsWhatZlibWrites) {
  for (int kind = 0; kind < 4; ++kind)
    for (size_t size : {0, 1, 100, 70000, 300000})
      for (int level : {0, 1, 6, 9})
        for (int strategy : {Z_DEFAULT_STRATEGY, Z_FIXED, Z_HUFFMAN_ONLY}) {
          std::vector<uint8_t> data = sample(kind, size), out(size);
          auto packed = deflated(data, level, strategy);
          Status status = inflate(packed, out);
          ASSERT_TRUE(status.ok()) << status.message();
          ASSERT_EQ(out, data);
        }
}

TEST(Inflate, SurvivesDamage) {
  std::mt19937 random(3);
  std::vector<uint8_t> data = sample(3, 5000), packed = deflated(data, 9);
  for (int round = 0; round < 5000; ++round) {
    std::vector<uint8_t> bad = packed, out(random() % 6000);
    for (unsigned n = random() % 4; n > 0; --n)
      bad[random() % bad.size()] = uint8_t(random());
    bad.resize(random() % 3 ? bad.size() : random() % bad.size());
    bad.shrink_to_fit();
    (void)inflate(bad, out);
  }
}

TEST(Inflate, NeedsExactlyTheSize) {
  std::vector<uint8_t> packed = deflated(sample(2, 1000), 6), out(999);
  EXPECT_EQ(inflate(packed, out).message(),
            "deflate stream gives more than the expected 999 bytes");
  out.resize(1001);
  EXPECT_EQ(inflate(packed, out).message(),
            "deflate stream gives 1000 bytes, expected 1001");
}

TEST(Npz, RoundTrips) {
  float f[6] = {1, 2, 3, 4, 5, 6};
  int64_t i[2] = {-1, 1};
  uint16_t half[3] = {1, 2, 3};
  NpyView views[] = {{"a", DType::F32, {2, 3}, f},
                     {"dir/../b", DType::I64, {2}, i},
                     {"scalar", DType::F32, {}, f},
                     {"empty", DType::Bool, {0, 7}, nullptr},
                     {"bf", DType::BF16, {3}, half}};
  auto file = writeNpz(views);
  ASSERT_TRUE(file.ok());
  auto arrays = readNpz(*file);
  ASSERT_TRUE(arrays.ok()) << arrays.message();
  ASSERT_EQ(arrays->size(), 5u);
  for (size_t k = 0; k < 5; ++k) {
    const NpyArray &array = (*arrays)[k];
    EXPECT_EQ(array.name, views[k].name);
    EXPECT_TRUE(array.fits(views[k].dtype));
    EXPECT_EQ(array.shape, views[k].shape);
    if (array.bytes > 0) {
      EXPECT_EQ(std::memcmp(array.data.get(), views[k].data, array.bytes), 0);
    }
  }
  EXPECT_TRUE((*arrays)[4].raw);
}

TEST(Npz, PacksElementsBelowAByte) {
  uint8_t signs[3] = {0x8f, 0x70, 0x01}; // -1, -8, 0, 7, 1
  uint8_t pairs[2] = {0xe4, 0x02};       // 0, 1, 2, 3, 2
  uint8_t codes[1] = {0x0f};             // -6
  NpyView views[] = {{"i4", DType::I4, {5}, signs},
                     {"u2", DType::U2, {5, 1}, pairs},
                     {"i2", DType::I2, {5}, pairs},
                     {"f4", DType::F4E2M1, {}, codes},
                     {"none", DType::U4, {0}, nullptr}};
  auto arrays = readNpz(*writeNpz(views));
  ASSERT_TRUE(arrays.ok()) << arrays.message();
  const int8_t numbers[] = {-1, -8, 0, 7, 1}, two[] = {0, 1, -2, -1, -2};
  const uint64_t packed[] = {3, 2, 2, 1, 0};
  EXPECT_EQ((*arrays)[0].dtype, DType::I8);
  EXPECT_EQ(std::memcmp((*arrays)[0].data.get(), numbers, 5), 0);
  EXPECT_EQ(std::memcmp((*arrays)[2].data.get(), two, 5), 0);
  for (size_t k = 0; k < 5; ++k) {
    NpyArray &array = (*arrays)[k];
    ASSERT_TRUE(array.fits(views[k].dtype));
    ASSERT_TRUE(array.convert(views[k].dtype).ok());
    EXPECT_EQ(array.dtype, views[k].dtype);
    EXPECT_EQ(array.bytes, packed[k]);
    if (array.bytes > 0) {
      EXPECT_EQ(std::memcmp(array.data.get(), views[k].data, array.bytes), 0);
    }
  }
}

TEST(Npz, RefusesNumbersThatElementsBelowAByteDoNotHold) {
  const int8_t numbers[] = {7, -8, 8};
  NpyView view{"x", DType::I8, {3}, numbers};
  auto arrays = readNpz(*writeNpz({&view, 1}));
  NpyArray &array = arrays->front();
  EXPECT_FALSE(array.fits(DType::U4));
  EXPECT_FALSE(array.fits(DType::F32));
  ASSERT_TRUE(array.fits(DType::I4));
  EXPECT_EQ(array.convert(DType::I4).message(),
            "'x': element 2 is 8, which i4 does not hold");
}

TEST(Npz, SurvivesDamageAndTruncation) {
  float f[6] = {};
  NpyView views[] = {{"a", DType::F32, {2, 3}, f}, {"b", DType::F32, {6}, f}};
  std::vector<uint8_t> good = *writeNpz(views);
  std::mt19937 random(5);
  for (size_t size = 0; size < good.size(); ++size) {
    std::vector<uint8_t> cut(good.begin(), good.begin() + ptrdiff_t(size));
    EXPECT_FALSE(readNpz(cut).ok()) << size;
  }
  for (int round = 0; round < 20000; ++round) {
    std::vector<uint8_t> bad = good;
    for (unsigned n = random() % 5 + 1; n > 0; --n)
      bad[random() % bad.size()] = uint8_t(random() % 4 ? random() : 0xff);
    (void)readNpz(bad);
  }
}

TEST(Npz, RefusesTwoOfOneName) {
  float f[1] = {};
  NpyView views[] = {{"a", DType::F32, {1}, f}, {"a", DType::F32, {1}, f}};
  EXPECT_EQ(readNpz(*writeNpz(views)).message(),
            "array 'a': appears twice in the archive");
}

TEST(Npz, WritesNothingOnFailure) {
  std::string path = testing::TempDir() + "tenon-npz-test.npz";
  NpyView views[] = {{"a", DType::F32, {-2}, nullptr}};
  EXPECT_EQ(writeNpzFile(path, views).message(), "array 'a' cannot be stored");
  EXPECT_NE(access(path.c_str(), F_OK), 0);
}

/// A .npy with the header `dict`.
std::vector<uint8_t> npy(const std::string &dict,
                         std::vector<uint8_t> data = {}) {
  std::string head("\x93NUMPY\x01\x00", 8);
  head += char(dict.size() & 255);
  head += char(dict.size() >> 8);
  head += dict;
  std::vector<uint8_t> out(head.begin(), head.end());
  out.insert(out.end(), data.begin(), data.end());
  return out;
}

TEST(Npy, ReadsOrders) {
  auto big = readNpy(npy("{'descr': '>i2', 'fortran_order': True, "
                         "'shape': (2, 3), }",
                         {0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6}));
  ASSERT_TRUE(big.ok()) << big.message();
  int16_t values[6];
  std::memcpy(values, big->data.get(), 12);
  EXPECT_EQ(std::vector<int16_t>(values, values + 6),
            (std::vector<int16_t>{1, 3, 5, 2, 4, 6}));
}

TEST(Npy, ExplainsWhatItCannotRead) {
  auto message = [](const std::string &dict) {
    return readNpy(npy(dict)).message();
  };
  EXPECT_EQ(message("{'descr': '<c8', 'fortran_order': False, 'shape': ()}"),
            "npy type '<c8' is not supported");
  EXPECT_EQ(message("{'descr': [('a', '<f4')], 'fortran_order': False}"),
            "npy arrays with fields are not supported");
  EXPECT_EQ(message("{'descr': '<f4', 'fortran_order': False, "
                    "'shape': (99999999999999999999,)}"),
            "npy shape overflows");
  EXPECT_EQ(message("{'descr': '<f4', 'fortran_order': False, "
                    "'shape': (4611686018427387904, 4)}"),
            "npy shape overflows");
  EXPECT_EQ(message("{'descr': '<f4', 'fortran_order': False, 'shape': (3,)}"),
            "npy data has 0 bytes, expected 12");
  EXPECT_EQ(message("{'descr': '<f4', 'fortran_order': False}"),
            "malformed npy header");
  EXPECT_EQ(message("{'descr': '<f4', 'descr': '<f4'}"),
            "npy header has an unknown or repeated key 'descr'");
  EXPECT_EQ(message("{"), "malformed npy header");
  EXPECT_EQ(message("{'descr'"), "malformed npy header");
}

} // namespace
