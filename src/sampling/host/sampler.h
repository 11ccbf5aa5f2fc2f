// Sampler: one row of logits and one request's parameters in, one token out.
//
// In this order: logit_bias; registered logits processors; bans (allowed ids, bad words, stop
// tokens before min_tokens, what a grammar does not allow); penalties (repetition, frequency,
// presence) and DRY; temperature (dynamic or not); min-p, top-k, typical-p, top-p, XTC, or mirostat
// instead of these; draw. vLLM's order, with llama.cpp's filters where its chain has them.
//  - Ties at top-k are kept. Top-p keeps the shortest prefix, likeliest first and the lower id
//    first among equals, whose share of what min-p and top-k left reaches p: the token that crosses
//    p is kept.
//  - The draw is the inverse transform over the kept tokens in the order of their ids, with the
//    uniform of random_uniform() at (seed, sample index, position).
//  - A temperature below 1e-5 is greedy: the largest logit, the lowest id among equals, and no
//    random number.
//
// A row's result is a function of its RowSampling alone, bit for bit: never of other rows, earlier
// calls or threads. The arithmetic is IEEE addition and multiplication in a fixed order, whatever
// the vector width of the machine.
//
// Errors: kInvalidArgument for a row with a NaN or +inf, or with no token left to choose from. It
// concerns that row alone. Thread-compatible; scratch memory is the sampler's own and is taken at
// its construction.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/status.h"
#include "sampling/host/logits_processor.h"
#include "sampling/host/sampler_state.h"
#include "sampling/sampling_params.h"

namespace pagoda {

// Everything that one row's draw depends on.
struct RowSampling {
  std::span<const float> logits;  // [vocab_size]; raw
  const SamplingParams* params = nullptr;
  // Before min_tokens: these and params->stop_token_ids are banned. Ids outside the vocabulary
  // count for nothing.
  bool bans_stop_tokens = false;
  std::span<const int> eos_token_ids;
  // [(vocab_size + 31) / 32]; ids whose bit (i % 32 of word i / 32) is not set are banned. Empty:
  // none.
  std::span<const std::uint32_t> mask;
  // Synced with `tokens`; null where SamplerState::is_needed() says no. Drawing moves mirostat's
  // part.
  SamplerState* state = nullptr;
  std::span<const int> tokens;  // prompt and output so far; bad words and processors look at it
  int num_prompt_tokens = 0;
  std::uint64_t seed = 0;
  int sample_index = 0;
  int position = 0;  // in the sequence, of the token that is drawn
};

class Sampler {
 public:
  // Makes a sampler whose `processors` act on every row, in this order.
  explicit Sampler(int vocab_size,
                   std::vector<std::shared_ptr<const LogitsProcessor>> processors = {});
  ~Sampler();
  Sampler(Sampler&&) noexcept;
  Sampler& operator=(Sampler&&) noexcept;

  Result<int> sample(const RowSampling& row);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// Returns true where a temperature means the largest logit.
bool is_greedy(const SamplingParams& params);

}  // namespace pagoda
