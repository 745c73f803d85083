# SPDX-License-Identifier: Apache-2.0
# towtank_embed(<variable> FUNCTION <name> HEADER <include> FILES <files>)
#
# Sets <variable> to a generated .cpp that defines towtank::<name>(), declared in <header>, as the
# texts of the files sorted by stem. It is written again whenever a file changes.
function(towtank_embed variable)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "FUNCTION;HEADER" "FILES")
  set(output "${CMAKE_CURRENT_BINARY_DIR}/${arg_FUNCTION}.cpp")
  set(list "${CMAKE_CURRENT_BINARY_DIR}/${arg_FUNCTION}.files")
  list(JOIN arg_FILES "\n" text)
  file(CONFIGURE OUTPUT "${list}" CONTENT "${text}\n" @ONLY)
  set(script "${PROJECT_SOURCE_DIR}/cmake/embed_files.cmake")
  add_custom_command(
    OUTPUT "${output}"
    COMMAND "${CMAKE_COMMAND}" "-DOUTPUT=${output}" "-DLIST=${list}"
            "-DFUNCTION=${arg_FUNCTION}" "-DHEADER=${arg_HEADER}" -P "${script}"
    DEPENDS ${arg_FILES} "${list}" "${script}"
    COMMENT "Embedding files as ${arg_FUNCTION}()"
    VERBATIM)
  set(${variable} "${output}" PARENT_SCOPE)
endfunction()
