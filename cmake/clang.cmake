# The fuzzers' compiler: any clang that pagoda_find_clang() takes.
include(${CMAKE_CURRENT_LIST_DIR}/find_clang.cmake)
pagoda_find_clang()
if(NOT PAGODA_CLANG)
  message(FATAL_ERROR "expected clang 14 or later, found none: tools/setup.sh test installs it")
endif()
set(CMAKE_CXX_COMPILER ${PAGODA_CLANG})
string(REPLACE "clang++" "clang" c_compiler ${PAGODA_CLANG})
set(CMAKE_C_COMPILER ${c_compiler})
