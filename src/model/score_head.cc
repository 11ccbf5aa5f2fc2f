#include "model/score_head.h"

#include <algorithm>
#include <cmath>

#include "model/family.h"
#include "quant/tensor_rows.h"

namespace pagoda {

Result<ScoreHead> read_score_head(const Checkpoint& checkpoint, const ModelConfig& config) {
  const Family& family = *find_family(config.architecture);
  PAGODA_ASSIGN_OR_RETURN(const Checkpoint named, checkpoint.renamed(*family.gguf_tensor_names));
  PAGODA_ASSIGN_OR_RETURN(const HostTensor head, named.tensor("score.weight"));
  constexpr std::int64_t kMaxClasses = 1024;
  if (head.shape.rank() != 2 || head.shape[1] != config.hidden_size || head.shape[0] < 1 ||
      head.shape[0] > kMaxClasses) {
    return data_loss("[score] score.weight: expected a row of {} numbers for a class, got {}",
                     config.hidden_size, to_string(head.shape));
  }
  ScoreHead read = {.num_classes = static_cast<int>(head.shape[0]), .weights = {}};
  read.weights.resize(static_cast<std::size_t>(head.shape.num_elements()));
  for (std::int64_t row = 0; row < read.num_classes; ++row)
    read_row(head, row, read.weights.data() + row * config.hidden_size);
  if (!std::ranges::all_of(read.weights, [](float weight) { return std::isfinite(weight); }))
    return data_loss("[score] score.weight: expected finite numbers, got others");
  return read;
}

}  // namespace pagoda
