# The kernels of the bodies for GPUs.
include(${PROJECT_SOURCE_DIR}/cmake/metal.cmake)
foreach(op ${ops})
  if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${op}/${op}.metal)
    list(APPEND metal_files ${op}/${op}.metal)
  endif()
endforeach()
pagoda_metal_sources(pagoda_ops_gpu ops/metal_sources.h ${metal_files})

if(PAGODA_HAVE_MLX)
  pagoda_test(ops_mlx SOURCES kv_write/kv_write_mlx_test.cc DEPS pagoda_op_cases)
endif()
