// Files that users see: all of them or none.
#include "targets/OutputFile.h"
#include "tests/targets/Fixture.h"
#include "tests/targets/Scratch.h"

#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace vmpack;
using namespace vmpack::tests;
using targets::OutputDirectory;

namespace {

OutputDirectory create(const std::string &path) { return llvm::cantFail(OutputDirectory::create(path)); }

TEST(OutputDirectory, AppearsAsAWhole) {
  Scratch scratch;
  std::string out = scratch.path("deep/er/out");
  {
    OutputDirectory directory = create(out);
    llvm::cantFail(directory.write("a/b.txt", llvm::StringRef("text")));
    EXPECT_EQ(filesOf(out), std::vector<std::string>{});
    llvm::cantFail(directory.commit());
    ASSERT_EQ(directory.entries().size(), 1u);
    EXPECT_EQ(directory.entries()[0].size, 4u);
  }
  EXPECT_EQ(filesOf(scratch.path()), std::vector<std::string>{"deep/er/out/a/b.txt"});
}

TEST(OutputDirectory, LeavesNothingWithoutCommit) {
  Scratch scratch;
  {
    OutputDirectory directory = create(scratch.path("out"));
    llvm::cantFail(directory.write("file", llvm::StringRef("text")));
    OutputDirectory moved = std::move(directory);
    llvm::cantFail(moved.write("other", llvm::StringRef("text")));
  }
  EXPECT_EQ(run("ls -A " + scratch.path()), "");
}

TEST(OutputDirectory, KeepsOtherFilesAndReplacesItsOwn) {
  Scratch scratch;
  run("mkdir " + scratch.path("out"));
  writeFile(scratch.path("out/mine"), "old");
  writeFile(scratch.path("out/yours"), "kept");
  OutputDirectory directory = create(scratch.path("out") + "/");
  llvm::cantFail(directory.write("mine", llvm::StringRef("new")));
  llvm::cantFail(directory.commit());
  EXPECT_EQ(run("cat " + scratch.path("out/mine") + " " + scratch.path("out/yours")), "newkept");
  EXPECT_EQ(run("ls -A " + scratch.path()), "out\n");
}

TEST(OutputDirectory, UndoesACommitThatFailsHalfway) {
  Scratch scratch;
  run("mkdir -p " + scratch.path("out/b"));
  writeFile(scratch.path("out/a"), "old");
  {
    OutputDirectory directory = create(scratch.path("out"));
    llvm::cantFail(directory.write("a", llvm::StringRef("new")));
    llvm::cantFail(directory.write("c/file", llvm::StringRef("new")));
    writeFile(scratch.path("out/c"), "in the way"); // came after the start
    EXPECT_NE(llvm::toString(directory.commit()).find("cannot create '"), std::string::npos);
  }
  EXPECT_EQ(run("cat " + scratch.path("out/a")), "old");
  EXPECT_EQ(filesOf(scratch.path()), (std::vector<std::string>{"out/a", "out/c"}));
}

TEST(OutputDirectory, RefusesWhatCannotBe) {
  Scratch scratch;
  writeFile(scratch.path("file"), "");
  auto problem = [](const std::string &path) { return llvm::toString(OutputDirectory::create(path).takeError()); };
  EXPECT_NE(problem(scratch.path("file")).find("a file of that name exists"), std::string::npos);
  EXPECT_NE(problem(scratch.path("file/out")).find("is not a directory"), std::string::npos);
  EXPECT_EQ(problem(""), "the output directory has no name");
  OutputDirectory directory = create(scratch.path("out"));
  llvm::cantFail(directory.write("twice", llvm::StringRef("")));
  EXPECT_NE(llvm::toString(directory.write("twice", llvm::StringRef(""))).find("written twice"), std::string::npos);
}

TEST(OutputDirectory, AnUnwritablePlaceIsAnError) {
  if (geteuid() == 0 && setegid(65534) + seteuid(65534) != 0)
    GTEST_SKIP() << "root can write everywhere and cannot become somebody else";
  std::string message = llvm::toString(OutputDirectory::create("/usr/vmpack-out").takeError());
  EXPECT_TRUE(geteuid() != 65534 || (seteuid(0) == 0 && setegid(0) == 0));
  EXPECT_NE(message.find("cannot write to '/usr'"), std::string::npos) << message;
}

TEST(OutputFile, IsWrittenAtomically) {
  Scratch scratch;
  writeFile(scratch.path("file"), "old");
  llvm::cantFail(targets::writeFileAtomically(scratch.path("file"), llvm::ArrayRef<char>("new", 3)));
  EXPECT_EQ(run("cat " + scratch.path("file")), "new");
  EXPECT_NE(llvm::toString(targets::writeFileAtomically(scratch.path(), {})).find("it is a directory"),
            std::string::npos);
  EXPECT_NE(llvm::toString(targets::writeFileAtomically(scratch.path("no/file"), {})).find("No such file"),
            std::string::npos);
}

/// A full disk is an error in words, and nothing is left; the first write fails, or one later, or the linker's.
TEST(Disk, FullIsACleanError) {
  Scratch scratch;
  std::string disk = scratch.path("disk");
  run("mkdir " + disk);
  for (const char *target : {"ios-static", "android-so", "web-wasm", "object"})
    for (const char *size : {"size=16k", "size=160k"}) {
      SCOPED_TRACE(std::string(target) + " " + size);
      if (mount("tmpfs", disk.c_str(), "tmpfs", 0, size) != 0)
        GTEST_SKIP() << "this process may not mount a tmpfs";
      std::string message = buildError(target, makeFixture(false, 300000), {}, disk + "/out");
      EXPECT_NE(message.find("No space left on device"), std::string::npos) << message;
      EXPECT_EQ(run("ls -A " + disk), "");
      umount(disk.c_str());
    }
}

} // namespace
