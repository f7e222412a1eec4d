#include "targets/jit/Jit.h"
#include "tests/targets/Fixture.h"

#include "llvm/Support/raw_ostream.h"
#include <cstring>
#include <gtest/gtest.h>
#include <ucontext.h>

using namespace vmpack;
using namespace vmpack::tests;

namespace {

std::unique_ptr<targets::JitModule> jit(const targets::SharedModule &module, llvm::StringRef level = "") {
  auto compiled = targets::JitModule::create(module, level);
  if (!compiled) {
    ADD_FAILURE() << llvm::toString(compiled.takeError());
    return nullptr;
  }
  return std::move(*compiled);
}

TEST(Jit, RunsAtEveryLevelOfThisCpu) {
  targets::SharedModule module = makeFixture(true);
  for (const std::string &level : targets::hostLevels()) {
    auto compiled = jit(module, level);
    ASSERT_TRUE(compiled);
    EXPECT_EQ(compiled->level(), level);
    expectFixtureOutput(runQuery(compiled->query(), 4), 4);
    expectFixtureOutput(runQuery(compiled->query(), 7, 1), 7);
  }
}

TEST(Jit, UsesTheWeightsWhereTheyAre) {
  targets::SharedModule module = makeFixture();
  auto compiled = jit(module);
  ASSERT_TRUE(compiled);
  vmpk_entry_t entry{};
  entry.size = sizeof(entry);
  ASSERT_EQ(compiled->query()(VMPK_ABI_VERSION, &entry), VMPK_STATUS_OK);
  EXPECT_EQ(entry.weights, module.weights.data());
}

TEST(Jit, TableSaysTheStackBound) {
  targets::SharedModule module = makeFixture();
  auto compiled = jit(module);
  ASSERT_TRUE(compiled);
  vmpk_entry_t entry{};
  entry.size = sizeof(entry);
  ASSERT_EQ(compiled->query()(VMPK_ABI_VERSION, &entry), VMPK_STATUS_OK);
  ASSERT_EQ(entry.table_size, module.table.size());
  vmpk_table_header_t header;
  std::memcpy(&header, entry.table, sizeof(header));
  EXPECT_GT(header.stack_size, 0u);
  EXPECT_LT(header.stack_size, 65536u);
  header.stack_size = 0; // all else is as the translation wrote it
  EXPECT_EQ(std::memcmp(&header, module.table.data(), sizeof(header)), 0);
}

/// The bound holds: runs on a stack that was painted before.
TEST(Jit, StaysWithinTheStackBound) {
  targets::SharedModule module = makeFixture();
  auto compiled = jit(module);
  ASSERT_TRUE(compiled);
  vmpk_entry_t entry{};
  entry.size = sizeof(entry);
  ASSERT_EQ(compiled->query()(VMPK_ABI_VERSION, &entry), VMPK_STATUS_OK);
  vmpk_table_header_t header;
  std::memcpy(&header, entry.table, sizeof(header));
  std::vector<float> input = fixtureInput(4), output(20);
  alignas(VMPK_ALIGNMENT) static uint8_t arena[4096];
  vmpk_buffer_t in{}, out{};
  in.data = input.data();
  out.data = output.data();
  vmpk_call_t call{};
  call.size = sizeof(call);
  call.arena = arena;
  call.weights = entry.weights;
  call.inputs = &in;
  call.outputs = &out;

  constexpr size_t size = 1 << 18;
  std::vector<uint8_t> stack(size, 0xa5);
  static ucontext_t here, there; // makecontext takes ints only
  static vmpk_status_t (*invoke)(const vmpk_call_t *);
  static const vmpk_call_t *theCall;
  invoke = entry.invoke;
  theCall = &call;
  ASSERT_EQ(getcontext(&there), 0);
  there.uc_stack.ss_sp = stack.data();
  there.uc_stack.ss_size = size;
  there.uc_link = &here;
  makecontext(&there, [] { invoke(theCall); }, 0);
  ASSERT_EQ(swapcontext(&here, &there), 0);
  expectFixtureOutput(output, 4);
  size_t untouched = 0;
  while (stack[untouched] == 0xa5)
    ++untouched;
  // what is not the module's: the context's start and the lambda's frame
  EXPECT_LE(size - untouched, header.stack_size + 512);
}

TEST(Jit, RefusesWhatTheCpuCannotRun) {
  auto compiled = targets::JitModule::create(makeFixture(), "pdp-11");
  ASSERT_FALSE(compiled);
  EXPECT_NE(llvm::toString(compiled.takeError()).find("cannot run level 'pdp-11'"), std::string::npos);
}

TEST(Jit, TwoModulesOfOneNameLiveSideBySide) {
  targets::SharedModule module = makeFixture();
  auto first = jit(module), second = jit(module);
  ASSERT_TRUE(first && second);
  EXPECT_NE(first->query(), second->query());
  expectFixtureOutput(runQuery(first->query(), 4), 4);
  first.reset();
  expectFixtureOutput(runQuery(second->query(), 4), 4);
}

} // namespace
