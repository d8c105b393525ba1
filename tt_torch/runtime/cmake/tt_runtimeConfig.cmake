if(EXISTS ${CMAKE_CURRENT_LIST_DIR}/../libtt_runtime.a AND NOT TARGET torch_libraries)
  include(CMakeFindDependencyMacro)
  find_dependency(OpenSSL)
  find_dependency(Torch) # an archive does not say which libraries it needs
  add_library(torch_libraries INTERFACE IMPORTED)
  target_link_libraries(torch_libraries INTERFACE torch)
endif()
include(${CMAKE_CURRENT_LIST_DIR}/tt_runtimeTargets.cmake)
