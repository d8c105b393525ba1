# Finds the libraries and headers of torch. It does not import torch, because pip's isolated builds cannot import it.
# The Python package runs with the torch of its interpreter, so it is built with this torch. The C++ libraries alone use
# the torch that find_package(Torch) would find. If there is none, they use the torch of the interpreter.
# -DTORCH_DIRECTORY=<folder> names another torch.
#
# Defines the imported target torch_libraries, and
#   TORCH_DIRECTORY  the folder that has include/ and lib/
#   TORCH_LINK       a link to TORCH_DIRECTORY in the build folder, for headers. With it, ccache also finds objects of
#                    builds that use another copy of torch.
#   TORCH_RPATH      the folder in which the installed libraries look for the libraries of torch
if(SKBUILD)
  find_package(Python REQUIRED COMPONENTS Interpreter Development.Module)
else()
  find_package(Python 3.10 REQUIRED COMPONENTS Interpreter) # runs tools/embed_schemas.py
endif()

if(NOT TORCH_DIRECTORY)
  execute_process(
    COMMAND ${Python_EXECUTABLE} -c "import sysconfig; print(sysconfig.get_paths()['purelib'])"
    OUTPUT_VARIABLE purelib OUTPUT_STRIP_TRAILING_WHITESPACE)
  # Environments may share one torch by links. With the real path of this torch, their builds share objects, too.
  get_filename_component(TORCH_DIRECTORY ${purelib}/torch REALPATH)
  find_path(torch_config TorchConfig.cmake NO_CACHE
    HINTS ${Torch_DIR} ${Torch_ROOT} ENV Torch_ROOT ${CMAKE_PREFIX_PATH} ENV CMAKE_PREFIX_PATH
    PATH_SUFFIXES Torch share/cmake/Torch torch/share/cmake/Torch
    NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH) # conda restricts searches to its own folder
  if(torch_config)
    get_filename_component(named ${torch_config}/../../../lib/libtorch_cpu.so REALPATH)
    get_filename_component(own ${TORCH_DIRECTORY}/lib/libtorch_cpu.so REALPATH)
    if(NOT SKBUILD)
      get_filename_component(TORCH_DIRECTORY ${torch_config}/../../.. ABSOLUTE)
    elseif(EXISTS ${own} AND NOT named STREQUAL own)
      message(FATAL_ERROR
        "CMAKE_PREFIX_PATH names ${named}, but the Python package runs with ${own}, the torch of ${Python_EXECUTABLE}. "
        "Leave it out, or build the C++ libraries alone with cmake.")
    endif()
  endif()
endif()

file(STRINGS ${PROJECT_SOURCE_DIR}/pyproject.toml wanted REGEX "\"torch==")
string(REGEX MATCH "[0-9.]+" wanted "${wanted}")
if(NOT EXISTS ${TORCH_DIRECTORY}/lib/libtorch_cpu.so)
  message(FATAL_ERROR
    "There is no torch in ${TORCH_DIRECTORY}. Install torch==${wanted} into the environment of ${Python_EXECUTABLE}, and "
    "build again (docs/install.md). For the C++ libraries alone, -DCMAKE_PREFIX_PATH=<libtorch> names another torch.")
endif()
file(STRINGS ${TORCH_DIRECTORY}/include/torch/headeronly/version.h found REGEX "^ *\"[0-9.]+\"$")
string(REGEX MATCH "[0-9.]+" found "${found}")
if(NOT found STREQUAL wanted)
  message(FATAL_ERROR "tt_torch is written for torch ${wanted}, but ${TORCH_DIRECTORY} has torch ${found}.")
endif()

if(SKBUILD)
  set(TORCH_RPATH "$ORIGIN/../../torch/lib")
else()
  set(TORCH_RPATH ${TORCH_DIRECTORY}/lib)
endif()
set(TORCH_LINK ${CMAKE_BINARY_DIR}/torch)
file(CREATE_LINK ${TORCH_DIRECTORY} ${TORCH_LINK} SYMBOLIC)
add_library(torch_libraries INTERFACE IMPORTED)
target_include_directories(torch_libraries SYSTEM INTERFACE ${TORCH_LINK}/include)
target_link_libraries(torch_libraries INTERFACE
  ${TORCH_DIRECTORY}/lib/libtorch_cpu.so ${TORCH_DIRECTORY}/lib/libc10.so)
