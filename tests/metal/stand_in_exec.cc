// The mlx backend over the stand-in. Linked instead of backend/mlx/make_mlx_exec.cc, so that a test
// of any backend runs our kernels.
#include "backend/backend.h"
#include "backend/gpu/matrix_units.h"
#include "backend/mlx/mlx_exec.h"
#include "tests/metal/stand_in.h"

namespace pagoda::mlx {
namespace {

// Closes windows before it waits, but not after it submits a step. So steps in flight share a
// window, and the test covers the rules that order them.
class StandInExec final : public MlxExec {
 public:
  using MlxExec::MlxExec;

  Result<std::span<const std::byte>> read(const Tensor& tensor) override {
    if (whole_array(tensor).status() == mx::array::Status::unscheduled)
      PAGODA_RETURN_IF_ERROR(evaluate({&tensor, 1}));
    stand_in::close_window();
    return MlxExec::read(tensor);
  }
  Status finish() override {
    stand_in::close_window();
    return MlxExec::finish();
  }
};

}  // namespace

extern const bool kBuilt = true;

bool has_gpu() {
  return true;
}

Result<std::unique_ptr<Exec>> make_exec(const ExecOptions&) {
  StandInExec probe(nullptr);
  PAGODA_ASSIGN_OR_RETURN(const gpu::MatrixUnits units, gpu::find_matrix_units(probe));
  return std::unique_ptr<Exec>(std::make_unique<StandInExec>(nullptr, units));
}

}  // namespace pagoda::mlx
