#include "targets/Variants.h"

#include "llvm/ADT/StringExtras.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>

using namespace llvm;

namespace vmpack::targets {

void announce(const BuildOptions &options, const Target &target, StringRef variant) {
  static std::mutex mutex;
  std::lock_guard<std::mutex> lock(mutex);
  if (options.progress)
    options.progress((target.name() + ": " + variant).str());
}

Error inTarget(const Target &target, Error error) {
  return createStringError(target.name() + ": " + toString(std::move(error)));
}

WeightsPlacement placementOf(const BuildOptions &options) {
  return options.weights == WeightsMode::Embed ? WeightsPlacement::Embedded : WeightsPlacement::Absent;
}

Error forEachVariant(size_t count, const std::function<Error(size_t)> &work) {
  std::atomic<size_t> next = 0;
  std::atomic<bool> failed = false;
  std::vector<std::string> problems(count);
  auto worker = [&] {
    for (size_t index; !failed && (index = next++) < count;)
      if (Error error = work(index)) {
        problems[index] = toString(std::move(error));
        failed = true;
      }
  };
  size_t threadCount = std::clamp<size_t>(std::thread::hardware_concurrency(), 1, std::max<size_t>(count, 1));
  std::vector<std::thread> threads;
  for (size_t i = 1; i < threadCount; ++i)
    threads.emplace_back(worker);
  worker();
  for (std::thread &thread : threads)
    thread.join();
  for (const std::string &problem : problems)
    if (!problem.empty())
      return createStringError(problem);
  return Error::success();
}

Error writeExternalWeights(const SharedModule &module, const BuildOptions &options, OutputDirectory &out) {
  if (options.weights == WeightsMode::Embed || module.weights.empty())
    return Error::success();
  const char *bytes = reinterpret_cast<const char *>(module.weights.data());
  return out.write(module.name + ".weights", ArrayRef<char>(bytes, module.weights.size()));
}

} // namespace vmpack::targets
