// Requests of all kinds in one batch: prompts that share beginnings, every sampling method, tenants and
// embeddings.
#pragma once

#include <iterator>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "engine/request.h"
#include "sampling/token_rules.h"
#include "tests/support/run_to_end.h"

namespace pagoda {

struct Traffic {
  int num_requests = 40;
  int longest_prompt = 120;
  int max_tokens = 60;
};

// Gives about half of the requests a method that keeps a state, filters on the host or bans tokens.
inline void add_methods(SamplingParams& params, int i) {
  switch (i % 9) {
    case 0:
      params.typical_p = 0.8f;
      params.xtc_probability = 0.5f;
      params.xtc_threshold = 0.02f;
      break;
    case 2:
      params.dry_multiplier = 0.8f;
      params.dry_allowed_length = 1;
      break;
    case 4:
      params.mirostat = 1 + i / 9 % 2;
      params.mirostat_eta = 0.3f;
      break;
    case 6:
      params.dynatemp_range = 0.5f;
      params.frequency_penalty = 0.4f;
      break;
    case 7:
      params.repetition_penalty = 1.3f;
      params.presence_penalty = 0.5f;
      params.repeat_last_n = 1 + i % 20;
      break;
    case 8:
      params.token_rules = std::make_shared<const TokenRules>(
          TokenRules{.logit_bias = {{i, 2}}, .bad_words = {{7}, {8, 9}}});
      break;
    default:
      break;
  }
}

// Draws requests with mostly short prompts; a third begin like an earlier one. All sampling methods
// occur. Some requests have penalties, several samples, scored prompts or a tenant; some embed.
inline std::vector<GenerationRequest> mixed_requests(const Traffic& traffic, int vocab_size,
                                                     std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](int end) { return static_cast<int>(random() % std::uint64_t(end)); };
  std::vector<GenerationRequest> requests;
  for (int i = 0; i < traffic.num_requests; ++i) {
    GenerationRequest request = {.priority = i % 7 == 0 ? 1 : 0};
    if (i > 0 && i % 3 == 0) {
      request.prompt_token_ids = requests[below(i)].prompt_token_ids;
      request.prompt_token_ids.resize(1 + below(static_cast<int>(request.prompt_token_ids.size())));
    }
    const int length = 1 + below(1 + below(traffic.longest_prompt));
    while (static_cast<int>(request.prompt_token_ids.size()) < length)
      request.prompt_token_ids.push_back(4 + below(vocab_size - 4));
    if (i % 11 == 5) request.cache_salt = "tenant";
    request.sampling = {.temperature = i % 2 == 0 ? 0.0f : 0.9f,
                        .top_p = 0.95f,
                        .repetition_penalty = i % 5 == 1 ? 1.2f : 1.0f,
                        .seed = 7 + i,
                        .n = i % 8 == 3 ? 3 : 1,
                        .max_tokens = 1 + below(traffic.max_tokens),
                        .ignore_eos = i % 4 != 0,
                        .logprobs = i % 4};
    if (i % 10 == 9) request.sampling.logprobs.reset();
    add_methods(request.sampling, i);
    if (i % 6 == 2) request.sampling.prompt_logprobs = 1;
    requests.push_back(std::move(request));
  }
  constexpr Pooling kPoolings[] = {Pooling::kFirst, Pooling::kLast, Pooling::kMean};
  for (int i = 0; i < traffic.num_requests; i += 6) {
    GenerationRequest request = requests[i];
    ask_for_embedding(kPoolings[i / 6 % std::size(kPoolings)], request);
    requests.push_back(std::move(request));
  }
  return requests;
}

}  // namespace pagoda
