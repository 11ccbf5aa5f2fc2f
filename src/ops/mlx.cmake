# The ops' bodies on MLX. Only a library with Metal has the headers, and the use, of the part that runs on Apple GPUs.
set(kv_write_gpu kv_write/kv_write_mlx_no_metal.cc)
if(MLX_BUILD_METAL)
  set(kv_write_gpu kv_write/kv_write_mlx_metal.cc)
endif()
pagoda_library(ops_mlx
  SOURCES
    add_rms_norm/add_rms_norm_mlx.cc
    attention/attention_mlx.cc
    gather_rows/gather_rows_mlx.cc
    kv_write/kv_write_mlx.cc
    ${kv_write_gpu}
    linear/linear_mlx.cc
    rms_norm/rms_norm_mlx.cc
    rope/rope_mlx.cc
    select_rows/select_rows_mlx.cc
    swiglu/swiglu_mlx.cc
  DEPS pagoda_backend_mlx)
