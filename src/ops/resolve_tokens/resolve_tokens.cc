#include "ops/resolve_tokens/resolve_tokens.h"

#include "ops/check_tensor.h"

namespace pagoda {

Tensor resolve_tokens(Exec& exec, const Tensor& token_ids, const Tensor& token_source,
                      const Tensor& drawn) {
  constexpr std::string_view kName = "resolve_tokens";
  check_list(kName, "token_ids", token_ids);
  check_tensor(kName, "token_source", token_source, DType::kInt32, token_ids.shape());
  check_list(kName, "drawn", drawn);
  const OpTimer timer(exec, [&] {
    return OpCall{.op = kName,
                  .read_bytes = bytes_of(token_ids) + bytes_of(token_source) + bytes_of(drawn)};
  });
  static constexpr Bodies<decltype(reference::resolve_tokens)> kBodies{
      reference::resolve_tokens, cpu::resolve_tokens, gpu::resolve_tokens};
  return kBodies.of(exec)(exec, token_ids, token_source, drawn);
}

}  // namespace pagoda
