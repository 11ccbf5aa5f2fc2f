// Registers kernels for the emulator. Included after the .metal file:
//   #include "ops/rms_norm/rms_norm.metal"
//   #include "tests/metal/emulator/register_kernel.h"
//   PAGODA_REGISTER_KERNEL(rms_norm)                       // "rms_norm"
//   PAGODA_REGISTER_KERNEL(attention_decode, bfloat, 128)  // "attention_decode_bfloat_128"
// The signature follows from the kernel's type. clang compiles the file twice: for the plain build,
// and for the traced build with PAGODA_TRACED and flags that trace accesses
// (tests/metal/CMakeLists.txt has the flags). One program may have both builds.
#pragma once

#if defined(PAGODA_TRACED) != __has_feature(coverage_sanitizer)
#error "the traced build, and no other, is compiled with -fsanitize-coverage"
#endif

#pragma clang attribute pop  // of metal_stdlib

// Standard headers do not work with these macros.
#undef kernel
#undef device
#undef threadgroup
#undef thread
#undef constant

#include <type_traits>
#include <utility>

#include "tests/metal/emulator/signature.h"

namespace pagoda::emulator {
namespace {

// The type of a kernel's function. Its arguments are the buffers, then the parameters, then the
// threadgroup's memory, if any, and the thread's indices.
template <typename Function>
struct KernelType;

template <typename... Arguments>
struct KernelType<void (*)(Arguments...)> {
  static constexpr std::size_t kNumArguments = sizeof...(Arguments);

  // Returns how many of the arguments are buffers.
  static constexpr std::size_t num_buffers() {
    const bool is_reference[] = {std::is_reference_v<Arguments>...};
    for (std::size_t i = 0; i < kNumArguments; ++i)
      if (is_reference[i]) return i;
    return 0;
  }
  static constexpr bool kHasShared = kNumArguments == num_buffers() + 6;
  static_assert(kNumArguments == num_buffers() + 5 || kHasShared,
                "a kernel takes buffers, parameters, perhaps `shared`, and PAGODA_THREAD");

  template <typename Argument>
  static constexpr BufferType buffer_type() {
    if constexpr (std::is_pointer_v<Argument>) {
      using Element = std::remove_pointer_t<Argument>;
      return {std::is_const_v<Element>, sizeof(Element)};
    } else {
      return {};
    }
  }
  template <typename Argument>
  static constexpr std::size_t parameter_bytes() {
    if constexpr (std::is_reference_v<Argument>)
      return sizeof(std::remove_reference_t<Argument>);
    else
      return 0;
  }
  static constexpr std::size_t kParameterBytes = (parameter_bytes<Arguments>() + ...);
  // One element more than there are arguments, because an array must not be empty.
  static constexpr BufferType kArguments[] = {buffer_type<Arguments>()..., BufferType()};

  // Returns the value of an argument.
  template <typename Argument, std::size_t kIndex>
  static Argument value(const ThreadArguments& arguments) {
    if constexpr (kIndex < num_buffers()) {
      return reinterpret_cast<Argument>(arguments.buffers[kIndex]);
    } else if constexpr (kIndex == num_buffers()) {
      return *reinterpret_cast<std::remove_reference_t<Argument>*>(arguments.parameters);
    } else if constexpr (kHasShared && kIndex == num_buffers() + 1) {
      return reinterpret_cast<Argument>(arguments.shared);
    } else {
      constexpr std::size_t kPlace = kIndex + 4 - kNumArguments;
      if constexpr (kPlace == 0)
        return {arguments.group[0], arguments.group[1], arguments.group[2]};
      else
        return kPlace == 1 ? arguments.thread : kPlace == 2 ? arguments.simd_group : arguments.lane;
    }
  }
  // Calls the kernel. Accesses of this function are not traced, because they are not the kernel's.
  // The kernel's are traced, so it must not be inlined here.
  template <void (*kFunction)(Arguments...), std::size_t... kIndices>
  __attribute__((no_sanitize("coverage"))) static void call_indexed(
      const ThreadArguments& arguments, std::index_sequence<kIndices...>) {
    void (*volatile function)(Arguments...) = kFunction;
    function(value<Arguments, kIndices>(arguments)...);
  }
  template <void (*kFunction)(Arguments...)>
  __attribute__((no_sanitize("coverage"))) static void call(const ThreadArguments& arguments) {
    call_indexed<kFunction>(arguments, std::make_index_sequence<kNumArguments>());
  }
};

template <auto kFunction>
__attribute__((no_sanitize("coverage"))) bool add_kernel(const char* name, const char* arguments) {
  using Type = KernelType<decltype(kFunction)>;
#ifdef PAGODA_TRACED
  constexpr bool kIsTraced = true;
#else
  constexpr bool kIsTraced = false;
#endif
  register_kernel({.name = name,
                   .arguments = arguments,
                   .buffers = Type::kArguments,
                   .num_buffers = Type::num_buffers(),
                   .parameter_bytes = Type::kParameterBytes,
                   .has_shared = Type::kHasShared,
                   .is_traced = kIsTraced,
                   .call = &Type::template call<kFunction>});
  return true;
}

}  // namespace
}  // namespace pagoda::emulator

#define PAGODA_JOIN(a, b) PAGODA_JOIN_EXPANDED(a, b)
#define PAGODA_JOIN_EXPANDED(a, b) a##b
#define PAGODA_REGISTER_KERNEL(NAME, ...)                                      \
  [[maybe_unused]] static const bool PAGODA_JOIN(kIsRegistered, __COUNTER__) = \
      ::pagoda::emulator::add_kernel<&NAME __VA_OPT__(<__VA_ARGS__>)>(#NAME, #__VA_ARGS__);
