# find_package(vmpk) for those who install: relocatable, the component "vmpk" of cmake --install.
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/vmpk)
set(VMPK_NEEDS_THREADS FALSE)
if(TARGET vmpk_hosts)
  set(VMPK_NEEDS_THREADS TRUE)
endif()
configure_package_config_file(vmpkConfig.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/vmpkConfig.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/vmpkConfigVersion.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/vmpkConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/vmpkConfigVersion.cmake
  DESTINATION ${package_dir} COMPONENT vmpk)
install(EXPORT vmpk NAMESPACE vmpk:: FILE vmpkTargets.cmake DESTINATION ${package_dir} COMPONENT vmpk)
install(DIRECTORY include/vmpk DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT vmpk)
