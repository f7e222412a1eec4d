//===- Inputs.h - the inputs of a run, from files and from the seed -------------------------------------===//
#ifndef VMPACK_TOOL_INPUTS_H
#define VMPACK_TOOL_INPUTS_H

#include "packager/tool/Options.h"
#include "packager/tool/Tensors.h"
#include "targets/SharedModule.h"

namespace vmpack::tool {

/// The inputs of `signature`, in its order. Those of options.inputs are read, the others filled from options.seed. A
/// symbolic dim of a filled input is what a read input has there, else what options.dims says (a range: its minimum),
/// else the dim's lower bound, or 1 when that is 0.
llvm::Expected<std::vector<Tensor>> gatherInputs(const targets::Function &signature, const Options &options);

} // namespace vmpack::tool

#endif // VMPACK_TOOL_INPUTS_H
