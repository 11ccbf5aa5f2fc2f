// Sampler: draws one token from one row of logits with one request's parameters.
//
// In this order: logit_bias; registered logits processors; bans (allowed ids, bad words, stop
// tokens before min_tokens, what a grammar does not allow); penalties (repetition, frequency,
// presence) and DRY; temperature (dynamic or not); min-p, top-k, typical-p, top-p, XTC, or mirostat
// instead of these; draw. This is vLLM's order, with llama.cpp's filters where its chain has them.
//  - Ties at top-k are kept. Top-p orders the tokens that earlier filters left, likeliest first and
//    the lower id first among equals. It keeps the shortest prefix whose share reaches p, including
//    the token that crosses p.
//  - The draw is the inverse transform over the kept tokens in the order of their ids, with the
//    uniform of random_uniform() at (seed, sample index, position).
//  - A temperature below 1e-5 is greedy: the largest logit, the lowest id among equals, and no
//    random number.
//
// A row's result depends on its RowSampling alone, bit for bit, not on other rows, earlier calls or
// threads. The arithmetic is IEEE addition and multiplication in a fixed order, whatever the vector
// width of the machine.
//
// Errors: kInvalidArgument for a row with a NaN or +inf, or with no token left to choose from.
// Other rows are not affected. Thread-compatible: a sampler has its own scratch memory, allocated
// by its constructor.
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
  // True before min_tokens: bans eos_token_ids and params->stop_token_ids. Ids outside the
  // vocabulary are ignored.
  bool bans_stop_tokens = false;
  std::span<const int> eos_token_ids;
  // [(vocab_size + 31) / 32]; bans each id whose bit, i % 32 of word i / 32, is not set. Empty:
  // bans none.
  std::span<const std::uint32_t> mask;
  // Synced with `tokens`; null if SamplerState::is_needed() is false. A draw updates its mirostat
  // state.
  SamplerState* state = nullptr;
  std::span<const int> tokens;  // prompt and output so far; for bad words and processors
  int num_prompt_tokens = 0;
  std::uint64_t seed = 0;
  int sample_index = 0;
  int position = 0;  // the drawn token's, in the sequence
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

// Returns true if the temperature is so low that the largest logit is chosen.
bool is_greedy(const SamplingParams& params);

}  // namespace pagoda
