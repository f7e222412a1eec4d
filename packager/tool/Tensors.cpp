//===- Tensors.cpp - .npy, ONNX TensorProto and the seeded generator ------------------------------------===//
#include "packager/tool/Tensors.h"

#include "packager/tool/Errors.h"

#include "vmpk/abi.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CheckedArithmetic.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/MemoryBuffer.h"

#define ONNX_ML 1
#define ONNX_NAMESPACE onnx
#include <onnx/onnx_pb.h>

#include <cstring>

using namespace llvm;

namespace vmpack::tool {
namespace {

/// Every fact about a dtype that the files here need.
struct Dtype {
  uint32_t value;
  StringRef name, descr; ///< descr: numpy's type string without the byte order
  uint64_t size;
  int onnx;
};

constexpr Dtype dtypes[] = {
    {VMPK_DTYPE_F32, "f32", "f4", 4, onnx::TensorProto::FLOAT},
    {VMPK_DTYPE_F64, "f64", "f8", 8, onnx::TensorProto::DOUBLE},
    {VMPK_DTYPE_F16, "f16", "f2", 2, onnx::TensorProto::FLOAT16},
    {VMPK_DTYPE_BF16, "bf16", "V2", 2, onnx::TensorProto::BFLOAT16},
    {VMPK_DTYPE_I8, "i8", "i1", 1, onnx::TensorProto::INT8},
    {VMPK_DTYPE_I16, "i16", "i2", 2, onnx::TensorProto::INT16},
    {VMPK_DTYPE_I32, "i32", "i4", 4, onnx::TensorProto::INT32},
    {VMPK_DTYPE_I64, "i64", "i8", 8, onnx::TensorProto::INT64},
    {VMPK_DTYPE_U8, "u8", "u1", 1, onnx::TensorProto::UINT8},
    {VMPK_DTYPE_U16, "u16", "u2", 2, onnx::TensorProto::UINT16},
    {VMPK_DTYPE_U32, "u32", "u4", 4, onnx::TensorProto::UINT32},
    {VMPK_DTYPE_U64, "u64", "u8", 8, onnx::TensorProto::UINT64},
    {VMPK_DTYPE_BOOL, "bool", "b1", 1, onnx::TensorProto::BOOL},
};

template <typename Predicate> const Dtype *findDtype(Predicate predicate) {
  const Dtype *found = find_if(dtypes, predicate);
  return found == std::end(dtypes) ? nullptr : found;
}

/// The text after `'key':` in the Python dictionary of a .npy header.
Expected<StringRef> headerField(StringRef header, StringRef key) {
  size_t at = header.find(("'" + key + "':").str());
  if (at == StringRef::npos)
    return userError("the .npy header has no '" + key + "'");
  return header.drop_front(at + key.size() + 3).ltrim();
}

Expected<std::vector<int64_t>> parseShape(StringRef text) {
  if (!text.consume_front("(") || !text.contains(')'))
    return userError("the .npy header has a malformed shape");
  std::vector<int64_t> dims;
  for (StringRef item : split(text.take_until([](char c) { return c == ')'; }), ',')) {
    if (item.trim().empty())
      continue;
    if (item.trim().getAsInteger(10, dims.emplace_back()))
      return userError("the .npy header has the dim '" + item.trim() + "'");
  }
  return dims;
}

/// Fails unless `bytes` is exactly what dtype and dims say, then takes them.
Error takeBytes(Tensor &tensor, StringRef bytes) {
  auto size = byteSize(tensor.dtype, tensor.dims);
  if (!size)
    return size.takeError();
  if (bytes.size() != *size)
    return userError("the data of " + describe(tensor.dtype, tensor.dims) + " is " + Twine(bytes.size()) +
                     " bytes when it should be " + Twine(*size));
  tensor.bytes.assign(bytes.begin(), bytes.end());
  return Error::success();
}

template <typename T, typename Values> Error takeValues(Tensor &tensor, const Values &values) {
  std::vector<T> converted(values.begin(), values.end());
  return takeBytes(tensor, StringRef(reinterpret_cast<const char *>(converted.data()), converted.size() * sizeof(T)));
}

/// The typed fields of a TensorProto: which one holds a dtype is ONNX's rule.
Error takeTypedField(Tensor &tensor, const onnx::TensorProto &proto) {
  switch (tensor.dtype) {
  case VMPK_DTYPE_F32:
    return takeValues<float>(tensor, proto.float_data());
  case VMPK_DTYPE_F64:
    return takeValues<double>(tensor, proto.double_data());
  case VMPK_DTYPE_I64:
    return takeValues<int64_t>(tensor, proto.int64_data());
  case VMPK_DTYPE_U32:
    return takeValues<uint32_t>(tensor, proto.uint64_data());
  case VMPK_DTYPE_U64:
    return takeValues<uint64_t>(tensor, proto.uint64_data());
  default:
    break;
  }
  switch (dtypeSize(tensor.dtype)) {
  case 1:
    return takeValues<uint8_t>(tensor, proto.int32_data());
  case 2:
    return takeValues<uint16_t>(tensor, proto.int32_data());
  default:
    return takeValues<uint32_t>(tensor, proto.int32_data());
  }
}

template <typename T> void fill(std::vector<char> &bytes, uint32_t base, T (*value)(uint32_t)) {
  for (size_t i = 0, count = bytes.size() / sizeof(T); i < count; ++i) {
    uint32_t x = base + static_cast<uint32_t>(i);
    x = (x ^ x >> 16) * 0x7feb352du;
    x = (x ^ x >> 15) * 0x846ca68bu;
    T element = value(x ^ x >> 16);
    std::memcpy(bytes.data() + i * sizeof(T), &element, sizeof(T));
  }
}

float unit(uint32_t x) { return static_cast<float>(x >> 8) / 8388608.0f - 1.0f; }

/// x >> 8 and the subtraction keep 24 bits; halves keep the top ones, so a shift of exact values is enough.
uint16_t bfloatBits(uint32_t x) {
  float value = unit(x & 0xff000000u); // eight bits: exact in bf16 and f16
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return static_cast<uint16_t>(bits >> 16);
}

uint16_t halfBits(uint32_t x) {
  uint32_t bfloat = bfloatBits(x);
  uint32_t sign = bfloat & 0x8000u, exponent = bfloat >> 7 & 0xffu, mantissa = bfloat & 0x7fu;
  return static_cast<uint16_t>(exponent == 0 ? sign : sign | (exponent - 112u) << 10 | mantissa << 3);
}

} // namespace

uint64_t dtypeSize(uint32_t dtype) {
  const Dtype *row = findDtype([&](const Dtype &d) { return d.value == dtype; });
  return row ? row->size : 0;
}

StringRef dtypeName(uint32_t dtype) {
  const Dtype *row = findDtype([&](const Dtype &d) { return d.value == dtype; });
  return row ? row->name : "invalid";
}

std::string describe(uint32_t dtype, ArrayRef<int64_t> dims) {
  std::string text = (dtypeName(dtype) + "[").str();
  for (size_t i = 0; i < dims.size(); ++i)
    text += (i ? ", " : "") + std::to_string(dims[i]);
  return text + "]";
}

Expected<uint64_t> byteSize(uint32_t dtype, ArrayRef<int64_t> dims) {
  std::optional<int64_t> size = static_cast<int64_t>(dtypeSize(dtype));
  for (int64_t dim : dims)
    size = size && dim >= 0 ? checkedMul(*size, dim) : std::nullopt;
  if (!size)
    return userError(describe(dtype, dims) + " has no size in bytes");
  return static_cast<uint64_t>(*size);
}

Expected<Tensor> decodeNpy(StringRef bytes) {
  if (!bytes.starts_with("\x93NUMPY") || bytes.size() < 12)
    return userError("not a .npy file");
  uint8_t version = bytes[6];
  if (version < 1 || version > 3)
    return userError("the .npy version is " + Twine(version) + " when it should be 1 to 3");
  size_t start = version == 1 ? 10 : 12;
  uint64_t size =
      version == 1 ? support::endian::read16le(bytes.data() + 8) : support::endian::read32le(bytes.data() + 8);
  if (size > bytes.size() - start)
    return userError("the .npy header is cut off");
  StringRef header = bytes.substr(start, size);

  auto descr = headerField(header, "descr");
  if (!descr)
    return descr.takeError();
  StringRef type = descr->drop_front().take_until([](char c) { return c == '\'' || c == '"'; });
  const Dtype *row = findDtype([&](const Dtype &d) { return d.descr == type.drop_front(!type.empty()); });
  if (!row || type.front() == '>')
    return userError("the .npy type is '" + type + "'; supported are little-endian numbers and bool");
  auto order = headerField(header, "fortran_order");
  if (!order)
    return order.takeError();
  if (!order->starts_with("False"))
    return userError("the .npy file is in Fortran order when it should be in C order");
  auto shape = headerField(header, "shape");
  if (!shape)
    return shape.takeError();
  auto dims = parseShape(*shape);
  if (!dims)
    return dims.takeError();

  Tensor tensor{"", row->value, std::move(*dims), {}};
  if (Error error = takeBytes(tensor, bytes.drop_front(start + size)))
    return error;
  return tensor;
}

Expected<Tensor> decodeTensorProto(StringRef bytes) {
  onnx::TensorProto proto;
  if (bytes.size() > INT32_MAX || !proto.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    return userError("neither a .npy file nor an ONNX TensorProto");
  const Dtype *row = findDtype([&](const Dtype &d) { return d.onnx == proto.data_type(); });
  if (!row)
    return userError("the TensorProto has data type " + Twine(proto.data_type()) + ", which is not a number");
  if (proto.data_location() == onnx::TensorProto::EXTERNAL)
    return userError("the TensorProto keeps its data in another file");
  Tensor tensor{proto.name(), row->value, {proto.dims().begin(), proto.dims().end()}, {}};
  if (Error error = proto.has_raw_data() ? takeBytes(tensor, proto.raw_data()) : takeTypedField(tensor, proto))
    return error;
  return tensor;
}

Expected<Tensor> readTensor(StringRef path) {
  auto buffer = MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!buffer)
    return userError("cannot read '" + path + "': " + buffer.getError().message());
  StringRef bytes = (*buffer)->getBuffer();
  auto tensor = bytes.starts_with("\x93NUMPY") ? decodeNpy(bytes) : decodeTensorProto(bytes);
  if (!tensor)
    return userError("'" + path + "': " + toString(tensor.takeError()));
  return tensor;
}

std::vector<char> encodeNpy(const Tensor &tensor) {
  const Dtype *row = findDtype([&](const Dtype &d) { return d.value == tensor.dtype; });
  std::string shape;
  for (int64_t dim : tensor.dims)
    shape += std::to_string(dim) + ", ";
  if (tensor.dims.size() > 1)
    shape.resize(shape.size() - 2);
  else if (!shape.empty())
    shape.pop_back(); // a tuple of one keeps its comma
  std::string header = ("{'descr': '" + Twine(row->size == 1 || row->value == VMPK_DTYPE_BF16 ? "|" : "<") +
                        row->descr + "', 'fortran_order': False, 'shape': (" + shape + "), }")
                           .str();
  // numpy aligns the data to 64 bytes so that files can be mapped.
  header.resize(alignTo(10 + header.size() + 1, 64) - 11, ' ');
  header += '\n';
  std::string head("\x93NUMPY\x01\x00", 8);
  head += static_cast<char>(header.size() & 0xff);
  head += static_cast<char>(header.size() >> 8);
  head += header;
  std::vector<char> bytes(head.begin(), head.end());
  bytes.insert(bytes.end(), tensor.bytes.begin(), tensor.bytes.end());
  return bytes;
}

Expected<Tensor> seededTensor(StringRef name, uint32_t dtype, ArrayRef<int64_t> dims, uint64_t seed, uint64_t ordinal) {
  Tensor tensor{name.str(), dtype, dims.vec(), {}};
  auto size = byteSize(dtype, dims);
  if (!size)
    return size.takeError();
  if (*size > uint64_t(1) << 40)
    return userError("input '" + name + "' would need " + Twine(*size) + " bytes");
  tensor.bytes.resize(*size);
  uint32_t base = static_cast<uint32_t>(seed) * 0x9e3779b9u + static_cast<uint32_t>(ordinal) * 0x85ebca6bu;
  auto ints = [&](auto zero) {
    using T = decltype(zero);
    fill<T>(tensor.bytes, base, [](uint32_t x) { return static_cast<T>(x % 8); });
  };
  switch (dtype) {
  case VMPK_DTYPE_F32:
    fill<float>(tensor.bytes, base, unit);
    break;
  case VMPK_DTYPE_F64:
    fill<double>(tensor.bytes, base, [](uint32_t x) { return static_cast<double>(unit(x)); });
    break;
  case VMPK_DTYPE_F16:
    fill<uint16_t>(tensor.bytes, base, halfBits);
    break;
  case VMPK_DTYPE_BF16:
    fill<uint16_t>(tensor.bytes, base, bfloatBits);
    break;
  case VMPK_DTYPE_BOOL:
    fill<uint8_t>(tensor.bytes, base, [](uint32_t x) { return static_cast<uint8_t>(x % 2); });
    break;
  default:
    switch (dtypeSize(dtype)) {
    case 1:
      ints(uint8_t());
      break;
    case 2:
      ints(uint16_t());
      break;
    case 4:
      ints(uint32_t());
      break;
    default:
      ints(uint64_t());
    }
  }
  return tensor;
}

} // namespace vmpack::tool
