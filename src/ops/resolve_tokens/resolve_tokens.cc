#include "ops/resolve_tokens/resolve_tokens.h"

#include <fmt/format.h>

namespace pagoda {
namespace {

void check_ids(std::string_view name, const Tensor& ids) {
  PAGODA_CHECK(ids.dtype() == DType::kInt32 && ids.shape().rank() == 1 && ids.is_contiguous(),
               fmt::format("[resolve_tokens] {}: expected contiguous [n] int32, got {} {}", name,
                           to_string(ids.shape()), dtype_name(ids.dtype())));
}

}  // namespace

Tensor resolve_tokens(Exec& exec, const Tensor& token_ids, const Tensor& token_source,
                      const Tensor& drawn) {
  check_ids("token_ids", token_ids);
  check_ids("token_source", token_source);
  check_ids("drawn", drawn);
  PAGODA_CHECK(token_source.shape() == token_ids.shape(),
               fmt::format("[resolve_tokens] token_source: expected {}, got {}",
                           to_string(token_ids.shape()), to_string(token_source.shape())));
  const OpTimer timer(exec, [&] {
    return OpCall{.op = "resolve_tokens",
                  .read_bytes = bytes_of(token_ids) + bytes_of(token_source) + bytes_of(drawn)};
  });
  static constexpr Bodies<decltype(reference::resolve_tokens)> kBodies{
      reference::resolve_tokens, cpu::resolve_tokens, mlx::resolve_tokens, cuda::resolve_tokens};
  return kBodies.of(exec)(exec, token_ids, token_source, drawn);
}

}  // namespace pagoda
