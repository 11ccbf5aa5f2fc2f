# Compiler settings for everything of ours, and the two functions that every folder uses.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_OPTIMIZE_DEPENDENCIES ON)  # a library waits for no other library, only for what it needs to compile

# Headers are read and compiled once for eight files of a target: a build from nothing takes half the time. So the names in a
# target's unnamed namespaces are each other's neighbours; a target of files that want to be alone says so.
option(CMAKE_UNITY_BUILD "Compile the files of a target eight at a time" ON)
set(CMAKE_UNITY_BUILD_BATCH_SIZE 8)

# A cache of objects that every checkout shares: paths below this one count relative to it, debug information's too.
find_program(CCACHE_PROGRAM ccache)
set(PAGODA_COMPILER_LAUNCHER)
if(CCACHE_PROGRAM)
  set(PAGODA_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} ${CCACHE_PROGRAM})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${PAGODA_COMPILER_LAUNCHER})
  add_compile_options(-ffile-prefix-map=${PROJECT_SOURCE_DIR}=.)
endif()

# -ffp-contract=off: a product and a sum are fused only where the code says so, so that one arithmetic is one arithmetic
# whatever the compiler inlines. Designated initialisers leave fields out on purpose.
add_compile_options(-Wall -Wextra -Wno-unused-parameter -Wno-missing-field-initializers -ffp-contract=off)

set(PAGODA_SANITIZE "" CACHE STRING "Sanitizers, as -fsanitize takes them")
if(PAGODA_SANITIZE)
  add_compile_options(-fsanitize=${PAGODA_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${PAGODA_SANITIZE})
  # GCC takes twice as long to build checks of each pointer. A null one that is used stops the address sanitizer as well, and
  # the fuzzers, whose compiler builds them for little, have them all.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND PAGODA_SANITIZE MATCHES "address,undefined")
    add_compile_options(-fno-sanitize=null,alignment,object-size,vptr)
  endif()
else()
  # The linker leaves out functions that nothing calls, most of them of Rust libraries: a sixth of the program.
  add_link_options($<IF:$<PLATFORM_ID:Darwin>,LINKER:-dead_strip,LINKER:--gc-sections>)
endif()

# A build to work in: what an edit has the compiler do again is as little as can be.
option(PAGODA_EDIT "Compile each file alone, for this machine's instruction sets, and link by mold where it is installed" OFF)
if(PAGODA_EDIT)
  set(CMAKE_UNITY_BUILD OFF)
endif()
find_program(PAGODA_MOLD mold)
if(PAGODA_MOLD AND (PAGODA_EDIT OR PAGODA_SANITIZE))
  add_link_options(-fuse-ld=mold)
endif()

# Builds to work in and under sanitizers run where they were built. They leave AVX-512 out where that is not there: minutes of
# the compiler.
set(PAGODA_BUILDS_AVX512 ON)
if((PAGODA_SANITIZE OR PAGODA_EDIT) AND EXISTS /proc/cpuinfo)
  file(STRINGS /proc/cpuinfo avx512_flags LIMIT_COUNT 1 REGEX "^flags.* avx512_bf16")
  if(NOT avx512_flags)
    set(PAGODA_BUILDS_AVX512 OFF)
  endif()
endif()

# pagoda_library(ops SOURCES a.cc b.cc DEPS pagoda_tensor Threads::Threads): the static library pagoda_<name>.
function(pagoda_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_library(pagoda_${name} STATIC ${ARG_SOURCES})
  target_include_directories(pagoda_${name} PUBLIC ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(pagoda_${name} PUBLIC ${ARG_DEPS})
endfunction()

# What `make test` builds of a preset: all tests' binaries where there are sanitizers; in release those of tests that are
# worth another run without them.
add_custom_target(pagoda_tests)

# A room is a folder of src with the folder of the same name in tests. The target room_<name> builds what its tests run, and
# their label is room:<name>, and slow besides where `make check` leaves a test out. `file`: one of the test's own, as its
# CMakeLists.txt names it.
function(pagoda_put_in_room test file is_slow)
  cmake_path(ABSOLUTE_PATH file)
  cmake_path(RELATIVE_PATH file BASE_DIRECTORY ${PROJECT_SOURCE_DIR})
  string(REGEX MATCH "^[a-z]+/([a-z_]+)" room "${file}")
  set(room ${CMAKE_MATCH_1})
  if(NOT TARGET room_${room})
    add_custom_target(room_${room})
  endif()
  set_property(TEST ${test} APPEND PROPERTY LABELS room:${room})
  if(is_slow)
    set_property(TEST ${test} APPEND PROPERTY LABELS slow)
  endif()
  add_dependencies(room_${room} ${ARGN})
endfunction()

# Limits guard against hanging, not against slow machines: each is ten times and more what its test takes on two quiet cores.
# The longest takes 90 s there, and the longest of those that say LONG 450 s. These are started first, so that no core is left
# with one of them at the end.
function(pagoda_limit_test name is_long)
  if(is_long)
    set_tests_properties(${name} PROPERTIES TIMEOUT 5400 COST 100)
  else()
    set_tests_properties(${name} PROPERTIES TIMEOUT 1200)
  endif()
endfunction()

# Apart, so that one object of all tests knows where the checkout is: a cache of objects serves every checkout with the others.
add_library(pagoda_source_path STATIC ${PROJECT_SOURCE_DIR}/tests/support/source_path.cc)
target_include_directories(pagoda_source_path PRIVATE ${PROJECT_SOURCE_DIR})
target_compile_definitions(pagoda_source_path PRIVATE PAGODA_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
add_library(pagoda_test_main STATIC ${PROJECT_SOURCE_DIR}/tests/support/test_main.cc)
target_link_libraries(pagoda_test_main PRIVATE GTest::gtest)
function(pagoda_link_test target)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR})
  target_link_libraries(${target} PRIVATE ${ARGN} pagoda_test_main pagoda_source_path GTest::gmock GTest::gtest)
endfunction()

# pagoda_test(core SOURCES status_test.cc DEPS ... [IN_RELEASE] [RELEASE_ONLY] [RELEASE_CASES FILTER] [ALONE] [LONG] [SLOW]
# [SHARDS N]): one GoogleTest binary, pagoda_<name>_test. IN_RELEASE: its subject is what the optimiser makes of our code.
# RELEASE_ONLY: too slow under sanitizers for what they would find there. RELEASE_CASES: the same of cases named as
# --gtest_filter does. ALONE: it looks at time, so no other test runs beside it. SLOW: it takes over five seconds, so `make check` leaves it out.
# SHARDS 3: under sanitizers and in builds to work in, where it takes longest of all, its cases are shared out over so many
# entries, so that no core is left with them.
function(pagoda_test name)
  cmake_parse_arguments(ARG "IN_RELEASE;RELEASE_ONLY;ALONE;LONG;SLOW" "RELEASE_CASES;SHARDS" "SOURCES;DEPS" ${ARGN})
  if(ARG_RELEASE_ONLY AND PAGODA_SANITIZE)
    return()
  endif()
  add_executable(pagoda_${name}_test ${ARG_SOURCES})
  pagoda_link_test(pagoda_${name}_test ${ARG_DEPS})
  if(PAGODA_SANITIZE)
    target_compile_options(pagoda_${name}_test PRIVATE -O0)  # built in three fifths of the time; what is tested computes
  endif()
  # One ctest entry a binary: a process a case would reload models for each.
  set(filter)
  if(PAGODA_SANITIZE AND ARG_RELEASE_CASES)
    set(filter --gtest_filter=-${ARG_RELEASE_CASES})
  endif()
  set(shards 1)
  if((PAGODA_SANITIZE OR PAGODA_EDIT) AND ARG_SHARDS)
    set(shards ${ARG_SHARDS})
  endif()
  foreach(shard RANGE 1 ${shards})
    set(entry ${name})
    if(shards GREATER 1)
      string(APPEND entry _${shard}_of_${shards})
    endif()
    add_test(NAME ${entry} COMMAND pagoda_${name}_test ${filter})
    pagoda_limit_test(${entry} ${ARG_LONG})
    math(EXPR index "${shard} - 1")
    set_tests_properties(${entry} PROPERTIES RUN_SERIAL ${ARG_ALONE}
      ENVIRONMENT "GTEST_TOTAL_SHARDS=${shards};GTEST_SHARD_INDEX=${index}")
    if(NOT PAGODA_SANITIZE AND NOT ARG_IN_RELEASE AND NOT ARG_RELEASE_ONLY)
      set_tests_properties(${entry} PROPERTIES LABELS sanitized)
    endif()
    list(GET ARG_SOURCES 0 file)
    pagoda_put_in_room(${entry} ${file} ${ARG_SLOW} pagoda_${name}_test)
  endforeach()
  if(PAGODA_SANITIZE OR ARG_IN_RELEASE OR ARG_RELEASE_ONLY)
    add_dependencies(pagoda_tests pagoda_${name}_test)
  endif()
endfunction()

# pagoda_pytest(run tests/cli/test_run.py [ALONE] [LONG] [SLOW] [PYTHON .venv/bin/python]): a pytest file that drives the binary
# from outside, by PAGODA_BINARY. In release alone: time and memory are part of what these tests look at.
function(pagoda_pytest name file)
  if(PAGODA_SANITIZE)
    return()
  endif()
  cmake_parse_arguments(ARG "ALONE;LONG;SLOW" "PYTHON" "ENVIRONMENT" ${ARGN})
  if(NOT ARG_PYTHON)
    set(ARG_PYTHON ${PAGODA_PYTHON})
  endif()
  add_test(NAME ${name} COMMAND ${ARG_PYTHON} -m pytest -q -p no:cacheprovider -p no:schemathesis
           -p no:hypothesispytest --rootdir=${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/${file})  # plugins that take two seconds to start and are not used
  pagoda_limit_test(${name} ${ARG_LONG})
  set_tests_properties(${name} PROPERTIES RUN_SERIAL ${ARG_ALONE}
    ENVIRONMENT "PAGODA_BINARY=$<TARGET_FILE:pagoda>;PAGODA_SOURCE_DIR=${PROJECT_SOURCE_DIR};${ARG_ENVIRONMENT}")
  pagoda_put_in_room(${name} ${PROJECT_SOURCE_DIR}/${file} ${ARG_SLOW} pagoda pagoda_fake_server pagoda_faulty_server)
endfunction()

# Highway compiles a library's vector code once a target and picks one at run time: SSE4, AVX2 and AVX-512, or NEON. Left
# out is SVE, whose vectors have no fixed length, and what Highway has above AVX-512 from 1.1 on (HWY_AVX10_2, HWY_AVX3_SPR
# and HWY_AVX3_ZEN4, by their bits, since older headers have no such names). All that is compiled so agrees on the targets
# by these two.
set(PAGODA_HIGHWAY_DISABLED "HWY_SSSE3|HWY_SVE|HWY_SVE2|HWY_SVE_256|HWY_SVE2_128|0x58")
if(NOT PAGODA_BUILDS_AVX512)
  string(APPEND PAGODA_HIGHWAY_DISABLED "|HWY_AVX3")
endif()
set(PAGODA_HIGHWAY_DEFINITION "HWY_DISABLED_TARGETS=(${PAGODA_HIGHWAY_DISABLED})")
set(PAGODA_HIGHWAY_OPTIONS)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(PAGODA_HIGHWAY_OPTIONS -msse4.2 -mpclmul -maes)  # the least that an x86 machine needs
  if(PAGODA_EDIT AND PAGODA_BUILDS_AVX512)
    # AVX-512 alone of three targets. GCC warns of that target at -O1 without reason.
    set(PAGODA_HIGHWAY_OPTIONS -march=x86-64-v4 -mpclmul -maes -Wno-subobject-linkage -Wno-maybe-uninitialized)
  endif()
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # As Highway's pragma for NEON says, which GCC does not apply to constructors that it writes itself.
  set(PAGODA_HIGHWAY_OPTIONS -march=armv8-a+crypto)
endif()

function(pagoda_set_highway_targets target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD OFF)  # each file is included again for each target
  target_compile_definitions(${target} PRIVATE "${PAGODA_HIGHWAY_DEFINITION}")
  target_compile_options(${target} PRIVATE ${PAGODA_HIGHWAY_OPTIONS})
  # GCC takes minutes for a file of unrolled loops whose every access is checked in place.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND PAGODA_SANITIZE MATCHES "address")
    target_compile_options(${target} PRIVATE --param=asan-instrumentation-with-call-threshold=0)
  endif()
endfunction()
