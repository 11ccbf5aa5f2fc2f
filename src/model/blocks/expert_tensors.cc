#include "model/blocks/expert_tensors.h"

#include <algorithm>
#include <charconv>
#include <memory>
#include <span>

#include "model/blocks/projection.h"
#include "quant/owned_bytes.h"
#include "quant/tensor_rows.h"

namespace pagoda {
namespace {

constexpr std::string_view kWeightEnding = ".weight";
constexpr std::string_view kBlocksEnding = "_blocks";
// Endings of the tensors of all experts, and of their biases.
constexpr std::string_view kEndings[] = {kWeightEnding, "", kBlocksEnding};
constexpr std::string_view kBiasEndings[] = {".bias", "_bias"};

// Returns the name of a module's tensor that the checkpoint has; empty if it has none.
std::string find_tensor(const Checkpoint& checkpoint, const std::string& module,
                        std::span<const std::string_view> endings = kEndings) {
  for (const std::string_view ending : endings) {
    std::string name = module + std::string(ending);
    if (!module.empty() && checkpoint.has(name)) return name;
  }
  return {};
}

std::string find_stacked(const Checkpoint& checkpoint, const ExpertPart& part,
                         std::span<const std::string_view> endings = kEndings) {
  for (const std::string& module : part.stacked) {
    std::string name = find_tensor(checkpoint, module, endings);
    if (!name.empty()) return name;
  }
  return {};
}

// Returns whether a tensor of all experts lies as [experts, cols, rows]. transformers saves those of
// Qwen3-VL either way, so the extents decide where they can.
bool is_transposed(const Checkpoint& checkpoint, const ExpertsSpec& spec, const std::string& name,
                   std::int64_t rows) {
  if (!spec.is_transposed || name.ends_with(kWeightEnding) || name.ends_with(kBlocksEnding))
    return false;
  const auto tensor = checkpoint.tensor(name);
  return rows == spec.cols || !tensor.ok() ||
         tensor->shape != Shape{spec.num_experts, rows, spec.cols};
}

// Returns views of the matrices in a tensor [experts, cols, rows] of a plain type: for each expert
// those of `num_parts` parts, whose rows are in turns or one part after the other.
Result<std::vector<HostTensor>> transposed(const Checkpoint& checkpoint, const std::string& name,
                                           const ExpertsSpec& spec, std::int64_t num_parts,
                                           std::int64_t rows_of_part) {
  const std::int64_t rows = num_parts * rows_of_part;
  PAGODA_ASSIGN_OR_RETURN(const HostTensor source,
                          checked_tensor(checkpoint, name, {spec.num_experts, spec.cols, rows}));
  if (traits_of(source.format).block_size != 1 || !source.has_whole_rows()) {
    return unsupported("[model] tensor {}: {} is not supported for transposed matrices", name,
                       format_name(source));
  }
  const std::int64_t size = traits_of(source.format).block_bytes;
  const Strides strides = {.row = spec.is_interleaved ? num_parts : 1, .col = rows};
  const std::int64_t count = (rows_of_part - 1) * strides.row + (spec.cols - 1) * strides.col + 1;
  std::vector<HostTensor> views;
  for (std::int64_t expert = 0; expert < spec.num_experts; ++expert) {
    for (std::int64_t part = 0; part < num_parts; ++part) {
      const std::int64_t first =
          expert * spec.cols * rows + part * (spec.is_interleaved ? 1 : rows_of_part);
      HostTensor& view = views.emplace_back(source);
      view.shape = {rows_of_part, spec.cols};
      view.bytes = source.bytes.subspan(static_cast<std::size_t>(first * size),
                                        static_cast<std::size_t>(count * size));
      view.strides = strides;
    }
  }
  return views;
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

// Returns the values of a matrix of a plain type.
Result<std::vector<float>> values_of_matrix(const HostTensor& matrix) {
  if (traits_of(matrix.format).block_size != 1 || matrix.affine)
    return unsupported("[model] tensor {}: {} is not supported for biases", matrix.name,
                       format_name(matrix));
  std::vector<float> values(static_cast<std::size_t>(matrix.shape.num_elements()));
  for (std::int64_t row = 0; row < matrix.shape[0]; ++row)
    read_row(matrix, row, values.data() + row * matrix.shape[1]);
  return values;
}

// Finds the matrices of one part, for all experts.
Result<std::vector<HostTensor>> find_part(const Checkpoint& checkpoint, const ExpertsSpec& spec,
                                          const ExpertPart& part) {
  std::vector<HostTensor> matrices;
  const std::string name = find_stacked(checkpoint, part);
  if (!name.empty() && is_transposed(checkpoint, spec, name, part.rows))
    return transposed(checkpoint, name, spec, /*num_parts=*/1, part.rows);
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
  const auto num_parts = static_cast<std::int64_t>(spec.parts.size());
  if (is_transposed(checkpoint, spec, name, spec.rows()))
    return transposed(checkpoint, name, spec, num_parts, spec.rows() / num_parts);
  PAGODA_ASSIGN_OR_RETURN(const HostTensor joined,
                          stacked_matrix(checkpoint, name, spec, spec.rows()));
  if (spec.is_interleaved && !joined.mxfp4) {
    return unsupported("[model] tensor {}: {} is not supported where gates and up parts take turns",
                       name, format_name(joined));
  }
  std::vector<HostTensor> all;
  std::int64_t row = 0;
  for (int expert = 0; expert < spec.num_experts; ++expert) {
    if (spec.is_interleaved) {
      const HostTensor both = slice_rows(joined, expert * spec.rows(), spec.rows());
      for (std::int64_t i = 0; i < num_parts; ++i) all.push_back(rows_in_turn(both, i, num_parts));
      continue;
    }
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

bool has_expert_tensor(const Checkpoint& checkpoint, const std::string& module, bool is_bias) {
  const auto endings = is_bias ? std::span<const std::string_view>(kBiasEndings) : kEndings;
  return !find_tensor(checkpoint, module, endings).empty();
}

Result<std::vector<HostTensor>> find_expert_biases(const Checkpoint& checkpoint,
                                                   const ExpertsSpec& spec) {
  const std::string joined = find_tensor(checkpoint, spec.joined, kBiasEndings);
  const auto num_parts = static_cast<std::int64_t>(spec.parts.size());
  std::vector<HostTensor> biases;
  for (std::int64_t i = 0; i < num_parts; ++i) {
    const ExpertPart& part = spec.parts[static_cast<std::size_t>(i)];
    std::string name = joined.empty() ? find_stacked(checkpoint, part, kBiasEndings) : joined;
    if (name.empty()) name = part.stacked.front() + std::string(kBiasEndings[0]);
    const std::int64_t width = joined.empty() ? part.rows : spec.rows();
    PAGODA_ASSIGN_OR_RETURN(const HostTensor tensor,
                            checked_tensor(checkpoint, name, {spec.num_experts, width}));
    PAGODA_ASSIGN_OR_RETURN(const std::vector<float> all, values_of_matrix(tensor));
    // The part's first value of an expert, and from there to the next.
    const bool is_interleaved = !joined.empty() && spec.is_interleaved;
    const std::int64_t first = joined.empty() ? 0 : is_interleaved ? i : i * part.rows;
    const std::int64_t step = is_interleaved ? num_parts : 1;
    std::vector<float> values;
    for (std::int64_t expert = 0; expert < spec.num_experts; ++expert) {
      for (std::int64_t row = 0; row < part.rows; ++row)
        values.push_back(all[static_cast<std::size_t>(expert * width + first + row * step)]);
    }
    auto storage = std::make_shared<OwnedBytes>(std::as_bytes(std::span(values)));
    HostTensor bias = {.name = name,
                       .format = WeightFormat::kF32,
                       .shape = {spec.num_experts, part.rows},
                       .bytes = storage->bytes};
    bias.storage = std::move(storage);
    biases.push_back(std::move(bias));
  }
  return biases;
}

Result<Tensor> load_expert_biases(const BlockSource& source, ExpertRole role) {
  const ExpertsSpec& spec = source.spec.experts_of(role);
  PAGODA_ASSIGN_OR_RETURN(const std::vector<HostTensor> parts,
                          find_expert_biases(source.checkpoint, spec));
  std::vector<float> values;
  for (std::int64_t expert = 0; expert < spec.num_experts; ++expert) {
    for (const HostTensor& part : parts) {
      const std::int64_t width = part.shape[1];
      values.resize(values.size() + static_cast<std::size_t>(width));
      read_row(part, expert, values.data() + values.size() - width);
    }
  }
  return source.exec.upload<float>(values, {spec.num_experts, spec.rows()});
}

Result<ExpertWeight> load_experts(Exec& exec, const Checkpoint& checkpoint,
                                  const ExpertsSpec& spec) {
  PAGODA_ASSIGN_OR_RETURN(const std::vector<HostTensor> parts, find_experts(checkpoint, spec));
  return prepare_experts(exec, parts, spec.parts.size() == 2);
}

std::optional<ExpertPlace> find_expert(const ExpertsSpec& spec, std::string_view module) {
  // Some tensors of all experts have endings of their own.
  for (const std::string_view ending : {kBlocksEnding, kBiasEndings[1]}) {
    if (module.ends_with(ending)) module.remove_suffix(ending.size());
  }
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
