#include "targets/static/StaticBuild.h"
#include "targets/Header.h"
#include "targets/Variants.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Object/Archive.h"
#include "llvm/Object/ArchiveWriter.h"
#include "llvm/Object/MachOUniversalWriter.h"
#include "llvm/TargetParser/Triple.h"

using namespace llvm;
using namespace llvm::object;

namespace vmpack::targets {

Expected<ObjectCode> compileStatic(const SharedModule &module, CodegenRequest request, const BuildOptions &options) {
  request.weights = placementOf(options);
  request.querySymbol = "vmpk_" + module.name + "_query";
  request.runtimeless = options.runtimeless;
  return compile(module, request);
}

std::string headerFor(const SharedModule &module, const BuildOptions &options, uint64_t stackSize) {
  HeaderOptions header{options.weights == WeightsMode::External, stackSize};
  return options.runtimeless ? runtimelessHeader(module, header) : staticHeader(module, header);
}

/// One object as an archive, with no times, users or modes in it.
static Expected<std::unique_ptr<MemoryBuffer>> archive(const SharedModule &module, ArrayRef<char> object,
                                                       const Triple &triple) {
  std::string member = module.name + ".o";
  std::vector<NewArchiveMember> members;
  members.emplace_back(MemoryBufferRef(StringRef(object.data(), object.size()), member));
  auto kind = triple.isOSDarwin() ? object::Archive::K_DARWIN : object::Archive::K_GNU;
  return writeArchiveToBuffer(members, SymtabWritingMode::NormalSymtab, kind, /*Deterministic=*/true, /*Thin=*/false);
}

/// Several Mach-O archives in one fat file.
static Expected<std::vector<char>> universal(ArrayRef<std::unique_ptr<MemoryBuffer>> archives) {
  std::vector<std::unique_ptr<object::Archive>> opened;
  std::vector<Slice> slices;
  for (const std::unique_ptr<MemoryBuffer> &buffer : archives) {
    Expected<std::unique_ptr<object::Archive>> each = object::Archive::create(buffer->getMemBufferRef());
    if (!each)
      return each.takeError();
    Expected<Slice> slice = Slice::create(**each);
    if (!slice)
      return slice.takeError();
    slices.push_back(*slice);
    opened.push_back(std::move(*each));
  }
  llvm::sort(slices);
  SmallVector<char, 0> bytes;
  raw_svector_ostream stream(bytes);
  if (Error error = writeUniversalBinaryToStream(slices, stream))
    return error;
  return std::vector<char>(bytes.begin(), bytes.end());
}

Error StaticTarget::compileAll(const SharedModule &module, const BuildOptions &options,
                               std::vector<ObjectCode> &objects) const {
  std::vector<const Variant *> variants;
  for (const StaticSlice &slice : slices)
    for (const Variant &variant : slice.variants)
      variants.push_back(&variant);
  objects.resize(variants.size());
  return forEachVariant(variants.size(), [&](size_t index) -> Error {
    announce(options, *this, variants[index]->name);
    Expected<ObjectCode> object = compileStatic(module, CodegenRequest(*variants[index]), options);
    if (object)
      objects[index] = std::move(*object);
    return object.takeError();
  });
}

Error StaticTarget::writeSlice(const SharedModule &module, const StaticSlice &slice, ArrayRef<ObjectCode> objects,
                               OutputDirectory &out) const {
  std::vector<std::unique_ptr<MemoryBuffer>> archives;
  for (auto [variant, object] : zip(slice.variants, objects)) {
    Expected<std::unique_ptr<MemoryBuffer>> made = archive(module, object.bytes, Triple(variant.triple));
    if (!made)
      return made.takeError();
    archives.push_back(std::move(*made));
  }
  std::string file = (slice.folder + "/lib" + module.name + ".a").str();
  if (archives.size() == 1)
    return out.write(file, archives[0]->getBuffer());
  Expected<std::vector<char>> fat = universal(archives);
  if (!fat)
    return fat.takeError();
  return out.write(file, ArrayRef<char>(*fat));
}

Error StaticTarget::build(const SharedModule &module, const BuildOptions &options, OutputDirectory &out) const {
  std::vector<ObjectCode> objects;
  if (Error error = compileAll(module, options, objects))
    return inTarget(*this, std::move(error));
  uint64_t stackSize = 0;
  for (const ObjectCode &object : objects)
    stackSize = std::max(stackSize, object.stackSize);
  ArrayRef<ObjectCode> left = objects;
  for (const StaticSlice &slice : slices) {
    if (Error error = writeSlice(module, slice, left.take_front(slice.variants.size()), out))
      return inTarget(*this, std::move(error));
    left = left.drop_front(slice.variants.size());
  }
  if (Error error = out.write("include/" + module.name + ".h", StringRef(headerFor(module, options, stackSize))))
    return error;
  return writeExternalWeights(module, options, out);
}

} // namespace vmpack::targets
