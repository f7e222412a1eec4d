#include "targets/KernelLibrary.h"

#include "runtime/kernels/embedded.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/IR/DebugInfo.h"
#include "llvm/Support/MemoryBufferRef.h"

using namespace llvm;

namespace vmpack::targets {

static const vmpk_kernel_level_t *findLevel(StringRef name) {
  for (size_t i = 0; i < vmpk_kernel_level_count; ++i)
    if (name == vmpk_kernel_levels[i].level)
      return &vmpk_kernel_levels[i];
  return nullptr;
}

static Expected<std::unique_ptr<Module>> load(const vmpk_kernel_level_t &level, const Module &like) {
  StringRef bytes(reinterpret_cast<const char *>(level.data), level.size);
  Expected<std::unique_ptr<Module>> module =
      getLazyBitcodeModule(MemoryBufferRef(bytes, level.level), like.getContext());
  if (!module)
    return module.takeError();
  if (Error error = (*module)->materializeMetadata())
    return error;
  (*module)->setTargetTriple(like.getTargetTriple());
  (*module)->setDataLayout(like.getDataLayout());
  // Flags and idents say how clang was called; they would clash with other modules' or end up in the artifact.
  SmallVector<NamedMDNode *> metadata(make_pointer_range((*module)->named_metadata()));
  for (NamedMDNode *node : metadata)
    (*module)->eraseNamedMetadata(node);
  for (Function &function : **module)
    function.addFnAttr(kernelAttribute);
  return module;
}

Expected<std::unique_ptr<Module>> loadKernels(StringRef level, const Module &like) {
  if (const vmpk_kernel_level_t *found = findLevel(level))
    return load(*found, like);
  SmallVector<StringRef> names;
  for (size_t i = 0; i < vmpk_kernel_level_count; ++i)
    names.push_back(vmpk_kernel_levels[i].level);
  return createStringError("this build of vmpack has no kernels for level '" + level + "' (it has " +
                           join(names, ", ") + ")");
}

Expected<std::unique_ptr<Module>> loadSupport(StringRef level, const Module &like) {
  const vmpk_kernel_level_t *found = findLevel((level + ".support").str());
  if (!found)
    return nullptr;
  return load(*found, like);
}

} // namespace vmpack::targets
