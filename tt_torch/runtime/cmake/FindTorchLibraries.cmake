# Finds the libraries and headers inside the torch package of the target interpreter, without importing it.
# In pip's isolated builds, torch cannot be imported, but it is in the interpreter's purelib.
# Defines the imported target torch_libraries and TORCH_DIRECTORY.
find_package(Python REQUIRED COMPONENTS Interpreter Development.Module)

if(NOT TORCH_DIRECTORY)
  execute_process(
    COMMAND ${Python_EXECUTABLE} -c "import sysconfig; print(sysconfig.get_paths()['purelib'])"
    OUTPUT_VARIABLE purelib OUTPUT_STRIP_TRAILING_WHITESPACE)
  set(TORCH_DIRECTORY ${purelib}/torch)
endif()
if(NOT EXISTS ${TORCH_DIRECTORY}/lib/libtorch_cpu.so)
  message(FATAL_ERROR
    "No torch package in ${TORCH_DIRECTORY}. Install torch==2.13.0 (CPU build) into the environment of "
    "${Python_EXECUTABLE}, or pass -DTORCH_DIRECTORY=<site-packages>/torch.")
endif()

add_library(torch_libraries INTERFACE IMPORTED)
target_include_directories(torch_libraries SYSTEM INTERFACE ${TORCH_DIRECTORY}/include)
target_link_libraries(torch_libraries INTERFACE
  ${TORCH_DIRECTORY}/lib/libtorch_cpu.so ${TORCH_DIRECTORY}/lib/libc10.so)
