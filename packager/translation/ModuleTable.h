//===- ModuleTable.h - the module table's writer --------------------------------------------------------===//
#ifndef VMPACK_TRANSLATION_MODULETABLE_H
#define VMPACK_TRANSLATION_MODULETABLE_H

#include "targets/SharedModule.h"

namespace vmpack::translation {

/// The module table of vmpk/abi.h for everything that `module` says of itself.
std::vector<uint8_t> makeModuleTable(const targets::SharedModule &module);

} // namespace vmpack::translation

#endif // VMPACK_TRANSLATION_MODULETABLE_H
