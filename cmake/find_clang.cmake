# pagoda_find_clang(): sets PAGODA_CLANG to a clang++ of version 14 or later, the system's default before others. A call that
# finds none leaves it false.
function(pagoda_is_new_clang result path)
  execute_process(COMMAND ${path} -dumpversion OUTPUT_VARIABLE version OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(NOT version VERSION_GREATER_EQUAL 14)
    set(${result} FALSE PARENT_SCOPE)
  endif()
endfunction()

macro(pagoda_find_clang)
  set(pagoda_clang_names clang++)
  foreach(version RANGE 30 14 -1)
    list(APPEND pagoda_clang_names clang++-${version})
  endforeach()
  find_program(PAGODA_CLANG NAMES ${pagoda_clang_names} VALIDATOR pagoda_is_new_clang)
endmacro()
