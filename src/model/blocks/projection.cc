#include "model/blocks/projection.h"

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

Result<ProjectionTensors> find_projection(const Checkpoint& checkpoint,
                                          const ProjectionSpec& spec) {
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

Result<Tensor> load_norm(Exec& exec, const Checkpoint& checkpoint, const std::string& name,
                         std::int64_t dim) {
  PAGODA_ASSIGN_OR_RETURN(HostTensor weight, checked_tensor(checkpoint, name, {dim}));
  return prepare_vector(exec, {&weight, 1});
}

}  // namespace pagoda
