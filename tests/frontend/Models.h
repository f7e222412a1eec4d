//===- Models.h - ONNX models built in memory ------------------------------------------------------------===//
#ifndef VMPACK_TESTS_FRONTEND_MODELS_H
#define VMPACK_TESTS_FRONTEND_MODELS_H

#include "packager/frontend/Frontend.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

#include <onnx/onnx_pb.h>

#include <string>
#include <variant>
#include <vector>

namespace vmpack::tests {

/// A dim: a size or a symbol.
using Size = std::variant<int64_t, std::string>;

/// Builds a model node by node.
class ModelBuilder {
public:
  explicit ModelBuilder(int64_t opset = 13) {
    model.set_ir_version(8);
    auto *import = model.add_opset_import();
    import->set_domain("");
    import->set_version(opset);
    model.mutable_graph()->set_name("test");
  }

  ModelBuilder &input(const std::string &name, const std::vector<Size> &dims, int type = onnx::TensorProto::FLOAT) {
    describe(model.mutable_graph()->add_input(), name, type, dims);
    return *this;
  }
  ModelBuilder &output(const std::string &name, int type = onnx::TensorProto::FLOAT) {
    auto *info = model.mutable_graph()->add_output();
    info->set_name(name);
    info->mutable_type()->mutable_tensor_type()->set_elem_type(type);
    return *this;
  }
  ModelBuilder &floats(const std::string &name, const std::vector<int64_t> &dims, float value = 0.5f) {
    auto *tensor = model.mutable_graph()->add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(onnx::TensorProto::FLOAT);
    int64_t count = 1;
    for (int64_t dim : dims) {
      tensor->add_dims(dim);
      count *= dim;
    }
    for (int64_t i = 0; i < count; ++i)
      tensor->add_float_data(value + static_cast<float>(i));
    return *this;
  }
  ModelBuilder &ints(const std::string &name, const std::vector<int64_t> &values) {
    auto *tensor = model.mutable_graph()->add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(onnx::TensorProto::INT64);
    tensor->add_dims(static_cast<int64_t>(values.size()));
    for (int64_t value : values)
      tensor->add_int64_data(value);
    return *this;
  }
  /// The node just added can be given attributes through the reference.
  onnx::NodeProto &node(const std::string &op, const std::vector<std::string> &inputs,
                        const std::vector<std::string> &outputs, const std::string &name = "") {
    auto *proto = model.mutable_graph()->add_node();
    proto->set_op_type(op);
    proto->set_name(name);
    for (const std::string &input : inputs)
      proto->add_input(input);
    for (const std::string &output : outputs)
      proto->add_output(output);
    return *proto;
  }

  std::string bytes() const { return model.SerializeAsString(); }
  onnx::ModelProto model;

private:
  static void describe(onnx::ValueInfoProto *info, const std::string &name, int type, const std::vector<Size> &dims) {
    info->set_name(name);
    auto *tensor = info->mutable_type()->mutable_tensor_type();
    tensor->set_elem_type(type);
    auto *shape = tensor->mutable_shape();
    for (const Size &dim : dims) {
      if (const int64_t *size = std::get_if<int64_t>(&dim))
        shape->add_dim()->set_dim_value(*size);
      else
        shape->add_dim()->set_dim_param(std::get<std::string>(dim));
    }
  }
};

inline void setInt(onnx::NodeProto &node, const std::string &name, int64_t value) {
  auto *attribute = node.add_attribute();
  attribute->set_name(name);
  attribute->set_type(onnx::AttributeProto::INT);
  attribute->set_i(value);
}

inline void setInts(onnx::NodeProto &node, const std::string &name, const std::vector<int64_t> &values) {
  auto *attribute = node.add_attribute();
  attribute->set_name(name);
  attribute->set_type(onnx::AttributeProto::INTS);
  for (int64_t value : values)
    attribute->add_ints(value);
}

inline void setString(onnx::NodeProto &node, const std::string &name, const std::string &value) {
  auto *attribute = node.add_attribute();
  attribute->set_name(name);
  attribute->set_type(onnx::AttributeProto::STRING);
  attribute->set_s(value);
}

/// A file that goes away with its owner.
class TemporaryFile {
public:
  explicit TemporaryFile(llvm::StringRef bytes) {
    int descriptor;
    if (llvm::sys::fs::createTemporaryFile("vmpack-frontend", "model", descriptor, path))
      return;
    llvm::raw_fd_ostream stream(descriptor, /*shouldClose=*/true);
    stream << bytes;
  }
  ~TemporaryFile() { llvm::sys::fs::remove(path); }
  TemporaryFile(const TemporaryFile &) = delete;
  llvm::SmallString<128> path;
};

/// What an import gave: the module as text, or the error.
struct Imported {
  std::string text, error;
  bool ok() const { return error.empty(); }
};

inline Imported importFile(llvm::StringRef path, const frontend::ImportOptions &options = {}, bool print = true) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  auto module = frontend::importModel(context, path, options);
  Imported result;
  if (!module) {
    result.error = llvm::toString(module.takeError());
    return result;
  }
  if (print) {
    llvm::raw_string_ostream stream(result.text);
    mlir::OpPrintingFlags flags;
    flags.elideLargeElementsAttrs(64).elideLargeResourceString(64).enableDebugInfo(true, /*prettyForm=*/true);
    (*module)->print(stream, flags);
  }
  return result;
}

inline Imported importBytes(llvm::StringRef bytes, const frontend::ImportOptions &options = {}, bool print = true) {
  TemporaryFile file(bytes);
  return importFile(file.path, options, print);
}

inline Imported importModel(const ModelBuilder &builder, const frontend::ImportOptions &options = {}) {
  return importBytes(builder.bytes(), options);
}

} // namespace vmpack::tests

#endif // VMPACK_TESTS_FRONTEND_MODELS_H
