//===- Inflate.cpp - decompresses deflate streams -----------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/Inflate.h"

#include <algorithm>
#include <iterator>
#include <memory>

namespace tenon::rt {
namespace {

constexpr unsigned maxCodeLength = 15;
constexpr unsigned numLiterals = 288, numDistances = 30;

/// Reads bits, low bits of each byte first. Past the end it gives zeros and
/// notes the overrun.
class BitReader {
public:
  explicit BitReader(Bytes bytes) : bytes(bytes) {}

  /// Makes at least `count` <= 32 bits available in `peek`.
  void fill(unsigned count) {
    while (available < count) {
      uint64_t byte = 0;
      if (at < bytes.size())
        byte = bytes[at];
      else
        ++missing;
      ++at;
      window |= byte << available;
      available += 8;
    }
  }
  uint32_t peek(unsigned count) const {
    return uint32_t(window & ((uint64_t(1) << count) - 1));
  }
  void drop(unsigned count) {
    window >>= count;
    available -= count;
  }
  uint32_t take(unsigned count) {
    fill(count);
    uint32_t bits = peek(count);
    drop(count);
    return bits;
  }
  /// True when more bits were used than there are.
  bool overrun() const { return missing * 8 > available; }
  /// Drops the bits up to the next byte and gives that byte's position.
  size_t alignToByte() {
    drop(available % 8);
    size_t position = at - available / 8;
    window = available = 0;
    missing = 0;
    at = position;
    return position;
  }
  void seek(size_t position) { at = position; }

private:
  Bytes bytes;
  size_t at = 0;
  uint64_t window = 0;
  unsigned available = 0;
  size_t missing = 0;
};

/// A prefix code as a table indexed by the next `bits` bits; an entry is
/// symbol << 4 | code length, 0 where no code starts so.
class PrefixCode {
public:
  /// `lengths[s]` is the code length of symbol s, 0 when unused. Fails on codes
  /// that overlap, and on incomplete ones but a single code of one bit.
  bool build(std::span<const uint8_t> lengths) {
    unsigned counts[maxCodeLength + 1] = {};
    for (uint8_t length : lengths)
      ++counts[length];
    counts[0] = 0;
    bits = maxCodeLength;
    while (bits > 1 && counts[bits] == 0)
      --bits;
    unsigned next[maxCodeLength + 2] = {}, used = 0, code = 0;
    for (unsigned length = 1; length <= bits; ++length) {
      next[length] = code;
      code = (code + counts[length]) << 1;
      used += counts[length] << (bits - length);
    }
    if (used > 1u << bits)
      return false;
    bool single = bits == 1 && used <= 1;
    if (used < 1u << bits && !single)
      return false;
    std::fill_n(table, size_t(1) << bits, uint16_t(0));
    for (unsigned symbol = 0; symbol < lengths.size(); ++symbol)
      if (unsigned length = lengths[symbol])
        place(symbol, length, next[length]++);
    return true;
  }

  /// The next symbol, or -1.
  int decode(BitReader &reader) const {
    reader.fill(bits);
    uint16_t entry = table[reader.peek(bits)];
    if (entry == 0)
      return -1;
    reader.drop(entry & 15);
    return entry >> 4;
  }

private:
  void place(unsigned symbol, unsigned length, unsigned code) {
    unsigned reversed = 0;
    for (unsigned i = 0; i < length; ++i)
      reversed |= (code >> i & 1) << (length - 1 - i);
    for (unsigned i = reversed; i < 1u << bits; i += 1u << length)
      table[i] = uint16_t(symbol << 4 | length);
  }

  unsigned bits = 1;
  uint16_t table[size_t(1) << maxCodeLength];
};

struct LengthCode {
  uint16_t base;
  uint8_t extra;
};
constexpr LengthCode matchLengths[] = {
    {3, 0},   {4, 0},   {5, 0},   {6, 0},   {7, 0},  {8, 0},  {9, 0},  {10, 0},
    {11, 1},  {13, 1},  {15, 1},  {17, 1},  {19, 2}, {23, 2}, {27, 2}, {31, 2},
    {35, 3},  {43, 3},  {51, 3},  {59, 3},  {67, 4}, {83, 4}, {99, 4}, {115, 4},
    {131, 5}, {163, 5}, {195, 5}, {227, 5}, {258, 0}};
constexpr LengthCode matchDistances[] = {
    {1, 0},     {2, 0},     {3, 0},     {4, 0},      {5, 1},      {7, 1},
    {9, 2},     {13, 2},    {17, 3},    {25, 3},     {33, 4},     {49, 4},
    {65, 5},    {97, 5},    {129, 6},   {193, 6},    {257, 7},    {385, 7},
    {513, 8},   {769, 8},   {1025, 9},  {1537, 9},   {2049, 10},  {3073, 10},
    {4097, 11}, {6145, 11}, {8193, 12}, {12289, 12}, {16385, 13}, {24577, 13}};

class Inflater {
public:
  Inflater(Bytes from, std::span<uint8_t> to)
      : from(from), to(to), reader(from) {}

  Status run() {
    for (bool last = false; !last;) {
      last = reader.take(1) != 0;
      uint32_t kind = reader.take(2);
      if (reader.overrun() || kind == 3)
        return damaged();
      bool good = kind == 0 ? stored() : kind == 1 ? fixed() : dynamic();
      if (!good)
        return damaged();
    }
    if (written != to.size())
      return TN_ERROR("deflate stream gives %zu bytes, expected %zu", written,
                      to.size());
    return {};
  }

private:
  Status damaged() const {
    return Status::error(full ? format("deflate stream gives more than the "
                                       "expected %zu bytes",
                                       to.size())
                              : std::string("damaged deflate stream"));
  }

  bool stored() {
    size_t at = reader.alignToByte();
    if (!inRange(at, 4, from.size()))
      return false;
    uint16_t length = readAs<uint16_t>(from.data() + at);
    uint16_t inverse = readAs<uint16_t>(from.data() + at + 2);
    at += 4;
    if (uint16_t(~length) != inverse || !inRange(at, length, from.size()))
      return false;
    if (length > to.size() - written) {
      full = true;
      return false;
    }
    std::copy_n(from.data() + at, length, to.data() + written);
    written += length;
    reader.seek(at + length);
    return true;
  }

  bool fixed() {
    uint8_t lengths[numLiterals + numDistances + 2];
    for (unsigned i = 0; i < numLiterals; ++i)
      lengths[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
    // 30 and 31 take part in the code though they must not occur.
    std::fill_n(lengths + numLiterals, numDistances + 2, uint8_t(5));
    return literals.build({lengths, numLiterals}) &&
           distances.build({lengths + numLiterals, numDistances + 2}) && body();
  }

  bool dynamic() {
    static constexpr uint8_t order[] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                        11, 4,  12, 3, 13, 2, 14, 1, 15};
    unsigned numLit = reader.take(5) + 257, numDist = reader.take(5) + 1;
    unsigned numCode = reader.take(4) + 4;
    if (numLit > 286 || numDist > numDistances)
      return false;
    uint8_t codeLengths[std::size(order)] = {};
    for (unsigned i = 0; i < numCode; ++i)
      codeLengths[order[i]] = uint8_t(reader.take(3));
    if (!literals.build(codeLengths))
      return false;
    uint8_t lengths[numLiterals + numDistances] = {};
    if (!readLengths({lengths, numLit + numDist}) || lengths[256] == 0)
      return false;
    return literals.build({lengths, numLit}) &&
           distances.build({lengths + numLit, numDist}) && body();
  }

  /// The run-length coded code lengths of a dynamic block.
  bool readLengths(std::span<uint8_t> lengths) {
    for (size_t i = 0; i < lengths.size();) {
      int symbol = literals.decode(reader);
      if (symbol < 0 || reader.overrun() || (symbol == 16 && i == 0))
        return false;
      if (symbol < 16) {
        lengths[i++] = uint8_t(symbol);
        continue;
      }
      unsigned repeat = symbol == 16   ? 3 + reader.take(2)
                        : symbol == 17 ? 3 + reader.take(3)
                                       : 11 + reader.take(7);
      uint8_t value = symbol == 16 ? lengths[i - 1] : 0;
      if (repeat > lengths.size() - i)
        return false;
      std::fill_n(lengths.data() + i, repeat, value);
      i += repeat;
    }
    return true;
  }

  bool body() {
    while (true) {
      int symbol = literals.decode(reader);
      if (symbol < 0 || reader.overrun())
        return false;
      if (symbol == 256)
        return true;
      if (symbol > 256) {
        if (!match(unsigned(symbol) - 257))
          return false;
        continue;
      }
      if (written == to.size()) {
        full = true;
        return false;
      }
      to[written++] = uint8_t(symbol);
    }
  }

  bool match(unsigned lengthSymbol) {
    if (lengthSymbol >= std::size(matchLengths))
      return false;
    LengthCode code = matchLengths[lengthSymbol];
    size_t length = code.base + reader.take(code.extra);
    int symbol = distances.decode(reader);
    if (symbol < 0 || unsigned(symbol) >= numDistances)
      return false;
    code = matchDistances[symbol];
    size_t distance = code.base + reader.take(code.extra);
    if (reader.overrun() || distance > written)
      return false;
    if (length > to.size() - written) {
      full = true;
      return false;
    }
    // Byte by byte: the two ranges may overlap, which repeats the pattern.
    for (uint8_t *at = to.data() + written, *end = at + length; at != end; ++at)
      *at = *(at - distance);
    written += length;
    return true;
  }

  Bytes from;
  std::span<uint8_t> to;
  BitReader reader;
  size_t written = 0;
  bool full = false;
  PrefixCode literals, distances;
};

} // namespace

Status inflate(Bytes from, std::span<uint8_t> to) {
  // 130 KB of tables: on the heap, for the sake of small thread stacks.
  auto inflater = std::make_unique<Inflater>(from, to);
  return inflater->run();
}

} // namespace tenon::rt
