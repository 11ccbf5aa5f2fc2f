// The entry point of a kernel: it unpacks one argument into the kernel's own. Included behind the
// kernel's text.
#ifndef PAGODA_CUDA_ENTRY_H
#define PAGODA_CUDA_ENTRY_H

template <int kBuffers, int kBytes>
struct KernelArguments {
  void* buffers[kBuffers];
  alignas(16) unsigned char parameters[kBytes];
};

// The i-th of some types.
template <int kIndex, typename First, typename... Rest>
struct TypeAt : TypeAt<kIndex - 1, Rest...> {};
template <typename First, typename... Rest>
struct TypeAt<0, First, Rest...> {
  using Type = First;
};

template <typename T>
struct Referred;
template <typename T>
struct Referred<const T&> {
  using Type = const T;
};

template <int... kIndex>
struct Indices {};
template <int kCount, int... kIndex>
struct IndicesUpTo : IndicesUpTo<kCount - 1, kCount - 1, kIndex...> {};
template <int... kIndex>
struct IndicesUpTo<0, kIndex...> {
  using Type = Indices<kIndex...>;
};

// Calls a kernel. Its last four arguments are the thread's indices, which PAGODA_THREAD names.
template <auto kKernel, typename... A, int kBuffers, int kBytes, int... kIndex>
PAGODA_DEVICE void call_kernel(void (*)(A...), const KernelArguments<kBuffers, kBytes>& arguments,
                               Indices<kIndex...>) {
  using Parameters = typename Referred<typename TypeAt<kBuffers, A...>::Type>::Type;
  static_assert(sizeof(Parameters) == kBytes, "the parameters are the kernel's");
  const Parameters& parameters = *reinterpret_cast<const Parameters*>(arguments.parameters);
  const uint3 group = {blockIdx.x, blockIdx.y, blockIdx.z};
  const uint thread = threadIdx.x;
  if constexpr (sizeof...(A) == kBuffers + 6) {
    extern __shared__ __align__(16) float shared[];
    kKernel(static_cast<typename TypeAt<kIndex, A...>::Type>(arguments.buffers[kIndex])...,
            parameters, shared, group, thread, thread / 32, thread % 32);
  } else {
    kKernel(static_cast<typename TypeAt<kIndex, A...>::Type>(arguments.buffers[kIndex])...,
            parameters, group, thread, thread / 32, thread % 32);
  }
}

template <auto kKernel, int kBuffers, int kBytes>
PAGODA_DEVICE void call_kernel(const KernelArguments<kBuffers, kBytes>& arguments) {
  call_kernel<kKernel>(kKernel, arguments, typename IndicesUpTo<kBuffers>::Type());
}

#endif  // PAGODA_CUDA_ENTRY_H
