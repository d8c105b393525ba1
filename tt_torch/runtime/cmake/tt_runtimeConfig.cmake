include(${CMAKE_CURRENT_LIST_DIR}/tt_runtimeTargets.cmake)
