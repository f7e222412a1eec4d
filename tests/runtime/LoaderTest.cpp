// Shared objects by path, reloading, bundles in memory.
#include "Demo.h"
#include "MakeBundle.h"

#include <filesystem>
#include <fstream>
#include <functional>
#include <gtest/gtest.h>
#include <unistd.h>

using namespace demo;
namespace fs = std::filesystem;

namespace {

std::string readFile(const fs::path &path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}
void writeFile(const fs::path &path, const std::string &bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

/// A folder of its own, gone at the end.
struct Scratch {
  fs::path path;
  Scratch() {
    std::string name = (fs::temp_directory_path() / "vmpk-loader-XXXXXX").string();
    path = mkdtemp(name.data());
  }
  Scratch(const Scratch &) = delete;
  ~Scratch() { fs::remove_all(path); }
};

struct Module {
  vmpk_module_t *module = nullptr;
  vmpk_error_t error{};
  vmpk_status_t status = VMPK_STATUS_OK;
  Module() = default;
  explicit Module(const fs::path &path) { status = vmpk_dynamic_module_open(path.c_str(), nullptr, &module, &error); }
  Module(const Module &) = delete;
  ~Module() { vmpk_module_release(module); }
};

/// What the module answers, checked against what it should with this shift.
void expectShift(vmpk_module_t *module, float shift) {
  ASSERT_NE(module, nullptr);
  vmpk_instance_t *instance = nullptr;
  vmpk_error_t error;
  ASSERT_EQ(vmpk_instance_create(module, nullptr, nullptr, &instance, &error), VMPK_STATUS_OK) << error.message;
  Affine affine(6);
  EXPECT_EQ(affine.run(instance, &error), VMPK_STATUS_OK) << error.message;
  EXPECT_EQ(affine.y, affine.expected(shift));
  vmpk_instance_destroy(instance);
}

TEST(SharedObject, opensByPath) {
  Module module{fs::path(DEMO_SO)};
  ASSERT_EQ(module.status, VMPK_STATUS_OK) << module.error.message;
  expectShift(module.module, 0);
}

TEST(SharedObject, twoVersionsLiveInOneProcess) {
  Module first{fs::path(DEMO_SO)}, second{fs::path(DEMO_SO_SHIFTED)}, again{fs::path(DEMO_SO)};
  expectShift(first.module, 0);
  expectShift(second.module, 100);
  expectShift(again.module, 0);
}

TEST(SharedObject, reloadSeesReplacedFile) {
  Scratch scratch;
  fs::path path = scratch.path / "model.so";
  fs::copy_file(DEMO_SO, path);
  Module old(path);
  ASSERT_EQ(old.status, VMPK_STATUS_OK) << old.error.message;
  fs::copy_file(DEMO_SO_SHIFTED, scratch.path / "new.so");
  fs::rename(scratch.path / "new.so", path);
  Module fresh;
  ASSERT_EQ(vmpk_dynamic_module_reload(old.module, &fresh.module, &fresh.error), VMPK_STATUS_OK) << fresh.error.message;
  expectShift(old.module, 0);
  expectShift(fresh.module, 100);
  Module opened(path);
  expectShift(opened.module, 100);
  // a module that came from a reload can be reloaded
  Module third;
  ASSERT_EQ(vmpk_dynamic_module_reload(fresh.module, &third.module, &third.error), VMPK_STATUS_OK);
  expectShift(third.module, 100);
}

TEST(SharedObject, failedReloadLeavesTheModule) {
  Scratch scratch;
  fs::path path = scratch.path / "model.so";
  fs::copy_file(DEMO_SO, path);
  Module old(path);
  fs::remove(path);
  Module fresh;
  EXPECT_EQ(vmpk_dynamic_module_reload(old.module, &fresh.module, &fresh.error), VMPK_STATUS_NOT_FOUND);
  writeFile(path, readFile(DEMO_SO).substr(0, 1000));
  EXPECT_EQ(vmpk_dynamic_module_reload(old.module, &fresh.module, &fresh.error), VMPK_STATUS_CORRUPT);
  EXPECT_EQ(fresh.module, nullptr);
  expectShift(old.module, 0);
}

TEST(SharedObject, saysWhyItCannotBeOpened) {
  Scratch scratch;
  Module missing(scratch.path / "none.so");
  EXPECT_EQ(missing.status, VMPK_STATUS_NOT_FOUND);
  EXPECT_NE(std::string(missing.error.message).find("none.so' cannot be opened: No such file"), std::string::npos);
  writeFile(scratch.path / "text.so", "this is no shared object");
  Module text(scratch.path / "text.so");
  EXPECT_EQ(text.status, VMPK_STATUS_CORRUPT);
  EXPECT_NE(std::string(text.error.message).find("text.so' cannot be loaded: it is no shared object"),
            std::string::npos);
  Module other{fs::path(OTHER_SO)};
  EXPECT_EQ(other.status, VMPK_STATUS_NOT_FOUND);
  EXPECT_NE(std::string(other.error.message).find("is no vmpack module: it exports no vmpk_query"), std::string::npos);
  Module folder(scratch.path);
  EXPECT_EQ(folder.status, VMPK_STATUS_IO);
}

TEST(SharedObject, refusesEveryTruncation) {
  Scratch scratch;
  fs::path path = scratch.path / "model.so";
  const std::string bytes = readFile(DEMO_SO);
  int opened = 0;
  for (size_t size = 0; size < bytes.size(); size += 509) {
    writeFile(path, bytes.substr(0, size));
    Module module(path);
    // only section headers, which nothing loads, lie behind the segments
    opened += module.status == VMPK_STATUS_OK;
    EXPECT_TRUE(module.status == VMPK_STATUS_OK || module.status == VMPK_STATUS_CORRUPT) << size;
  }
  EXPECT_LT(opened, static_cast<int>(bytes.size() / 509));
}

TEST(SharedObject, linkedInModulesDoNotReload) {
  Loaded loaded;
  Module fresh;
  EXPECT_EQ(vmpk_dynamic_module_reload(loaded.module, &fresh.module, &fresh.error), VMPK_STATUS_UNSUPPORTED);
}

size_t countOf(const char *folder) {
  size_t count = 0;
  for (const auto &entry : fs::directory_iterator(folder))
    count += !entry.path().empty();
  return count;
}
size_t linesOf(const char *path) {
  std::string bytes = readFile(path);
  return static_cast<size_t>(std::count(bytes.begin(), bytes.end(), '\n'));
}

TEST(SharedObject, thousandsOfSwapsLeaveNothing) {
  Module module{fs::path(DEMO_SO)};
  size_t files = 0, maps = 0;
  for (int i = 0; i < 3000; ++i) {
    vmpk_module_t *fresh = nullptr;
    ASSERT_EQ(vmpk_dynamic_module_reload(module.module, &fresh, &module.error), VMPK_STATUS_OK) << module.error.message;
    vmpk_module_release(module.module);
    module.module = fresh;
    if (i == 100) {
      files = countOf("/proc/self/fd");
      maps = linesOf("/proc/self/maps");
    }
  }
  EXPECT_EQ(countOf("/proc/self/fd"), files);
  EXPECT_LE(linesOf("/proc/self/maps"), maps + 8); // the allocator's own, perhaps
  expectShift(module.module, 0);
}

/* ---- Bundles ---------------------------------------------------------------------------------------------------- */

/// A bundle's bytes, 64-aligned (or off by `offset`), and what opening them gave.
struct Opened {
  std::unique_ptr<char[]> memory;
  Module module;
  explicit Opened(const std::string &bytes, size_t offset = 0) : memory(new char[bytes.size() + 128]) {
    auto start = reinterpret_cast<uintptr_t>(memory.get());
    char *place = memory.get() + (64 - start % 64) % 64 + offset;
    std::memcpy(place, bytes.data(), bytes.size());
    module.status = vmpk_dynamic_module_open_bundle(place, bytes.size(), nullptr, &module.module, &module.error);
  }
};

VariantOptions demoVariant() {
  VariantOptions variant;
  variant.raw = readFile(DEMO_SO);
  return variant;
}
BundleOptions demoBundle() {
  BundleOptions bundle;
  VariantOptions foreign;
  foreign.abi = "mips64";
  foreign.raw = "code for another machine";
  bundle.variants = {foreign, demoVariant()};
  return bundle;
}

TEST(Bundle, opens) {
  Opened opened(makeBundle(demoBundle()));
  ASSERT_EQ(opened.module.status, VMPK_STATUS_OK) << opened.module.error.message;
  opened.memory.reset(); // the code does not need the bundle
  expectShift(opened.module.module, 0);
  Module fresh;
  EXPECT_EQ(vmpk_dynamic_module_reload(opened.module.module, &fresh.module, &fresh.error), VMPK_STATUS_UNSUPPORTED);
}

TEST(Bundle, opensUncompressed) {
  BundleOptions options = demoBundle();
  options.variants[1].compression = schema::Compression::None;
  Opened opened(makeBundle(options));
  EXPECT_EQ(opened.module.status, VMPK_STATUS_OK) << opened.module.error.message;
  expectShift(opened.module.module, 0);
}

TEST(Bundle, takesTheLastVariantThatRuns) {
  BundleOptions options = demoBundle();
  VariantOptions better = demoVariant(), impossible = demoVariant();
  better.raw = readFile(DEMO_SO_SHIFTED);
  better.level = thisAbi() == std::string("x86_64") ? "x86-64-v2" : "armv8.0";
  impossible.raw = "must not be touched";
  impossible.level = "a level of the future";
  options.variants.push_back(better);
  options.variants.push_back(impossible);
  Opened opened(makeBundle(options));
  ASSERT_EQ(opened.module.status, VMPK_STATUS_OK) << opened.module.error.message;
  expectShift(opened.module.module, 100);
}

TEST(Bundle, hasWeights) {
  BundleOptions options = demoBundle();
  options.variants[1].raw = readFile(DEMO_SO_EXTERNAL);
  options.weights = "inside";
  Opened aligned(makeBundle(options)), unaligned(makeBundle(options), 1);
  ASSERT_EQ(aligned.module.status, VMPK_STATUS_OK) << aligned.module.error.message;
  ASSERT_EQ(unaligned.module.status, VMPK_STATUS_OK) << unaligned.module.error.message;
  expectShift(aligned.module.module, 0);
  expectShift(unaligned.module.module, 0);
}

TEST(Bundle, hasWeightsBeside) {
  BundleOptions options = demoBundle();
  options.variants[1].raw = readFile(DEMO_SO_EXTERNAL);
  options.weights = "beside";
  Opened opened(makeBundle(options));
  ASSERT_EQ(opened.module.status, VMPK_STATUS_OK) << opened.module.error.message;
  vmpk_module_info_t info;
  vmpk_module_info(opened.module.module, &info);
  EXPECT_EQ(info.weights_missing, 1u);
  Weights bytes = weights();
  ASSERT_EQ(vmpk_module_set_weights(opened.module.module, &bytes, sizeof bytes, nullptr), VMPK_STATUS_OK);
  expectShift(opened.module.module, 0);
}

struct Refusal {
  const char *message;
  vmpk_status_t status;
  std::function<void(BundleOptions &)> change;
};

TEST(Bundle, saysWhatIsWrong) {
  const std::string abi = thisAbi();
  const std::string none = "bundle: no variant for this machine (" + abi + "); it has: mips64";
  const std::string packed = "bundle: size of the " + abi + " code is ";
  const Refusal rows[] = {
      {none.c_str(), VMPK_STATUS_NOT_FOUND, [](BundleOptions &o) { o.variants.pop_back(); }},
      {"the bundle has version 2, this runtime reads version 1", VMPK_STATUS_VERSION_MISMATCH,
       [](BundleOptions &o) { o.version = 2; }},
      {"bundle: its name is 'other' when it should be 'abi_demo'", VMPK_STATUS_CORRUPT,
       [](BundleOptions &o) { o.name = "other"; }},
      {packed.c_str(), VMPK_STATUS_CORRUPT, [](BundleOptions &o) { o.variants[1].sizeError = 1; }},
      {packed.c_str(), VMPK_STATUS_CORRUPT, [](BundleOptions &o) { o.variants[1].raw = ""; }},
      {"bundle: compression 9 is not known to this runtime", VMPK_STATUS_UNSUPPORTED,
       [](BundleOptions &o) { o.variants[1].compression = static_cast<schema::Compression>(9); }},
      {"'the code in the bundle' cannot be loaded: ", VMPK_STATUS_CORRUPT,
       [](BundleOptions &o) { o.variants[1].raw = "no code at all"; }},
      {"bundle: it lists weights, but the code has them already", VMPK_STATUS_CORRUPT,
       [](BundleOptions &o) { o.weights = "inside"; }},
  };
  for (const Refusal &row : rows) {
    BundleOptions options = demoBundle();
    row.change(options);
    Opened opened(makeBundle(options));
    EXPECT_EQ(opened.module.status, row.status) << row.message;
    EXPECT_EQ(opened.module.module, nullptr);
    EXPECT_EQ(std::string(opened.module.error.message).substr(0, std::strlen(row.message)), row.message);
  }
}

/// OK, and then right; or a status that damaged bytes may have.
void expectRefusedOrRight(const std::string &bytes, const std::string &where) {
  Opened opened(bytes);
  if (opened.module.status == VMPK_STATUS_OK) {
    expectShift(opened.module.module, 0);
    return;
  }
  EXPECT_TRUE(opened.module.status == VMPK_STATUS_CORRUPT || opened.module.status == VMPK_STATUS_VERSION_MISMATCH ||
              opened.module.status == VMPK_STATUS_NOT_FOUND || opened.module.status == VMPK_STATUS_UNSUPPORTED)
      << where << opened.module.status << " " << opened.module.error.message;
  EXPECT_NE(opened.module.error.message[0], 0) << where;
  EXPECT_EQ(opened.module.module, nullptr) << where;
}

// Weights inside, so that all kinds of tables are there. Bytes of the code section are covered by its digest: a sample
// of them will do.
TEST(Bundle, everyFlippedByte) {
  BundleOptions options = demoBundle();
  options.variants[1].raw = readFile(DEMO_SO_EXTERNAL);
  options.weights = "inside";
  const std::string bytes = makeBundle(options);
  const std::string section = compress(options.variants[1].raw);
  const size_t code = bytes.find(section);
  ASSERT_NE(code, std::string::npos);
  for (size_t at = 0; at < bytes.size(); ++at) {
    const bool inCode = at >= code && at < code + section.size();
    if (inCode && at % 97 != 0)
      continue;
    for (int flip : {0x01, 0x10, 0x80, 0xff}) {
      std::string damaged = bytes;
      damaged[at] = static_cast<char>(damaged[at] ^ flip);
      if (inCode)
        EXPECT_EQ(Opened(damaged).module.status, VMPK_STATUS_CORRUPT) << at;
      else
        expectRefusedOrRight(damaged, "byte " + std::to_string(at) + " ^ " + std::to_string(flip) + ": ");
    }
  }
}

TEST(Bundle, everyTruncation) {
  const std::string bytes = makeBundle(demoBundle());
  const size_t end = bytes.find_last_not_of('\0'); // the last bytes are padding
  for (size_t size = 0; size <= end; size += size < 600 ? 1 : 61) {
    // a copy of exactly that size, so that ASan sees every step outside
    std::unique_ptr<char[]> exact(new char[size]);
    std::memcpy(exact.get(), bytes.data(), size);
    Module module;
    EXPECT_EQ(vmpk_dynamic_module_open_bundle(exact.get(), size, nullptr, &module.module, &module.error),
              VMPK_STATUS_CORRUPT)
        << size;
  }
}

} // namespace
