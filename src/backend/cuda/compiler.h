// Compiler: NVIDIA's run-time compiler NVRTC, loaded at run time. It needs no GPU and no toolkit:
// its library comes with the CUDA toolkit, or from PyPI as `nvidia-cuda-nvrtc`.
#pragma once

#include <memory>
#include <string>

#include "core/status.h"

namespace pagoda::cuda {

// Thread-safe.
class Compiler {
 public:
  Compiler() = default;
  Compiler(const Compiler&) = delete;
  Compiler& operator=(const Compiler&) = delete;
  virtual ~Compiler() = default;

  // Compiles a text, which may include the headers of shim/, for an architecture such as "sm_90a".
  // kInternal with the compiler's words if it refuses the text.
  virtual Result<std::string> compile(const std::string& text, const std::string& name,
                                      const std::string& architecture) = 0;
  // Returns a name for all that decides a binary besides text and architecture: the version and the
  // options.
  virtual std::string identity() const = 0;
  virtual int major_version() const = 0;  // of CUDA
};

// Loads NVRTC from where the system finds libraries, from the CUDA toolkit's usual folder, or from
// a Python environment: VIRTUAL_ENV, or .venv in a folder above the program's. kUnavailable if it is
// in none of them.
Result<std::shared_ptr<Compiler>> load_compiler();

}  // namespace pagoda::cuda
