//===- Bench.cpp - `vmpack bench` -------------------------------------------------------------------------===//
//
// load is everything until the first call could be made (for a model: compiling it), first is the first call. min,
// median and p90 are of the calls after it. Peak memory is the process's, which for a model includes the compiler.
//
//===----------------------------------------------------------------------------------------------------===//
#include "packager/tool/Driver.h"
#include "packager/tool/Executable.h"
#include "packager/tool/Inputs.h"

#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"

#include <algorithm>
#include <chrono>
#include <sys/resource.h>

using namespace llvm;

namespace vmpack::tool {
namespace {

uint64_t peakRssBytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<uint64_t>(usage.ru_maxrss) * 1024; // Linux counts KiB
}

struct Report {
  double load = 0, first = 0;
  std::vector<double> times; ///< sorted
  std::vector<DispatchTime> dispatches;

  /// The time that `fraction` of the calls do not exceed.
  double quantile(double fraction) const {
    return times[std::min(times.size() - 1, static_cast<size_t>(fraction * static_cast<double>(times.size())))];
  }
  double median() const {
    size_t middle = times.size() / 2;
    return times.size() % 2 ? times[middle] : (times[middle - 1] + times[middle]) / 2;
  }
};

Error measure(Executable &executable, const Options &options, Report &report) {
  auto inputs = gatherInputs(executable.signature(), options);
  if (!inputs)
    return inputs.takeError();
  if (Error error = executable.bind(std::move(*inputs)))
    return error;
  auto timing = executable.time(options.iterations + 1);
  if (!timing)
    return timing.takeError();
  report.load += timing->load;
  report.first = timing->calls.front();
  report.times.assign(timing->calls.begin() + 1, timing->calls.end());
  std::sort(report.times.begin(), report.times.end());
  if (!options.profile)
    return Error::success();
  auto dispatches = executable.profile();
  if (!dispatches)
    return dispatches.takeError();
  report.dispatches = std::move(*dispatches);
  return Error::success();
}

void printJson(const Report &report, const Options &options, raw_ostream &out) {
  json::OStream json(out, 1);
  json.object([&] {
    json.attribute("model", options.models.front());
    json.attribute("threads", static_cast<int64_t>(options.threads));
    json.attribute("iterations", static_cast<int64_t>(options.iterations));
    json.attribute("load_ms", report.load);
    json.attribute("first_ms", report.first);
    json.attribute("min_ms", report.times.front());
    json.attribute("median_ms", report.median());
    json.attribute("p90_ms", report.quantile(0.9));
    json.attribute("peak_rss_bytes", static_cast<int64_t>(peakRssBytes()));
    if (!options.profile)
      return;
    json.attributeArray("dispatches", [&] {
      for (const DispatchTime &row : report.dispatches)
        json.object([&] {
          json.attribute("name", row.name);
          json.attribute("location", row.location);
          json.attribute("calls", static_cast<int64_t>(row.calls));
          json.attribute("ms", row.milliseconds);
        });
    });
  });
  out << "\n";
}

void printText(const Report &report, raw_ostream &out) {
  const std::pair<const char *, double> rows[] = {{"load", report.load},
                                                  {"first", report.first},
                                                  {"min", report.times.front()},
                                                  {"median", report.median()},
                                                  {"p90", report.quantile(0.9)}};
  for (auto &[name, time] : rows)
    out << format("%-8s %10.3f ms\n", name, time);
  out << format("%-8s %10.1f MB\n", "peak rss", static_cast<double>(peakRssBytes()) / 1e6);
  double total = 0;
  for (const DispatchTime &row : report.dispatches)
    total += row.milliseconds;
  for (const DispatchTime &row : report.dispatches)
    out << format("%10.3f ms %5.1f %%  ", row.milliseconds, total > 0 ? 100 * row.milliseconds / total : 0.0)
        << row.name << "  " << row.location << "\n";
}

} // namespace

Error bench(const Options &options, raw_ostream &out) {
  Report report;
  auto start = std::chrono::steady_clock::now();
  auto executable = open(options, stationLog(options));
  if (!executable)
    return executable.takeError();
  report.load = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  if (Error error = measure(**executable, options, report))
    return error;
  options.json ? printJson(report, options, out) : printText(report, out);
  return Error::success();
}

} // namespace vmpack::tool
