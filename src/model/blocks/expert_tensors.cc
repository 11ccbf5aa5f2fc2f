#include "model/blocks/expert_tensors.h"

#include <algorithm>
#include <charconv>

#include "model/blocks/projection.h"
#include "quant/tensor_rows.h"

namespace pagoda {
namespace {

// Returns the name of a module's tensor that the checkpoint has; empty if it has none. Tensors of
// all experts may lack the usual ".weight".
std::string find_tensor(const Checkpoint& checkpoint, const std::string& module) {
  if (module.empty()) return {};
  for (const std::string& name : {module + ".weight", module}) {
    if (checkpoint.has(name)) return name;
  }
  return {};
}

std::string find_stacked(const Checkpoint& checkpoint, const ExpertPart& part) {
  for (const std::string& module : part.stacked) {
    std::string name = find_tensor(checkpoint, module);
    if (!name.empty()) return name;
  }
  return {};
}

// Returns the tensor [experts, rows, cols] as a matrix [experts * rows, cols].
Result<HostTensor> stacked_matrix(const Checkpoint& checkpoint, const std::string& name,
                                  const ExpertsSpec& spec, std::int64_t rows) {
  PAGODA_ASSIGN_OR_RETURN(HostTensor tensor,
                          checked_tensor(checkpoint, name, {spec.num_experts, rows, spec.cols}));
  if (spec.cols % traits_of(tensor.format).block_size != 0) {
    return data_loss("[model] tensor {}: expected rows of whole blocks, got {} columns", name,
                     spec.cols);
  }
  tensor.shape = {spec.num_experts * rows, spec.cols};
  return tensor;
}

// Finds the matrices of one part, for all experts.
Result<std::vector<HostTensor>> find_part(const Checkpoint& checkpoint, const ExpertsSpec& spec,
                                          const ExpertPart& part) {
  std::vector<HostTensor> matrices;
  const std::string name = find_stacked(checkpoint, part);
  HostTensor stacked;
  if (!name.empty()) {
    PAGODA_ASSIGN_OR_RETURN(stacked, stacked_matrix(checkpoint, name, spec, part.rows));
  }
  for (int expert = 0; expert < spec.num_experts; ++expert) {
    if (!name.empty()) {
      matrices.push_back(slice_rows(stacked, expert * part.rows, part.rows));
      continue;
    }
    PAGODA_ASSIGN_OR_RETURN(
        HostTensor matrix,
        checked_tensor(checkpoint, part.name_of(expert) + ".weight", {part.rows, spec.cols}));
    matrices.push_back(std::move(matrix));
  }
  return matrices;
}

// Splits the tensor that has all parts of all experts.
Result<std::vector<HostTensor>> split_joined(const Checkpoint& checkpoint, const ExpertsSpec& spec,
                                             const std::string& name) {
  PAGODA_ASSIGN_OR_RETURN(const HostTensor joined,
                          stacked_matrix(checkpoint, name, spec, spec.rows()));
  std::vector<HostTensor> all;
  std::int64_t row = 0;
  for (int expert = 0; expert < spec.num_experts; ++expert) {
    for (const ExpertPart& part : spec.parts) {
      all.push_back(slice_rows(joined, row, part.rows));
      row += part.rows;
    }
  }
  return all;
}

}  // namespace

Result<std::vector<HostTensor>> find_experts(const Checkpoint& checkpoint,
                                             const ExpertsSpec& spec) {
  const std::string joined = find_tensor(checkpoint, spec.joined);
  if (!joined.empty()) return split_joined(checkpoint, spec, joined);
  const std::size_t num_parts = spec.parts.size();
  std::vector<HostTensor> all(num_parts * static_cast<std::size_t>(spec.num_experts));
  for (std::size_t i = 0; i < num_parts; ++i) {
    PAGODA_ASSIGN_OR_RETURN(std::vector<HostTensor> matrices,
                            find_part(checkpoint, spec, spec.parts[i]));
    for (std::size_t expert = 0; expert < matrices.size(); ++expert) {
      all[expert * num_parts + i] = std::move(matrices[expert]);
    }
  }
  return all;
}

Result<ExpertWeight> load_experts(Exec& exec, const Checkpoint& checkpoint,
                                  const ExpertsSpec& spec) {
  PAGODA_ASSIGN_OR_RETURN(const std::vector<HostTensor> parts, find_experts(checkpoint, spec));
  return prepare_experts(exec, parts, spec.parts.size() == 2);
}

std::optional<ExpertPlace> find_expert(const ExpertsSpec& spec, std::string_view module) {
  if (!spec.joined.empty() && module == spec.joined) return ExpertPlace{.part = -1};
  for (std::size_t i = 0; i < spec.parts.size(); ++i) {
    const ExpertPart& part = spec.parts[i];
    const int index = static_cast<int>(i);
    if (std::ranges::find(part.stacked, module) != part.stacked.end()) {
      return ExpertPlace{.part = index};
    }
    if (!module.starts_with(part.before) || !module.ends_with(part.behind)) continue;
    int expert = -1;
    const char* const begin = module.data() + part.before.size();
    std::from_chars(begin, module.data() + module.size(), expert);
    if (expert >= 0 && expert < spec.num_experts && module == part.name_of(expert)) {
      return ExpertPlace{.part = index, .expert = expert};
    }
  }
  return std::nullopt;
}

}  // namespace pagoda
