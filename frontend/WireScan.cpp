//===- WireScan.cpp - large payloads out of a serialized model -----------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontend/WireScan.h"
#include "ir/support/Diag.h"
#include "llvm/ADT/StringRef.h"

using namespace llvm;

namespace tenon::frontend {

namespace {

/// Payloads of at most this many bytes stay in the message.
constexpr uint64_t inlineLimit = 1024;

enum WireType : unsigned { Varint = 0, Fixed64 = 1, Bytes = 2, Fixed32 = 5 };

enum class Message { Model, Graph, Node, Attribute, Function, Tensor };

/// What to do with one length-delimited field of a message.
struct FieldRule {
  Message in;
  unsigned number;
  bool drop;
  Message child;
};

/// By the field numbers of onnx-ml.proto; fields not named here are copied.
constexpr FieldRule rules[] = {
    {Message::Model, 6, true, {}}, // doc_string
    {Message::Model, 7, false, Message::Graph},
    {Message::Model, 20, true, {}}, // training_info
    {Message::Model, 25, false, Message::Function},
    {Message::Graph, 1, false, Message::Node},
    {Message::Graph, 5, false, Message::Tensor},
    {Message::Graph, 10, true, {}}, // doc_string
    {Message::Graph, 14, true, {}}, // quantization_annotation
    {Message::Graph, 16, true, {}}, // metadata_props
    {Message::Node, 5, false, Message::Attribute},
    {Message::Node, 6, true, {}},  // doc_string
    {Message::Node, 9, true, {}},  // metadata_props
    {Message::Node, 10, true, {}}, // device_configurations
    {Message::Attribute, 5, false, Message::Tensor},
    {Message::Attribute, 6, false, Message::Graph},
    {Message::Attribute, 10, false, Message::Tensor},
    {Message::Attribute, 11, false, Message::Graph},
    {Message::Attribute, 13, true, {}}, // doc_string
    {Message::Function, 7, false, Message::Node},
    {Message::Function, 8, true, {}}, // doc_string
    {Message::Function, 11, false, Message::Attribute},
    {Message::Function, 14, true, {}}, // metadata_props
};

/// The field numbers of TensorProto that matter here.
enum TensorField : unsigned {
  DataType = 2,
  Segment = 3,
  FloatData = 4,
  RawData = 9,
  DoubleData = 10,
};

/// One field as it lies in the file.
struct Field {
  unsigned number;
  WireType type;
  uint64_t begin;   ///< where its tag starts
  uint64_t payload; ///< where its contents start
  uint64_t end;     ///< one past its contents
  uint64_t varint;  ///< the value of a Varint
};

class Scanner {
public:
  explicit Scanner(ArrayRef<uint8_t> bytes) : bytes(bytes) {}
  Expected<std::string> message(Message kind, uint64_t begin, uint64_t end,
                                unsigned depth);

private:
  Expected<uint64_t> varint(uint64_t &at, uint64_t end) const;
  Expected<Field> field(uint64_t &at, uint64_t end) const;
  Expected<std::string> tensor(uint64_t begin, uint64_t end) const;
  void copy(std::string &out, const Field &f) const {
    out.append(reinterpret_cast<const char *>(bytes.data()) + f.begin,
               f.end - f.begin);
  }
  ArrayRef<uint8_t> bytes;
};

void putVarint(std::string &out, uint64_t value) {
  for (; value >= 0x80; value >>= 7)
    out.push_back(char(value | 0x80));
  out.push_back(char(value));
}

void putBytes(std::string &out, unsigned number, StringRef contents) {
  putVarint(out, (uint64_t(number) << 3) | Bytes);
  putVarint(out, contents.size());
  out.append(contents.data(), contents.size());
}

Expected<uint64_t> Scanner::varint(uint64_t &at, uint64_t end) const {
  uint64_t value = 0;
  for (unsigned i = 0; i < 10; ++i) {
    if (at == end)
      return userError("the message ends inside a number at byte {0}; the file "
                       "is truncated or corrupt",
                       at);
    uint8_t byte = bytes[at++];
    value |= uint64_t(byte & 0x7f) << (7 * i);
    if (byte < 0x80)
      return value;
  }
  return userError(
      "a number of more than 10 bytes before byte {0}; the file is "
      "corrupt",
      at);
}

Expected<Field> Scanner::field(uint64_t &at, uint64_t end) const {
  Field f = {};
  f.begin = at;
  Expected<uint64_t> tag = varint(at, end);
  if (!tag)
    return tag.takeError();
  f.number = *tag >> 3;
  f.type = WireType(*tag & 7);
  if (f.number == 0 || *tag >> 32)
    return userError("an illegal field tag at byte {0}; the file is no ONNX "
                     "model or is corrupt",
                     f.begin);
  uint64_t size = 0;
  if (f.type == Varint || f.type == Bytes) {
    f.payload = at;
    Expected<uint64_t> value = varint(at, end);
    if (!value)
      return value.takeError();
    f.varint = *value;
    if (f.type == Bytes) {
      f.payload = at;
      size = *value;
    }
  } else if (f.type == Fixed64 || f.type == Fixed32) {
    f.payload = at;
    size = f.type == Fixed64 ? 8 : 4;
  } else {
    return userError(
        "a field of unknown wire type {0} at byte {1}; the file is "
        "no ONNX model or is corrupt",
        unsigned(f.type), f.begin);
  }
  if (size > end - at)
    return userError("field {0} at byte {1} claims {2} bytes where {3} are "
                     "left; the file is truncated or corrupt",
                     f.number, f.begin, size, end - at);
  at += size;
  f.end = at;
  return f;
}

/// Copies one TensorProto. Its payload is left out only in the plain case of a
/// single large data field, so that whatever is odd reaches Weights.cpp as is.
Expected<std::string> Scanner::tensor(uint64_t begin, uint64_t end) const {
  unsigned dataFields = 0;
  uint64_t dataType = 0;
  for (uint64_t at = begin; at < end;) {
    Expected<Field> f = field(at, end);
    if (!f)
      return f.takeError();
    if (f->number == DataType && f->type == Varint)
      dataType = f->varint;
    if (f->number == Segment)
      return userError("a tensor at byte {0} is stored in segments, which ONNX "
                       "does not define",
                       begin);
    dataFields += f->number == FloatData || f->number == RawData ||
                  f->number == DoubleData;
  }
  std::string out;
  for (uint64_t at = begin; at < end;) {
    Field f = cantFail(field(at, end));
    bool sameBytes = f.number == RawData ||
                     (f.number == FloatData && dataType == 1) ||
                     (f.number == DoubleData && dataType == 11);
    if (dataFields != 1 || !sameBytes || f.type != Bytes ||
        f.end - f.payload <= inlineLimit) {
      copy(out, f);
      continue;
    }
    std::string range;
    putVarint(range, (1 << 3) | Varint);
    putVarint(range, f.payload);
    putVarint(range, (2 << 3) | Varint);
    putVarint(range, f.end);
    putBytes(out, Segment, range);
    if (f.number == RawData) // present, but empty
      putBytes(out, RawData, "");
  }
  return out;
}

Expected<std::string> Scanner::message(Message kind, uint64_t begin,
                                       uint64_t end, unsigned depth) {
  if (depth > messageDepthLimit)
    return userError("messages are nested more than {0} deep at byte {1}",
                     messageDepthLimit, begin);
  if (kind == Message::Tensor)
    return tensor(begin, end);
  std::string out;
  for (uint64_t at = begin; at < end;) {
    Expected<Field> f = field(at, end);
    if (!f)
      return f.takeError();
    const FieldRule *rule = nullptr;
    if (f->type == Bytes)
      for (const FieldRule &candidate : rules)
        if (candidate.in == kind && candidate.number == f->number)
          rule = &candidate;
    if (!rule) {
      copy(out, *f);
      continue;
    }
    if (rule->drop)
      continue;
    Expected<std::string> child =
        message(rule->child, f->payload, f->end, depth + 1);
    if (!child)
      return child.takeError();
    putBytes(out, f->number, *child);
  }
  return out;
}

} // namespace

Expected<std::string> withoutPayloads(ArrayRef<uint8_t> model) {
  return Scanner(model).message(Message::Model, 0, model.size(), 0);
}

} // namespace tenon::frontend
