#include "backend/cuda/kernel_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace pagoda::cuda {
namespace {

// Metal's address spaces, and what CUDA has in their place: one space for all pointers.
struct AddressSpace {
  std::string_view word;  // with the blank behind it, so that attributes of that name stay
  std::string_view replacement;
};
constexpr AddressSpace kAddressSpaces[] = {
    {"device ", ""}, {"threadgroup ", ""}, {"thread ", ""}, {"constant ", "const "}};

bool is_of_a_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

std::string without_address_spaces(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  bool is_in_name = false;  // whether the character before is part of a name
  while (!text.empty()) {
    const auto* const space =
        is_in_name
            ? std::end(kAddressSpaces)
            : std::find_if(std::begin(kAddressSpaces), std::end(kAddressSpaces),
                           [&](const AddressSpace& each) { return text.starts_with(each.word); });
    if (space != std::end(kAddressSpaces)) {
      result += space->replacement;
      text.remove_prefix(space->word.size());
      continue;
    }
    is_in_name = is_of_a_name(text.front());
    result += text.front();
    text.remove_prefix(1);
  }
  return result;
}

}  // namespace

KernelShape shape_of(const gpu::GpuDispatch& dispatch) {
  return {.function = dispatch.function,
          .num_buffers = static_cast<int>(dispatch.buffers.size()),
          .parameter_bytes = dispatch.parameters.size(),
          .num_threads = dispatch.num_threads};
}

std::string entry_name(const KernelShape& kernel) {
  return "pagoda_" + kernel.function.binary_name();
}

std::string cuda_text(const KernelShape& kernel) {
  std::string instance(kernel.function.name);
  if (!kernel.function.arguments.empty())
    instance += fmt::format("<{}>", fmt::join(kernel.function.arguments, ", "));
  return fmt::format(
      "{}\n#include <entry.h>\n"
      "extern \"C\" __global__ void __launch_bounds__({}) {}(\n"
      "    const __grid_constant__ KernelArguments<{}, {}> arguments) {{\n"
      "  call_kernel<&{}>(arguments);\n}}\n",
      without_address_spaces(kernel.function.source->text), kernel.num_threads, entry_name(kernel),
      kernel.num_buffers, kernel.parameter_bytes, instance);
}

}  // namespace pagoda::cuda
