#include "model/blocks/projection.h"

#include "quant/tensor_rows.h"

namespace pagoda {

Result<HostTensor> checked_tensor(const Checkpoint& checkpoint, const std::string& name,
                                  const Shape& shape) {
  PAGODA_ASSIGN_OR_RETURN(HostTensor tensor, checkpoint.tensor(name));
  if (!(tensor.shape == shape)) {
    return data_loss("[model] tensor {}: expected {}, got {}", name, to_string(shape),
                     to_string(tensor.shape));
  }
  return tensor;
}

namespace {

// Splits the joined matrix, which has the rows of all parts in order.
Result<ProjectionTensors> split_projection(const Checkpoint& checkpoint,
                                           const ProjectionSpec& spec) {
  const std::int64_t rows = spec.rows();
  PAGODA_ASSIGN_OR_RETURN(const HostTensor weight,
                          checked_tensor(checkpoint, spec.joined + ".weight", {rows, spec.cols}));
  if (spec.cols % traits_of(weight.format).block_size != 0) {
    return data_loss("[model] tensor {}: expected rows of whole blocks, got {} columns",
                     weight.name, spec.cols);
  }
  HostTensor bias;
  if (spec.bias) {
    PAGODA_ASSIGN_OR_RETURN(bias, checked_tensor(checkpoint, spec.joined + ".bias", {rows}));
  }
  ProjectionTensors tensors;
  std::int64_t first = 0;
  for (const ProjectionPart& part : spec.parts) {
    tensors.weights.push_back(slice_rows(weight, first, part.rows));
    if (spec.bias) tensors.biases.push_back(slice_rows(bias, first, part.rows));
    first += part.rows;
  }
  return tensors;
}

}  // namespace

Result<ProjectionTensors> find_projection(const Checkpoint& checkpoint,
                                          const ProjectionSpec& spec) {
  if (!spec.joined.empty() && checkpoint.has(spec.joined + ".weight"))
    return split_projection(checkpoint, spec);
  ProjectionTensors tensors;
  for (const ProjectionPart& part : spec.parts) {
    PAGODA_ASSIGN_OR_RETURN(HostTensor weight, checked_tensor(checkpoint, part.name + ".weight",
                                                              {part.rows, spec.cols}));
    tensors.weights.push_back(std::move(weight));
    if (!spec.bias) continue;
    PAGODA_ASSIGN_OR_RETURN(HostTensor bias,
                            checked_tensor(checkpoint, part.name + ".bias", {part.rows}));
    tensors.biases.push_back(std::move(bias));
  }
  return tensors;
}

Result<Projection> pack_projection(Exec& exec, const ProjectionTensors& tensors, WeightUse use) {
  Projection projection;
  PAGODA_ASSIGN_OR_RETURN(projection.weight, prepare_weight(exec, tensors.weights, use));
  if (!tensors.biases.empty()) {
    PAGODA_ASSIGN_OR_RETURN(projection.bias, prepare_vector(exec, tensors.biases));
  }
  return projection;
}

Result<Projection> load_projection(Exec& exec, const Checkpoint& checkpoint,
                                   const ProjectionSpec& spec) {
  PAGODA_ASSIGN_OR_RETURN(const ProjectionTensors tensors, find_projection(checkpoint, spec));
  return pack_projection(exec, tensors, spec.use);
}

Result<Projection> load_projection(const BlockSource& source, ProjectionRole role) {
  return load_projection(source.exec, source.checkpoint, source.spec.projection(role));
}

Result<std::vector<float>> read_norm(const Checkpoint& checkpoint, const std::string& name,
                                     std::int64_t dim, float offset) {
  PAGODA_ASSIGN_OR_RETURN(const HostTensor weight, checked_tensor(checkpoint, name, {dim}));
  PAGODA_ASSIGN_OR_RETURN(std::vector<float> values, read_vector({&weight, 1}));
  for (float& value : values) value += offset;
  return values;
}

Result<Tensor> load_norm(Exec& exec, const Checkpoint& checkpoint, const std::string& name,
                         std::int64_t dim, float offset, float factor) {
  PAGODA_ASSIGN_OR_RETURN(std::vector<float> values, read_norm(checkpoint, name, dim, offset));
  for (float& value : values) value *= factor;
  const HostTensor weight = {.name = name,
                             .format = WeightFormat::kF32,
                             .shape = {dim},
                             .bytes = std::as_bytes(std::span(values))};
  return prepare_vector(exec, {&weight, 1});
}

Result<std::vector<float>> read_vector(const BlockSource& source, VectorRole role) {
  const VectorSpec& vector = *source.spec.vector(role);
  std::string name = vector.name;
  for (const char* ending : {".weight", ".bias"}) {
    if (source.checkpoint.has(vector.name + ending)) name = vector.name + ending;
  }
  PAGODA_ASSIGN_OR_RETURN(HostTensor tensor, source.checkpoint.tensor(name));
  if (tensor.shape.num_elements() != vector.dim) {
    return data_loss("[model] tensor {}: expected {}, got {}", name, vector.dim,
                     to_string(tensor.shape));
  }
  tensor.shape = {vector.dim};  // some files have it as a single row
  return read_vector({&tensor, 1});
}

Result<Tensor> load_vector(const BlockSource& source, VectorRole role) {
  PAGODA_ASSIGN_OR_RETURN(const std::vector<float> values, read_vector(source, role));
  return source.exec.upload<float>(values, {static_cast<std::int64_t>(values.size())});
}

}  // namespace pagoda
