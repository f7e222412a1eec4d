// Imports every model of Debian's libonnx-testdata, and broken copies of some: no crash, always a module or words.
#include "tests/frontend/Models.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <random>
#include <sstream>

using namespace vmpack::tests;

static const char *const corpus = VMPACK_ONNX_TESTDATA;

static std::vector<std::string> models(const std::string &folder) {
  std::vector<std::string> paths;
  std::error_code code;
  for (llvm::sys::fs::directory_iterator entry(corpus + std::string("/") + folder, code), end; entry != end && !code;
       entry.increment(code)) {
    std::string path = entry->path() + "/model.onnx";
    if (llvm::sys::fs::exists(path))
      paths.push_back(path);
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

static std::string read(const std::string &path) {
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << stream.rdbuf();
  return bytes.str();
}

class Corpus : public testing::TestWithParam<std::pair<const char *, size_t>> {};

TEST_P(Corpus, ImportsOrSaysWhyNot) {
  auto [folder, least] = GetParam();
  std::vector<std::string> paths = models(folder);
  if (paths.empty())
    GTEST_SKIP() << "libonnx-testdata is not installed";
  size_t imported = 0;
  for (const std::string &path : paths) {
    Imported result = importFile(path, {}, /*print=*/false);
    imported += result.ok();
    EXPECT_EQ(result.error.find("a fault of vmpack"), std::string::npos) << result.error;
  }
  std::printf("%s: %zu of %zu models import\n", folder, imported, paths.size());
  EXPECT_GE(imported, least);
}

INSTANTIATE_TEST_SUITE_P(Testdata, Corpus,
                         testing::Values(std::pair<const char *, size_t>("node", 720),
                                         std::pair<const char *, size_t>("pytorch-converted", 82),
                                         std::pair<const char *, size_t>("pytorch-operator", 35),
                                         std::pair<const char *, size_t>("simple", 3)));

/// Every twentieth model, truncated and with bits flipped, from a fixed seed.
TEST(Mutants, BytesNeverCrash) {
  std::mt19937 random(20240601);
  std::vector<std::string> paths = models("node"), more = models("pytorch-converted");
  paths.insert(paths.end(), more.begin(), more.end());
  if (paths.empty())
    GTEST_SKIP() << "ONNX's test models are missing (Debian: libonnx-testdata)";
  for (size_t i = 0; i < paths.size(); i += 20) {
    std::string bytes = read(paths[i]);
    for (int mutant = 0; mutant < 12; ++mutant) {
      std::string broken = bytes;
      if (mutant % 3 == 0)
        broken.resize(random() % bytes.size());
      else
        for (unsigned flips = 1 + random() % 4; flips > 0; --flips)
          broken[random() % std::min<size_t>(broken.size(), 4096)] ^= static_cast<char>(1u << (random() % 8));
      importBytes(broken, {}, /*print=*/false);
    }
  }
}

/// Valid protobuf, broken meaning: attributes, dims, types and edges are changed.
static void mutate(onnx::ModelProto &model, std::mt19937 &random) {
  static const int64_t numbers[] = {0, 1, -1, 2, 3, 7, 64, -5, INT32_MAX, INT64_MAX, INT64_MIN, int64_t(1) << 33};
  auto number = [&] { return numbers[random() % std::size(numbers)]; };
  auto *graph = model.mutable_graph();
  auto pick = [&](auto *list) {
    return list->size() ? list->Mutable(static_cast<int>(random() % list->size())) : nullptr;
  };
  switch (random() % 8) {
  case 0:
    if (auto *input = pick(graph->mutable_input()); input && input->type().has_tensor_type())
      if (auto *shape = input->mutable_type()->mutable_tensor_type()->mutable_shape(); shape->dim_size())
        shape->mutable_dim(static_cast<int>(random() % shape->dim_size()))->set_dim_value(number());
    break;
  case 1:
    if (auto *input = pick(graph->mutable_input()); input && input->type().has_tensor_type()) {
      auto *shape = input->mutable_type()->mutable_tensor_type()->mutable_shape();
      if (random() % 2)
        shape->add_dim()->set_dim_value(number());
      else
        shape->clear_dim();
    }
    break;
  case 2:
    if (auto *input = pick(graph->mutable_input()); input && input->type().has_tensor_type())
      input->mutable_type()->mutable_tensor_type()->set_elem_type(static_cast<int>(random() % 18));
    break;
  case 3:
    if (auto *node = pick(graph->mutable_node()))
      if (auto *attribute = pick(node->mutable_attribute())) {
        if (attribute->ints_size())
          attribute->set_ints(static_cast<int>(random() % attribute->ints_size()), number());
        else
          attribute->set_i(number());
      }
    break;
  case 4:
    if (auto *node = pick(graph->mutable_node()))
      if (auto *attribute = pick(node->mutable_attribute())) {
        if (random() % 2)
          attribute->add_ints(number());
        else
          attribute->clear_ints();
      }
    break;
  case 5:
    if (auto *node = pick(graph->mutable_node()); node && node->input_size() && graph->input_size())
      node->set_input(static_cast<int>(random() % node->input_size()),
                      graph->input(static_cast<int>(random() % graph->input_size())).name());
    break;
  case 6:
    if (auto *node = pick(graph->mutable_node()); node && node->input_size())
      node->mutable_input()->RemoveLast();
    break;
  case 7:
    if (auto *tensor = pick(graph->mutable_initializer()))
      tensor->add_dims(number());
    else if (auto *node = pick(graph->mutable_node()))
      node->mutable_attribute()->Clear();
    break;
  }
}

TEST(Mutants, StructuresNeverCrash) {
  std::mt19937 random(20240602);
  std::vector<std::string> paths = models("node"), more = models("pytorch-converted");
  paths.insert(paths.end(), more.begin(), more.end());
  if (paths.empty())
    GTEST_SKIP() << "ONNX's test models are missing (Debian: libonnx-testdata)";
  for (size_t i = 0; i < paths.size(); i += 4) {
    onnx::ModelProto original;
    ASSERT_TRUE(original.ParseFromString(read(paths[i])));
    for (int mutant = 0; mutant < 4; ++mutant) {
      onnx::ModelProto model = original;
      for (unsigned changes = 1 + random() % 2; changes > 0; --changes)
        mutate(model, random);
      SCOPED_TRACE(paths[i]);
      Imported result = importBytes(model.SerializeAsString(), {}, /*print=*/false);
      EXPECT_EQ(result.error.find("a fault of vmpack"), std::string::npos) << paths[i] << ": " << result.error;
    }
  }
}
