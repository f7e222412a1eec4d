//===- Options.cpp - the one table of options -----------------------------------------------------------===//
#include "packager/tool/Options.h"

#include "packager/tool/Errors.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"

#include <CLI/CLI.hpp>

#include <iostream>

using namespace llvm;

namespace vmpack::tool {
namespace {

/// The command line before its texts are given their meaning.
struct Raw {
  std::vector<std::string> models, targets, dims, inputs;
  std::string output, emit, weights = "embed", name, triple, cpu, outputDir = ".";
  uint64_t maxSize = 0, seed = 1, threads = 1, iterations = 50;
  bool verbose = false, runtimeless = false, json = false, profile = false, listTargets = false, noWinograd = false;
};

enum : unsigned { Pack = 1, Run = 2, Inspect = 4, Bench = 8, Compiles = Pack | Run | Inspect | Bench };

using Field = std::variant<std::string Raw::*, std::vector<std::string> Raw::*, uint64_t Raw::*, bool Raw::*>;

struct Row {
  unsigned commands;
  const char *flag;
  Field field;
  const char *help;
};

const Row rows[] = {
    {Pack, "MODEL", &Raw::models, "ONNX model, or MLIR as text or bytecode; several are packed in one call"},
    {Run | Bench, "MODEL", &Raw::models, "a model, or an artifact: a bundle, a .so or a web-wasm folder"},
    {Inspect, "MODEL", &Raw::models, "a model, or an artifact: a bundle, a .so or a .wasm file"},
    {Pack, "-t,--target", &Raw::targets, "what to make, separated by commas, or 'all' (see --list-targets)"},
    {Pack, "-o,--output", &Raw::output, "folder for the artifacts, each target in its own; with --emit a file, or -"},
    {Pack, "--weights", &Raw::weights, "embed: in each artifact; external: in a file beside it"},
    {Pack, "--runtimeless", &Raw::runtimeless, "one object and header with NAME_run, which need no runtime library"},
    {Pack, "--name", &Raw::name, "name of the module and its symbols [the file's name]"},
    {Compiles, "--dim", &Raw::dims, "NAME=SIZE or NAME=MINIMUM..MAXIMUM for a symbolic dim; may be repeated"},
    {Compiles, "--no-winograd", &Raw::noWinograd,
     "compute 3x3 convolutions directly: smaller weights, exacter, slower"},
    {Pack, "--triple", &Raw::triple, "LLVM triple, for target 'object'"},
    {Pack, "--cpu", &Raw::cpu, "LLVM CPU name, for target 'object' [the triple's baseline]"},
    {Pack, "--emit", &Raw::emit, "stop at a station: imported, lowered, llvm or bitcode, and write it to -o"},
    {Pack, "--max-size", &Raw::maxSize, "fail when the files of a target have more bytes than this"},
    {Pack, "--list-targets", &Raw::listTargets, "list what --target takes"},
    {Run | Bench, "-i,--input", &Raw::inputs, "NAME=FILE (.npy or ONNX .pb); inputs left out are filled from --seed"},
    {Run, "--output-dir", &Raw::outputDir, "folder for output_0.npy, output_1.npy, ... [.]"},
    {Run | Bench, "--seed", &Raw::seed, "seed of the inputs that are left out [1]"},
    {Run | Bench, "--threads", &Raw::threads, "threads that work on the model [1]"},
    {Bench, "--iterations", &Raw::iterations, "timed calls after the first [50]"},
    {Inspect | Bench, "--json", &Raw::json, "machine-readable report"},
    {Bench, "--profile", &Raw::profile, "time by dispatch"},
    {Compiles, "-v,--verbose", &Raw::verbose, "log every station"},
};

void addRows(CLI::App &app, unsigned command, Raw &raw) {
  for (const Row &row : rows) {
    if (!(row.commands & command))
      continue;
    auto add = [&](auto field) {
      auto &value = raw.*field;
      using Value = std::remove_reference_t<decltype(value)>;
      if constexpr (std::is_same_v<Value, bool>) {
        app.add_flag(row.flag, value, row.help);
      } else {
        CLI::Option *option = app.add_option(row.flag, value, row.help);
        if constexpr (std::is_same_v<Value, std::vector<std::string>>)
          if (row.flag[0] == '-')
            option->allow_extra_args(false); // one value a flag, or it would swallow the model
      }
    };
    std::visit(add, row.field);
  }
}

Expected<Emit> parseEmit(StringRef text) {
  static const std::pair<StringRef, Emit> stations[] = {{"", Emit::Artifacts},
                                                        {"imported", Emit::Imported},
                                                        {"lowered", Emit::Lowered},
                                                        {"llvm", Emit::Llvm},
                                                        {"bitcode", Emit::Bitcode}};
  for (auto &[name, emit] : stations)
    if (text == name)
      return emit;
  return userError("--emit=" + text + " is not a station; there are: imported, lowered, llvm, bitcode");
}

Error checkPack(const Raw &raw, Options &options) {
  if (options.models.empty())
    return userError("no model given; see vmpack --help");
  if (raw.weights != "embed" && raw.weights != "external")
    return userError("--weights=" + raw.weights + " is neither embed nor external");
  if (options.models.size() > 1 && (!raw.name.empty() || options.emit != Emit::Artifacts))
    return userError("--name and --emit take one model, " + Twine(options.models.size()) + " were given");
  if (raw.output.empty())
    return userError("no output given: -o FOLDER, or -o FILE with --emit");
  if (options.emit == Emit::Artifacts && options.targets.empty())
    return userError("no target given: --target=NAME,... or --target=all (see --list-targets)");
  if (options.emit != Emit::Artifacts && !options.targets.empty())
    return userError("--emit stops before the targets: give --emit or --target");
  return Error::success();
}

Expected<Options> check(const Raw &raw, Command command) {
  Options options;
  options.command = raw.listTargets ? Command::ListTargets : command;
  options.models = raw.models;
  options.verbose = raw.verbose;
  options.winograd = !raw.noWinograd;
  for (const std::string &list : raw.targets)
    for (StringRef name : split(list, ','))
      if (!name.trim().empty() && !is_contained(options.targets, name.trim()))
        options.targets.push_back(name.trim().str());
  options.output = raw.output;
  options.externalWeights = raw.weights == "external";
  options.runtimeless = raw.runtimeless;
  options.name = raw.name;
  options.triple = raw.triple;
  options.cpu = raw.cpu;
  options.maxSize = raw.maxSize;
  options.outputDir = raw.outputDir;
  options.seed = raw.seed;
  options.threads = raw.threads;
  options.iterations = raw.iterations;
  options.json = raw.json;
  options.profile = raw.profile;
  for (const std::string &text : raw.dims) {
    auto dim = parseDim(text);
    if (!dim)
      return dim.takeError();
    if (!options.dims.insert(*dim).second)
      return userError("--dim names '" + dim->first + "' twice");
  }
  for (StringRef text : raw.inputs) {
    // Tensor names may hold '=', files of tensors hardly do.
    auto [name, file] = text.rsplit('=');
    if (name.empty() || file.empty())
      return userError("--input " + text + " is not NAME=FILE");
    options.inputs.emplace_back(name, file);
  }
  auto emit = parseEmit(raw.emit);
  if (!emit)
    return emit.takeError();
  options.emit = *emit;
  if (options.command == Command::Pack)
    if (Error error = checkPack(raw, options))
      return error;
  if (options.command != Command::Pack && options.command != Command::ListTargets && options.models.size() != 1)
    return userError("one model or artifact is needed, " + Twine(options.models.size()) + " were given");
  if (raw.threads < 1 || raw.threads > 256)
    return userError("--threads is " + Twine(raw.threads) + " when it should be 1 to 256");
  if (raw.iterations < 1)
    return userError("--iterations is 0 when it should be at least 1");
  return options;
}

} // namespace

Expected<std::pair<std::string, std::pair<int64_t, int64_t>>> parseDim(StringRef text) {
  auto [name, value] = text.rsplit('=');
  auto [low, high] = value.split("..");
  int64_t minimum = 0, maximum = 0;
  if (name.empty() || low.getAsInteger(10, minimum) ||
      (value.contains("..") ? high.getAsInteger(10, maximum) : (maximum = minimum, false)))
    return userError("--dim " + text + " is neither NAME=SIZE nor NAME=MINIMUM..MAXIMUM");
  if (minimum < 0 || minimum > maximum)
    return userError("--dim " + text + " has no size that is at least 0");
  return std::make_pair(name.str(), std::make_pair(minimum, maximum));
}

std::variant<Options, Exit> parse(int argc, const char *const *argv) {
  Raw raw;
  CLI::App app("vmpack compiles a model once and packages it for every platform.\n", "vmpack");
  app.set_version_flag("--version", "vmpack " VMPACK_VERSION);
  app.footer("\nExit status: 0 done, 1 the input or the command line is at fault, 2 vmpack is.\n"
             "Example: vmpack model.onnx --target=ios-static,android-so,web-wasm -o out/");
  addRows(app, Pack, raw);
  const std::tuple<const char *, Command, unsigned, const char *> commands[] = {
      {"run", Command::Run, Run, "run a model or an artifact on tensors from files"},
      {"inspect", Command::Inspect, Inspect, "show signature, sizes and digests of a model or an artifact"},
      {"bench", Command::Bench, Bench, "measure the time and memory of a model or an artifact"}};
  for (auto &[name, command, mask, help] : commands)
    addRows(*app.add_subcommand(name, help), mask, raw);
  app.require_subcommand(0, 1);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    return Exit{app.exit(error) == 0 ? 0 : 1};
  }
  Command chosen = Command::Pack;
  for (auto &[name, command, mask, help] : commands)
    if (app.got_subcommand(name))
      chosen = command;
  auto options = check(raw, chosen);
  if (options)
    return std::move(*options);
  std::cerr << "vmpack: error: " << toString(options.takeError()) << "\n";
  return Exit{1};
}

} // namespace vmpack::tool
