# cmake -DCOMMAND=... -DEXPECTED=FILE -P run_driver.cmake: what the command prints must be the file.
execute_process(COMMAND ${COMMAND} OUTPUT_VARIABLE printed ERROR_VARIABLE errors RESULT_VARIABLE result)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "${COMMAND} failed (${result}): ${errors}")
endif()
file(READ ${EXPECTED} expected)
if(NOT printed STREQUAL expected)
  message(FATAL_ERROR "printed:\n${printed}\nexpected:\n${expected}")
endif()
