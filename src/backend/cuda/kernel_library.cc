#include "backend/cuda/kernel_library.h"

#include <fstream>
#include <future>
#include <iterator>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "core/log.h"
#include "core/sha256.h"
#include "core/start_thread.h"

namespace pagoda::cuda {
namespace {

namespace fs = std::filesystem;

// Returns the name of a kernel's file. It changes with everything that changes the binary.
std::string file_name(const std::string& text, const std::string& architecture,
                      const Compiler& compiler) {
  Sha256 hash;
  for (const ShimHeader& header : shim_headers()) hash.update(header.text);
  for (const std::string& part : {text, architecture, compiler.identity()}) {
    hash.update(std::to_string(part.size()) + ":");
    hash.update(part);
  }
  return to_hex(hash.finish()) + ".cubin";
}

// Reads a file of this library. Nothing: it is not there, or it is not whole.
std::optional<std::string> read_image(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string digest, image;
  if (!std::getline(file, digest)) return std::nullopt;
  image.assign(std::istreambuf_iterator<char>(file), {});
  if (image.empty() || digest != to_hex(sha256(image))) return std::nullopt;
  return image;
}

// Writes a file under another name first, so that no reader sees a part of it.
void write_image(const fs::path& path, const std::string& image) {
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  fs::path beside = path;
  beside += fmt::format(".{}", std::hash<std::thread::id>()(std::this_thread::get_id()));
  std::ofstream file(beside, std::ios::binary);
  file << to_hex(sha256(image)) << '\n' << image;
  file.close();
  if (file) fs::rename(beside, path, error);
  if (!file || error) {
    fs::remove(beside, error);
    log_warning("[cuda] {}: a kernel's binary could not be kept, so the next start compiles it",
                path.string());
  }
}

}  // namespace

KernelLibrary::KernelLibrary(std::shared_ptr<Device> device, std::shared_ptr<Compiler> compiler,
                             fs::path folder)
    : device_(std::move(device)), compiler_(std::move(compiler)), folder_(std::move(folder)) {}

KernelLibrary::~KernelLibrary() {
  device_->make_current();
  for (CuModule* const module : modules_) (void)device_->driver().unload_module(module);
}

Result<std::string> KernelLibrary::image_of(const KernelShape& kernel) const {
  const std::string text = cuda_text(kernel);
  const fs::path path =
      folder_.empty() ? fs::path() : folder_ / file_name(text, device_->architecture(), *compiler_);
  if (!path.empty()) {
    if (std::optional<std::string> image = read_image(path)) return *std::move(image);
  }
  PAGODA_ASSIGN_OR_RETURN(std::string image, compiler_->compile(text, entry_name(kernel) + ".cu",
                                                                device_->architecture()));
  if (!path.empty()) write_image(path, image);
  return image;
}

Status KernelLibrary::load(const KernelShape& kernel, const std::string& image) {
  const std::string name = entry_name(kernel);
  const Driver& driver = device_->driver();
  device_->make_current();
  CuModule* module = nullptr;
  PAGODA_RETURN_IF_ERROR(
      driver.status_of(driver.load_module(&module, image.data()), "loading " + name));
  modules_.push_back(module);
  CuFunction* function = nullptr;
  PAGODA_RETURN_IF_ERROR(
      driver.status_of(driver.get_function(&function, module, name.c_str()), "finding " + name));
  functions_[{name, kernel.num_threads}] = function;
  return ok_status();
}

Result<CuFunction*> KernelLibrary::find(const gpu::GpuDispatch& dispatch) {
  const KernelShape kernel = shape_of(dispatch);
  Key key{entry_name(kernel), kernel.num_threads};
  const auto found = functions_.find(key);
  if (found != functions_.end()) return found->second;
  ++num_late_;
  PAGODA_ASSIGN_OR_RETURN(const std::string image, image_of(kernel));
  PAGODA_RETURN_IF_ERROR(load(kernel, image));
  return functions_[key];
}

Status KernelLibrary::build(std::span<const KernelShape> kernels,
                            const std::function<void(double)>& progress) {
  std::vector<Result<std::string>> images(kernels.size(), std::string());
  std::atomic<std::size_t> next = 0, num_done = 0;
  std::mutex progress_mutex;
  const auto work = [&] {
    for (std::size_t i = next++; i < kernels.size(); i = next++) {
      images[i] = image_of(kernels[i]);
      const auto done = static_cast<double>(++num_done);
      const std::lock_guard lock(progress_mutex);
      if (progress) progress(done / static_cast<double>(kernels.size()));
    }
  };
  const std::size_t num_threads =
      std::min<std::size_t>(kernels.size(), std::max(1u, std::thread::hardware_concurrency()));
  {
    std::vector<std::future<void>> others;  // waited for by their destructors
    for (std::size_t i = 1; i < num_threads; ++i) others.push_back(start_async(work));
    work();
  }
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    PAGODA_RETURN_IF_ERROR(images[i].status());
    PAGODA_RETURN_IF_ERROR(load(kernels[i], *images[i]));
  }
  return ok_status();
}

}  // namespace pagoda::cuda
