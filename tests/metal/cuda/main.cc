// metal_on_cuda: our Metal kernels on a CUDA GPU (tests/metal/cuda/run.sh).
//
//   metal_on_cuda list FILE             writes the kernels that the modes below launch, for
//                                       make_cuda.py
//   metal_on_cuda check FOLDER [OP]     checks every small case of every op, or of ops named so
//   metal_on_cuda kernels FOLDER [OP]   runs a case for every kernel, for a sanitizer
//   metal_on_cuda figures FOLDER [TEXT] prints times and the GPU's limits, or only figures named so
#include <fmt/format.h>

#include <fstream>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "tests/metal/cuda/modes.h"

namespace pagoda::metal_on_cuda {
namespace {

int write_list(const std::string& path, Exec& reference) {
  const std::shared_ptr<ListingDevice> device = make_listing_device();
  CudaExec exec(device, /*poisons=*/false);
  (void)gpu::find_matrix_units(exec);
  list_ops(exec);
  take_figures(exec, reference, /*is_listing=*/true, /*filter=*/"");
  std::ofstream file(path);
  file << device->lines();
  return file.good() ? 0 : 1;
}

int run_on_gpu(const std::string& mode, const std::string& folder, const std::string& filter,
               Exec& reference) {
  Result<std::unique_ptr<Device>> device = make_cuda_device(folder);
  if (!device.ok()) {
    fmt::print(stderr, "{}\n", device.status().message());
    return 1;
  }
  CudaExec exec(*std::move(device), /*poisons=*/mode != "kernels");
  if (mode == "figures") return take_figures(exec, reference, /*is_listing=*/false, filter) ? 0 : 1;
  const Result<gpu::MatrixUnits> units = gpu::find_matrix_units(exec);
  const bool is_chain = units.ok() && *units == gpu::MatrixUnits::kAscendingChain;
  fmt::print("matrix units, emulated: {}\n", is_chain ? "an ascending chain" : "FAILED");
  const Thoroughness thoroughness =
      mode == "kernels" ? Thoroughness::kEachKernel : Thoroughness::kAll;
  return check_ops(exec, reference, thoroughness, filter) && is_chain ? 0 : 1;
}

int run(const std::vector<std::string>& arguments) {
  const std::unique_ptr<Exec> reference = make_exec({.backend = Backend::kReference}).value();
  if (arguments.size() < 2) {
    fmt::print(stderr, "expected: list and a file, or check, kernels or figures and a folder\n");
    return 2;
  }
  if (arguments[0] == "list") return write_list(arguments[1], *reference);
  return run_on_gpu(arguments[0], arguments[1], arguments.size() > 2 ? arguments[2] : "",
                    *reference);
}

}  // namespace
}  // namespace pagoda::metal_on_cuda

int main(int argc, char** argv) {
  return pagoda::metal_on_cuda::run({argv + 1, argv + argc});
}
