# SPDX-License-Identifier: Apache-2.0
# One function makes a folder's library. The targets of this project share their options here.

# Language, warnings and sanitizers of a target of this project.
function(towtank_target target)
  target_compile_features(${target} PRIVATE cxx_std_20)
  set_target_properties(${target} PROPERTIES CXX_STANDARD 20 CXX_EXTENSIONS OFF)
  target_compile_options(${target} PRIVATE
    -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wnon-virtual-dtor
    -Woverloaded-virtual -ffp-contract=off)
  if(TOWTANK_SANITIZE)
    target_compile_options(${target} PRIVATE
      -fsanitize=${TOWTANK_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer
      # GCC 12 takes what a sanitizer instruments for uninitialised, in its own headers too.
      -Wno-maybe-uninitialized)
    target_compile_definitions(${target} PRIVATE _GLIBCXX_ASSERTIONS)
    target_link_options(${target} PRIVATE -fsanitize=${TOWTANK_SANITIZE})
  endif()
  if(TOWTANK_FUZZ)
    target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)
  endif()
endfunction()

# towtank_library(<folder> [SOURCES <more files>] [EXCLUDE <regex>]
#                 [DEPS <seen by includers>] [PRIVATE_DEPS <used in .cpp files only>])
#
# Makes tt_<folder>, alias towtank::<folder>, from every .cpp and .h under the folder. Its headers
# are a file set, so that the target all_verify_interface_header_sets compiles each one alone.
function(towtank_library folder)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "EXCLUDE" "SOURCES;DEPS;PRIVATE_DEPS")
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.cpp")
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.h")
  if(arg_EXCLUDE)
    list(FILTER sources EXCLUDE REGEX "${arg_EXCLUDE}")
    list(FILTER headers EXCLUDE REGEX "${arg_EXCLUDE}")
  endif()
  list(APPEND sources ${arg_SOURCES})

  set(target tt_${folder})
  if(sources)
    add_library(${target} STATIC ${sources})
    towtank_target(${target})
    target_compile_definitions(${target} PRIVATE TOWTANK_VERSION="${PROJECT_VERSION}")
    target_link_libraries(${target} PUBLIC ${arg_DEPS} PRIVATE ${arg_PRIVATE_DEPS})
    set(scope PUBLIC)
  else()
    add_library(${target} INTERFACE)
    target_link_libraries(${target} INTERFACE ${arg_DEPS})
    set(scope INTERFACE)
  endif()
  add_library(towtank::${folder} ALIAS ${target})
  target_compile_features(${target} ${scope} cxx_std_20)
  target_include_directories(${target} ${scope} "${PROJECT_SOURCE_DIR}")
  if(headers)
    target_sources(${target} ${scope} FILE_SET HEADERS BASE_DIRS "${PROJECT_SOURCE_DIR}"
                   FILES ${headers})
    set_target_properties(${target} PROPERTIES VERIFY_INTERFACE_HEADER_SETS ON)
  endif()
endfunction()

# towtank_executable(<name> SOURCES <files> DEPS <targets>): <build>/bin/<name>, and installed.
function(towtank_executable name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;DEPS")
  add_executable(${name} ${arg_SOURCES})
  towtank_target(${name})
  target_link_libraries(${name} PRIVATE ${arg_DEPS})
  install(TARGETS ${name} RUNTIME)
endfunction()
