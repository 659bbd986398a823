//===- Npy.cpp - the .npy header ----------------------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/Npy.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string_view>

namespace tenon::rt {
namespace {

constexpr uint8_t npyMagic[] = {0x93, 'N', 'U', 'M', 'P', 'Y'};

/// Reads the header's Python dict: strings, bools and a tuple of integers.
class DictParser {
public:
  explicit DictParser(std::string_view text) : text(text) {}

  Status parse(NpyHeader &header) {
    bool seenType = false, seenOrder = false, seenShape = false;
    if (!eat('{'))
      return malformed();
    while (!eat('}')) {
      std::string_view key;
      if (!string(key) || !eat(':'))
        return malformed();
      bool *seen = key == "descr"           ? &seenType
                   : key == "fortran_order" ? &seenOrder
                   : key == "shape"         ? &seenShape
                                            : nullptr;
      if (!seen || *seen)
        return TN_ERROR("npy header has an unknown or repeated key '%s'",
                        printable(std::string(key)).c_str());
      *seen = true;
      Status status = seen == &seenType    ? type(header)
                      : seen == &seenOrder ? order(header)
                                           : shape(header);
      if (!status.ok())
        return status;
      if (!eat(',') && !at('}'))
        return malformed();
    }
    return seenType && seenOrder && seenShape ? Status() : malformed();
  }

private:
  static Status malformed() { return TN_ERROR("malformed npy header"); }

  void skipSpace() {
    while (next < text.size() && (text[next] == ' ' || text[next] == '\n'))
      ++next;
  }
  bool at(char c) {
    skipSpace();
    return next < text.size() && text[next] == c;
  }
  bool eat(char c) {
    bool found = at(c);
    next += found;
    return found;
  }
  bool word(std::string_view expected) {
    skipSpace();
    bool found = text.substr(next, expected.size()) == expected;
    next += found ? expected.size() : 0;
    return found;
  }
  bool string(std::string_view &out) {
    skipSpace();
    if (next >= text.size() || (text[next] != '\'' && text[next] != '"'))
      return false;
    size_t end = text.find(text[next], next + 1);
    if (end == std::string_view::npos)
      return false;
    out = text.substr(next + 1, end - next - 1);
    next = end + 1;
    return true;
  }

  Status type(NpyHeader &header) {
    if (at('['))
      return TN_ERROR("npy arrays with fields are not supported");
    std::string_view descr;
    if (!string(descr) || descr.empty())
      return malformed();
    char order = descr[0];
    bool hasOrder = std::string_view("<>|=").find(order) != std::string::npos;
    std::string_view code = descr.substr(hasOrder ? 1 : 0);
    for (unsigned i = 0; i < numDTypes; ++i) {
      if (code != dtypeInfos[i].npy || code.empty())
        continue;
      header.dtype = DType(i);
      header.raw = code[0] == 'V';
      header.swapped = order == '>' && dtypeInfos[i].bits > 8 && !header.raw;
      return {};
    }
    return TN_ERROR("npy type '%s' is not supported",
                    printable(std::string(descr)).c_str());
  }

  Status order(NpyHeader &header) {
    header.fortranOrder = word("True");
    return header.fortranOrder || word("False") ? Status() : malformed();
  }

  Status shape(NpyHeader &header) {
    if (!eat('('))
      return malformed();
    while (!eat(')')) {
      int64_t size = 0;
      size_t digits = 0;
      for (skipSpace();
           next < text.size() && text[next] >= '0' && text[next] <= '9';
           ++next, ++digits)
        if (__builtin_mul_overflow(size, int64_t(10), &size) ||
            __builtin_add_overflow(size, int64_t(text[next] - '0'), &size))
          return TN_ERROR("npy shape overflows");
      word("L"); // Python 2 wrote long integers so
      if (digits == 0 || (!eat(',') && !at(')')))
        return malformed();
      if (header.shape.size() == maxRank)
        return TN_ERROR("npy array has more than %u dimensions", maxRank);
      header.shape.push_back(size);
    }
    return {};
  }

  std::string_view text;
  size_t next = 0;
};

/// Copies an array whose first dimension varies fastest into C order.
void reorder(const NpyHeader &header, const uint8_t *from, uint8_t *to,
             size_t size) {
  size_t rank = header.shape.size();
  int64_t index[maxRank] = {};
  uint64_t stride[maxRank], count = 1;
  for (size_t d = 0; d < rank; ++d) {
    stride[d] = count;
    count *= uint64_t(header.shape[d]);
  }
  uint64_t source = 0;
  for (uint64_t i = 0; i < count; ++i) {
    std::memcpy(to + i * size, from + source * size, size);
    for (size_t d = rank; d-- > 0;) {
      source += stride[d];
      if (++index[d] < header.shape[d])
        break;
      source -= stride[d] * uint64_t(header.shape[d]);
      index[d] = 0;
    }
  }
}

/// Whether a type below a byte is of signed integers.
bool hasSign(DType type) { return type == DType::I4 || type == DType::I2; }

/// The number of a signed code below a byte.
int8_t extend(uint8_t code, unsigned bits) {
  return int8_t(int8_t(code << (8 - bits)) >> (8 - bits));
}

} // namespace

bool countElements(std::span<const int64_t> shape, uint64_t &count) {
  // A zero anywhere makes the count zero, whatever overflows beside it.
  count = 1;
  bool overflow = false, zero = false;
  for (int64_t size : shape) {
    if (size < 0)
      return false;
    zero |= size == 0;
    overflow |= __builtin_mul_overflow(count, uint64_t(size), &count);
  }
  if (zero) {
    count = 0;
    return true;
  }
  return !overflow && count <= uint64_t(INT64_MAX) / 8;
}

std::string describeType(DType dtype, std::span<const int64_t> shape) {
  std::string out = std::string(dtypeInfo(dtype).name) + "[";
  for (size_t i = 0; i < shape.size(); ++i)
    out += (i ? ", " : "") + std::to_string(shape[i]);
  return out + "]";
}

Result<NpyHeader> parseNpyHeader(Bytes file) {
  if (file.size() < 10 ||
      !std::equal(std::begin(npyMagic), std::end(npyMagic), file.data()))
    return TN_ERROR("not an npy array");
  uint8_t major = file[6];
  if (major < 1 || major > 3)
    return TN_ERROR("npy version %u is not supported", major);
  uint64_t start = major == 1 ? 10 : 12;
  if (file.size() < start)
    return TN_ERROR("truncated npy header");
  uint64_t length = major == 1 ? readAs<uint16_t>(file.data() + 8)
                               : readAs<uint32_t>(file.data() + 8);
  if (!inRange(start, length, file.size()))
    return TN_ERROR("truncated npy header");
  NpyHeader header;
  std::string_view text(reinterpret_cast<const char *>(file.data()) + start,
                        length);
  Status status = DictParser(text).parse(header);
  if (!status.ok())
    return status;
  uint64_t count;
  if (!countElements(header.shape, count))
    return TN_ERROR("npy shape overflows");
  header.dataOffset = start + length;
  header.dataBytes = count * (dtypeInfo(header.dtype).bits / 8);
  return header;
}

std::string makeNpyHeader(DType dtype, std::span<const int64_t> shape) {
  const DTypeInfo &info = dtypeInfo(dtype);
  std::string dict = "{'descr': '";
  dict += info.bits > 8 && info.npy[0] != 'V' ? '<' : '|';
  dict += std::string(info.npy) + "', 'fortran_order': False, 'shape': (";
  for (int64_t size : shape)
    dict += std::to_string(size) + ", ";
  dict += "), }";
  dict.append(64 - (10 + dict.size() + 1) % 64, ' ');
  dict += '\n';
  std::string out(reinterpret_cast<const char *>(npyMagic), sizeof(npyMagic));
  out += {1, 0, char(dict.size() & 255), char(dict.size() >> 8)};
  return out + dict;
}

bool NpyArray::fits(DType type) const {
  const DTypeInfo &from = dtypeInfo(dtype), &to = dtypeInfo(type);
  if (type == dtype)
    return true;
  if (to.bits < 8)
    return from.bits == 8 && (raw || !std::strcmp(from.npy, to.npy));
  return raw && to.npy[0] == 'V' && to.bits == from.bits;
}

Status NpyArray::convert(DType type) {
  const DTypeInfo &info = dtypeInfo(type);
  if (type != dtype && info.bits < 8) {
    unsigned perByte = 8u / info.bits;
    bool isSigned = hasSign(type);
    uint8_t *to = data.get();
    for (uint64_t i = 0; i < bytes; ++i) {
      // In place: a packed byte is written after what it is made of was read.
      uint8_t byte = to[i], code = byte & ((1u << info.bits) - 1);
      // Raw bytes of signed numbers come with and without their sign's bits.
      bool holds = (byte == code && (raw || !isSigned)) ||
                   (isSigned && byte == uint8_t(extend(code, info.bits)));
      if (!holds)
        return TN_ERROR("'%s': element %llu is %d, which %s does not hold",
                        printable(name).c_str(),
                        static_cast<unsigned long long>(i),
                        isSigned ? int8_t(byte) : byte, info.name);
      unsigned shift = unsigned(i % perByte) * info.bits;
      uint8_t &packed = to[i / perByte];
      packed = uint8_t((shift ? packed : 0) | code << shift);
    }
    bytes = (bytes + perByte - 1) / perByte;
  }
  dtype = type;
  raw = false;
  return {};
}

std::vector<uint8_t> unpack(DType dtype, uint64_t count, const void *data) {
  unsigned bits = dtypeInfo(dtype).bits, perByte = 8 / bits;
  bool isSigned = hasSign(dtype);
  const uint8_t *from = static_cast<const uint8_t *>(data);
  std::vector<uint8_t> out(count);
  for (uint64_t i = 0; i < count; ++i) {
    uint8_t code =
        (from[i / perByte] >> (i % perByte * bits)) & ((1u << bits) - 1);
    out[i] = isSigned ? uint8_t(extend(code, bits)) : code;
  }
  return out;
}

Status normaliseNpy(const NpyHeader &header, Bytes data, NpyArray &array) {
  if (data.size() < header.dataBytes)
    return TN_ERROR("npy data has %zu bytes, expected %llu", data.size(),
                    static_cast<unsigned long long>(header.dataBytes));
  array.dtype = header.dtype;
  array.raw = header.raw;
  array.shape = header.shape;
  array.bytes = header.dataBytes;
  array.data = allocateAligned(header.dataBytes);
  if (!array.data)
    return TN_ERROR("not enough memory for %llu bytes",
                    static_cast<unsigned long long>(header.dataBytes));
  size_t size = dtypeInfo(header.dtype).bits / 8;
  if (header.fortranOrder && header.shape.size() > 1 && header.dataBytes > 0)
    reorder(header, data.data(), array.data.get(), size);
  else if (header.dataBytes > 0)
    std::memcpy(array.data.get(), data.data(), header.dataBytes);
  if (header.swapped)
    for (uint64_t i = 0; i < header.dataBytes; i += size)
      std::reverse(array.data.get() + i, array.data.get() + i + size);
  return {};
}

} // namespace tenon::rt
