//===- BulkCopy.cpp - cp.async.bulk and cp.async.bulk.tensor --------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/emulator/tensor/BulkCopy.h"
#include "runtime/emulator/tensor/Reduce.h"

#include <algorithm>
#include <cstring>

namespace tenon::emu::tensor {
namespace {

/// More than any block's shared memory: keeps sizes in 32 bits.
constexpr uint64_t maxBytes = uint64_t(1) << 24;

bool grant(SharedMemory &memory, AccessKind kind, uint32_t address,
           uint32_t bytes) {
  LaneAccess access = {address, bytes, 0};
  return memory.access(kind, Proxy::Async, {&access, 1});
}

bool grantAll(std::span<SharedMemory *const> memories, AccessKind kind,
              uint32_t address, uint32_t bytes) {
  for (SharedMemory *memory : memories)
    if (!grant(*memory, kind, address, bytes))
      return false;
  return true;
}

BulkError checkBulk(uint64_t to, uint64_t from, uint32_t bytes) {
  if (bytes % 16 != 0)
    return BulkError::SizeNotMultiple;
  return (to | from) % 16 != 0 ? BulkError::Misaligned : BulkError::None;
}

/// A row of a box that lies in the tensor, at least in part.
struct Row {
  uint64_t global;    ///< address of the first byte inside
  uint32_t bytes;     ///< inside
  uint32_t offset;    ///< in the row, of the first byte inside
  uint32_t boxOffset; ///< in the box, of the row
};

/// Calls `see(row)` for each row of the box, until it says false. Rows that lie
/// outside have no bytes.
template <typename See>
bool forEachRow(const TensorMap &map, const int32_t *coords, See &&see) {
  uint64_t element = map.elementBytes();
  uint32_t rowBytes = uint32_t(map.boxElements(0) * element);
  uint64_t rows = map.boxBytes() / rowBytes;
  int64_t first = std::max<int64_t>(coords[0], 0);
  int64_t last = std::min<int64_t>(int64_t(coords[0]) + map.boxElements(0),
                                   int64_t(map.dim[0]));
  bool rowInside = first < last;
  uint32_t index[5] = {};
  for (uint64_t r = 0; r < rows; ++r) {
    Row row = {map.address, 0, 0, uint32_t(r * rowBytes)};
    bool inside = rowInside;
    for (unsigned d = 1; d < map.rank; ++d) {
      int64_t at = int64_t(coords[d]) + index[d] * map.elementStride[d];
      inside = inside && at >= 0 && at < int64_t(map.dim[d]);
      row.global += uint64_t(at) * map.stride[d - 1];
    }
    if (inside) {
      row.global += uint64_t(first) * element;
      row.bytes = uint32_t(uint64_t(last - first) * element);
      row.offset = uint32_t(uint64_t(first - coords[0]) * element);
    }
    if (!see(row))
      return false;
    for (unsigned d = 1; d < map.rank && ++index[d] == map.boxElements(d); ++d)
      index[d] = 0;
  }
  return true;
}

/// Calls `see(shared address, offset in the row, bytes)` for the pieces of a
/// row that swizzling moves as one.
template <typename See>
void forEachPiece(const TensorMap &map, uint32_t address, uint32_t rowBytes,
                  See &&see) {
  if (map.swizzle == TensorSwizzle::None)
    return see(address, 0u, rowBytes);
  for (uint32_t at = 0; at < rowBytes; at += 16)
    see(swizzleAddress(address + at, map.swizzle), at, 16u);
}

uint32_t rowBytesOf(const TensorMap &map) {
  return map.boxElements(0) * map.elementBytes();
}

/// What fills the outside: one element's bytes, repeated.
uint64_t fillOf(const TensorMap &map) {
  if (!map.fillNaN)
    return 0;
  switch (map.data) {
  case TensorData::F16:
  case TensorData::BF16:
    return 0x7fff7fff7fff7fff;
  case TensorData::F64:
    return 0x7fffffffffffffff;
  default:
    return 0x7fffffff7fffffff;
  }
}

void flushSubnormals(uint8_t *bytes, uint32_t size) {
  for (uint32_t i = 0; i < size; i += 4) {
    uint32_t bits;
    std::memcpy(&bits, bytes + i, 4);
    if ((bits & 0x7f800000) == 0)
      bits &= 0x80000000;
    std::memcpy(bytes + i, &bits, 4);
  }
}

BulkError checkBox(const TensorMap &map, uint32_t address) {
  if (map.boxBytes() > maxBytes)
    return BulkError::TooLarge;
  return address % 128 != 0 ? BulkError::Misaligned : BulkError::None;
}

/// The longest row: 256 elements of eight bytes.
using RowBuffer = uint8_t[256 * 8];

ReduceType reduceTypeOf(TensorData data, ReduceOp op) {
  bool bits = op == ReduceOp::And || op == ReduceOp::Or || op == ReduceOp::Xor;
  switch (data) {
  case TensorData::U32:
    return bits ? ReduceType::B32 : ReduceType::U32;
  case TensorData::S32:
    return bits ? ReduceType::B32 : ReduceType::S32;
  case TensorData::U64:
    return bits ? ReduceType::B64 : ReduceType::U64;
  case TensorData::S64:
    return bits ? ReduceType::B64 : ReduceType::S64;
  case TensorData::F16:
    return ReduceType::F16;
  case TensorData::BF16:
    return ReduceType::BF16;
  case TensorData::F64:
    return ReduceType::F64;
  default:
    return ReduceType::F32;
  }
}

void copyBytes(uint8_t *to, const uint8_t *from, uint64_t count) {
  std::memcpy(to, from, count);
}

/// The store direction; `combine` is called with the elements inside, `unit`
/// bytes each.
BulkError putBox(const TensorMap &map, const int32_t *coords,
                 SharedMemory &shared, uint32_t address, GlobalMemory &global,
                 Combine combine, unsigned unit) {
  if (BulkError error = checkBox(map, address); error != BulkError::None)
    return error;
  if (!grant(shared, AccessKind::Read, address, uint32_t(map.boxBytes())))
    return BulkError::Refused;
  bool done = forEachRow(map, coords, [&](const Row &row) {
    if (row.bytes == 0)
      return true;
    uint8_t *to = global.write(row.global, row.bytes);
    if (!to)
      return false;
    RowBuffer buffer;
    forEachPiece(map, address + row.boxOffset, rowBytesOf(map),
                 [&](uint32_t at, uint32_t offset, uint32_t bytes) {
                   std::memcpy(buffer + offset, shared.at(at), bytes);
                 });
    combine(to, buffer + row.offset, row.bytes / unit);
    return true;
  });
  return done ? BulkError::None : BulkError::Refused;
}

} // namespace

const char *describe(BulkError error) {
  switch (error) {
  case BulkError::None:
  case BulkError::Refused:
    return "";
  case BulkError::Misaligned:
    return "an address of a bulk copy must be a multiple of 16, and a box's "
           "address in shared memory one of 128";
  case BulkError::SizeNotMultiple:
    return "the size of a bulk copy must be a multiple of 16 bytes";
  case BulkError::TooLarge:
    return "the box is larger than any block's shared memory";
  case BulkError::ReduceType:
    return "the element type does not have this reduction";
  }
  return "";
}

BulkError bulkLoad(std::span<SharedMemory *const> destinations,
                   uint32_t address, GlobalMemory &global, uint64_t source,
                   uint32_t bytes) {
  if (BulkError e = checkBulk(address, source, bytes); e != BulkError::None)
    return e;
  if (bytes == 0)
    return BulkError::None;
  const uint8_t *from = global.read(source, bytes);
  if (!from || !grantAll(destinations, AccessKind::Write, address, bytes))
    return BulkError::Refused;
  for (SharedMemory *memory : destinations)
    std::memcpy(memory->at(address), from, bytes);
  return BulkError::None;
}

namespace {

/// Has `apply` bring `bytes` of shared memory to global memory.
template <typename Apply>
BulkError toGlobal(GlobalMemory &global, uint64_t destination,
                   SharedMemory &shared, uint32_t address, uint32_t bytes,
                   Apply apply) {
  if (BulkError e = checkBulk(destination, address, bytes);
      e != BulkError::None)
    return e;
  if (bytes == 0)
    return BulkError::None;
  if (!grant(shared, AccessKind::Read, address, bytes))
    return BulkError::Refused;
  uint8_t *to = global.write(destination, bytes);
  if (!to)
    return BulkError::Refused;
  apply(to, shared.at(address));
  return BulkError::None;
}

} // namespace

BulkError bulkStore(GlobalMemory &global, uint64_t destination,
                    SharedMemory &shared, uint32_t address, uint32_t bytes) {
  return toGlobal(
      global, destination, shared, address, bytes,
      [&](uint8_t *to, const uint8_t *from) { std::memcpy(to, from, bytes); });
}

BulkError bulkReduce(GlobalMemory &global, uint64_t destination,
                     SharedMemory &shared, uint32_t address, uint32_t bytes,
                     ReduceOp op, ReduceType type) {
  Combine combine = combinerOf(op, type);
  if (!combine)
    return BulkError::ReduceType;
  return toGlobal(global, destination, shared, address, bytes,
                  [&](uint8_t *to, const uint8_t *from) {
                    combine(to, from, bytes / bytesOf(type));
                  });
}

BulkError bulkMove(SharedMemory &destination, uint32_t to, SharedMemory &source,
                   uint32_t from, uint32_t bytes) {
  if (BulkError e = checkBulk(to, from, bytes); e != BulkError::None)
    return e;
  if (bytes == 0)
    return BulkError::None;
  if (!grant(source, AccessKind::Read, from, bytes) ||
      !grant(destination, AccessKind::Write, to, bytes))
    return BulkError::Refused;
  std::memmove(destination.at(to), source.at(from), bytes);
  return BulkError::None;
}

BulkError loadBox(const TensorMap &map, const int32_t *coords,
                  GlobalMemory &global,
                  std::span<SharedMemory *const> destinations,
                  uint32_t address) {
  if (BulkError error = checkBox(map, address); error != BulkError::None)
    return error;
  uint32_t boxBytes = uint32_t(map.boxBytes());
  if (!grantAll(destinations, AccessKind::Write, address, boxBytes))
    return BulkError::Refused;
  uint64_t fill = fillOf(map);
  uint32_t rowBytes = rowBytesOf(map);
  bool done = forEachRow(map, coords, [&](const Row &row) {
    RowBuffer buffer;
    if (row.bytes < rowBytes)
      for (uint32_t i = 0; i < rowBytes; i += 8)
        std::memcpy(buffer + i, &fill, 8);
    if (row.bytes > 0) {
      const uint8_t *from = global.read(row.global, row.bytes);
      if (!from)
        return false;
      std::memcpy(buffer + row.offset, from, row.bytes);
    }
    if (map.data == TensorData::F32Ftz)
      flushSubnormals(buffer, rowBytes);
    for (SharedMemory *memory : destinations)
      forEachPiece(map, address + row.boxOffset, rowBytes,
                   [&](uint32_t at, uint32_t offset, uint32_t bytes) {
                     std::memcpy(memory->at(at), buffer + offset, bytes);
                   });
    return true;
  });
  return done ? BulkError::None : BulkError::Refused;
}

BulkError storeBox(const TensorMap &map, const int32_t *coords,
                   SharedMemory &shared, uint32_t address,
                   GlobalMemory &global) {
  return putBox(map, coords, shared, address, global, copyBytes, 1);
}

BulkError reduceBox(const TensorMap &map, const int32_t *coords, ReduceOp op,
                    SharedMemory &shared, uint32_t address,
                    GlobalMemory &global) {
  if (map.data == TensorData::U8 || map.data == TensorData::U16)
    return BulkError::ReduceType;
  ReduceType type = reduceTypeOf(map.data, op);
  Combine combine = combinerOf(op, type);
  if (!combine)
    return BulkError::ReduceType;
  return putBox(map, coords, shared, address, global, combine, bytesOf(type));
}

} // namespace tenon::emu::tensor
