# What Tenon is built from: LLVM's ADT and Support, Protocol Buffers, ONNX's
# schema (from the `onnx` Python package) and the test libraries.

find_package(LLVM 19.1 REQUIRED CONFIG)
message(STATUS "LLVM ${LLVM_PACKAGE_VERSION}: ADT and Support")
add_library(TenonLLVM INTERFACE)
target_include_directories(TenonLLVM SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS})
separate_arguments(TENON_LLVM_DEFINITIONS NATIVE_COMMAND "${LLVM_DEFINITIONS}")
target_compile_definitions(TenonLLVM INTERFACE ${TENON_LLVM_DEFINITIONS})
# The shared library: quick to link, and what Debian's other tools load too.
target_link_libraries(TenonLLVM INTERFACE LLVM)
target_link_directories(TenonLLVM INTERFACE ${LLVM_LIBRARY_DIRS})

find_package(Protobuf REQUIRED)

# The Python that has `onnx` installed; scripts/setup.sh makes .venv.
find_program(TENON_PYTHON NAMES python3 HINTS "${CMAKE_SOURCE_DIR}/.venv/bin" NO_DEFAULT_PATH
             DOC "Python with the onnx package")
find_program(TENON_PYTHON NAMES python3)
execute_process(
  COMMAND "${TENON_PYTHON}" -c "import onnx, os; print(os.path.join(os.path.dirname(onnx.__file__), 'onnx-ml.proto'))"
  OUTPUT_VARIABLE TENON_ONNX_PROTO OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT EXISTS "${TENON_ONNX_PROTO}")
  message(FATAL_ERROR "no onnx-ml.proto: ${TENON_PYTHON} has no `onnx` package; run scripts/setup.sh "
                      "or pass -DTENON_PYTHON=PYTHON with onnx installed")
endif()
message(STATUS "ONNX schema: ${TENON_ONNX_PROTO}")

# Static, because they go into artifacts.
find_library(TENON_PCRE2 libpcre2-8.a REQUIRED)
find_library(TENON_UTF8PROC libutf8proc.a REQUIRED)

# NVRTC, which compiles CUDA units: the CUDA Toolkit's, else that of the Python
# package nvidia-cuda-nvrtc. `tenon` looks for it whenever it runs; here it is
# known which tests can be passed.
execute_process(COMMAND "${TENON_PYTHON}" -c "import sys; print(sys.prefix)"
                OUTPUT_VARIABLE TENON_PYTHON_ENVIRONMENT OUTPUT_STRIP_TRAILING_WHITESPACE)
file(GLOB TENON_NVRTC_PACKAGES "${TENON_PYTHON_ENVIRONMENT}/lib/python3*/site-packages/nvidia/*/lib")
if(NOT "$ENV{TENON_NVRTC}" STREQUAL "")
  set(TENON_NVRTC "$ENV{TENON_NVRTC}")
else()
  find_library(TENON_NVRTC NAMES nvrtc libnvrtc.so.13 libnvrtc.so.12 NO_CACHE
               HINTS "$ENV{CUDA_HOME}" "$ENV{CUDA_PATH}" /usr/local/cuda PATH_SUFFIXES lib64
               PATHS ${TENON_NVRTC_PACKAGES})
endif()
message(STATUS "NVRTC: ${TENON_NVRTC}")
