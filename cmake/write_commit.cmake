# Writes HEADER, which defines PAGODA_COMMIT as the commit that is checked out in SOURCE, where the header says another one.
# An archive of the sources has the commit in its own copy of this file; a folder that git knows nothing of has none.
set(commit "$Format:%H$")
if(NOT commit MATCHES "^[0-9a-f]+$")
  execute_process(COMMAND git -C ${SOURCE} rev-parse --show-toplevel HEAD
    OUTPUT_VARIABLE found ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  # A copy of the sources within another project's checkout is no commit of that one.
  file(REAL_PATH "${SOURCE}" top)
  if(found MATCHES "^(.+)\n([0-9a-f]+)$" AND CMAKE_MATCH_1 STREQUAL top)
    set(commit "${CMAKE_MATCH_2}")
  else()
    set(commit "")
  endif()
endif()
string(SUBSTRING "${commit}" 0 12 commit)
file(CONFIGURE OUTPUT ${HEADER} CONTENT "#define PAGODA_COMMIT \"${commit}\"\n")
