# What the project builds with; docs/ARCHITECTURE.md says why each. All from the system's packages or PyPI.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(CLI11 REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(GTest REQUIRED)
find_package(hwy REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(rapidcheck QUIET)
if(CMAKE_CROSSCOMPILING)
  set(PAGODA_HAVE_MLX OFF)
  return()  # the ops and what they stand on ask for no more
endif()

find_package(CURL REQUIRED)
find_package(ZLIB REQUIRED)
find_package(Boost 1.81 CONFIG REQUIRED COMPONENTS url)
find_package(prometheus-cpp REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(ZMQ REQUIRED IMPORTED_TARGET libzmq)
add_library(pagoda_libedit INTERFACE)
if(APPLE)
  target_link_libraries(pagoda_libedit INTERFACE edit)  # the system's own
else()
  pkg_check_modules(EDIT REQUIRED IMPORTED_TARGET libedit)
  target_link_libraries(pagoda_libedit INTERFACE PkgConfig::EDIT)
endif()

# MLX comes as a wheel, which tools/setup.sh puts into .venv: PAGODA_HAVE_MLX says whether the target `mlx` is there. Its
# libraries are copied into lib/ beside the binary, laid out as in the wheel, whose libraries find one another by that.
# Executables look there relative to themselves, so that `pagoda` and `lib` run wherever they are put together.
set(CMAKE_BUILD_RPATH_USE_ORIGIN ON)
function(pagoda_copy_mlx)
  get_target_property(library mlx IMPORTED_LOCATION_RELEASE)
  cmake_path(GET library FILENAME name)
  cmake_path(GET library PARENT_PATH folder)
  file(GLOB dependencies "${folder}/../../mlx*.libs")  # where a wheel for Linux keeps its BLAS
  file(COPY ${folder} DESTINATION ${CMAKE_BINARY_DIR}/lib/mlx)
  file(COPY ${dependencies} DESTINATION ${CMAKE_BINARY_DIR}/lib)
  set_target_properties(mlx PROPERTIES IMPORTED_LOCATION_RELEASE ${CMAKE_BINARY_DIR}/lib/mlx/lib/${name})
endfunction()

set(PAGODA_MLX AUTO CACHE STRING "The MLX backend: AUTO (where the wheel is installed), ON or OFF")
set_property(CACHE PAGODA_MLX PROPERTY STRINGS AUTO ON OFF)
set(PAGODA_HAVE_MLX OFF)
if(NOT PAGODA_MLX STREQUAL "OFF")
  file(GLOB mlx_package_dirs "${PROJECT_SOURCE_DIR}/.venv/lib/python3*/site-packages/mlx/share/cmake/MLX")
  find_package(MLX 0.32 CONFIG QUIET HINTS ${mlx_package_dirs})
  if(MLX_FOUND)
    set(PAGODA_HAVE_MLX ON)
    pagoda_copy_mlx()
  elseif(PAGODA_MLX STREQUAL "ON")
    message(FATAL_ERROR "PAGODA_MLX is ON, but no MLX was found: run tools/setup.sh")
  endif()
endif()
message(STATUS "MLX backend: ${PAGODA_HAVE_MLX}")

# The project's own interpreter (tools/setup.sh makes it): it runs the tests that are written in Python, and pip for `pull`.
set(PAGODA_PYTHON ${PROJECT_SOURCE_DIR}/.venv/bin/python)
# The one beside it for client frameworks, which ask for other versions of the same packages.
set(PAGODA_CLIENTS_PYTHON ${PROJECT_SOURCE_DIR}/.venv-clients/bin/python)
