// The first header that every .metal file of ours includes.
//
// A .metal file holds whole functions. They are read by five compilers: Apple's, clang's for the
// emulator of tests/metal, clang's C++ for OpenCL, and nvcc (docs/metal.md), so a file keeps to
// what all of them take:
// - A kernel's arguments are, in this order: `device` buffers, each with its place in the signature
//   as its index; one `constant` reference to a struct of parameters, which has the next index;
//   if needed, `threadgroup float* shared [[threadgroup(0)]]`; PAGODA_THREAD.
// - What is fixed when a model is loaded (types, head sizes, formats) is a template argument; what
//   a batch decides (rows, lengths) is a parameter. So a model has one binary for every batch.
// - Vector types load and store 16 bytes at once, and are read by element. Nothing computes with
//   them.
// - Only fma fuses a product with a sum, and nothing is reassociated.
#ifndef PAGODA_KERNEL_METAL_H
#define PAGODA_KERNEL_METAL_H

#include <metal_simdgroup_matrix>
#include <metal_stdlib>
using namespace metal;

#pragma METAL fp math_mode(safe)
#pragma METAL fp contract(off)

// A thread's indices: the last arguments of every kernel. A SIMD group has 32 lanes.
#define PAGODA_THREAD                                                                           \
  uint3 group [[threadgroup_position_in_grid]], uint thread_id [[thread_index_in_threadgroup]], \
      uint simd_group [[simdgroup_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]]

#endif  // PAGODA_KERNEL_METAL_H
