//===- TensorsTest.cpp - .npy, TensorProto and seeds ------------------------------------------------------===//
#include "packager/tool/Tensors.h"

#include "vmpk/abi.h"

#include "gtest/gtest.h"

#include <cstring>

using namespace llvm;
using namespace vmpack::tool;

namespace {

/// Whether a value came back; what was said instead is shown.
template <typename T> testing::AssertionResult succeeds(Expected<T> &value) {
  return value ? testing::AssertionSuccess() : testing::AssertionFailure() << toString(value.takeError());
}

template <typename T> bool fails(Expected<T> value) {
  bool failed = !value;
  consumeError(value.takeError());
  return failed;
}

/// A file as numpy.save writes it for np.arange(6, dtype='<f4').reshape(2, 3).
std::string numpyFile(uint8_t version = 1) {
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";
  size_t start = version == 1 ? 10 : 12;
  header.resize((start + header.size() + 64) / 64 * 64 - start - 1, ' ');
  header += '\n';
  std::string file("\x93NUMPY", 6);
  file += static_cast<char>(version);
  file += '\0';
  for (size_t i = 0; i < start - 8; ++i)
    file += static_cast<char>(header.size() >> 8 * i);
  file += header;
  for (float value : {0.f, 1.f, 2.f, 3.f, 4.f, 5.f})
    file.append(reinterpret_cast<const char *>(&value), 4);
  return file;
}

template <typename T> std::vector<T> values(const Tensor &tensor) {
  std::vector<T> result(tensor.bytes.size() / sizeof(T));
  std::memcpy(result.data(), tensor.bytes.data(), tensor.bytes.size());
  return result;
}

TEST(Npy, readsEveryVersion) {
  for (uint8_t version : {1, 2, 3}) {
    auto tensor = decodeNpy(numpyFile(version));
    ASSERT_TRUE(succeeds(tensor));
    EXPECT_EQ(tensor->dtype, uint32_t(VMPK_DTYPE_F32));
    EXPECT_EQ(tensor->dims, (std::vector<int64_t>{2, 3}));
    EXPECT_EQ(values<float>(*tensor), (std::vector<float>{0, 1, 2, 3, 4, 5}));
  }
  EXPECT_TRUE(fails(decodeNpy(numpyFile(4))));
}

TEST(Npy, writesWhatNumpyWrites) {
  auto tensor = decodeNpy(numpyFile());
  ASSERT_TRUE(succeeds(tensor));
  std::vector<char> bytes = encodeNpy(*tensor);
  EXPECT_EQ(std::string(bytes.begin(), bytes.end()), numpyFile());
}

TEST(Npy, keepsEveryTypeAndRank) {
  for (uint32_t dtype = VMPK_DTYPE_F32; dtype <= VMPK_DTYPE_BOOL; ++dtype)
    for (std::vector<int64_t> dims : {std::vector<int64_t>{}, {3}, {2, 3}, {0, 4}, {1, 2, 3, 4, 5}}) {
      auto tensor = seededTensor("x", dtype, dims, 1, 0);
      ASSERT_TRUE(succeeds(tensor));
      std::vector<char> bytes = encodeNpy(*tensor);
      EXPECT_EQ((bytes.size() - tensor->bytes.size()) % 64, 0u);
      auto back = decodeNpy(StringRef(bytes.data(), bytes.size()));
      ASSERT_TRUE(succeeds(back));
      EXPECT_EQ(back->dtype, dtype);
      EXPECT_EQ(back->dims, dims);
      EXPECT_EQ(back->bytes, tensor->bytes);
    }
}

TEST(Npy, refusesEveryTruncation) {
  std::string file = numpyFile();
  for (size_t size = 0; size < file.size(); ++size)
    EXPECT_TRUE(fails(decodeNpy(StringRef(file).take_front(size)))) << size;
  EXPECT_TRUE(fails(decodeNpy(file + "x")));
}

TEST(Npy, saysWhatItDoesNotRead) {
  auto replaced = [](StringRef from, StringRef to) {
    std::string file = numpyFile();
    file.replace(file.find(from.str()), from.size(), to.str());
    return toString(decodeNpy(file).takeError());
  };
  EXPECT_NE(replaced("False", "True ").find("Fortran order"), std::string::npos);
  EXPECT_NE(replaced("<f4", ">f4").find("'>f4'"), std::string::npos);
  EXPECT_NE(replaced("<f4", "<c8").find("'<c8'"), std::string::npos);
  EXPECT_NE(replaced("(2, 3)", "(2,-3)").find("no size"), std::string::npos);
  EXPECT_NE(replaced("'shape'", "'shade'").find("no 'shape'"), std::string::npos);
}

// TensorProtos by hand: field numbers and wire types as onnx.proto says.
TEST(TensorProto, readsTypedAndRawData) {
  // dims: 2; data_type: INT64; int64_data (packed): 5, 7; name: "x"
  std::string typed("\x08\x02\x10\x07\x3a\x02\x05\x07\x42\x01x", 11);
  auto tensor = decodeTensorProto(typed);
  ASSERT_TRUE(succeeds(tensor));
  EXPECT_EQ(tensor->name, "x");
  EXPECT_EQ(tensor->dtype, uint32_t(VMPK_DTYPE_I64));
  EXPECT_EQ(values<int64_t>(*tensor), (std::vector<int64_t>{5, 7}));

  // dims: 1; data_type: FLOAT; raw_data: 1.0f
  std::string raw("\x08\x01\x10\x01\x4a\x04\x00\x00\x80\x3f", 10);
  tensor = decodeTensorProto(raw);
  ASSERT_TRUE(succeeds(tensor));
  EXPECT_EQ(values<float>(*tensor), std::vector<float>{1.0f});

  // dims: 2; data_type: UINT8; int32_data: 255, 1
  std::string narrow("\x08\x02\x10\x02\x2a\x03\xff\x01\x01", 9);
  tensor = decodeTensorProto(narrow);
  ASSERT_TRUE(succeeds(tensor));
  EXPECT_EQ(values<uint8_t>(*tensor), (std::vector<uint8_t>{255, 1}));
}

TEST(TensorProto, refusesWhatDoesNotAddUp) {
  EXPECT_TRUE(fails(decodeTensorProto("not a tensor")));
  // dims: 3 with one float of raw data
  EXPECT_TRUE(fails(decodeTensorProto(StringRef("\x08\x03\x10\x01\x4a\x04\x00\x00\x80\x3f", 10))));
  // a string tensor
  EXPECT_TRUE(fails(decodeTensorProto(StringRef("\x08\x00\x10\x08", 4))));
}

TEST(Seed, isTheDocumentedHash) {
  // Computed apart, in Python, from the words of Tensors.h: seed 1, ordinal 0 and 1.
  auto floats = seededTensor("x", VMPK_DTYPE_F32, {4}, 1, 0);
  ASSERT_TRUE(succeeds(floats));
  EXPECT_EQ(values<float>(*floats), (std::vector<float>{-0x1.f80c6c0000000p-1f, 0x1.f505600000000p-3f,
                                                        -0x1.e182c80000000p-1f, -0x1.c1d1d40000000p-1f}));
  auto ints = seededTensor("x", VMPK_DTYPE_I64, {6}, 1, 1);
  ASSERT_TRUE(succeeds(ints));
  EXPECT_EQ(values<int64_t>(*ints), (std::vector<int64_t>{2, 7, 7, 6, 6, 3}));
  auto bools = seededTensor("x", VMPK_DTYPE_BOOL, {6}, 1, 1);
  ASSERT_TRUE(succeeds(bools));
  EXPECT_EQ(values<uint8_t>(*bools), (std::vector<uint8_t>{0, 1, 1, 0, 0, 1}));
}

TEST(Seed, refusesAbsurdSizes) {
  EXPECT_TRUE(fails(seededTensor("x", VMPK_DTYPE_F32, {int64_t(1) << 40, int64_t(1) << 40}, 1, 0)));
  EXPECT_TRUE(fails(seededTensor("x", VMPK_DTYPE_F32, {int64_t(1) << 45}, 1, 0)));
}

} // namespace
