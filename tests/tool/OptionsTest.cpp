//===- OptionsTest.cpp - argv to options ------------------------------------------------------------------===//
#include "packager/tool/Options.h"

#include "gtest/gtest.h"

using namespace llvm;
using namespace vmpack::tool;

namespace {

/// Whether a value came back; what was said instead is shown.
template <typename T> testing::AssertionResult succeeds(Expected<T> &value) {
  return value ? testing::AssertionSuccess() : testing::AssertionFailure() << toString(value.takeError());
}

template <typename T> bool fails(Expected<T> value) {
  bool failed = !value;
  consumeError(value.takeError());
  return failed;
}

std::variant<Options, Exit> parseAll(std::vector<const char *> arguments) {
  arguments.insert(arguments.begin(), "vmpack");
  return parse(static_cast<int>(arguments.size()), arguments.data());
}

/// The options of a good command line.
Options good(std::vector<const char *> arguments) {
  auto parsed = parseAll(std::move(arguments));
  EXPECT_TRUE(std::holds_alternative<Options>(parsed));
  return std::holds_alternative<Options>(parsed) ? std::get<Options>(parsed) : Options();
}

/// The exit status and standard error of a bad one.
std::pair<int, std::string> bad(std::vector<const char *> arguments) {
  testing::internal::CaptureStderr();
  auto parsed = parseAll(std::move(arguments));
  std::string text = testing::internal::GetCapturedStderr();
  return {std::holds_alternative<Exit>(parsed) ? std::get<Exit>(parsed).code : -1, text};
}

TEST(Options, mainJobNeedsNoSubcommand) {
  Options options = good({"m.onnx", "--target=ios-static,android-so", "--target", "web-wasm", "-o", "out"});
  EXPECT_EQ(options.command, Command::Pack);
  EXPECT_EQ(options.models, std::vector<std::string>{"m.onnx"});
  EXPECT_EQ(options.targets, (std::vector<std::string>{"ios-static", "android-so", "web-wasm"}));
  EXPECT_EQ(options.output, "out");
  EXPECT_EQ(options.emit, Emit::Artifacts);
}

TEST(Options, optionsMayStandBeforeTheModel) {
  Options options = good({"--target=web-wasm", "m.mlir", "-o", "out"});
  EXPECT_EQ(options.models, std::vector<std::string>{"m.mlir"});
}

TEST(Options, aTargetNamedTwiceIsBuiltOnce) {
  EXPECT_EQ(good({"m.onnx", "-t", "a,b,a", "-o", "x"}).targets, (std::vector<std::string>{"a", "b"}));
}

TEST(Options, subcommandsTakeTheirOwnOptions) {
  Options options = good({"run", "m.onnx", "--input", "x=1.npy", "--input", "y:0=2.pb", "--seed", "7", "--dim", "N=2"});
  EXPECT_EQ(options.command, Command::Run);
  EXPECT_EQ(options.inputs, (std::vector<std::pair<std::string, std::string>>{{"x", "1.npy"}, {"y:0", "2.pb"}}));
  EXPECT_EQ(options.seed, 7u);
  EXPECT_EQ(options.dims.at("N"), std::make_pair(int64_t(2), int64_t(2)));
  EXPECT_EQ(bad({"run", "m.onnx", "--target=web-wasm"}).first, 1);
}

TEST(Options, dims) {
  auto fixed = parseDim("N=4");
  ASSERT_TRUE(succeeds(fixed));
  EXPECT_EQ(fixed->second, std::make_pair(int64_t(4), int64_t(4)));
  auto range = parseDim("a=b=1..16");
  ASSERT_TRUE(succeeds(range));
  EXPECT_EQ(range->first, "a=b");
  EXPECT_EQ(range->second, std::make_pair(int64_t(1), int64_t(16)));
  for (StringRef wrong : {"N", "=3", "N=", "N=x", "N=1..", "N=..2", "N=3..2", "N=-1", "N=99999999999999999999"})
    EXPECT_TRUE(fails(parseDim(wrong))) << wrong.str();
}

TEST(Options, errorsNameWhatIsWrongAndExitWithOne) {
  const std::pair<std::vector<const char *>, const char *> cases[] = {
      {{}, "no model given"},
      {{"m.onnx"}, "no output given"},
      {{"m.onnx", "-o", "x"}, "no target given"},
      {{"m.onnx", "-o", "x", "--emit=asm"}, "--emit=asm is not a station"},
      {{"m.onnx", "-o", "x", "--emit=llvm", "--target=a"}, "give --emit or --target"},
      {{"m.onnx", "-o", "x", "-t", "a", "--weights=mmap"}, "--weights=mmap"},
      {{"a.onnx", "b.onnx", "-o", "x", "-t", "a", "--name", "n"}, "take one model, 2 were given"},
      {{"m.onnx", "-o", "x", "-t", "a", "--dim", "N=1", "--dim", "N=2"}, "names 'N' twice"},
      {{"run", "m.onnx", "--input", "x"}, "--input x is not NAME=FILE"},
      {{"bench", "m.onnx", "--threads", "0"}, "--threads is 0"},
      {{"m.onnx", "--frobnicate"}, "--frobnicate"},
  };
  for (auto &[arguments, message] : cases) {
    auto [code, text] = bad(arguments);
    EXPECT_EQ(code, 1) << message;
    EXPECT_NE(text.find(message), std::string::npos) << text;
  }
}

TEST(Options, helpAndVersionExitWithZero) {
  testing::internal::CaptureStdout();
  EXPECT_EQ(bad({"--help"}).first, 0);
  EXPECT_EQ(bad({"--version"}).first, 0);
  std::string text = testing::internal::GetCapturedStdout();
  EXPECT_NE(text.find("--target"), std::string::npos);
  EXPECT_NE(text.find("vmpack 0."), std::string::npos);
}

} // namespace
