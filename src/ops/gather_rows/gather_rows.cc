#include "ops/gather_rows/gather_rows.h"

#include "ops/check_tensor.h"

namespace pagoda {

Tensor gather_rows(Exec& exec, const Weight& weight, const Tensor& ids,
                   const GatherRowsArgs& args) {
  PAGODA_CHECK(weight.defined(), "[gather_rows] weight: expected a packed matrix, got none");
  check_list("gather_rows", "ids", ids);
  const OpTimer timer(exec, [&] {
    return OpCall{.op = "gather_rows",
                  .format = weight.format,
                  .rows = weight.rows,
                  .cols = weight.cols,
                  .read_bytes = static_cast<double>(weight.packed->num_bytes()) *
                                static_cast<double>(ids.extent(0)) /
                                static_cast<double>(weight.rows)};
  });
  static constexpr Bodies<decltype(reference::gather_rows)> kBodies{
      reference::gather_rows, cpu::gather_rows, gpu::gather_rows};
  return kBodies.of(exec)(exec, weight, ids, args);
}

}  // namespace pagoda
