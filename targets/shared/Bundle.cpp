#include "targets/shared/Bundle.h"

#include "schemas/bundle_generated.h"
#include "vmpk/abi.h"

#include "llvm/Support/SHA256.h"

#include <zstd.h>

using namespace llvm;
namespace schema = vmpack::schema;

namespace vmpack::targets {

/// Slow to pack, as fast as any to unpack: packing happens once.
static constexpr int compressionLevel = 19;
/// Offsets in a flatbuffer have 31 bits; the rest of a bundle is small beside its weights.
static constexpr uint64_t maxBundleWeights = (uint64_t(2) << 30) - (uint64_t(64) << 20);

static ArrayRef<uint8_t> unsignedBytes(ArrayRef<char> bytes) {
  return ArrayRef<uint8_t>(reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size());
}

static schema::Sha256 digestStruct(const std::array<uint8_t, 32> &digest) {
  return schema::Sha256(flatbuffers::span<const uint8_t, 32>(digest.data(), digest.size()));
}

static Expected<std::vector<char>> compress(ArrayRef<char> bytes) {
  std::vector<char> packed(ZSTD_compressBound(bytes.size()));
  size_t size = ZSTD_compress(packed.data(), packed.size(), bytes.data(), bytes.size(), compressionLevel);
  if (ZSTD_isError(size))
    return createStringError("zstd cannot compress: " + Twine(ZSTD_getErrorName(size)));
  packed.resize(size);
  return packed;
}

namespace {

/// Builds the flatbuffer from its leaves up.
class BundleWriter {
public:
  explicit BundleWriter(const SharedModule &module) : module(module) {}

  Error addVariant(const BundleVariant &variant) {
    Expected<std::vector<char>> packed = compress(variant.code);
    if (!packed)
      return packed.takeError();
    schema::Sha256 digest = digestStruct(SHA256::hash(unsignedBytes(*packed)));
    schema::Sha256 rawDigest = digestStruct(SHA256::hash(unsignedBytes(variant.code)));
    auto data = vector(unsignedBytes(*packed), 16);
    auto abi = builder.CreateString(variant.abi);
    auto level = variant.level.empty() ? 0 : builder.CreateString(variant.level);
    variants.push_back(schema::CreateVariant(builder, abi, level, schema::Compression::Zstd, variant.code.size(), data,
                                             &digest, &rawDigest));
    return Error::success();
  }

  std::vector<char> finish(WeightsMode mode) {
    auto weights = addWeights(mode);
    auto manifest = vector(module.table, 16);
    auto name = builder.CreateString(module.name);
    auto list = builder.CreateVector(variants);
    schema::Sha256 digest = digestStruct(module.digest);
    schema::BundleBuilder bundle(builder);
    bundle.add_name(name);
    bundle.add_module_digest(&digest);
    bundle.add_manifest(manifest);
    bundle.add_variants(list);
    if (!weights.IsNull())
      bundle.add_weights(weights);
    builder.Finish(bundle.Finish(), schema::BundleIdentifier());
    const char *bytes = reinterpret_cast<const char *>(builder.GetBufferPointer());
    return std::vector<char>(bytes, bytes + builder.GetSize());
  }

private:
  flatbuffers::Offset<flatbuffers::Vector<uint8_t>> vector(ArrayRef<uint8_t> bytes, size_t alignment) {
    builder.ForceVectorAlignment(bytes.size(), sizeof(uint8_t), alignment);
    return builder.CreateVector(bytes.data(), bytes.size());
  }

  flatbuffers::Offset<schema::Weights> addWeights(WeightsMode mode) {
    if (module.weights.empty())
      return 0;
    schema::Sha256 digest = digestStruct(module.weightsDigest);
    if (mode == WeightsMode::External) {
      auto name = builder.CreateString(module.name + ".weights");
      return schema::CreateWeights(builder, name, module.weights.size(), &digest);
    }
    auto data = vector(module.weights, VMPK_ALIGNMENT);
    return schema::CreateWeights(builder, 0, module.weights.size(), &digest, data);
  }

  const SharedModule &module;
  flatbuffers::FlatBufferBuilder builder;
  std::vector<flatbuffers::Offset<schema::Variant>> variants;
};

} // namespace

Expected<std::vector<char>> writeBundle(const SharedModule &module, ArrayRef<BundleVariant> variants,
                                        WeightsMode weights) {
  if (weights == WeightsMode::Embed && module.weights.size() > maxBundleWeights)
    return createStringError("the weights are " + Twine(module.weights.size()) + " bytes; a bundle holds at most " +
                             Twine(maxBundleWeights) + ": use --weights=external");
  BundleWriter writer(module);
  for (const BundleVariant &variant : variants)
    if (Error error = writer.addVariant(variant))
      return error;
  return writer.finish(weights);
}

bool isBundle(ArrayRef<char> bytes) {
  return bytes.size() > 8 && StringRef(bytes.data() + 4, 4) == schema::BundleIdentifier();
}

static Error checkDigest(ArrayRef<uint8_t> bytes, const schema::Sha256 &stated, const Twine &what) {
  std::array<uint8_t, 32> digest = SHA256::hash(bytes);
  if (std::equal(digest.begin(), digest.end(), stated.bytes()->begin()))
    return Error::success();
  return createStringError("the bundle is corrupt: the SHA-256 of " + what + " differs");
}

static Expected<BundleVariant> readVariant(const schema::Variant &stored) {
  BundleVariant variant;
  variant.abi = stored.abi()->str();
  variant.level = stored.level() ? stored.level()->str() : "";
  variant.packedSize = stored.data()->size();
  ArrayRef<uint8_t> data(stored.data()->data(), stored.data()->size());
  if (Error error = checkDigest(data, *stored.sha256(), "variant '" + variant.abi + "'"))
    return error;
  if (stored.compression() == schema::Compression::None) {
    variant.code.assign(data.begin(), data.end());
  } else {
    // What the frame says must be what the bundle says, so that a small file cannot ask for all memory.
    bool plausible = stored.compression() == schema::Compression::Zstd && stored.raw_size() < (uint64_t(1) << 32) &&
                     ZSTD_getFrameContentSize(data.data(), data.size()) == stored.raw_size();
    if (plausible) {
      variant.code.resize(stored.raw_size());
      size_t size = ZSTD_decompress(variant.code.data(), variant.code.size(), data.data(), data.size());
      plausible = size == variant.code.size();
    }
    if (!plausible)
      return createStringError("the bundle is corrupt: variant '" + variant.abi + "' cannot be unpacked");
  }
  if (Error error = checkDigest(unsignedBytes(variant.code), *stored.raw_sha256(), "variant '" + variant.abi + "'"))
    return error;
  return variant;
}

Expected<BundleContents> readBundle(ArrayRef<char> bytes) {
  flatbuffers::Verifier verifier(unsignedBytes(bytes).data(), bytes.size());
  if (!isBundle(bytes) || !verifier.VerifyBuffer<schema::Bundle>(schema::BundleIdentifier()))
    return createStringError("the bundle is corrupt: its structure is wrong");
  const schema::Bundle &bundle = *flatbuffers::GetRoot<schema::Bundle>(bytes.data());
  if (bundle.version() != 1)
    return createStringError("the bundle has version " + Twine(bundle.version()) + ", this vmpack reads version 1");
  BundleContents contents;
  contents.name = bundle.name()->str();
  for (const schema::Variant *stored : *bundle.variants()) {
    Expected<BundleVariant> variant = readVariant(*stored);
    if (!variant)
      return variant.takeError();
    contents.variants.push_back(std::move(*variant));
  }
  if (const schema::Weights *weights = bundle.weights(); weights && weights->data()) {
    contents.weightsSize = weights->data()->size();
    ArrayRef<uint8_t> data(weights->data()->data(), weights->data()->size());
    if (Error error = checkDigest(data, *weights->sha256(), "the weights"))
      return error;
  }
  return contents;
}

} // namespace vmpack::targets
