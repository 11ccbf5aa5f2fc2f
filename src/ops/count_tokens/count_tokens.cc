#include "ops/count_tokens/count_tokens.h"

#include <fmt/format.h>

#include "ops/check_tensor.h"

namespace pagoda {

Tensor count_tokens(Exec& exec, const Tensor& counts, const Tensor& cleared,
                    const CountedTokens& tokens) {
  constexpr std::string_view kName = "count_tokens";
  PAGODA_CHECK(
      counts.dtype() == DType::kInt32 && counts.shape().rank() == 2 && counts.is_contiguous(),
      fmt::format("[{}] counts: expected contiguous [histograms, vocab] int32, got {} {}", kName,
                  to_string(counts.shape()), dtype_name(counts.dtype())));
  if (cleared.defined()) check_list(kName, "cleared", cleared);
  check_list(kName, "histograms", tokens.histograms);
  check_tensor(kName, "token_ids", tokens.token_ids, DType::kInt32, tokens.histograms.shape());
  check_tensor(kName, "times", tokens.times, DType::kInt32, tokens.histograms.shape());
  const OpTimer timer(
      exec, [&] { return OpCall{.op = kName, .read_bytes = 3 * bytes_of(tokens.histograms)}; });
  static constexpr Bodies<decltype(reference::count_tokens)> kBodies{
      reference::count_tokens, cpu::count_tokens, gpu::count_tokens};
  return kBodies.of(exec)(exec, counts, cleared, tokens);
}

}  // namespace pagoda
