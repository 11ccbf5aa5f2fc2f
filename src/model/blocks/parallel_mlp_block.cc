#include "model/blocks/parallel_mlp_block.h"

#include <cmath>
#include <vector>

#include "model/family.h"
#include "ops/add_rms_norm/add_rms_norm.h"
#include "ops/rms_norm/rms_norm.h"

namespace pagoda {

Tensor ParallelMlpBlock::apply(const Step& step, const Tensor& x, const Tensor& residual) const {
  Exec& exec = step.exec;
  const RmsNormArgs norm = {.eps = step.config.rms_norm_eps};
  const Tensor of_dense = rms_norm(exec, dense.apply(step, x), dense_delta_norm, norm);
  const Tensor of_experts = experts.apply(step, rms_norm(exec, residual, experts_norm, norm),
                                          rms_norm(exec, residual, router_norm, norm));
  return add_rms_norm(exec, of_dense, of_experts, Tensor(),
                      {.eps = norm.eps, .delta_norm = experts_delta_norm})
      .sum;
}

BlockSpec block_spec(const ModelConfig& config, const ParallelMlpConfig& mlp, int layer) {
  BlockSpec spec = block_spec(config, mlp.dense, layer);
  spec.append(block_spec(config, mlp.experts, layer));
  const ExpertNames& names = find_family(config.architecture)->experts;
  const auto add = [&](VectorRole role, std::string_view name) {
    spec.vectors.push_back(
        {.role = role, .name = layer_prefix(layer) + std::string(name), .dim = config.hidden_size});
  };
  add(VectorRole::kDenseDeltaNorm, names.dense_delta_norm);
  add(VectorRole::kRouterScale, names.router_scale);
  add(VectorRole::kExpertsNorm, names.norm);
  add(VectorRole::kExpertsDeltaNorm, names.delta_norm);
  return spec;
}

Result<ParallelMlpBlock> load_block(const BlockSource& source, const ParallelMlpConfig& mlp) {
  const auto load = [&source](VectorRole role) {
    const VectorSpec& norm = *source.spec.vector(role);
    return load_norm(source.exec, source.checkpoint, norm.name + ".weight", norm.dim,
                     source.config.norm_offset);
  };
  ParallelMlpBlock block;
  PAGODA_ASSIGN_OR_RETURN(block.dense, load_block(source, mlp.dense));
  PAGODA_ASSIGN_OR_RETURN(block.dense_delta_norm, load(VectorRole::kDenseDeltaNorm));
  // The router's norm has no weights, but its result is multiplied by the scale and a constant.
  PAGODA_ASSIGN_OR_RETURN(std::vector<float> scale, read_vector(source, VectorRole::kRouterScale));
  const float root = 1 / std::sqrt(static_cast<float>(source.config.hidden_size));
  for (float& value : scale) value *= root;
  block.router_norm = source.exec.upload<float>(scale, {source.config.hidden_size});
  PAGODA_ASSIGN_OR_RETURN(block.experts_norm, load(VectorRole::kExpertsNorm));
  PAGODA_ASSIGN_OR_RETURN(block.experts, load_block(source, mlp.experts));
  PAGODA_ASSIGN_OR_RETURN(block.experts_delta_norm, load(VectorRole::kExpertsDeltaNorm));
  return block;
}

}  // namespace pagoda
