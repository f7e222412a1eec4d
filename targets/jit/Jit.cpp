#include "targets/jit/Jit.h"
#include "targets/Codegen.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/TargetParser/Host.h"

using namespace llvm;

namespace vmpack::targets {

namespace {
/// A level, the CPU name that stands for it, and what a CPU must have to run it.
struct HostLevel {
  StringLiteral level, cpu, features;
  std::vector<StringLiteral> required;
};
} // namespace

static const std::vector<HostLevel> &levelsOf(Triple::ArchType arch) {
  static const std::vector<HostLevel> x86 = {
      {"x86-64-v4", "x86-64-v4", "", {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl", "avx2", "fma"}},
      {"x86-64-v3", "x86-64-v3", "", {"avx2", "fma", "f16c", "bmi", "bmi2", "lzcnt", "movbe"}},
      {"x86-64-v2", "x86-64-v2", "", {"sse4.2", "popcnt", "ssse3"}}};
  static const std::vector<HostLevel> arm = {{"armv8.0", "", "+neon", {}}};
  static const std::vector<HostLevel> other;
  return arch == Triple::x86_64 ? x86 : arch == Triple::aarch64 ? arm : other;
}

static std::vector<const HostLevel *> usableLevels() {
  StringMap<bool> features = sys::getHostCPUFeatures();
  std::vector<const HostLevel *> usable;
  for (const HostLevel &level : levelsOf(Triple(sys::getProcessTriple()).getArch()))
    if (all_of(level.required, [&](StringRef feature) { return features.lookup(feature); }))
      usable.push_back(&level);
  return usable;
}

std::vector<std::string> hostLevels() {
  std::vector<std::string> names;
  for (const HostLevel *level : usableLevels())
    names.push_back(level->level.str());
  return names;
}

static Expected<CodegenRequest> requestFor(StringRef level) {
  std::vector<const HostLevel *> usable = usableLevels();
  auto found = find_if(usable, [&](const HostLevel *each) { return level.empty() || each->level == level; });
  if (found == usable.end())
    return createStringError("jit: this CPU cannot run level '" + level + "' (it can run " +
                             llvm::join(hostLevels(), ", ") + ")");
  CodegenRequest request;
  request.name = "jit";
  request.triple = sys::getProcessTriple();
  request.cpu = (*found)->cpu.str();
  request.features = (*found)->features.str();
  request.level = (*found)->level.str();
  request.weights = WeightsPlacement::InMemory;
  return request;
}

Expected<std::unique_ptr<JitModule>> JitModule::create(const SharedModule &module, StringRef level) {
  Expected<CodegenRequest> request = requestFor(level);
  if (!request)
    return request.takeError();
  Expected<ObjectCode> object = compile(module, *request);
  if (!object)
    return object.takeError();
  InitializeNativeTarget();
  InitializeNativeTargetAsmPrinter();
  // Nothing of the process is needed: no constructors, no unwinding, no symbols.
  Expected<std::unique_ptr<orc::LLJIT>> jit =
      orc::LLJITBuilder().setPlatformSetUp(orc::setUpInactivePlatform).setLinkProcessSymbolsByDefault(false).create();
  if (!jit)
    return jit.takeError();
  StringRef bytes(object->bytes.data(), object->bytes.size());
  if (Error error = (*jit)->addObjectFile(MemoryBuffer::getMemBufferCopy(bytes, module.name)))
    return error;
  Expected<orc::ExecutorAddr> query = (*jit)->lookup("vmpk_query");
  if (!query)
    return query.takeError();
  std::unique_ptr<JitModule> result(new JitModule);
  result->jit = std::move(*jit);
  result->queryFunction = query->toPtr<vmpk_query_fn>();
  result->levelName = request->level;
  return result;
}

JitModule::~JitModule() = default;

} // namespace vmpack::targets
