// Opening modules that are linked in, what they say of themselves, versions, imports, weights.
#include "Demo.h"

extern "C" {
#include "runtime/src/sha256.h"
}

#include <gtest/gtest.h>

using namespace demo;

namespace {

TEST(Module, describesItself) {
  Loaded loaded;
  vmpk_module_info_t info;
  vmpk_module_info(loaded.module, &info);
  EXPECT_EQ(text(info.name), "abi_demo");
  EXPECT_EQ(info.abi_version, VMPK_ABI_VERSION);
  EXPECT_EQ(info.function_count, 3u);
  EXPECT_EQ(info.dispatch_count, 4u);
  EXPECT_EQ(info.import_count, 1u);
  EXPECT_EQ(info.digest[0], 0xde);
  EXPECT_EQ(info.weights_size, 64u);
  EXPECT_EQ(info.weights_missing, 0u);
  EXPECT_EQ(info.stack_size, 1024u);
}

TEST(Module, describesItsFunctions) {
  Loaded loaded;
  uint32_t ordinal = 9;
  ASSERT_EQ(vmpk_module_find_function(loaded.module, "halve", &ordinal), VMPK_STATUS_OK);
  EXPECT_EQ(ordinal, 1u);
  EXPECT_EQ(vmpk_module_find_function(loaded.module, "halv", &ordinal), VMPK_STATUS_NOT_FOUND);
  vmpk_function_info_t function;
  ASSERT_EQ(vmpk_module_function(loaded.module, 0, &function), VMPK_STATUS_OK);
  EXPECT_EQ(text(function.name), "affine");
  EXPECT_EQ(function.dim_count, 1u);
  EXPECT_EQ(function.input_count, 2u);
  EXPECT_EQ(function.output_count, 1u);
  EXPECT_EQ(function.arena_size, UINT64_MAX);
  vmpk_dim_info_t dim;
  ASSERT_EQ(vmpk_module_dim(loaded.module, 0, 0, &dim), VMPK_STATUS_OK);
  EXPECT_EQ(text(dim.name), "N");
  EXPECT_EQ(dim.minimum, 1);
  EXPECT_EQ(dim.maximum, 64);
  EXPECT_EQ(vmpk_module_function(loaded.module, 3, &function), VMPK_STATUS_NOT_FOUND);
  EXPECT_EQ(vmpk_module_dim(loaded.module, 0, 1, &dim), VMPK_STATUS_NOT_FOUND);
}

TEST(Module, describesItsTensorsAndDispatches) {
  Loaded loaded;
  vmpk_tensor_info_t tensor;
  ASSERT_EQ(vmpk_module_input(loaded.module, 0, 0, &tensor), VMPK_STATUS_OK);
  EXPECT_EQ(text(tensor.name), "x");
  EXPECT_EQ(tensor.dtype, uint32_t(VMPK_DTYPE_F32));
  ASSERT_EQ(tensor.rank, 2u);
  EXPECT_EQ(tensor.dims[0], -1);
  EXPECT_EQ(tensor.dims[1], 4);
  ASSERT_EQ(vmpk_module_output(loaded.module, 1, 0, &tensor), VMPK_STATUS_OK);
  EXPECT_EQ(text(tensor.name), "half");
  EXPECT_EQ(tensor.dims[0], VMPK_DIM_COMPUTED);
  EXPECT_EQ(vmpk_module_input(loaded.module, 0, 2, &tensor), VMPK_STATUS_NOT_FOUND);
  EXPECT_EQ(vmpk_module_output(loaded.module, 3, 0, &tensor), VMPK_STATUS_NOT_FOUND);
  vmpk_dispatch_info_t dispatch;
  ASSERT_EQ(vmpk_module_dispatch(loaded.module, 1, &dispatch), VMPK_STATUS_OK);
  EXPECT_EQ(text(dispatch.name), "relu_1");
  EXPECT_EQ(text(dispatch.location), "Relu+Mul");
  ASSERT_EQ(vmpk_module_dispatch(loaded.module, 3, &dispatch), VMPK_STATUS_OK);
  EXPECT_EQ(dispatch.flops, 7u);
  EXPECT_EQ(dispatch.bytes, 8u);
  EXPECT_EQ(vmpk_module_dispatch(loaded.module, 4, &dispatch), VMPK_STATUS_NOT_FOUND);
}

TEST(Module, namesBothVersionsWhenTheyDoNotMeet) {
  Loaded loaded(demo_future_query);
  EXPECT_EQ(loaded.module, nullptr);
  EXPECT_EQ(loaded.error.status, VMPK_STATUS_VERSION_MISMATCH);
  EXPECT_EQ(loaded.error.message, std::string("the module serves abi version 7, this runtime has version 1: package "
                                              "the model again or update the runtime, whichever is older"));
}

TEST(Module, refusesNull) {
  vmpk_error_t error;
  vmpk_module_t *module = nullptr;
  EXPECT_EQ(vmpk_module_create(nullptr, nullptr, &module, &error), VMPK_STATUS_INVALID_ARGUMENT);
  EXPECT_EQ(vmpk_module_create(demo_query, nullptr, nullptr, nullptr), VMPK_STATUS_INVALID_ARGUMENT);
  vmpk_instance_t *instance = nullptr;
  EXPECT_EQ(vmpk_instance_create(nullptr, nullptr, nullptr, &instance, &error), VMPK_STATUS_INVALID_ARGUMENT);
  vmpk_module_release(nullptr);
  vmpk_instance_destroy(nullptr);
}

TEST(Module, resolvesImports) {
  Loaded missing(demo_import_query);
  EXPECT_EQ(missing.instance, nullptr);
  EXPECT_EQ(missing.error.status, VMPK_STATUS_MISSING_IMPORT);
  EXPECT_EQ(missing.error.message, std::string("the host does not have 'demo.scale' version 3"));

  vmpk_host_t host{};
  host.size = sizeof host;
  host.abi_version = VMPK_ABI_VERSION;
  host.resolve = [](const vmpk_host_t *, const char *name, uint64_t size, uint32_t version) -> void * {
    static int thing;
    return std::string(name, size) == "demo.scale" && version == 3 ? &thing : nullptr;
  };
  Loaded found(demo_import_query, &host);
  EXPECT_NE(found.instance, nullptr) << found.error.message;
}

TEST(Module, refusesHostsOfAnotherLayout) {
  vmpk_host_t host{};
  host.size = 16;
  host.abi_version = VMPK_ABI_VERSION;
  Loaded loaded(demo_query, &host);
  EXPECT_EQ(loaded.instance, nullptr);
  EXPECT_EQ(loaded.error.status, VMPK_STATUS_INVALID_ARGUMENT);
}

TEST(Weights, areGivenFromOutside) {
  Loaded loaded(demo_external_query);
  EXPECT_EQ(loaded.instance, nullptr);
  EXPECT_EQ(loaded.error.message, std::string("module 'abi_demo' needs its external weights, 64 bytes: give them by "
                                              "vmpk_module_set_weights first"));
  Weights bytes = weights();
  ASSERT_EQ(vmpk_module_set_weights(loaded.module, &bytes, sizeof bytes, &loaded.error), VMPK_STATUS_OK)
      << loaded.error.message;
  ASSERT_EQ(vmpk_instance_create(loaded.module, nullptr, nullptr, &loaded.instance, &loaded.error), VMPK_STATUS_OK);
  Affine affine(5);
  EXPECT_EQ(affine.run(loaded.instance), VMPK_STATUS_OK);
  EXPECT_EQ(affine.y, affine.expected());
  EXPECT_EQ(vmpk_module_set_weights(loaded.module, &bytes, sizeof bytes, &loaded.error), VMPK_STATUS_INVALID_ARGUMENT);
}

TEST(Weights, areChecked) {
  Loaded loaded(demo_external_query);
  Weights bytes[2] = {weights(), weights()};
  EXPECT_EQ(vmpk_module_set_weights(loaded.module, bytes, 63, &loaded.error), VMPK_STATUS_CORRUPT);
  EXPECT_EQ(loaded.error.message, std::string("weights: size is 63 when it should be 64"));
  EXPECT_EQ(vmpk_module_set_weights(loaded.module, &bytes[0].values[1], 64, &loaded.error),
            VMPK_STATUS_INVALID_ARGUMENT);
  for (size_t bit = 0; bit < sizeof(Weights) * 8; ++bit) {
    Weights damaged = weights();
    reinterpret_cast<uint8_t *>(&damaged)[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
    EXPECT_EQ(vmpk_module_set_weights(loaded.module, &damaged, sizeof damaged, &loaded.error), VMPK_STATUS_CORRUPT);
  }
}

std::string sha256(const std::string &message) {
  uint8_t digest[32];
  vmpk_sha256(message.data(), message.size(), digest);
  std::string hex;
  for (uint8_t byte : digest) {
    hex += "0123456789abcdef"[byte >> 4];
    hex += "0123456789abcdef"[byte & 15];
  }
  return hex;
}

// FIPS 180-4's examples.
TEST(Sha256, knownAnswers) {
  EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256(std::string(1000000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Status, hasWords) {
  EXPECT_EQ(vmpk_status_text(VMPK_STATUS_OK), std::string("ok"));
  EXPECT_EQ(vmpk_status_text(VMPK_STATUS_INTERNAL), std::string("internal error"));
  EXPECT_EQ(vmpk_status_text(12), std::string("unknown status"));
  EXPECT_EQ(vmpk_dtype_size(VMPK_DTYPE_BF16), 2u);
  EXPECT_EQ(vmpk_dtype_size(VMPK_DTYPE_BOOL), 1u);
  EXPECT_EQ(vmpk_dtype_size(14), 0u);
  EXPECT_EQ(vmpk_dtype_text(VMPK_DTYPE_I64), std::string("i64"));
  EXPECT_EQ(vmpk_dtype_text(UINT32_MAX), std::string("invalid"));
}

} // namespace
