#include "model/blocks/experts_block.h"

#include "model/blocks/expert_tensors.h"
#include "model/family.h"
#include "ops/expert_gated_linear/expert_gated_linear.h"
#include "ops/expert_linear/expert_linear.h"
#include "quant/tensor_rows.h"

namespace pagoda {
namespace {

// Returns the part of an expert whose module is called `module`.
ExpertPart part_of(const ExpertNames& names, const std::string& prefix, std::string_view module,
                   std::string_view mlx_module, std::int64_t rows) {
  const std::string experts = prefix + std::string(names.experts) + ".";
  // MLX's names stand beside the place of `experts`.
  const std::string beside = experts.substr(0, experts.rfind('.', experts.size() - 2) + 1);
  return {.before = experts,
          .behind = "." + std::string(module),
          .stacked = {experts + std::string(module),
                      beside + std::string(names.mlx) + "." + std::string(mlx_module)},
          .rows = rows};
}

// Loads a matrix and its bias in float32: a router's choice between nearly equal experts should not
// depend on how the weights are rounded.
Result<Projection> load_float32(const BlockSource& source, ProjectionRole role) {
  PAGODA_ASSIGN_OR_RETURN(ProjectionTensors tensors,
                          find_projection(source.checkpoint, source.spec.projection(role)));
  HostTensor& weight = tensors.weights.front();
  const std::int64_t rows = weight.shape[0], cols = weight.shape[1];
  std::vector<float> values(rows * cols);
  for (std::int64_t row = 0; row < rows; ++row) {
    read_row(weight, row, values.data() + row * cols);
  }
  release_pages(weight);
  weight.format = WeightFormat::kF32;
  weight.affine.reset();
  weight.mxfp4.reset();
  weight.strides.reset();
  weight.storage.reset();
  weight.bytes = std::as_bytes(std::span(values));
  return pack_projection(source.exec, tensors);
}

}  // namespace

Tensor ExpertsBlock::apply(const Step& step, const Tensor& x, const Tensor& routed) const {
  Exec& exec = step.exec;
  const Routes routes = route(exec, router.apply_float32(exec, routed), choice);
  const Routing routing = group_by_expert(
      exec, routes.experts,
      {.num_experts = gate_up.num_experts, .block_rows = expert_block_rows(exec, x.extent(0))});
  const Tensor gated = expert_gated_linear(exec, x, gate_up, routing,
                                           {.bias = gate_up_bias, .glu = step.config.glu});
  ExpertLinearArgs args = {.bias = down_bias};
  if (shared) args.shared = shared->apply(step, x);
  if (shared_gate.weight.defined()) args.shared_gate = shared_gate.apply_float32(exec, x);
  return expert_linear(exec, gated, down, routing, routes.weights, args);
}

std::int64_t ExpertsBlock::num_chosen_bytes() const {
  const std::int64_t all = gate_up.all.packed->num_bytes() + down.all.packed->num_bytes();
  return all / gate_up.num_experts * choice.rule.num_chosen;
}

BlockSpec block_spec(const ModelConfig& config, const ExpertsConfig& mlp, int layer) {
  const ExpertNames& names = find_family(config.architecture)->experts;
  const std::string prefix = layer_prefix(layer);
  const auto name_of = [&](std::string_view name) { return prefix + std::string(name); };
  BlockSpec spec;
  spec.projections.push_back({.role = ProjectionRole::kRouter,
                              .parts = {{name_of(names.router), mlp.num_experts}},
                              .cols = config.hidden_size,
                              .bias = mlp.has_router_bias});
  spec.experts = {{.role = ExpertRole::kGateUp,
                   .num_experts = mlp.num_experts,
                   .parts = {part_of(names, prefix, names.gate, "gate_proj", mlp.intermediate_size),
                             part_of(names, prefix, names.up, "up_proj", mlp.intermediate_size)},
                   .joined = name_of(names.all_gate_up),
                   .cols = config.hidden_size,
                   .has_bias = mlp.has_bias,
                   .is_transposed = names.are_transposed,
                   .is_interleaved = names.are_interleaved},
                  {.role = ExpertRole::kDown,
                   .num_experts = mlp.num_experts,
                   .parts = {part_of(names, prefix, names.down, "down_proj", config.hidden_size)},
                   .joined = name_of(names.all_down),
                   .cols = mlp.intermediate_size,
                   .has_bias = mlp.has_bias,
                   .is_transposed = names.are_transposed}};
  if (mlp.has_choice_bias) {
    spec.vectors.push_back({.role = VectorRole::kChoiceBias,
                            .name = name_of(names.choice_bias),
                            .dim = mlp.num_experts});
  }
  if (mlp.has_expert_scales) {
    spec.vectors.push_back({.role = VectorRole::kExpertScales,
                            .name = name_of(names.expert_scales),
                            .dim = mlp.num_experts});
  }
  if (mlp.shared_intermediate_size > 0) {
    spec.append(dense_mlp_spec(config, {.intermediate_size = mlp.shared_intermediate_size},
                               name_of(names.shared) + ".", names.shared_gate_up,
                               names.shared_down));
  }
  if (mlp.has_shared_gate) {
    spec.projections.push_back({.role = ProjectionRole::kSharedGate,
                                .parts = {{name_of(names.shared_gate), 1}},
                                .cols = config.hidden_size});
  }
  return spec;
}

Result<ExpertsBlock> load_block(const BlockSource& source, const ExpertsConfig& mlp) {
  ExpertsBlock block;
  block.choice.rule = mlp.rule;
  PAGODA_ASSIGN_OR_RETURN(block.router, load_float32(source, ProjectionRole::kRouter));
  if (mlp.has_choice_bias) {
    PAGODA_ASSIGN_OR_RETURN(block.choice.choice_bias, load_vector(source, VectorRole::kChoiceBias));
  }
  if (mlp.has_expert_scales) {
    PAGODA_ASSIGN_OR_RETURN(block.choice.expert_scales,
                            load_vector(source, VectorRole::kExpertScales));
  }
  PAGODA_ASSIGN_OR_RETURN(block.gate_up, load_experts(source.exec, source.checkpoint,
                                                      source.spec.experts_of(ExpertRole::kGateUp)));
  PAGODA_ASSIGN_OR_RETURN(block.down, load_experts(source.exec, source.checkpoint,
                                                   source.spec.experts_of(ExpertRole::kDown)));
  if (mlp.has_bias) {
    PAGODA_ASSIGN_OR_RETURN(block.gate_up_bias, load_expert_biases(source, ExpertRole::kGateUp));
    PAGODA_ASSIGN_OR_RETURN(block.down_bias, load_expert_biases(source, ExpertRole::kDown));
  }
  if (mlp.shared_intermediate_size > 0) {
    PAGODA_ASSIGN_OR_RETURN(
        block.shared,
        load_block(source, DenseMlpConfig{.intermediate_size = mlp.shared_intermediate_size}));
  }
  if (mlp.has_shared_gate) {
    PAGODA_ASSIGN_OR_RETURN(block.shared_gate, load_float32(source, ProjectionRole::kSharedGate));
  }
  return block;
}

}  // namespace pagoda
