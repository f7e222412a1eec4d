// Packs shared objects of the demo, not compressed: make_bundle OUT ABI=FILE...
#include "MakeBundle.h"

#include <cstdio>
#include <fstream>

int main(int count, char **arguments) {
  demo::BundleOptions bundle;
  for (int i = 2; i < count; ++i) {
    const std::string argument = arguments[i];
    const size_t equals = argument.find('=');
    std::ifstream file(argument.substr(equals + 1), std::ios::binary);
    demo::VariantOptions variant;
    variant.compression = demo::schema::Compression::None;
    variant.abi = argument.substr(0, equals);
    variant.raw.assign(std::istreambuf_iterator<char>(file), {});
    if (equals == std::string::npos || variant.raw.empty()) {
      std::fprintf(stderr, "%s: no file with bytes in it\n", arguments[i]);
      return 1;
    }
    bundle.variants.push_back(variant);
  }
  if (count < 3 || !(std::ofstream(arguments[1], std::ios::binary) << demo::makeBundle(bundle))) {
    std::fprintf(stderr, "make_bundle OUT ABI=FILE...: nothing was written\n");
    return 1;
  }
}
