#include "backend/cuda/compiler.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <type_traits>
#include <vector>

#include "backend/cuda/kernel_text.h"

namespace pagoda::cuda {
namespace {

namespace fs = std::filesystem;

// -fmad: only what is written as fma is fused. -ftz: as Apple's GPUs, which know no subnormal
// numbers.
constexpr const char* kOptions[] = {"--std=c++17",       "--device-as-default-execution-space",
                                    "--fmad=false",      "--ftz=true",
                                    "--prec-div=true",   "--prec-sqrt=true",
                                    "--disable-warnings"};

struct NvrtcProgram;

// The functions of nvrtc.h that are called.
struct Functions {
  int (*version)(int* major, int* minor);
  const char* (*error_text)(int result);
  int (*create)(NvrtcProgram** program, const char* text, const char* name, int num_headers,
                const char* const* headers, const char* const* header_names);
  int (*destroy)(NvrtcProgram** program);
  int (*compile)(NvrtcProgram* program, int num_options, const char* const* options);
  int (*log_size)(NvrtcProgram* program, std::size_t* bytes);
  int (*log)(NvrtcProgram* program, char* text);
  int (*cubin_size)(NvrtcProgram* program, std::size_t* bytes);
  int (*cubin)(NvrtcProgram* program, char* image);
};

class Nvrtc final : public Compiler {
 public:
  explicit Nvrtc(const Functions& functions) : functions_(functions) {
    (void)functions_.version(&major_, &minor_);
  }

  Result<std::string> compile(const std::string& text, const std::string& name,
                              const std::string& architecture) override {
    std::vector<const char*> headers, header_names;
    for (const ShimHeader& header : shim_headers()) {
      headers.push_back(header.text);
      header_names.push_back(header.name);
    }
    NvrtcProgram* program = nullptr;
    int result =
        functions_.create(&program, text.c_str(), name.c_str(), static_cast<int>(headers.size()),
                          headers.data(), header_names.data());
    if (result != 0) return refusal(name, functions_.error_text(result));
    const std::string target = "--gpu-architecture=" + architecture;
    std::vector<const char*> options(std::begin(kOptions), std::end(kOptions));
    options.push_back(target.c_str());
    result = functions_.compile(program, static_cast<int>(options.size()), options.data());
    Result<std::string> image =
        result == 0 ? image_of(program) : Result<std::string>(refusal(name, log_of(program)));
    (void)functions_.destroy(&program);
    return image;
  }

  std::string identity() const override {
    return fmt::format("NVRTC {}.{} {}", major_, minor_, fmt::join(kOptions, " "));
  }
  int major_version() const override { return major_; }

 private:
  static Status refusal(const std::string& name, std::string_view why) {
    return internal_error("[cuda] compiling {}: {}", name, why);
  }

  std::string log_of(NvrtcProgram* program) const {
    std::size_t size = 0;
    if (functions_.log_size(program, &size) != 0) return "no log";
    std::string log(size, '\0');
    if (functions_.log(program, log.data()) != 0) return "no log";
    return log;
  }

  Result<std::string> image_of(NvrtcProgram* program) const {
    std::size_t size = 0;
    int result = functions_.cubin_size(program, &size);
    std::string image(size, '\0');
    if (result == 0) result = functions_.cubin(program, image.data());
    if (result != 0) return internal_error("[cuda] NVRTC: {}", functions_.error_text(result));
    return image;
  }

  Functions functions_;
  int major_ = 0;
  int minor_ = 0;
};

// Adds the folders PLACE/lib/python3*/site-packages/nvidia/*/lib, where PyPI's packages keep their
// libraries.
void add_folders_of_environment(const fs::path& place, std::vector<fs::path>& folders) {
  std::error_code ignored;
  for (const auto& python : fs::directory_iterator(place / "lib", ignored)) {
    const fs::path packages = python.path() / "site-packages/nvidia";
    for (const auto& package : fs::directory_iterator(packages, ignored))
      folders.push_back(package.path() / "lib");
  }
}

std::vector<fs::path> library_folders() {
  std::vector<fs::path> folders = {"/usr/local/cuda/lib64"};
  if (const char* const environment = std::getenv("VIRTUAL_ENV"))
    add_folders_of_environment(environment, folders);
  std::error_code ignored;
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored);
  for (fs::path above = program.parent_path(); above.has_relative_path();
       above = above.parent_path())
    add_folders_of_environment(above / ".venv", folders);
  return folders;
}

// Returns the paths to try, of each folder the newest version first.
std::vector<std::string> library_paths() {
  constexpr std::string_view kNames[] = {"libnvrtc.so.13", "libnvrtc.so.12"};
  std::vector<std::string> paths(std::begin(kNames), std::end(kNames));
  for (const fs::path& folder : library_folders()) {
    for (const std::string_view name : kNames) paths.push_back(folder / name);
  }
  return paths;
}

}  // namespace

Result<std::shared_ptr<Compiler>> load_compiler() {
  void* library = nullptr;
  for (const std::string& path : library_paths()) {
    library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr) break;
  }
  if (library == nullptr) {
    return unavailable(
        "[device] cuda: expected NVIDIA's run-time compiler (libnvrtc.so.12 or .13), of the CUDA "
        "toolkit or of `pip install nvidia-cuda-nvrtc`, got none");
  }
  Functions functions;
  const char* missing = nullptr;
  const auto find = [&](auto& function, const char* name) {
    void* const symbol = dlsym(library, name);
    if (symbol == nullptr) missing = name;
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(symbol);
  };
  find(functions.version, "nvrtcVersion");
  find(functions.error_text, "nvrtcGetErrorString");
  find(functions.create, "nvrtcCreateProgram");
  find(functions.destroy, "nvrtcDestroyProgram");
  find(functions.compile, "nvrtcCompileProgram");
  find(functions.log_size, "nvrtcGetProgramLogSize");
  find(functions.log, "nvrtcGetProgramLog");
  find(functions.cubin_size, "nvrtcGetCUBINSize");
  find(functions.cubin, "nvrtcGetCUBIN");
  if (missing != nullptr)
    return unavailable("[device] cuda: expected a newer NVRTC, got one without {}", missing);
  return std::shared_ptr<Compiler>(std::make_shared<Nvrtc>(functions));
}

}  // namespace pagoda::cuda
