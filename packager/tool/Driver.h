//===- Driver.h - what each command does ----------------------------------------------------------------===//
#ifndef VMPACK_TOOL_DRIVER_H
#define VMPACK_TOOL_DRIVER_H

#include "packager/tool/Compiler.h"
#include "packager/tool/Options.h"

#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"

namespace vmpack::tool {

/// The main job: the seven stations from a model to committed artifacts. The report goes to `out`.
llvm::Error pack(const Options &options, llvm::raw_ostream &out);

/// `run`: computes outputs and writes them as .npy files.
llvm::Error run(const Options &options, llvm::raw_ostream &out);

/// `inspect`: what a model or an artifact holds.
llvm::Error inspect(const Options &options, llvm::raw_ostream &out);

/// `bench`: time and memory of a model or an artifact.
llvm::Error bench(const Options &options, llvm::raw_ostream &out);

/// `--list-targets`.
void listTargets(llvm::raw_ostream &out);

/// A logger for --verbose: one line a station on standard error, with the seconds since the program began.
Log stationLog(const Options &options);

} // namespace vmpack::tool

#endif // VMPACK_TOOL_DRIVER_H
