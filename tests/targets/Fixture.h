// A shared module made by hand from fixture.c: what the last miles are tested with, without the packager.
#ifndef VMPACK_TESTS_TARGETS_FIXTURE_H
#define VMPACK_TESTS_TARGETS_FIXTURE_H

#include "targets/SharedModule.h"
#include "vmpk/abi.h"

#include <string>
#include <vector>

namespace vmpack::tests {

/// y = exp(x · W + b), x: 4 x 3, y: 4 x 5. With `dynamic` there is a second function, whose rows are the dim "batch".
/// `extraWeights` bytes follow the used ones.
targets::SharedModule makeFixture(bool dynamic = false, size_t extraWeights = 0);

/// Inputs for `rows` rows, and what the model must make of them, computed in double from scratch.
std::vector<float> fixtureInput(size_t rows);
std::vector<float> fixtureOutput(size_t rows);

/// Runs function `function` through `query` with `host`, arena and buffers of its own. Fails the current test on
/// errors.
std::vector<float> runQuery(vmpk_query_fn query, size_t rows, uint32_t function = 0, const vmpk_host_t *host = nullptr,
                            const uint8_t *weights = nullptr);

/// Fails the current test unless `actual` is close to fixtureOutput(rows).
void expectFixtureOutput(const std::vector<float> &actual, size_t rows);

} // namespace vmpack::tests

#endif // VMPACK_TESTS_TARGETS_FIXTURE_H
