# What the MLX bodies have beyond one file an op. Only a library with Metal has the headers, and the use, of the part that
# runs on Apple GPUs.
if(MLX_BUILD_METAL)
  target_sources(pagoda_ops_mlx PRIVATE kv_copy_blocks/kv_copy_blocks_mlx_metal.cc kv_write/kv_write_mlx_metal.cc)
  target_include_directories(pagoda_ops_mlx SYSTEM PRIVATE ${MLX_INCLUDE_DIRS})  # Metal's own, which `mlx` lacks
else()
  target_sources(pagoda_ops_mlx PRIVATE kv_copy_blocks/kv_copy_blocks_mlx_no_metal.cc kv_write/kv_write_mlx_no_metal.cc)
endif()

pagoda_test(ops_mlx SOURCES kv_write/kv_write_mlx_test.cc DEPS pagoda_ops_mlx)
