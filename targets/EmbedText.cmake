# cmake -DOUTPUT=file.cpp "-DTEXTS=accessor=path|accessor=path" -P EmbedText.cmake
# Writes a C++ file that defines the accessors of targets/Embedded.h over the files' bytes.
file(WRITE ${OUTPUT}.new "#include \"targets/Embedded.h\"\n\nnamespace vmpack::targets {\n")
string(REPLACE "|" ";" texts "${TEXTS}")
foreach(text IN LISTS texts)
  string(REGEX MATCH "^([^=]+)=(.*)$" _ "${text}")
  set(accessor ${CMAKE_MATCH_1})
  file(READ ${CMAKE_MATCH_2} hex HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  file(APPEND ${OUTPUT}.new
       "static const unsigned char ${accessor}Bytes[] = {${bytes}0};\n"
       "llvm::StringRef ${accessor}() { return {reinterpret_cast<const char *>(${accessor}Bytes), sizeof(${accessor}Bytes) - 1}; }\n")
endforeach()
file(APPEND ${OUTPUT}.new "} // namespace vmpack::targets\n")
file(RENAME ${OUTPUT}.new ${OUTPUT})
