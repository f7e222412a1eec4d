#!/bin/sh
# The runtime built by Emscripten, in node: test.sh SOURCE_DIR BUILD_DIR
set -eu
source=$1 build=$2
# Debian's Emscripten finds its packages here, and reads files with a fetch of its own.
[ ! -d /usr/share/nodejs ] || export NODE_PATH=/usr/share/nodejs
export NODE_OPTIONS=--no-experimental-fetch

emcmake cmake -S "$source" -B "$build" -DVMPACK_BUILD_PACKAGER=OFF -DVMPACK_BUILD_TESTS=OFF >"$build.log" 2>&1 ||
  { cat "$build.log"; exit 1; }
cmake --build "$build" -j2 >>"$build.log" 2>&1 || { cat "$build.log"; exit 1; }

cd "$build"
tests=$source/tests/runtime
flags="-O1 -I$source/runtime/include"
emcc $flags -fPIC -sSIDE_MODULE=2 -sEXPORTED_FUNCTIONS=_vmpk_query "$tests/abi_demo.c" -o waited.wasm
cp waited.wasm meanwhile.wasm
emcc $flags -fPIC -DDEMO_QUERY=demo_query -c "$tests/abi_demo.c" -o abi_demo.o
emcc $flags -sMAIN_MODULE=2 -sNODERAWFS=1 -sALLOW_MEMORY_GROWTH=1 "$tests/emscripten/app.c" abi_demo.o \
  runtime/libvmpk_loaders.a runtime/libvmpk_runtime.a -o app.js
node app.js waited.wasm meanwhile.wasm | tee app.out
[ "$(tail -n 1 app.out)" = "all well" ]
