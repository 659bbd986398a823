//===- Weights.cpp - tensors stored in a model ---------------------------===//
//
// Part of Tenon, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontend/Weights.h"
#include "frontend/MappedFile.h"
#include "ir/support/Diag.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/MathExtras.h"
#include <optional>

using namespace llvm;
using tenon::ir::Constant;
using tenon::ir::ConstantRef;
using tenon::ir::ElementType;

namespace tenon::frontend {

namespace {

/// The data fields of TensorProto.
enum class Storage { None, Raw, Floats, Doubles, Int32s, Int64s, Uint64s };

struct DataType {
  int number;
  StringLiteral name;
  /// Not set for what Tenon does not have.
  std::optional<ElementType> element;
  /// The typed field that holds such elements.
  Storage typed;
};

const DataType dataTypes[] = {
    {1, "float", ElementType::F32, Storage::Floats},
    {2, "uint8", ElementType::U8, Storage::Int32s},
    {3, "int8", ElementType::I8, Storage::Int32s},
    {4, "uint16", ElementType::U16, Storage::Int32s},
    {5, "int16", ElementType::I16, Storage::Int32s},
    {6, "int32", ElementType::I32, Storage::Int32s},
    {7, "int64", ElementType::I64, Storage::Int64s},
    {8, "string", std::nullopt, Storage::None},
    {9, "bool", ElementType::Bool, Storage::Int32s},
    {10, "float16", ElementType::F16, Storage::Int32s},
    {11, "double", ElementType::F64, Storage::Doubles},
    {12, "uint32", ElementType::U32, Storage::Uint64s},
    {13, "uint64", ElementType::U64, Storage::Uint64s},
    {14, "complex64", std::nullopt, Storage::None},
    {15, "complex128", std::nullopt, Storage::None},
    {16, "bfloat16", ElementType::BF16, Storage::Int32s},
    {17, "float8e4m3fn", ElementType::F8E4M3FN, Storage::Int32s},
    {18, "float8e4m3fnuz", ElementType::F8E4M3FNUZ, Storage::Int32s},
    {19, "float8e5m2", ElementType::F8E5M2, Storage::Int32s},
    {20, "float8e5m2fnuz", ElementType::F8E5M2FNUZ, Storage::Int32s},
    {21, "uint4", ElementType::U4, Storage::Int32s},
    {22, "int4", ElementType::I4, Storage::Int32s},
    {23, "float4e2m1", ElementType::F4E2M1, Storage::Int32s},
    {24, "float8e8m0", ElementType::F8E8M0, Storage::Int32s},
    {25, "uint2", ElementType::U2, Storage::Int32s},
    {26, "int2", ElementType::I2, Storage::Int32s},
    {27, "float6e2m3", std::nullopt, Storage::None},
    {28, "float6e3m2", std::nullopt, Storage::None},
};

const DataType *findDataType(int number) {
  for (const DataType &type : dataTypes)
    if (type.number == number)
      return &type;
  return nullptr;
}

/// The one data field that is filled; filling two is an error.
struct FilledField {
  Storage storage = Storage::None;
  StringRef name;
  uint64_t count = 0;
};

Expected<FilledField> filledField(const onnx::TensorProto &t) {
  const struct {
    Storage storage;
    StringLiteral name;
    bool filled;
    uint64_t count;
  } fields[] = {
      {Storage::Raw, "raw_data",
       t.has_raw_data() && !t.has_segment() && !t.raw_data().empty(),
       t.raw_data().size()},
      {Storage::Raw, "raw_data", t.has_segment(), 0},
      {Storage::Floats, "float_data", t.float_data_size() > 0,
       uint64_t(t.float_data_size())},
      {Storage::Int32s, "int32_data", t.int32_data_size() > 0,
       uint64_t(t.int32_data_size())},
      {Storage::Int64s, "int64_data", t.int64_data_size() > 0,
       uint64_t(t.int64_data_size())},
      {Storage::Doubles, "double_data", t.double_data_size() > 0,
       uint64_t(t.double_data_size())},
      {Storage::Uint64s, "uint64_data", t.uint64_data_size() > 0,
       uint64_t(t.uint64_data_size())},
      {Storage::None, "string_data", t.string_data_size() > 0, 0},
      {Storage::None, "external_data",
       t.data_location() == onnx::TensorProto::EXTERNAL, 0},
  };
  FilledField found;
  for (const auto &field : fields) {
    if (!field.filled)
      continue;
    if (!found.name.empty())
      return userError("has its data in both {0} and {1}; expected one",
                       found.name, field.name);
    found = {field.storage, field.name, field.count};
  }
  return found;
}

/// Packs \p values of the integer type \p U; each must fit as the signed or
/// unsigned number that it stands for.
template <class U, class Values>
Error pack(const Values &values, bool isSigned, std::vector<uint8_t> &out) {
  out.resize(uint64_t(values.size()) * sizeof(U));
  for (int i = 0; i < values.size(); ++i) {
    auto value = values.Get(i);
    constexpr unsigned bits = 8 * sizeof(U);
    bool fits = sizeof(U) >= sizeof(value) ||
                (isSigned ? isIntN(bits, int64_t(value))
                          : isUIntN(bits, uint64_t(value)));
    if (!fits)
      return userError("value {0} of element {1} does not fit its {2} bits",
                       value, i, bits);
    support::endian::write<U, llvm::endianness::little, 1>(
        out.data() + uint64_t(i) * sizeof(U), U(value));
  }
  return Error::success();
}

Error packInt32s(const onnx::TensorProto &t, ElementType element,
                 std::vector<uint8_t> &out) {
  bool isSigned = ir::category(element) == ir::TypeCategory::Signed;
  switch (ir::bitWidth(element)) {
  case 32:
    return pack<uint32_t>(t.int32_data(), isSigned, out);
  case 16:
    return pack<uint16_t>(t.int32_data(), isSigned, out);
  case 8:
    return pack<uint8_t>(t.int32_data(), isSigned, out);
  default: // Several elements to a byte, one byte to a number.
    return pack<uint8_t>(t.int32_data(), false, out);
  }
}

/// Elements that each stored number holds: one, but for types below a byte.
uint64_t numbersFor(ElementType element, uint64_t count, uint64_t size) {
  return ir::bitWidth(element) < 8 ? size : count;
}

template <class Values> ArrayRef<uint8_t> bytesOf(const Values &values) {
  return {reinterpret_cast<const uint8_t *>(values.data()),
          uint64_t(values.size()) * sizeof(*values.data())};
}

/// A bool is one byte, 0 or 1; other bytes count as true.
ConstantRef dense(ElementType element, ArrayRef<int64_t> shape,
                  ArrayRef<uint8_t> bytes, std::shared_ptr<const void> owner,
                  StringRef name) {
  if (element == ElementType::Bool &&
      llvm::any_of(bytes, [](uint8_t b) { return b > 1; })) {
    std::vector<uint8_t> clean(bytes.begin(), bytes.end());
    for (uint8_t &byte : clean)
      byte = byte != 0;
    return Constant::copy(element, shape, clean, name);
  }
  if (!owner)
    return Constant::copy(element, shape, bytes, name);
  return Constant::dense(element, shape, bytes, std::move(owner), name);
}

Error wrongSize(StringRef field, uint64_t found, StringRef unit,
                uint64_t expected) {
  return userError("{0} has {1} {2}; its shape and type take {3}", field, found,
                   unit, expected);
}

} // namespace

Expected<ElementType> elementTypeOf(int number) {
  const DataType *type = findDataType(number);
  if (!type)
    return userError("element type {0} is unknown", number);
  if (!type->element)
    return userError("element type {0} is not supported", type->name);
  return *type->element;
}

namespace {

/// The number of elements; negative sizes and products that overflow are
/// errors.
Expected<uint64_t> countElements(ArrayRef<int64_t> shape) {
  uint64_t count = 1;
  for (int64_t dim : shape) {
    if (dim < 0)
      return userError("dimension {0} is negative", dim);
    if (dim != 0 && count > uint64_t(INT64_MAX) / dim)
      return userError("its {0} dimensions multiply to more than 2^63 elements",
                       shape.size());
    count *= dim;
  }
  return count;
}

/// The contents of a typed field. \p packed is room for what is not stored as
/// Tenon wants it.
Expected<ArrayRef<uint8_t>> typedData(const onnx::TensorProto &t,
                                      const FilledField &field, uint64_t count,
                                      uint64_t size,
                                      std::vector<uint8_t> &packed) {
  const DataType &type = *findDataType(t.data_type());
  if (field.storage != type.typed)
    return userError("has its data in {0}, where elements of type {1} are not "
                     "stored",
                     field.name, type.name);
  uint64_t numbers = numbersFor(*type.element, count, size);
  if (field.count != numbers)
    return wrongSize(field.name, field.count, "values", numbers);
  Error error = Error::success();
  switch (field.storage) {
  case Storage::Floats:
    return bytesOf(t.float_data());
  case Storage::Doubles:
    return bytesOf(t.double_data());
  case Storage::Int64s:
    return bytesOf(t.int64_data());
  case Storage::Uint64s:
    error = *type.element == ElementType::U32
                ? pack<uint32_t>(t.uint64_data(), false, packed)
                : pack<uint64_t>(t.uint64_data(), false, packed);
    break;
  default:
    error = packInt32s(t, *type.element, packed);
  }
  if (error)
    return error;
  return ArrayRef<uint8_t>(packed);
}

} // namespace

Expected<ConstantRef> Weights::load(const onnx::TensorProto &t) {
  // A function's body is read once for each of its calls.
  ConstantRef &known = loaded[&t];
  if (known)
    return known;
  Expected<ConstantRef> constant = read(t);
  if (constant)
    known = *constant;
  return constant;
}

Expected<ConstantRef> Weights::read(const onnx::TensorProto &t) {
  Expected<ElementType> element = elementTypeOf(t.data_type());
  if (!element)
    return element.takeError();
  SmallVector<int64_t, 4> shape(t.dims().begin(), t.dims().end());
  if (shape.size() > maxRank)
    return userError("has {0} dimensions; at most {1} are supported",
                     shape.size(), maxRank);
  Expected<uint64_t> count = countElements(shape);
  if (!count)
    return count.takeError();
  std::optional<uint64_t> size = ir::byteSize(*element, *count);
  if (!size || *size > uint64_t(INT64_MAX))
    return userError("{0} elements take more than 2^63 bytes", *count);

  Expected<FilledField> field = filledField(t);
  if (!field)
    return field.takeError();
  if (t.data_location() == onnx::TensorProto::EXTERNAL)
    return external(t, *element, shape, *size);
  if (field->name.empty()) {
    if (*count != 0)
      return userError("has no data; its shape and type take {0} bytes", *size);
    return Constant::copy(*element, shape, {}, t.name());
  }
  if (t.has_segment()) { // Left in the file by WireScan.
    uint64_t begin = t.segment().begin(), end = t.segment().end();
    if (end - begin != *size)
      return wrongSize(t.has_raw_data() ? "raw_data" : "its typed data",
                       end - begin, "bytes", *size);
    return dense(*element, shape, model.bytes.slice(begin, *size), model.owner,
                 t.name());
  }
  if (field->storage == Storage::Raw) {
    if (field->count != *size)
      return wrongSize("raw_data", field->count, "bytes", *size);
    return dense(*element, shape,
                 {reinterpret_cast<const uint8_t *>(t.raw_data().data()),
                  t.raw_data().size()},
                 nullptr, t.name());
  }
  std::vector<uint8_t> packed;
  Expected<ArrayRef<uint8_t>> bytes =
      typedData(t, *field, *count, *size, packed);
  if (!bytes)
    return bytes.takeError();
  return dense(*element, shape, *bytes, nullptr, t.name());
}

Expected<ConstantRef> Weights::external(const onnx::TensorProto &t,
                                        ElementType element,
                                        ArrayRef<int64_t> shape,
                                        uint64_t size) {
  std::optional<StringRef> location, offsetText, lengthText;
  for (const onnx::StringStringEntryProto &entry : t.external_data()) {
    std::optional<StringRef> *slot =
        StringSwitch<std::optional<StringRef> *>(entry.key())
            .Case("location", &location)
            .Case("offset", &offsetText)
            .Case("length", &lengthText)
            .Default(nullptr);
    if (!slot)
      continue; // `checksum` and what later versions add.
    if (*slot)
      return userError("external data gives '{0}' twice", entry.key());
    *slot = StringRef(entry.value());
  }
  if (!location || location->empty())
    return userError("external data has no location");
  uint64_t offset = 0, length = size;
  if (offsetText && offsetText->getAsInteger(10, offset))
    return userError("the offset '{0}' of its external data is not a number of "
                     "bytes",
                     *offsetText);
  if (lengthText && lengthText->getAsInteger(10, length))
    return userError("the length '{0}' of its external data is not a number of "
                     "bytes",
                     *lengthText);
  if (length != size)
    return wrongSize("its external data", length, "bytes", size);
  if (!model.hasFolder)
    return userError("has external data in '{0}', but the model is not read "
                     "from a file",
                     *location);

  std::shared_ptr<const MappedFile> &file = files[*location];
  if (!file) {
    Expected<std::shared_ptr<const MappedFile>> opened =
        MappedFile::openBeneath(model.folder, *location, model.followLinks);
    if (!opened)
      return withPrefix(opened.takeError(),
                        "external data '" + *location + "': ");
    file = std::move(*opened);
  }
  uint64_t available = file->bytes().size();
  if (offset > available || size > available - offset)
    return userError("needs {0} bytes at offset {1} of '{2}', which has {3}",
                     size, offset, *location, available);
  return dense(element, shape, file->bytes().slice(offset, size), file,
               t.name());
}

} // namespace tenon::frontend
