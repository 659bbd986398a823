# Language level, warnings and sanitizers, for every target.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")

find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CCACHE}")
endif()

# tenon_library(NAME SOURCES... ): a library of Tenon's own code.
function(tenon_library name)
  add_library(${name} STATIC ${ARGN})
  tenon_options(${name})
endfunction()

# Flags of Tenon's own code: no exceptions, no RTTI, warnings.
function(tenon_options target)
  target_include_directories(${target} PUBLIC "${PROJECT_SOURCE_DIR}" "${PROJECT_BINARY_DIR}")
  target_compile_definitions(${target} PRIVATE TENON_VERSION="${PROJECT_VERSION}")
  target_compile_options(${target} PRIVATE -fno-exceptions -fno-rtti -Wall -Wextra
                         -Wno-unused-parameter -Wno-missing-field-initializers
                         -Wno-restrict) # GCC 12 reports it wrongly for std::string + (bug 105651)
endfunction()

if(TENON_SANITIZE)
  add_compile_options(-fsanitize=${TENON_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${TENON_SANITIZE})
endif()
# Fuzz targets need to see which branches of the libraries an input takes.
if(TENON_BUILD_FUZZERS)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
