#!/bin/sh
# The runtime cross-built for arm64, under emulation: test.sh SOURCE_DIR BUILD_DIR MAKE_BUNDLE NATIVE_SO GCC QEMU
set -eu
source=$1 build=$2 make_bundle=$3 native=$4 gcc=$5 qemu=$6
tests=$source/tests/runtime
cmake -S "$source" -B "$build" -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 -DCMAKE_C_COMPILER="$gcc" \
  -DVMPACK_BUILD_PACKAGER=OFF -DVMPACK_BUILD_TESTS=OFF \
  -DVMPACK_ZSTD=OFF >"$build.log" 2>&1 || { cat "$build.log"; exit 1; }
cmake --build "$build" -j2 >>"$build.log" 2>&1 || { cat "$build.log"; exit 1; }

cd "$build"
flags="-std=c11 -O1 -Wall -Wextra -Wpedantic -Werror -I$source/runtime/include"
$gcc $flags -ffreestanding -fPIC -shared -nostdlib "$tests/abi_demo.c" -o demo.so
$gcc $flags "$tests/aarch64/run.c" runtime/libvmpk_loaders.a runtime/libvmpk_hosts.a runtime/libvmpk_runtime.a \
  -ldl -lpthread -o run
"$make_bundle" demo.vmpb "x86_64=$native" arm64-v8a=demo.so
"$qemu" -L /usr/aarch64-linux-gnu ./run demo.vmpb ./demo.so
