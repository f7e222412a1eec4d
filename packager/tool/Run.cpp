//===- Run.cpp - `vmpack run` -----------------------------------------------------------------------------===//
#include "packager/tool/Driver.h"
#include "packager/tool/Executable.h"
#include "packager/tool/Inputs.h"

#include "targets/OutputFile.h"

using namespace llvm;

namespace vmpack::tool {

Error run(const Options &options, raw_ostream &out) {
  Log log = stationLog(options);
  auto folder = targets::OutputDirectory::create(options.outputDir);
  if (!folder)
    return userError(toString(folder.takeError()));
  auto executable = open(options, log);
  if (!executable)
    return executable.takeError();

  const targets::Function &signature = (*executable)->signature();
  auto inputs = gatherInputs(signature, options);
  if (!inputs)
    return inputs.takeError();
  log("run: " + signature.name);
  if (Error error = (*executable)->bind(std::move(*inputs)))
    return error;
  if (Error error = (*executable)->invoke())
    return error;

  size_t ordinal = 0;
  for (const Tensor &tensor : (*executable)->outputs()) {
    std::string file = "output_" + std::to_string(ordinal++) + ".npy";
    if (Error error = folder->write(file, ArrayRef<char>(encodeNpy(tensor))))
      return error;
    out << file << "  " << tensor.name << ": " << describe(tensor.dtype, tensor.dims) << "\n";
  }
  return folder->commit();
}

} // namespace vmpack::tool
