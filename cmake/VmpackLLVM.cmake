# LLVM, MLIR and lld 22, and what every C++ library of vmpack compiles with.
find_package(MLIR 22.1 REQUIRED CONFIG HINTS /usr/lib/llvm-22/lib/cmake/mlir)
list(APPEND CMAKE_MODULE_PATH ${MLIR_CMAKE_DIR} ${LLVM_CMAKE_DIR})
include(TableGen)
include(AddLLVM)
include(AddMLIR)
find_program(VMPACK_CLANG NAMES clang-22 HINTS ${LLVM_TOOLS_BINARY_DIR} REQUIRED)

# LLVM and MLIR headers as system headers: their warnings are not ours. SHARED lets all of vmpack see one copy.
add_library(vmpack_llvm INTERFACE)
target_include_directories(vmpack_llvm SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
target_compile_definitions(vmpack_llvm INTERFACE ${LLVM_DEFINITIONS_LIST})
target_link_libraries(vmpack_llvm INTERFACE LLVM)

add_library(vmpack_mlir INTERFACE)
target_link_libraries(vmpack_mlir INTERFACE vmpack_llvm MLIR)

# vmpack_add_library(NAME SOURCES... [LIBS...]): one static library a folder; includes are written from the root.
function(vmpack_add_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
  # -Wrestrict: GCC 12 sees overlaps that cannot be in std::string's own code.
  target_compile_options(${name} PRIVATE -Wall -Wextra -Wno-unused-parameter -Wno-comment
    $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)
  target_link_libraries(${name} PUBLIC ${ARG_LIBS})
endfunction()
