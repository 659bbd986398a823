//===- Npz.cpp - reads and writes NumPy's .npy and .npz -----------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/Npz.h"

#include "runtime/Inflate.h"
#include "runtime/Npy.h"
#include "runtime/support/Checksum.h"
#include "runtime/support/File.h"

#include <unordered_set>

namespace tenon::rt {
namespace {

constexpr uint32_t localMagic = 0x04034b50, centralMagic = 0x02014b50,
                   endMagic = 0x06054b50, end64Magic = 0x06064b50,
                   locator64Magic = 0x07064b50;
constexpr uint32_t full32 = 0xffffffffu;
constexpr uint16_t full16 = 0xffff;

/// What the central directory says of a member.
struct Member {
  std::string name;
  uint16_t flags, method;
  uint32_t crc;
  uint64_t packedBytes, bytes, headerOffset;
};

class ZipReader {
public:
  explicit ZipReader(Bytes file) : file(file) {}

  Status readDirectory(std::vector<Member> &members) {
    uint64_t end;
    if (!findEnd(end))
      return TN_ERROR("not a zip archive, or truncated");
    uint64_t count = at<uint16_t>(end + 10);
    uint64_t offset = at<uint32_t>(end + 16);
    if ((count == full16 || offset == full32) && end >= 20 &&
        at<uint32_t>(end - 20) == locator64Magic) {
      uint64_t end64 = at<uint64_t>(end - 20 + 8);
      if (!inRange(end64, 56, file.size()) || at<uint32_t>(end64) != end64Magic)
        return TN_ERROR("damaged zip64 directory");
      count = at<uint64_t>(end64 + 32);
      offset = at<uint64_t>(end64 + 48);
    }
    if (count > file.size() / 46)
      return TN_ERROR("damaged zip directory");
    for (uint64_t i = 0; i < count; ++i) {
      Member member;
      if (!readMember(offset, member))
        return TN_ERROR("damaged zip directory");
      members.push_back(std::move(member));
    }
    return {};
  }

  Status readArray(const Member &member, NpyArray &array) {
    Bytes packed;
    if (!locate(member, packed))
      return TN_ERROR("damaged zip member");
    if (member.flags & 1)
      return TN_ERROR("encrypted members are not supported");
    if (member.method == 0) {
      if (packed.size() != member.bytes)
        return TN_ERROR("damaged zip member");
      return finish(member, packed, array);
    }
    if (member.method != 8)
      return TN_ERROR("compression method %u is not supported (stored and "
                      "deflated are)",
                      member.method);
    // Deflate gives at most 1032 bytes for each; more is a lie, to be refused
    // before memory is taken for it.
    if (member.bytes / 1032 > packed.size())
      return TN_ERROR("damaged zip member");
    AlignedBytes memory = allocateAligned(member.bytes);
    if (!memory)
      return TN_ERROR("not enough memory for %llu bytes",
                      static_cast<unsigned long long>(member.bytes));
    Status status = inflate(packed, {memory.get(), size_t(member.bytes)});
    if (!status.ok())
      return status;
    return finish(member, {memory.get(), size_t(member.bytes)}, array);
  }

private:
  template <typename T> T at(uint64_t offset) const {
    return readAs<T>(file.data() + offset);
  }

  /// The end record, which a comment of up to 64 KiB may follow.
  bool findEnd(uint64_t &end) const {
    if (file.size() < 22)
      return false;
    uint64_t last = file.size() - 22;
    uint64_t first = last > full16 ? last - full16 : 0;
    for (uint64_t i = last + 1; i-- > first;)
      if (at<uint32_t>(i) == endMagic) {
        end = i;
        return true;
      }
    return false;
  }

  /// Reads the directory entry at `offset` and moves past it.
  bool readMember(uint64_t &offset, Member &member) const {
    if (!inRange(offset, 46, file.size()) ||
        at<uint32_t>(offset) != centralMagic)
      return false;
    member.flags = at<uint16_t>(offset + 8);
    member.method = at<uint16_t>(offset + 10);
    member.crc = at<uint32_t>(offset + 16);
    member.packedBytes = at<uint32_t>(offset + 20);
    member.bytes = at<uint32_t>(offset + 24);
    uint64_t nameBytes = at<uint16_t>(offset + 28);
    uint64_t extraBytes = at<uint16_t>(offset + 30);
    uint64_t commentBytes = at<uint16_t>(offset + 32);
    member.headerOffset = at<uint32_t>(offset + 42);
    offset += 46;
    if (!inRange(offset, nameBytes + extraBytes + commentBytes, file.size()))
      return false;
    member.name.assign(reinterpret_cast<const char *>(file.data()) + offset,
                       nameBytes);
    bool good = readZip64(file.subspan(offset + nameBytes, extraBytes), member);
    offset += nameBytes + extraBytes + commentBytes;
    return good;
  }

  /// Takes 64-bit sizes from the extra field where the 32-bit ones are full.
  static bool readZip64(Bytes extra, Member &member) {
    while (extra.size() >= 4) {
      uint16_t tag = readAs<uint16_t>(extra.data());
      uint16_t size = readAs<uint16_t>(extra.data() + 2);
      if (size > extra.size() - 4)
        return false;
      Bytes body = extra.subspan(4, size);
      extra = extra.subspan(4 + size_t(size));
      if (tag != 1)
        continue;
      for (uint64_t *field :
           {&member.bytes, &member.packedBytes, &member.headerOffset}) {
        if (*field != full32)
          continue;
        if (body.size() < 8)
          return false;
        *field = readAs<uint64_t>(body.data());
        body = body.subspan(8);
      }
    }
    return true;
  }

  bool locate(const Member &member, Bytes &packed) const {
    uint64_t offset = member.headerOffset;
    if (!inRange(offset, 30, file.size()) || at<uint32_t>(offset) != localMagic)
      return false;
    uint64_t lead =
        30 + uint64_t(at<uint16_t>(offset + 26)) + at<uint16_t>(offset + 28);
    if (!inRange(offset, lead, file.size()) ||
        !inRange(offset + lead, member.packedBytes, file.size()))
      return false;
    packed = file.subspan(offset + lead, member.packedBytes);
    return true;
  }

  static Status finish(const Member &member, Bytes data, NpyArray &array) {
    if (crc32(data) != member.crc)
      return TN_ERROR("checksum differs: the file is damaged");
    Result<NpyArray> read = readNpy(data);
    if (!read.ok())
      return read.status();
    array = std::move(*read);
    return {};
  }

  Bytes file;
};

void append(std::string &out, uint64_t value, unsigned bytes) {
  for (unsigned i = 0; i < bytes; ++i)
    out += char(value >> (8 * i) & 255);
}

/// One stored member's headers.
struct StoredMember {
  std::string name, npyHeader;
  Bytes data;
  uint32_t crc;
  uint64_t headerOffset;

  uint64_t bytes() const { return npyHeader.size() + data.size(); }
  bool wide() const { return bytes() >= full32 || headerOffset >= full32; }

  /// What the local header and the directory entry have in common.
  void appendCommon(std::string &out, bool central) const {
    append(out, wide() ? 45 : 20, 2);
    append(out, 1u << 11, 2); // names are UTF-8
    append(out, 0, 2);        // stored
    append(out, 0, 2);
    append(out, 0x21, 2); // 1980-01-01: the same bytes each time
    append(out, crc, 4);
    append(out, wide() ? full32 : bytes(), 4);
    append(out, wide() ? full32 : bytes(), 4);
    append(out, name.size(), 2);
    append(out, wide() ? (central ? 28 : 20) : 0, 2);
  }
  void appendExtra(std::string &out, bool central) const {
    if (!wide())
      return;
    append(out, 1, 2);
    append(out, central ? 24 : 16, 2);
    append(out, bytes(), 8);
    append(out, bytes(), 8);
    if (central)
      append(out, headerOffset, 8);
  }
  std::string localHeader() const {
    std::string out;
    append(out, localMagic, 4);
    appendCommon(out, false);
    out += name;
    appendExtra(out, false);
    return out;
  }
  std::string directoryEntry() const {
    std::string out;
    append(out, centralMagic, 4);
    append(out, wide() ? 45 : 20, 2);
    appendCommon(out, true);
    append(out, 0, 2); // comment
    append(out, 0, 2);
    append(out, 0, 2);
    append(out, 0, 4);
    append(out, wide() ? full32 : headerOffset, 4);
    out += name;
    appendExtra(out, true);
    return out;
  }
};

std::string endRecords(uint64_t count, uint64_t offset, uint64_t size) {
  std::string out;
  bool wide = count >= full16 || offset >= full32 || size >= full32;
  if (wide) {
    append(out, end64Magic, 4);
    append(out, 44, 8);
    append(out, 45, 2);
    append(out, 45, 2);
    append(out, 0, 8);
    append(out, count, 8);
    append(out, count, 8);
    append(out, size, 8);
    append(out, offset, 8);
    append(out, locator64Magic, 4);
    append(out, 0, 4);
    append(out, offset + size, 8);
    append(out, 1, 4);
  }
  append(out, endMagic, 4);
  append(out, 0, 4);
  append(out, wide ? full16 : count, 2);
  append(out, wide ? full16 : count, 2);
  append(out, wide ? full32 : size, 4);
  append(out, wide ? full32 : offset, 4);
  append(out, 0, 2);
  return out;
}

Bytes asBytes(const std::string &text) {
  return {reinterpret_cast<const uint8_t *>(text.data()), text.size()};
}

/// Hands the archive's bytes to `write(data, size)`, piece by piece.
template <typename Write>
Status writeArchive(std::span<const NpyView> arrays, Write write) {
  std::string directory;
  uint64_t offset = 0;
  for (const NpyView &array : arrays) {
    uint64_t count;
    if (!countElements(array.shape, count) || array.name.size() > 65000)
      return TN_ERROR("array '%s' cannot be stored",
                      printable(array.name).c_str());
    StoredMember member;
    member.name = array.name + ".npy";
    member.npyHeader = makeNpyHeader(array.dtype, array.shape);
    unsigned bits = dtypeInfo(array.dtype).bits;
    std::vector<uint8_t> unpacked;
    if (bits < 8)
      unpacked = unpack(array.dtype, count, array.data);
    member.data = {bits < 8 ? unpacked.data()
                            : static_cast<const uint8_t *>(array.data),
                   size_t(count * std::max(bits / 8, 1u))};
    member.crc = crc32(member.data, crc32(asBytes(member.npyHeader)));
    member.headerOffset = offset;
    std::string local = member.localHeader();
    for (Bytes piece :
         {asBytes(local), asBytes(member.npyHeader), member.data}) {
      Status status = write(piece.data(), piece.size());
      if (!status.ok())
        return status;
      offset += piece.size();
    }
    directory += member.directoryEntry();
  }
  std::string tail =
      directory + endRecords(arrays.size(), offset, directory.size());
  return write(tail.data(), tail.size());
}

} // namespace

AlignedBytes allocateAligned(uint64_t bytes) {
  void *memory = nullptr;
  if (bytes > uint64_t(INT64_MAX) ||
      posix_memalign(&memory, bufferAlignment, bytes ? bytes : 1) != 0)
    memory = nullptr;
  return AlignedBytes(static_cast<uint8_t *>(memory));
}

Result<NpyArray> readNpy(Bytes file) {
  Result<NpyHeader> header = parseNpyHeader(file);
  if (!header.ok())
    return header.status();
  NpyArray array;
  Status status =
      normaliseNpy(*header, file.subspan(header->dataOffset), array);
  if (!status.ok())
    return status;
  return array;
}

Result<std::vector<NpyArray>> readNpz(Bytes file) {
  std::vector<NpyArray> arrays;
  if (!file.empty() && file[0] == 0x93) {
    Result<NpyArray> array = readNpy(file);
    if (!array.ok())
      return array.status();
    arrays.push_back(std::move(*array));
    return arrays;
  }
  ZipReader reader(file);
  std::vector<Member> members;
  Status status = reader.readDirectory(members);
  if (!status.ok())
    return status;
  std::unordered_set<std::string> names;
  for (Member &member : members) {
    std::string &name = member.name;
    if (name.size() >= 4 && name.compare(name.size() - 4, 4, ".npy") == 0)
      name.resize(name.size() - 4);
    NpyArray array;
    status = names.insert(name).second
                 ? reader.readArray(member, array)
                 : TN_ERROR("appears twice in the archive");
    if (!status.ok())
      return TN_ERROR("array '%s': %s", printable(name).c_str(),
                      status.message().c_str());
    array.name = std::move(name);
    arrays.push_back(std::move(array));
  }
  return arrays;
}

Result<std::vector<NpyArray>> readNpzFile(const std::string &path) {
  Result<MappedFile> file = MappedFile::open(path);
  if (!file.ok())
    return file.status();
  auto arrays = readNpz(file->bytes());
  if (!arrays.ok())
    return TN_ERROR("%s: %s", path.c_str(), arrays.message().c_str());
  return arrays;
}

Status writeNpzFile(const std::string &path, std::span<const NpyView> arrays) {
  Result<OutputFile> file = OutputFile::create(path);
  if (!file.ok())
    return file.status();
  Status status = writeArchive(arrays, [&](const void *data, size_t size) {
    return file->write(data, size);
  });
  return status.ok() ? file->commit() : status;
}

Result<std::vector<uint8_t>> writeNpz(std::span<const NpyView> arrays) {
  std::vector<uint8_t> out;
  Status status = writeArchive(arrays, [&](const void *data, size_t size) {
    const uint8_t *from = static_cast<const uint8_t *>(data);
    out.insert(out.end(), from, from + size);
    return Status();
  });
  if (!status.ok())
    return status;
  return out;
}

} // namespace tenon::rt
