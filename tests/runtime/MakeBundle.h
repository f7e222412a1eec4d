// Bundles of the demo, as right or as wrong as a test wants them.
#ifndef VMPACK_TESTS_RUNTIME_MAKEBUNDLE_H
#define VMPACK_TESTS_RUNTIME_MAKEBUNDLE_H

#include "Demo.h"

#include "schemas/bundle_generated.h"

extern "C" {
#include "runtime/src/sha256.h"
}

#include <array>
#include <string>
#include <vector>
#include <zstd.h>

namespace demo {

namespace schema = vmpack::schema;

inline schema::Sha256 digestOf(const std::string &bytes) {
  std::array<uint8_t, 32> digest;
  vmpk_sha256(bytes.data(), bytes.size(), digest.data());
  return schema::Sha256(digest);
}
inline std::string compress(const std::string &bytes) {
  std::string result(ZSTD_compressBound(bytes.size()), '\0');
  result.resize(ZSTD_compress(result.data(), result.size(), bytes.data(), bytes.size(), 3));
  return result;
}
inline const char *thisAbi() {
#if defined(__x86_64__)
  return "x86_64";
#elif defined(__aarch64__)
  return "arm64-v8a";
#else
  return "unknown";
#endif
}

struct VariantOptions {
  std::string abi = thisAbi(), level, raw;
  schema::Compression compression = schema::Compression::Zstd;
  int64_t sizeError = 0;
};

struct BundleOptions {
  uint32_t version = 1;
  std::string name = "abi_demo", weights; // weights: "", "inside" or "beside"
  std::vector<VariantOptions> variants;
};

inline flatbuffers::Offset<schema::Variant> makeVariant(flatbuffers::FlatBufferBuilder &builder,
                                                        const VariantOptions &options) {
  std::string data = options.compression == schema::Compression::Zstd ? compress(options.raw) : options.raw;
  builder.ForceVectorAlignment(data.size(), 1, 16);
  auto bytes = builder.CreateVector(reinterpret_cast<const uint8_t *>(data.data()), data.size());
  auto abi = builder.CreateString(options.abi);
  auto level = builder.CreateString(options.level);
  schema::Sha256 digest = digestOf(data), rawDigest = digestOf(options.raw);
  schema::VariantBuilder variant(builder);
  variant.add_abi(abi);
  variant.add_level(level);
  variant.add_compression(options.compression);
  variant.add_raw_size(options.raw.size() + static_cast<uint64_t>(options.sizeError));
  variant.add_data(bytes);
  variant.add_sha256(&digest);
  variant.add_raw_sha256(&rawDigest);
  return variant.Finish();
}

inline flatbuffers::Offset<schema::Weights> makeWeights(flatbuffers::FlatBufferBuilder &builder, bool inside) {
  Weights values = weights();
  std::string bytes(reinterpret_cast<const char *>(&values), sizeof values);
  flatbuffers::Offset<flatbuffers::Vector<uint8_t>> data;
  flatbuffers::Offset<flatbuffers::String> name;
  if (inside) {
    builder.ForceVectorAlignment(bytes.size(), 1, 64);
    data = builder.CreateVector(reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size());
  } else {
    name = builder.CreateString("abi_demo.weights");
  }
  schema::Sha256 digest = digestOf(bytes);
  return schema::CreateWeights(builder, name, bytes.size(), &digest, data);
}

inline std::string makeBundle(const BundleOptions &options) {
  flatbuffers::FlatBufferBuilder builder;
  flatbuffers::Offset<schema::Weights> weights;
  if (!options.weights.empty())
    weights = makeWeights(builder, options.weights == "inside");
  std::vector<flatbuffers::Offset<schema::Variant>> variants;
  for (const VariantOptions &variant : options.variants)
    variants.push_back(makeVariant(builder, variant));
  auto list = builder.CreateVector(variants);
  auto name = builder.CreateString(options.name);
  std::array<uint8_t, 32> digest{0xde, 0x60};
  schema::Sha256 moduleDigest(digest);
  builder.Finish(schema::CreateBundle(builder, options.version, name, &moduleDigest, 0, list, weights),
                 schema::BundleIdentifier());
  return std::string(reinterpret_cast<const char *>(builder.GetBufferPointer()), builder.GetSize());
}

} // namespace demo

#endif // VMPACK_TESTS_RUNTIME_MAKEBUNDLE_H
