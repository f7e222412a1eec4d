// What the importer makes of well-formed models, and which error of a malformed one.
#include "tests/frontend/Models.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace vmpack::tests;
using testing::HasSubstr;
using testing::Not;

static size_t count(const std::string &text, const std::string &what) {
  size_t found = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + what.size()))
    ++found;
  return found;
}

TEST(Onnx, ElementwiseOpsAreOneGeneric) {
  ModelBuilder m;
  m.input("x", {2, 3}).input("b", {3}).output("y");
  m.node("Add", {"x", "b"}, {"y"}, "sum");
  Imported result = importModel(m);
  ASSERT_TRUE(result.ok()) << result.error;
  EXPECT_EQ(count(result.text, "linalg.generic"), 1u);
  EXPECT_THAT(result.text, HasSubstr("arith.addf"));
  EXPECT_THAT(result.text, HasSubstr("vmpk.name = \"x\""));
  EXPECT_THAT(result.text, HasSubstr("vmpk.dims = [2, 3]"));
  EXPECT_THAT(result.text, HasSubstr("\"sum\"")) << "the node's name is the op's location";
}

TEST(Onnx, UnitDimsAreDroppedFromOperands) {
  ModelBuilder m;
  m.input("x", {2, 3, 4}).input("b", {3, 1}).output("y");
  m.node("Mul", {"x", "b"}, {"y"});
  Imported result = importModel(m);
  ASSERT_TRUE(result.ok()) << result.error;
  EXPECT_THAT(result.text, HasSubstr("tensor.collapse_shape"));
  EXPECT_THAT(result.text, HasSubstr("tensor<3xf32>"));
}

TEST(Onnx, SplatsBecomeScalars) {
  ModelBuilder m;
  m.input("x", {2, 3}).floats("two", {1}, 2).output("y");
  m.node("Mul", {"x", "two"}, {"y"});
  Imported result = importModel(m);
  ASSERT_TRUE(result.ok()) << result.error;
  EXPECT_THAT(result.text, HasSubstr("arith.constant 2.000000e+00 : f32"));
  EXPECT_EQ(count(result.text, "linalg.generic"), 1u);
}

TEST(Onnx, ConstantsFold) {
  ModelBuilder m;
  m.ints("a", {1, 2, 3}).ints("b", {10, 20, 30}).output("y", onnx::TensorProto::INT64);
  m.node("Mul", {"a", "b"}, {"product"});
  m.node("Add", {"product", "a"}, {"y"});
  Imported result = importModel(m);
  ASSERT_TRUE(result.ok()) << result.error;
  EXPECT_THAT(result.text, HasSubstr("dense<[11, 42, 93]>"));
  EXPECT_THAT(result.text, Not(HasSubstr("linalg.generic")));
}

TEST(Onnx, ShapeArithmeticFoldsToDims) {
  ModelBuilder m;
  m.input("x", {"batch", 3, 8}).ints("zero", {0}).ints("rest", {-1}).output("y");
  m.node("Shape", {"x"}, {"shape"});
  m.node("Gather", {"shape", "zero"}, {"first"});
  setInt(m.node("Concat", {"first", "rest"}, {"target"}), "axis", 0);
  m.node("Reshape", {"x", "target"}, {"y"});
  Imported result = importModel(m);
  ASSERT_TRUE(result.ok()) << result.error;
  EXPECT_THAT(result.text, HasSubstr("tensor<?x24xf32> {vmpk.dims = [\"batch\", 24], vmpk.name = \"y\"}"));
  EXPECT_THAT(result.text, Not(HasSubstr("linalg.generic")));
}

TEST(Onnx, DimsCanBeFixedAndBounded) {
  ModelBuilder m;
  m.input("x", {"batch", "width"}).output("y");
  m.node("Relu", {"x"}, {"y"});
  vmpack::frontend::ImportOptions options;
  options.dims["batch"] = {4, 4};
  options.dims["width"] = {1, 512};
  Imported result = importModel(m, options);
  ASSERT_TRUE(result.ok()) << result.error;
  EXPECT_THAT(result.text, HasSubstr("tensor<4x?xf32>"));
  EXPECT_THAT(result.text, HasSubstr("vmpk.bounds = {width = [1, 512]}"));
  options.dims["height"] = {1, 1};
  EXPECT_THAT(importModel(m, options).error, HasSubstr("no symbolic dim 'height'"));
}

TEST(Onnx, UnnamedDimsGetNames) {
  ModelBuilder m;
  m.input("x", {"d0", ""}).output("y");
  m.node("Relu", {"x"}, {"y"});
  Imported result = importModel(m);
  ASSERT_TRUE(result.ok()) << result.error;
  EXPECT_THAT(result.text, HasSubstr("vmpk.dims = [\"d0\", \"d1\"]"));
}

TEST(Onnx, InputsCanBecomeConstants) {
  ModelBuilder m;
  m.input("x", {2, 3}).input("shape", {2}, onnx::TensorProto::INT64).output("y");
  m.node("Reshape", {"x", "shape"}, {"y"});
  EXPECT_THAT(importModel(m).error, HasSubstr("input 1 must be known when the model is compiled"));
  onnx::TensorProto shape;
  shape.set_data_type(onnx::TensorProto::INT64);
  shape.add_dims(2);
  shape.add_int64_data(3);
  shape.add_int64_data(2);
  vmpack::frontend::ImportOptions options;
  options.constants["shape"] = shape.SerializeAsString();
  Imported result = importModel(m, options);
  ASSERT_TRUE(result.ok()) << result.error;
  EXPECT_THAT(result.text, HasSubstr("-> (tensor<3x2xf32>"));
}

TEST(Onnx, ConvolutionIsChannelsLastWithConstantWeightsMoved) {
  ModelBuilder m;
  m.input("x", {1, 3, 8, 8}).floats("w", {4, 3, 3, 3}).floats("b", {4}).output("y");
  auto &conv = m.node("Conv", {"x", "w", "b"}, {"y"}, "conv1");
  setInts(conv, "pads", {1, 1, 1, 1});
  setInts(conv, "strides", {2, 2});
  Imported result = importModel(m);
  ASSERT_TRUE(result.ok()) << result.error;
  EXPECT_THAT(result.text, HasSubstr("linalg.conv_2d_nhwc_hwcf"));
  EXPECT_THAT(result.text, HasSubstr("tensor.pad"));
  EXPECT_THAT(result.text, HasSubstr("tensor<3x3x3x4xf32>"));
  EXPECT_EQ(count(result.text, "linalg.transpose"), 2u) << "one in, one out, none of the weights";
  EXPECT_THAT(result.text, HasSubstr("-> (tensor<1x4x4x4xf32>"));
}

TEST(Onnx, DepthwiseAndGroupedConvolutions) {
  ModelBuilder depthwise;
  depthwise.input("x", {1, 4, 8, 8}).floats("w", {4, 1, 3, 3}).output("y");
  setInt(depthwise.node("Conv", {"x", "w"}, {"y"}), "group", 4);
  Imported result = importModel(depthwise);
  ASSERT_TRUE(result.ok()) << result.error;
  EXPECT_THAT(result.text, HasSubstr("linalg.depthwise_conv_2d_nhwc_hwc"));
  ModelBuilder grouped;
  grouped.input("x", {1, 4, 8, 8}).floats("w", {6, 2, 3, 3}).output("y");
  setInt(grouped.node("Conv", {"x", "w"}, {"y"}), "group", 2);
  result = importModel(grouped);
  ASSERT_TRUE(result.ok()) << result.error;
  EXPECT_EQ(count(result.text, "linalg.conv_2d_nhwc_hwcf"), 2u);
}

TEST(Onnx, BatchNormalizationFoldsToOneMultiplyAdd) {
  ModelBuilder m;
  m.input("x", {1, 2, 4, 4}).floats("s", {2}).floats("b", {2}).floats("m", {2}).floats("v", {2}).output("y");
  m.node("BatchNormalization", {"x", "s", "b", "m", "v"}, {"y"});
  Imported result = importModel(m);
  ASSERT_TRUE(result.ok()) << result.error;
  EXPECT_EQ(count(result.text, "linalg.generic"), 1u);
  EXPECT_THAT(result.text, Not(HasSubstr("math.sqrt")));
}

TEST(Onnx, MatrixProductsOfBatches) {
  ModelBuilder flat;
  flat.input("x", {2, 5, 3}).floats("w", {3, 7}).output("y");
  flat.node("MatMul", {"x", "w"}, {"y"});
  Imported result = importModel(flat);
  ASSERT_TRUE(result.ok()) << result.error;
  EXPECT_THAT(result.text, HasSubstr("linalg.matmul"));
  EXPECT_THAT(result.text, HasSubstr("tensor<10x3xf32>"));
  ModelBuilder batched;
  batched.input("a", {2, 4, 5, 3}).input("b", {4, 3, 7}).output("y");
  batched.node("MatMul", {"a", "b"}, {"y"});
  result = importModel(batched);
  ASSERT_TRUE(result.ok()) << result.error;
  EXPECT_THAT(result.text, HasSubstr("linalg.batch_matmul"));
  EXPECT_THAT(result.text, HasSubstr("-> (tensor<2x4x5x7xf32>"));
}

TEST(Onnx, SoftmaxBeforeOpset13IsOverAMatrix) {
  ModelBuilder m(11);
  m.input("x", {2, 3, 4}).output("y");
  setInt(m.node("Softmax", {"x"}, {"y"}), "axis", 1);
  Imported result = importModel(m);
  ASSERT_TRUE(result.ok()) << result.error;
  EXPECT_THAT(result.text, HasSubstr("tensor<2x12xf32>"));
}

TEST(Onnx, UnsignedIntegersAreMarked) {
  ModelBuilder m;
  m.input("x", {4}, onnx::TensorProto::UINT8).input("z", {4}, onnx::TensorProto::UINT8);
  m.output("y", onnx::TensorProto::UINT8);
  m.node("Div", {"x", "z"}, {"y"});
  Imported result = importModel(m);
  ASSERT_TRUE(result.ok()) << result.error;
  EXPECT_THAT(result.text, HasSubstr("arith.divui"));
  EXPECT_THAT(result.text, HasSubstr("vmpk.unsigned"));
}

TEST(Onnx, EmptyDimsAndScalarsImport) {
  ModelBuilder m;
  m.input("x", {0, 3}).input("s", {}).output("y");
  m.node("Add", {"x", "s"}, {"y"});
  Imported result = importModel(m);
  ASSERT_TRUE(result.ok()) << result.error;
  EXPECT_THAT(result.text, HasSubstr("tensor<0x3xf32>"));
}

TEST(Onnx, UnicodeNamesSurvive) {
  ModelBuilder m;
  m.input("größe/入力", {"高さ"}).output("y");
  m.node("Relu", {"größe/入力"}, {"y"});
  EXPECT_TRUE(importModel(m).ok());
}

TEST(Onnx, ConstantConditionChoosesABranch) {
  ModelBuilder m;
  m.input("x", {2}).output("y");
  auto *flag = m.model.mutable_graph()->add_initializer();
  flag->set_name("flag");
  flag->set_data_type(onnx::TensorProto::BOOL);
  flag->add_int32_data(1);
  auto &branches = m.node("If", {"flag"}, {"y"});
  for (const char *name : {"then_branch", "else_branch"}) {
    auto *attribute = branches.add_attribute();
    attribute->set_name(name);
    attribute->set_type(onnx::AttributeProto::GRAPH);
    auto *node = attribute->mutable_g()->add_node();
    node->set_op_type(std::string(name) == "then_branch" ? "Exp" : "Unknown");
    node->add_input("x");
    node->add_output(std::string(name) + "_result");
    attribute->mutable_g()->add_output()->set_name(std::string(name) + "_result");
  }
  Imported result = importModel(m);
  ASSERT_TRUE(result.ok()) << result.error;
  EXPECT_THAT(result.text, HasSubstr("math.exp"));
}

TEST(Onnx, LongRecurrencesStayLoops) {
  auto build = [](const Size &steps) {
    ModelBuilder m;
    m.input("x", {steps, 1, 4}).floats("w", {1, 12, 4}).floats("r", {1, 12, 3}).output("y");
    m.node("LSTM", {"x", "w", "r"}, {"y"});
    return importModel(m);
  };
  Imported loop = build("time"), unrolled = build(2);
  ASSERT_TRUE(loop.ok()) << loop.error;
  EXPECT_EQ(count(loop.text, "scf.for"), 1u);
  EXPECT_THAT(loop.text, HasSubstr("-> (tensor<?x1x1x3xf32>"));
  ASSERT_TRUE(unrolled.ok()) << unrolled.error;
  EXPECT_EQ(count(unrolled.text, "scf.for"), 0u);
  EXPECT_EQ(count(unrolled.text, "linalg.matmul"), 3u) << "one for the inputs, one a step";
}

TEST(Onnx, EinsumOfMatricesIsAMatmul) {
  ModelBuilder m;
  m.input("a", {2, 5, 3}).input("b", {2, 3, 7}).output("y");
  setString(m.node("Einsum", {"a", "b"}, {"y"}), "equation", "bij,bjk->bik");
  Imported result = importModel(m);
  ASSERT_TRUE(result.ok()) << result.error;
  EXPECT_THAT(result.text, HasSubstr("linalg.batch_matmul"));
}

// Errors.

TEST(OnnxErrors, EveryUnsupportedNodeIsListed) {
  ModelBuilder m;
  m.input("x", {2, 2}).output("y");
  m.node("Frobnicate", {"x"}, {"a"}, "first");
  m.node("Relu", {"a"}, {"b"}, "between");
  m.node("Defrobnicate", {"b"}, {"c"}, "second");
  m.node("Sigmoid", {"x"}, {"d"}, "fine");
  m.node("Add", {"c", "d"}, {"y"});
  std::string error = importModel(m).error;
  EXPECT_THAT(error, HasSubstr("2 nodes are not supported"));
  EXPECT_THAT(error, HasSubstr("'first' Frobnicate (domain ai.onnx, opset 13; float)"));
  EXPECT_THAT(error, HasSubstr("'second' Defrobnicate (domain ai.onnx, opset 13; unknown)"));
  EXPECT_THAT(error, Not(HasSubstr("between")));
}

TEST(OnnxErrors, UnsupportedTypesAreListed) {
  ModelBuilder m;
  m.input("x", {2}, onnx::TensorProto::INT32).output("y", onnx::TensorProto::INT32);
  m.node("Exp", {"x"}, {"y"}, "exp");
  EXPECT_THAT(importModel(m).error, HasSubstr("'exp' Exp (domain ai.onnx, opset 13; int32): the element type int32"));
}

TEST(OnnxErrors, OpsetsThatAreNotKnown) {
  ModelBuilder m(99);
  m.input("x", {2}).output("y");
  m.node("Relu", {"x"}, {"y"});
  EXPECT_THAT(importModel(m).error, HasSubstr("opset 99 is not supported: known are 1 to 24"));
}

TEST(OnnxErrors, UndefinedAndUnsortedInputs) {
  ModelBuilder m;
  m.input("x", {2}).output("y");
  m.node("Add", {"x", "later"}, {"y"}, "sum");
  m.node("Relu", {"x"}, {"later"});
  EXPECT_THAT(importModel(m).error, HasSubstr("node 'sum' (Add): input 'later' is made by no node before it"));
}

TEST(OnnxErrors, DuplicateNames) {
  ModelBuilder m;
  m.input("x", {2}).output("y");
  m.node("Relu", {"x"}, {"y"});
  m.node("Exp", {"x"}, {"y"});
  EXPECT_THAT(importModel(m).error, HasSubstr("output 'y' has the name of another value"));
  ModelBuilder inputs;
  inputs.input("x", {2}).input("x", {2}).output("y");
  inputs.node("Relu", {"x"}, {"y"});
  EXPECT_THAT(importModel(inputs).error, HasSubstr("two inputs have the name 'x'"));
}

TEST(OnnxErrors, ShapesThatCannotBe) {
  ModelBuilder negative;
  negative.input("x", {-2}).output("y");
  negative.node("Relu", {"x"}, {"y"});
  EXPECT_THAT(importModel(negative).error, HasSubstr("negative dim -2"));
  ModelBuilder huge;
  huge.input("x", {int64_t(1) << 40, int64_t(1) << 40}).output("y");
  huge.node("Relu", {"x"}, {"y"});
  EXPECT_THAT(importModel(huge).error, HasSubstr("shape that cannot be"));
  ModelBuilder mismatch;
  mismatch.input("x", {2, 3}).input("z", {4}).output("y");
  mismatch.node("Add", {"x", "z"}, {"y"}, "sum");
  EXPECT_THAT(importModel(mismatch).error, HasSubstr("node 'sum' (Add): shapes [2, 3] and [4] do not broadcast"));
  ModelBuilder symbols;
  symbols.input("x", {"n"}).input("z", {"m"}).output("y");
  symbols.node("Add", {"x", "z"}, {"y"});
  EXPECT_THAT(importModel(symbols).error, HasSubstr("symbolic dims must be equal"));
}

TEST(OnnxErrors, AttributesOfTheWrongType) {
  ModelBuilder m;
  m.input("x", {2, 3}).output("y");
  setString(m.node("Softmax", {"x"}, {"y"}, "soft"), "axis", "one");
  EXPECT_THAT(importModel(m).error, HasSubstr("node 'soft' (Softmax): attribute 'axis' has the wrong type"));
}

TEST(OnnxErrors, AxesAndRanksOutOfRange) {
  ModelBuilder m;
  m.input("x", {2, 3}).output("y");
  setInt(m.node("Softmax", {"x"}, {"y"}), "axis", 7);
  EXPECT_THAT(importModel(m).error, HasSubstr("axis 7 is out of range for rank 2"));
  ModelBuilder conv;
  conv.input("x", {1, 3, 2, 2}).floats("w", {4, 3, 3, 3}).output("y");
  conv.node("Conv", {"x", "w"}, {"y"});
  EXPECT_THAT(importModel(conv).error, HasSubstr("the window of 3 is larger than the padded input"));
}

TEST(OnnxErrors, TensorsWithTooFewBytes) {
  ModelBuilder m;
  m.input("x", {2}).output("y");
  auto *tensor = m.model.mutable_graph()->add_initializer();
  tensor->set_name("w");
  tensor->set_data_type(onnx::TensorProto::FLOAT);
  tensor->add_dims(2);
  tensor->set_raw_data("1234567");
  m.node("Add", {"x", "w"}, {"y"});
  EXPECT_THAT(importModel(m).error, HasSubstr("tensor 'w': there are 7 bytes when there should be 8"));
}

TEST(OnnxErrors, ExternalDataStaysInTheFolder) {
  for (const char *location : {"/etc/passwd", "../secret", "a/../../secret", ""}) {
    ModelBuilder m;
    m.input("x", {2}).output("y");
    auto *tensor = m.model.mutable_graph()->add_initializer();
    tensor->set_name("w");
    tensor->set_data_type(onnx::TensorProto::FLOAT);
    tensor->add_dims(2);
    tensor->set_data_location(onnx::TensorProto::EXTERNAL);
    auto *entry = tensor->add_external_data();
    entry->set_key("location");
    entry->set_value(location);
    m.node("Add", {"x", "w"}, {"y"});
    EXPECT_THAT(importModel(m).error, HasSubstr("leaves the model's folder")) << location;
  }
}

TEST(Onnx, ExternalDataIsRead) {
  TemporaryFile weights(llvm::StringRef("skip\0\0\x80\x3f\0\0\0\x40", 12)); // 1.0f, 2.0f after four bytes
  llvm::StringRef name = llvm::StringRef(weights.path).rsplit('/').second;
  auto build = [&](const char *length) {
    ModelBuilder m;
    m.input("x", {2}).output("y");
    auto *tensor = m.model.mutable_graph()->add_initializer();
    tensor->set_name("w");
    tensor->set_data_type(onnx::TensorProto::FLOAT);
    tensor->add_dims(2);
    tensor->set_data_location(onnx::TensorProto::EXTERNAL);
    for (auto [key, value] :
         {std::pair<std::string, std::string>{"location", name.str()}, {"offset", "4"}, {"length", length}}) {
      auto *entry = tensor->add_external_data();
      entry->set_key(key);
      entry->set_value(value);
    }
    m.node("Add", {"x", "w"}, {"y"});
    return importModel(m);
  };
  Imported result = build("8");
  ASSERT_TRUE(result.ok()) << result.error;
  EXPECT_THAT(result.text, HasSubstr("dense<[1.000000e+00, 2.000000e+00]>"));
  EXPECT_THAT(build("9").error, HasSubstr("is outside of"));
}

// MLIR.

TEST(Mlir, TextAndItsErrors) {
  Imported result = importBytes("func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {\n  return %x : tensor<4xf32>\n}\n");
  ASSERT_TRUE(result.ok()) << result.error;
  EXPECT_THAT(result.text, HasSubstr("func.func @f"));
  EXPECT_THAT(importBytes("func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {\n  return %y : tensor<4xf32>\n}\n").error,
              HasSubstr(":2:10: error: use of undeclared SSA value name"));
  EXPECT_THAT(importBytes("func.func private @f(%x: tensor<4xf32>)\n").error, HasSubstr("no public function"));
  EXPECT_THAT(importBytes("func.func @f(%x: tensor<*xf32>) {\n  return\n}\n").error, HasSubstr("is no ranked tensor"));
  EXPECT_THAT(importBytes("module {").error, HasSubstr("error: "));
}

TEST(Mlir, CallsThatCannotBeInlined) {
  const std::string type = "(tensor<4xf32>) -> tensor<4xf32>";
  auto calls = [&](const std::string &visibility, const std::string &name, const std::string &callee) {
    return "func.func " + visibility + " @" + name + "(%x: tensor<4xf32>) -> tensor<4xf32> {\n  %r = call @" + callee +
           "(%x) : " + type + "\n  return %r : tensor<4xf32>\n}\n";
  };
  EXPECT_THAT(importBytes(calls("", "f", "g") + "func.func private @g" + type + "\n").error,
              HasSubstr(":2:8: error: the called function 'g' has no body"));
  EXPECT_THAT(importBytes(calls("", "f", "f")).error, HasSubstr("function 'f' calls itself"));
  EXPECT_THAT(importBytes(calls("", "f", "g") + calls("private", "g", "h") + calls("private", "h", "g")).error,
              HasSubstr("calls itself; recursion is not supported"));
}

TEST(Mlir, TosaIsAccepted) {
  Imported result = importBytes("func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {\n"
                                "  %0 = tosa.tanh %x : (tensor<4xf32>) -> tensor<4xf32>\n"
                                "  return %0 : tensor<4xf32>\n}\n");
  EXPECT_TRUE(result.ok()) << result.error;
}

TEST(Frontend, FilesThatAreNoModels) {
  EXPECT_THAT(importFile("/nonexistent/model.onnx").error, HasSubstr("No such file"));
  EXPECT_THAT(importBytes("").error, HasSubstr("is empty"));
  EXPECT_FALSE(importBytes(llvm::StringRef("\x08\x00\xff\xff", 4)).ok());
  EXPECT_FALSE(importBytes(llvm::StringRef("ML\xefR garbage")).ok());
}
