# What the MLX bodies have beyond one file an op. Only a library with Metal has the headers, and the use, of the part that
# runs on Apple GPUs.
if(MLX_BUILD_METAL)
  target_sources(pagoda_ops_mlx PRIVATE kv_copy_blocks/kv_copy_blocks_mlx_metal.cc kv_write/kv_write_mlx_metal.cc)
  target_include_directories(pagoda_ops_mlx SYSTEM PRIVATE ${MLX_INCLUDE_DIRS})  # Metal's own, which `mlx` lacks
else()
  target_sources(pagoda_ops_mlx PRIVATE kv_copy_blocks/kv_copy_blocks_mlx_no_metal.cc kv_write/kv_write_mlx_no_metal.cc)
endif()

# Bodies of Metal kernels, which the library compiles when they first run (backend/mlx/metal_kernel.h): strings here.
function(pagoda_metal_body name file)
  file(READ ${file} body)
  configure_file(metal_body.cc.in ${name}.cc @ONLY)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  target_sources(pagoda_ops_mlx PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/${name}.cc)
endfunction()
pagoda_metal_body(kApplyPenaltiesMetal apply_penalties/apply_penalties.metal)
pagoda_metal_body(kAttentionMetal attention/attention.metal)
pagoda_metal_body(kLinearMetal linear/linear.metal)

pagoda_test(ops_mlx SOURCES kv_write/kv_write_mlx_test.cc DEPS pagoda_ops_mlx)
if(NOT MLX_BUILD_METAL)
  pagoda_test(metal_kernels
    SOURCES ${PROJECT_SOURCE_DIR}/tests/metal/metal_kernels_test.cc ${PROJECT_SOURCE_DIR}/tests/support/metal_emulation.cc
    DEPS pagoda_op_cases)
endif()
