# SPDX-License-Identifier: Apache-2.0
# libtorch is optional: without it towtank-runtime is left out, and everything else builds.
# TORCH_DIR=<folder of a libtorch distribution> chooses one; else Debian's libtorch-dev is found.
#
# Sets TOWTANK_HAS_TORCH, and the target towtank_torch: what a target that includes torch links.
option(TOWTANK_TORCH "Build towtank-runtime, where libtorch is installed" ON)
set(TORCH_DIR "" CACHE PATH "A libtorch distribution, such as site-packages/torch")

set(TOWTANK_HAS_TORCH OFF)
if(NOT TOWTANK_TORCH)
  message(STATUS "towtank: TOWTANK_TORCH is off; towtank-runtime is left out")
elseif(TOWTANK_SANITIZE)
  message(STATUS "towtank: a build with sanitizers leaves towtank-runtime out")
elseif(TORCH_DIR)
  # The one that was asked for, or none: another version would surprise.
  find_package(Torch CONFIG REQUIRED NO_DEFAULT_PATH
               PATHS "${TORCH_DIR}" "${TORCH_DIR}/share/cmake/Torch")
  set(TOWTANK_HAS_TORCH ON)
else()
  find_package(Torch CONFIG QUIET)
  # Debian keeps gloo, whose headers those of torch include, in a library of its own.
  find_library(TOWTANK_GLOO gloo)
  if(Torch_FOUND AND TOWTANK_GLOO)
    set(TOWTANK_HAS_TORCH ON)
  else()
    message(STATUS "towtank: no libtorch (libtorch-dev libgloo-dev, or -D TORCH_DIR=...); towtank-runtime is left out")
  endif()
endif()

if(TOWTANK_HAS_TORCH)
  add_library(towtank_torch INTERFACE)
  target_include_directories(towtank_torch SYSTEM INTERFACE ${TORCH_INCLUDE_DIRS})
  target_compile_definitions(towtank_torch INTERFACE USE_C10D_GLOO)
  separate_arguments(flags UNIX_COMMAND "${TORCH_CXX_FLAGS}")
  target_compile_options(towtank_torch INTERFACE ${flags})
  target_link_libraries(towtank_torch INTERFACE ${TORCH_LIBRARIES})
  if(NOT TORCH_DIR)
    target_link_libraries(towtank_torch INTERFACE "${TOWTANK_GLOO}")
  endif()
endif()

# towtank_torch_library(<name> SOURCES <files> DEPS <targets>): a static library that may include
# torch, for towtank-runtime. Its headers stay out of the check of headers: torch's take seconds.
function(towtank_torch_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;DEPS")
  add_library(${name} STATIC ${arg_SOURCES})
  towtank_target(${name})
  target_compile_definitions(${name} PRIVATE TOWTANK_VERSION="${PROJECT_VERSION}")
  target_include_directories(${name} PUBLIC "${PROJECT_SOURCE_DIR}")
  target_link_libraries(${name} PUBLIC ${arg_DEPS} towtank_torch)
endfunction()
