#include "backend/gpu/gpu_op.h"
#include "ops/metal_sources.h"
#include "ops/resolve_tokens/resolve_tokens.h"
#include "ops/resolve_tokens/resolve_tokens_metal.h"

namespace pagoda::gpu {

Tensor resolve_tokens(Exec& exec, const Tensor& token_ids, const Tensor& token_source,
                      const Tensor& drawn) {
  const std::int64_t tokens = token_ids.extent(0);
  GpuOp op{.name = "resolve_tokens",
           .inputs = {token_ids, token_source, drawn},
           .outputs = {{DType::kInt32, token_ids.shape()}}};
  if (uses_kernels(exec)) {
    op.launch = {
        .dispatches = {{.function = {&kResolveTokensMetal, "resolve_tokens"},
                        .buffers = {input(0), input(1), input(2), output(0)},
                        .parameters =
                            ResolveTokensParameters{.num_tokens = static_cast<int>(tokens)},
                        .num_groups = {num_groups_of(tokens, 256), 1, 1},
                        .num_threads = 256}},
        .bytes = 16.0 * static_cast<double>(tokens)};
  } else {
    op.host = [](Exec& host, std::span<const Tensor> in) {
      return std::vector<Tensor>{cpu::resolve_tokens(host, in[0], in[1], in[2])};
    };
  }
  return run(exec, std::move(op))[0];
}

}  // namespace pagoda::gpu
