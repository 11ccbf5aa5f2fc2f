#include "ops/count_tokens/count_tokens.h"

#include <fmt/format.h>

namespace pagoda {
namespace {

constexpr std::string_view kName = "count_tokens";

void check_list(std::string_view what, const Tensor& list) {
  PAGODA_CHECK(list.dtype() == DType::kInt32 && list.shape().rank() == 1 && list.is_contiguous(),
               fmt::format("[{}] {}: expected contiguous [n] int32, got {} {}", kName, what,
                           to_string(list.shape()), dtype_name(list.dtype())));
}

}  // namespace

Tensor count_tokens(Exec& exec, const Tensor& counts, const Tensor& cleared,
                    const CountedTokens& tokens) {
  PAGODA_CHECK(
      counts.dtype() == DType::kInt32 && counts.shape().rank() == 2 && counts.is_contiguous(),
      fmt::format("[{}] counts: expected contiguous [histograms, vocab] int32, got {} {}", kName,
                  to_string(counts.shape()), dtype_name(counts.dtype())));
  if (cleared.defined()) check_list("cleared", cleared);
  check_list("histograms", tokens.histograms);
  check_list("token_ids", tokens.token_ids);
  check_list("times", tokens.times);
  PAGODA_CHECK(tokens.token_ids.shape() == tokens.histograms.shape() &&
                   tokens.times.shape() == tokens.histograms.shape(),
               fmt::format("[{}] expected one id and number each for {} histograms, got {} and {}",
                           kName, to_string(tokens.histograms.shape()),
                           to_string(tokens.token_ids.shape()), to_string(tokens.times.shape())));
  const OpTimer timer(
      exec, [&] { return OpCall{.op = kName, .read_bytes = 3 * bytes_of(tokens.histograms)}; });
  static constexpr Bodies<decltype(reference::count_tokens)> kBodies{
      reference::count_tokens, cpu::count_tokens, mlx::count_tokens, cuda::count_tokens};
  return kBodies.of(exec)(exec, counts, cleared, tokens);
}

}  // namespace pagoda
