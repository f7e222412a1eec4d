//===- ElfLink.h - one freestanding .so ------------------------------------------------------------------===//
#ifndef VMPACK_TARGETS_SHARED_ELFLINK_H
#define VMPACK_TARGETS_SHARED_ELFLINK_H

#include "targets/Codegen.h"
#include "targets/OutputFile.h"
#include "targets/Target.h"

namespace vmpack::targets {

/// Compiles `module` for `variant` and links it as a shared object: `vmpk_query` is all it shows and it needs nothing,
/// no DT_NEEDED, no text relocations, no TLS; segments are 16 KiB apart and RELRO.
llvm::Expected<std::vector<char>> buildSharedObject(const SharedModule &module, const Variant &variant,
                                                    const BuildOptions &options, llvm::StringRef soname,
                                                    const OutputDirectory &out);

} // namespace vmpack::targets

#endif // VMPACK_TARGETS_SHARED_ELFLINK_H
