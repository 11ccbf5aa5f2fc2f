#include <mlx/ops.h>

#include "backend/mlx/mlx_exec.h"
#include "backend/mlx/mlx_weight.h"
#include "ops/gather_rows/gather_rows.h"

namespace pagoda::mlx {
namespace {

// Rows `ids` [n] of one segment: [n, cols] float32
mx::array gather(const WeightSegment& segment, const mx::array& ids) {
  const mx::array values = mx::take(segment.values, ids, 0);
  if (segment.bits == 0) return mx::astype(values, mx::float32);
  return mx::dequantize(values, mx::take(*segment.scales, ids, 0),
                        mx::take(*segment.biases, ids, 0), segment.group_size, segment.bits);
}

}  // namespace

Tensor gather_rows(Exec& exec, const Weight& weight, const Tensor& ids) {
  return mlx_exec(exec).build("gather_rows", DType::kFloat32, {ids.extent(0), weight.cols}, [&] {
    const auto& segments = mlx_weight(weight).segments;
    const mx::array rows = array_of(ids);
    if (segments.size() == 1) return gather(segments[0], rows);
    mx::array result = mx::zeros({rows.shape(0), static_cast<int>(weight.cols)});
    int first = 0;
    for (const WeightSegment& segment : segments) {
      const int count = static_cast<int>(segment.rows);
      const mx::array row = mx::subtract(rows, mx::array(first));
      const mx::array inside =
          mx::logical_and(mx::greater_equal(row, mx::array(0)), mx::less(row, mx::array(count)));
      const mx::array clamped = mx::clip(row, mx::array(0), mx::array(count - 1));
      result = mx::where(mx::expand_dims(inside, 1), gather(segment, clamped), result);
      first += count;
    }
    return result;
  });
}

}  // namespace pagoda::mlx
