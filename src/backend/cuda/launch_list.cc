#include "backend/cuda/launch_list.h"

#include <cstring>

namespace pagoda::cuda {
namespace {

Status submit_launch(const Driver& driver, const LaunchList::Kernel& kernel,
                     const std::byte* argument, CuStream* stream) {
  void* arguments[] = {const_cast<std::byte*>(argument)};
  const auto [x, y, z] = kernel.num_groups;
  return driver.status_of(driver.launch(kernel.function, x, y, z, kernel.num_threads, 1, 1,
                                        kernel.shared_bytes, stream, arguments, nullptr),
                          "launching a kernel");
}

}  // namespace

void LaunchList::clear() {
  work_.clear();
  arguments_.clear();
  fits_a_graph_ = true;
}

std::byte* LaunchList::add(const Kernel& kernel, std::size_t argument_bytes) {
  const std::size_t begin = arguments_.size();
  arguments_.resize(begin + argument_bytes);
  work_.emplace_back(Launch{kernel, begin});
  return arguments_.data() + begin;
}

void LaunchList::add_copy(Address to, const std::byte* from, std::size_t bytes,
                          bool to_persistent) {
  work_.emplace_back(Copy{to, from, bytes});
  if (to_persistent) fits_a_graph_ = false;
}

Status LaunchList::submit(const Driver& driver, CuStream* stream) const {
  for (const auto& work : work_) {
    if (const auto* const launch = std::get_if<Launch>(&work)) {
      PAGODA_RETURN_IF_ERROR(
          submit_launch(driver, launch->kernel, arguments_.data() + launch->argument, stream));
    } else {
      const Copy& copy = std::get<Copy>(work);
      PAGODA_RETURN_IF_ERROR(driver.status_of(
          driver.copy_in(copy.to, copy.from, copy.bytes, stream), "copying to the GPU"));
    }
  }
  return ok_status();
}

// Mixes words as FNV-1a mixes bytes.
std::uint64_t LaunchList::hash() const {
  std::uint64_t hash = 0xcbf29ce484222325;
  const auto add = [&hash](std::uint64_t word) { hash = (hash ^ word) * 0x100000001b3; };
  for (const auto& work : work_) {
    if (const auto* const launch = std::get_if<Launch>(&work)) {
      add(reinterpret_cast<std::uintptr_t>(launch->kernel.function));
      for (const unsigned count : launch->kernel.num_groups) add(count);
    } else {
      const Copy& copy = std::get<Copy>(work);
      add(copy.to);
      add(reinterpret_cast<std::uintptr_t>(copy.from));
      add(copy.bytes);
    }
  }
  for (std::size_t i = 0; i + sizeof(std::uint64_t) <= arguments_.size();
       i += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, arguments_.data() + i, sizeof(word));
    add(word);
  }
  return hash;
}

}  // namespace pagoda::cuda
