# SPDX-License-Identifier: Apache-2.0
# What holds for every target: where things go, which compiler launcher, which defaults.

set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
set_property(GLOBAL PROPERTY USE_FOLDERS ON)

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Kind of build" FORCE)
endif()

if(NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(TOWTANK_CCACHE ccache)
  if(TOWTANK_CCACHE)
    set(CMAKE_CXX_COMPILER_LAUNCHER "${TOWTANK_CCACHE}")
  endif()
endif()
