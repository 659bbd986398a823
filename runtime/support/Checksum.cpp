//===- Checksum.cpp - checksums of plans, weights and zip members ---------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/support/Checksum.h"

#include <array>
#include <atomic>
#include <pthread.h>
#include <vector>

namespace tenon::rt {
namespace {

constexpr uint64_t prime1 = 0x9E3779B185EBCA87u;
constexpr uint64_t prime2 = 0xC2B2AE3D27D4EB4Fu;
constexpr uint64_t prime3 = 0x165667B19E3779F9u;
constexpr uint64_t prime4 = 0x85EBCA77C2B2AE63u;
constexpr uint64_t prime5 = 0x27D4EB2F165667C5u;

uint64_t rotate(uint64_t x, int bits) { return x << bits | x >> (64 - bits); }

uint64_t mixLane(uint64_t lane, uint64_t input) {
  return rotate(lane + input * prime2, 31) * prime1;
}

uint64_t mergeLane(uint64_t hash, uint64_t lane) {
  return (hash ^ mixLane(0, lane)) * prime1 + prime4;
}

/// Folds in the last bytes, fewer than 32, and scrambles.
uint64_t finish(uint64_t hash, const uint8_t *at, size_t left) {
  for (; left >= 8; at += 8, left -= 8)
    hash =
        rotate(hash ^ mixLane(0, readAs<uint64_t>(at)), 27) * prime1 + prime4;
  if (left >= 4) {
    hash = rotate(hash ^ readAs<uint32_t>(at) * prime1, 23) * prime2 + prime3;
    at += 4, left -= 4;
  }
  for (; left > 0; ++at, --left)
    hash = rotate(hash ^ *at * prime5, 11) * prime1;
  hash = (hash ^ hash >> 33) * prime2;
  hash = (hash ^ hash >> 29) * prime3;
  return hash ^ hash >> 32;
}

struct BlockWork {
  Bytes bytes;
  std::vector<uint64_t> sums;
  std::atomic<size_t> next{0};

  void run() {
    for (size_t i; (i = next.fetch_add(1)) < sums.size();) {
      size_t at = i * checksumBlock;
      size_t left = bytes.size() - at;
      sums[i] = checksum(
          bytes.subspan(at, left < checksumBlock ? left : checksumBlock));
    }
  }
  static void *entry(void *work) {
    static_cast<BlockWork *>(work)->run();
    return nullptr;
  }
};

/// tables[k][b]: the CRC of byte b followed by k zero bytes.
constexpr std::array<std::array<uint32_t, 256>, 8> makeCrcTables() {
  std::array<std::array<uint32_t, 256>, 8> tables{};
  for (uint32_t b = 0; b < 256; ++b) {
    uint32_t crc = b;
    for (int bit = 0; bit < 8; ++bit)
      crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320u : 0);
    tables[0][b] = crc;
  }
  for (int k = 1; k < 8; ++k)
    for (uint32_t b = 0; b < 256; ++b)
      tables[k][b] = tables[k - 1][b] >> 8 ^ tables[0][tables[k - 1][b] & 255];
  return tables;
}
constexpr auto crcTables = makeCrcTables();

} // namespace

uint64_t checksum(Bytes bytes, uint64_t seed) {
  const uint8_t *at = bytes.data();
  size_t left = bytes.size();
  uint64_t hash = seed + prime5;
  if (left >= 32) {
    uint64_t a = seed + prime1 + prime2, b = seed + prime2, c = seed,
             d = seed - prime1;
    for (; left >= 32; at += 32, left -= 32) {
      a = mixLane(a, readAs<uint64_t>(at));
      b = mixLane(b, readAs<uint64_t>(at + 8));
      c = mixLane(c, readAs<uint64_t>(at + 16));
      d = mixLane(d, readAs<uint64_t>(at + 24));
    }
    hash = rotate(a, 1) + rotate(b, 7) + rotate(c, 12) + rotate(d, 18);
    for (uint64_t lane : {a, b, c, d})
      hash = mergeLane(hash, lane);
  }
  return finish(hash + bytes.size(), at, left);
}

uint64_t blockChecksum(Bytes bytes, unsigned threads) {
  BlockWork work;
  work.bytes = bytes;
  work.sums.resize((bytes.size() + checksumBlock - 1) / checksumBlock);
  std::vector<pthread_t> helpers;
  for (unsigned i = 1; i < threads && i < work.sums.size(); ++i) {
    pthread_t helper;
    if (pthread_create(&helper, nullptr, BlockWork::entry, &work) != 0)
      break; // the threads there are do the work
    helpers.push_back(helper);
  }
  work.run();
  for (pthread_t helper : helpers)
    pthread_join(helper, nullptr);
  return checksum({reinterpret_cast<const uint8_t *>(work.sums.data()),
                   work.sums.size() * sizeof(uint64_t)});
}

uint32_t crc32(Bytes bytes, uint32_t crc) {
  const uint8_t *at = bytes.data();
  size_t left = bytes.size();
  crc = ~crc;
  for (; left >= 8; at += 8, left -= 8) {
    uint64_t word = readAs<uint64_t>(at) ^ crc;
    crc = 0;
    for (int k = 0; k < 8; ++k)
      crc ^= crcTables[7 - k][word >> (8 * k) & 255];
  }
  for (; left > 0; ++at, --left)
    crc = crc >> 8 ^ crcTables[0][(crc ^ *at) & 255];
  return ~crc;
}

} // namespace tenon::rt
