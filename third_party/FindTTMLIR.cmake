# Finds the command-line tools of a tt-mlir build: find_package(TTMLIR) with this folder in CMAKE_MODULE_PATH.
#
# The tools are searched first in the folder that TTMLIR_HOME names, and then on the PATH. TTMLIR_HOME is a variable of
# CMake or of the environment. Its folder is an installation, or a checkout that is built in build/. compiler="tt-mlir"
# searches in the same order.
#
# Sets TTMLIR_FOUND and
#   TTMLIR_OPT, TTMLIR_TRANSLATE  the tools
#   TTMLIR_PIPELINE               the pipeline from TTIR to TTNN; older versions have it under its former name
# A tt-mlir that was built without TTMLIR_ENABLE_STABLEHLO=ON is not found, because it cannot read StableHLO.
include(FindPackageHandleStandardArgs)

set(_ttmlir_hints ${TTMLIR_HOME} $ENV{TTMLIR_HOME})
find_program(TTMLIR_OPT ttmlir-opt HINTS ${_ttmlir_hints} PATH_SUFFIXES build/bin bin)
find_program(TTMLIR_TRANSLATE ttmlir-translate HINTS ${_ttmlir_hints} PATH_SUFFIXES build/bin bin)

if(TTMLIR_OPT AND NOT TTMLIR_PIPELINE)
  execute_process(COMMAND ${TTMLIR_OPT} --help OUTPUT_VARIABLE _ttmlir_help)
  if(_ttmlir_help MATCHES "--stablehlo-to-ttir-pipeline")
    foreach(name ttir-to-ttnn-backend-pipeline ttir-to-ttnn-runtime-pipeline)
      if(_ttmlir_help MATCHES "--${name}")
        set(TTMLIR_PIPELINE ${name}) # the last one is used, because newer versions still have the former name, too
      endif()
    endforeach()
  else()
    set(_ttmlir_reason "${TTMLIR_OPT} was built without TTMLIR_ENABLE_STABLEHLO=ON")
  endif()
endif()

find_package_handle_standard_args(TTMLIR
  REQUIRED_VARS TTMLIR_OPT TTMLIR_TRANSLATE TTMLIR_PIPELINE
  REASON_FAILURE_MESSAGE "${_ttmlir_reason}")
