#include "targets/jit/Jit.h"
#include "tests/targets/Fixture.h"

#include "llvm/Support/raw_ostream.h"
#include <cstring>
#include <gtest/gtest.h>

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
