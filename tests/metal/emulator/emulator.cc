#include "tests/metal/emulator/emulator.h"

#include <cstdio>
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <utility>

#include "tests/metal/emulator/machine.h"

namespace pagoda::emulator {
namespace {

using Registry = std::map<std::pair<std::string, bool>, EmulatedKernel>;

Registry& registry() {
  static Registry kernels;
  return kernels;
}

// Returns a kernel's name and its template's arguments, as GpuFunction::binary_name joins them.
std::string binary_name_of(std::string_view name, std::string_view arguments) {
  std::string result(name);
  if (!arguments.empty()) result += '_';
  for (const char c : arguments) {
    if (c == ',') result += '_';
    if (c != ',' && c != ' ') result += c;
  }
  return result;
}

// Returns why a dispatch does not fit the kernel; empty if it does.
std::string misfit(const EmulatedKernel& kernel, const Dispatch& dispatch) {
  const Signature& signature = kernel.signature;
  if (dispatch.buffers.size() != signature.buffers.size())
    return "takes " + std::to_string(signature.buffers.size()) + " buffers, not " +
           std::to_string(dispatch.buffers.size());
  if (dispatch.parameters.size() != signature.parameter_bytes)
    return "takes " + std::to_string(signature.parameter_bytes) + " bytes of parameters, not " +
           std::to_string(dispatch.parameters.size());
  if (signature.parameter_bytes > 128) return "takes more than 128 bytes of parameters";
  const auto bytes = static_cast<std::size_t>(dispatch.threadgroup_bytes);
  if (bytes > kMaxThreadgroupBytes || bytes % 4 != 0 || (bytes > 0) != signature.has_shared)
    return "cannot run with " + std::to_string(dispatch.threadgroup_bytes) +
           " bytes of threadgroup memory";
  if (dispatch.num_threads < kLanes || dispatch.num_threads > kMaxThreads ||
      dispatch.num_threads % kLanes != 0)
    return "cannot run with " + std::to_string(dispatch.num_threads) + " threads";
  for (const int count : dispatch.num_groups)
    if (count < 0) return "cannot run over " + std::to_string(count) + " groups";
  return {};
}

}  // namespace

void register_kernel(const KernelDescription& description) {
  EmulatedKernel kernel{
      .name = binary_name_of(description.name, description.arguments),
      .signature = {.buffers = {description.buffers, description.buffers + description.num_buffers},
                    .parameter_bytes = description.parameter_bytes,
                    .has_shared = description.has_shared},
      .is_traced = description.is_traced,
      .call = description.call};
  const std::pair key(kernel.name, kernel.is_traced);
  if (registry().emplace(key, std::move(kernel)).second) return;
  std::fprintf(stderr, "[emulator] two kernels are %s\n", key.first.c_str());
  std::abort();
}

const EmulatedKernel* find_kernel(std::string_view binary_name, bool traced) {
  const auto found = registry().find({std::string(binary_name), traced});
  return found == registry().end() ? nullptr : &found->second;
}

Counts run_kernel(const EmulatedKernel& kernel, const Dispatch& dispatch, const Options& options) {
  const auto throw_error = [&](const std::string& what) {
    throw std::runtime_error("[emulator] " + kernel.name + ": " + what);
  };
  if (const std::string what = misfit(kernel, dispatch); !what.empty()) throw_error(what);
  if (options.counts && !kernel.is_traced) throw_error("counts need the traced build");
  Machine& machine = Machine::of_this_thread();
  if (const std::string what = machine.run(kernel, dispatch, options); !what.empty())
    throw_error(what);
  return options.counts ? Counts{machine.counts()} : Counts{};
}

}  // namespace pagoda::emulator
