#include "packager/frontend/OnnxTensors.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <onnx/onnx_pb.h>

using namespace vmpack::frontend;

static llvm::Error wrong(const onnx::TensorProto &proto, const llvm::Twine &reason) {
  return llvm::createStringError(("tensor '" + llvm::Twine(proto.name()) + "': " + reason).str());
}

static std::shared_ptr<Constant> share(std::shared_ptr<const void> owner, const char *data, size_t size,
                                       unsigned width) {
  if (reinterpret_cast<uintptr_t>(data) % width != 0)
    return Constant::own(std::string(data, size));
  auto constant = std::make_shared<Constant>();
  constant->owner = std::move(owner);
  constant->bytes = llvm::ArrayRef<char>(data, size);
  return constant;
}

llvm::Expected<std::shared_ptr<llvm::MemoryBuffer>> OnnxTensors::open(llvm::StringRef location) {
  namespace path = llvm::sys::path;
  if (auto known = files.find(location); known != files.end())
    return known->second;
  if (location.empty() || path::is_absolute(location) || location.contains('\\') || location.contains('\0') ||
      llvm::is_contained(llvm::make_range(path::begin(location), path::end(location)), ".."))
    return llvm::createStringError("external data location '" + location.str() + "' leaves the model's folder");
  llvm::SmallString<256> full(folder.empty() ? "." : folder), real, realFolder;
  llvm::sys::fs::real_path(full, realFolder);
  path::append(full, location);
  if (std::error_code code = llvm::sys::fs::real_path(full, real))
    return llvm::createStringError(code, "external data '" + full.str().str() + "': " + code.message());
  if (realFolder != "/")
    realFolder += '/';
  if (!real.str().starts_with(realFolder))
    return llvm::createStringError("external data location '" + location.str() + "' leaves the model's folder");
  if (!llvm::sys::fs::is_regular_file(real))
    return llvm::createStringError("external data '" + full.str().str() + "' is no regular file");
  auto file = llvm::MemoryBuffer::getFile(real, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!file)
    return llvm::createStringError(file.getError(),
                                   "external data '" + full.str().str() + "': " + file.getError().message());
  return files[location] = std::shared_ptr<llvm::MemoryBuffer>(std::move(*file));
}

llvm::Expected<std::shared_ptr<Constant>> OnnxTensors::readExternal(const onnx::TensorProto &proto) {
  std::string location;
  uint64_t offset = 0, length = 0;
  bool hasLength = false;
  for (const auto &entry : proto.external_data()) {
    llvm::StringRef value = entry.value();
    if (entry.key() == "location")
      location = entry.value();
    else if (entry.key() == "offset" ? value.getAsInteger(10, offset) : false)
      return wrong(proto, "external data offset '" + value + "' is no number");
    else if (entry.key() == "length" && (hasLength = true) && value.getAsInteger(10, length))
      return wrong(proto, "external data length '" + value + "' is no number");
  }
  auto file = open(location);
  if (!file)
    return wrong(proto, llvm::toString(file.takeError()));
  uint64_t size = (*file)->getBufferSize();
  if (!hasLength)
    length = offset <= size ? size - offset : 0;
  if (offset > size || length > size - offset)
    return wrong(proto, "external data at " + llvm::Twine(offset) + " of " + llvm::Twine(length) +
                            " bytes is outside of '" + location + "', which has " + llvm::Twine(size));
  return share(*file, (*file)->getBufferStart() + offset, length, widthOf(elemOf(proto.data_type())));
}

/// Copies a typed field into elements of `elem`.
template <typename T, typename Field> static std::shared_ptr<Constant> narrow(const Field &field) {
  std::string bytes;
  bytes.reserve(field.size() * sizeof(T));
  for (auto value : field) {
    T element = static_cast<T>(value);
    bytes.append(reinterpret_cast<const char *>(&element), sizeof element);
  }
  return Constant::own(std::move(bytes));
}

llvm::Expected<std::shared_ptr<Constant>> OnnxTensors::readTyped(const onnx::TensorProto &proto, Elem elem, int64_t) {
  auto whole = [&](const auto &field) {
    return share(model, reinterpret_cast<const char *>(field.data()), field.size() * widthOf(elem), widthOf(elem));
  };
  switch (elem) {
  case Elem::F32:
    return whole(proto.float_data());
  case Elem::F64:
    return whole(proto.double_data());
  case Elem::I64:
    return whole(proto.int64_data());
  case Elem::I32:
    return whole(proto.int32_data());
  case Elem::U64:
    return whole(proto.uint64_data());
  case Elem::U32:
    return narrow<uint32_t>(proto.uint64_data());
  case Elem::I16:
  case Elem::U16:
  case Elem::F16:
  case Elem::BF16:
    return narrow<uint16_t>(proto.int32_data());
  case Elem::I8:
  case Elem::U8:
  case Elem::Bool:
    return narrow<uint8_t>(proto.int32_data());
  default:
    return wrong(proto, "element type is not supported");
  }
}

llvm::Expected<Tensor> OnnxTensors::read(const onnx::TensorProto &proto) {
  Elem elem = elemOf(proto.data_type());
  if (elem == Elem::None || elem == Elem::String)
    return wrong(proto, "element type " + llvm::Twine(proto.data_type()) + " is not supported");
  int64_t count = 1;
  Dims shape;
  for (int64_t size : proto.dims()) {
    if (size < 0)
      return wrong(proto, "dim " + llvm::Twine(size) + " is negative");
    if (__builtin_mul_overflow(count, size, &count) || count > INT64_MAX / 16)
      return wrong(proto, "the product of the dims overflows");
    shape.push_back(mlir::getAffineConstantExpr(size, context));
  }
  if (shape.size() > 16)
    return wrong(proto, "rank " + llvm::Twine(shape.size()) + " is above 16");
  auto load = [&]() -> llvm::Expected<std::shared_ptr<Constant>> {
    if (proto.data_location() == onnx::TensorProto::EXTERNAL)
      return readExternal(proto);
    if (proto.has_raw_data())
      return share(model, proto.raw_data().data(), proto.raw_data().size(), widthOf(elem));
    return readTyped(proto, elem, count);
  };
  VMPACK_TRY(std::shared_ptr<Constant> constant, load());
  if (constant->bytes.size() != static_cast<uint64_t>(count) * widthOf(elem))
    return wrong(proto, "there are " + llvm::Twine(constant->bytes.size()) + " bytes when there should be " +
                            llvm::Twine(count * widthOf(elem)));
  return Tensor{elem, std::move(shape), std::move(constant), nullptr, nullptr};
}
