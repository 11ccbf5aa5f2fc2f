// KernelLibrary: the kernels of this process on a GPU, compiled when a model is loaded and kept in a
// folder for the next start.
//
// The SHA-256 of all that decides a binary (text, headers, options, architecture, compiler) is its
// file's name. The file begins with the SHA-256 of the binary, so that a torn or a forged one is
// noticed, and the kernel is compiled again.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backend/cuda/compiler.h"
#include "backend/cuda/device.h"
#include "backend/cuda/kernel_text.h"
#include "core/status.h"

namespace pagoda::cuda {

class KernelLibrary {
 public:
  // Makes an empty library. `folder` keeps binaries; if it is empty, they are not kept.
  KernelLibrary(std::shared_ptr<Device> device, std::shared_ptr<Compiler> compiler,
                std::filesystem::path folder);
  ~KernelLibrary();
  KernelLibrary(const KernelLibrary&) = delete;
  KernelLibrary& operator=(const KernelLibrary&) = delete;

  // Returns the kernel of a dispatch. It is compiled now if build() has not compiled it, which takes
  // up to seconds.
  Result<CuFunction*> find(const gpu::GpuDispatch& dispatch);
  // Compiles kernels, several at once, and loads them. `progress` gets the share that is done.
  Status build(std::span<const KernelShape> kernels, const std::function<void(double)>& progress);

  std::uint64_t num_late() const { return num_late_; }  // compiled by find()

 private:
  using Key = std::pair<std::string, int>;  // an entry's name, and the number of threads

  Result<std::string> image_of(const KernelShape& kernel) const;
  Status load(const KernelShape& kernel, const std::string& image);

  std::shared_ptr<Device> device_;
  std::shared_ptr<Compiler> compiler_;
  std::filesystem::path folder_;
  std::map<Key, CuFunction*> functions_;
  std::vector<CuModule*> modules_;
  std::uint64_t num_late_ = 0;
};

}  // namespace pagoda::cuda
