//===- Driver.cpp - the main job as a script ------------------------------------------------------------===//
//
//   1 Options ─ 2 Frontend ─ 3 Lowering ─ 4 Translation ─ 5 Codegen ─ 6 Packaging ─ 7 Commit
//
// One station a step, in this order. Nothing the user sees changes before the last.
//
//===----------------------------------------------------------------------------------------------------===//
#include "packager/tool/Driver.h"

#include "targets/OutputFile.h"
#include "targets/Target.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/Path.h"

#include <chrono>

using namespace llvm;

namespace vmpack::tool {
namespace {

/// One model on its way to one target.
struct Job {
  const targets::Target *target;
  targets::OutputDirectory output;
};

struct Model {
  Compiler::Input input;
  std::vector<Job> jobs;
};

/// Whether `all` includes the target: `object` is for those who name a triple, and only code that is linked can do
/// without the runtime (targets/Target.h).
bool suits(const targets::Target &target, const Options &options) {
  if (target.name() == "object")
    return !options.triple.empty();
  return !options.runtimeless || target.name().ends_with("-static");
}

Expected<std::vector<const targets::Target *>> chooseTargets(const Options &options) {
  std::vector<const targets::Target *> chosen;
  for (const std::string &name : options.targets) {
    if (name == "all") {
      for (const targets::Target *target : targets::allTargets())
        if (!is_contained(chosen, target) && suits(*target, options))
          chosen.push_back(target);
      continue;
    }
    auto target = targets::findTarget(name);
    if (!target)
      return userError(toString(target.takeError()));
    if (options.runtimeless && (*target)->name() != "object" && !suits(**target, options))
      return userError("--runtimeless is for static targets and 'object', '" + name + "' is loaded by the runtime");
    if (!is_contained(chosen, *target))
      chosen.push_back(*target);
  }
  return chosen;
}

/// Names the models and refuses two that would write the same files.
Expected<std::vector<Model>> nameModels(const Options &options) {
  std::vector<Model> models;
  for (const std::string &path : options.models) {
    std::string name = moduleName(options.name.empty() ? path : options.name + ".onnx");
    for (const Model &other : models)
      // File systems of two of our hosts ignore case.
      if (StringRef(other.input.name).equals_insensitive(name))
        return userError("'" + other.input.path + "' and '" + path + "' would both write the files of '" + name +
                         "': pack them apart, with --name");
    models.push_back({{path, name, options.dims, options.winograd}, {}});
  }
  return models;
}

/// Opens every output before any work, so that an unwritable folder is told at once.
Error openOutputs(std::vector<Model> &models, ArrayRef<const targets::Target *> chosen, StringRef folder) {
  for (Model &model : models)
    for (const targets::Target *target : chosen) {
      SmallString<128> path(folder);
      sys::path::append(path, target->name());
      auto output = targets::OutputDirectory::create(path);
      if (!output)
        return userError(toString(output.takeError()));
      model.jobs.push_back({target, std::move(*output)});
    }
  return Error::success();
}

targets::BuildOptions buildOptions(const Options &options, const Log &log) {
  targets::BuildOptions build;
  build.weights = options.externalWeights ? targets::WeightsMode::External : targets::WeightsMode::Embed;
  build.runtimeless = options.runtimeless;
  build.triple = options.triple;
  build.cpu = options.cpu;
  build.progress = [log](StringRef step) { log("codegen: " + step); };
  return build;
}

Error checkSize(const Job &job, uint64_t limit) {
  uint64_t size = 0;
  for (const auto &entry : job.output.entries())
    size += entry.size;
  if (limit && size > limit)
    return userError(job.target->name() + " has " + Twine(size) + " bytes when --max-size allows " + Twine(limit));
  return Error::success();
}

void report(ArrayRef<Model> models, raw_ostream &out) {
  for (const Model &model : models)
    for (const Job &job : model.jobs)
      for (const auto &entry : job.output.entries())
        out << format_decimal(entry.size, 12) << "  " << job.output.path() << "/" << entry.path << "\n";
}

Error emitStation(const Options &options, const Log &log) {
  Compiler compiler(log, options.verbose);
  auto models = nameModels(options);
  if (!models)
    return models.takeError();
  auto text = compiler.emit(models->front().input, options.emit);
  if (!text)
    return text.takeError();
  return targets::writeFileAtomically(options.output, ArrayRef(text->data(), text->size()));
}

} // namespace

Log stationLog(const Options &options) {
  if (!options.verbose)
    return [](const Twine &) {};
  auto start = std::chrono::steady_clock::now();
  return [start](const Twine &line) {
    std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    errs() << format("vmpack: %7.3f s  ", seconds.count()) << line << "\n";
  };
}

Error pack(const Options &options, raw_ostream &out) {
  Log log = stationLog(options);
  if (options.emit != Emit::Artifacts)
    return emitStation(options, log);

  // 1 Options: what was asked for exists and can be written.
  log("options: " + join(options.targets, ",") + " into " + options.output);
  auto chosen = chooseTargets(options);
  if (!chosen)
    return chosen.takeError();
  auto models = nameModels(options);
  if (!models)
    return models.takeError();
  if (Error error = openOutputs(*models, *chosen, options.output))
    return error;

  Compiler compiler(log, options.verbose);
  for (Model &model : *models) {
    // 2 Frontend, 3 Lowering, 4 Translation: once a model, whatever the targets.
    auto shared = compiler.compile(model.input);
    if (!shared)
      return shared.takeError();
    // Fence: MLIR ends here, and the shared module changes no more.
    log("translation: shared module " + toHex(shared->digest, /*LowerCase=*/true));

    // 5 Codegen and 6 Packaging: the target's own work, into a temporary folder.
    for (Job &job : model.jobs) {
      log("codegen: " + job.target->name());
      if (Error error = job.target->build(*shared, buildOptions(options, log), job.output))
        return error;
      log("packaging: " + job.target->name() + ", " + Twine(job.output.entries().size()) + " files");
      if (Error error = checkSize(job, options.maxSize))
        return error;
    }
  }

  // 7 Commit. Fence: before this line no file of the user's has changed.
  log("commit: " + options.output);
  for (Model &model : *models)
    for (Job &job : model.jobs)
      if (Error error = job.output.commit())
        return error;
  report(*models, out);
  return Error::success();
}

void listTargets(raw_ostream &out) {
  for (const targets::Target *target : targets::allTargets())
    out << left_justify(target->name(), 16) << target->description() << "\n";
}

} // namespace vmpack::tool
