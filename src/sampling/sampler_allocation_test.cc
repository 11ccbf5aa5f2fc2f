// A row in steady state takes no memory: everything that the sampler needs it has taken at its
// construction.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <new>
#include <vector>

#include "sampling/sampler.h"

namespace {
std::atomic<int> num_allocations = 0;
}

// The linker takes these for the whole test binary. Out of line, or the compiler sees free() meet
// the new of its callers.
[[gnu::noinline]] void* operator new(std::size_t size) {
  ++num_allocations;
  if (void* memory = std::malloc(size)) return memory;
  std::abort();
}
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  ++num_allocations;
  return std::malloc(size);
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace pagoda {
namespace {

TEST(SamplerAllocation, ARowTakesNoMemory) {
  std::vector<float> row(5000);
  for (std::size_t i = 0; i < row.size(); ++i) row[i] = std::sin(static_cast<float>(i));
  const std::vector<SamplingParams> kinds = {
      {.temperature = 0}, {},
      {.top_k = 20},      {.top_k = 2000, .top_p = 0.9f, .min_p = 0.01f},
      {.top_p = 0.9f},    {.repetition_penalty = 1.1f, .frequency_penalty = 0.5f, .logprobs = 0}};
  Sampler sampler(5000);
  SamplerState state(100);
  std::vector<int> tokens(100, 7);
  const int before = num_allocations;
  for (int position = 1; position < 100; ++position) {
    const SamplingParams& params = kinds[position % kinds.size()];
    state.sync(std::span(tokens).first(position), 1);
    const Result<SampledToken> token =
        sampler.sample({.logits = row, .params = &params, .state = &state, .position = position});
    tokens[position] = token->token_id;
  }
  EXPECT_EQ(num_allocations, before);
  const auto* probe = new int(1);  // the counter counts
  EXPECT_EQ(num_allocations, before + 1);
  delete probe;
}

}  // namespace
}  // namespace pagoda
