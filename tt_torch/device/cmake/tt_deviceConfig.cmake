include(CMakeFindDependencyMacro)
find_dependency(Torch)
find_dependency(tt_runtime PATHS ${CMAKE_CURRENT_LIST_DIR}/../../runtime/cmake NO_DEFAULT_PATH)
include(${CMAKE_CURRENT_LIST_DIR}/tt_deviceTargets.cmake)
