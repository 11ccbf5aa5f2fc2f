#include "engine/sequence.h"

#include <fmt/format.h>

#include <utility>

#include "core/check.h"

namespace pagoda {

Sequence::Sequence(const Request& request, std::shared_ptr<const SamplingParams> params,
                   int sample_index, std::uint64_t arrival, int max_num_tokens)
    : request_id_(request.id),
      sample_index_(sample_index),
      params_(std::move(params)),
      seed_(request.seed),
      priority_(request.generation.priority),
      arrival_(arrival),
      num_prompt_tokens_(static_cast<int>(request.generation.prompt_token_ids.size())),
      max_num_tokens_(max_num_tokens) {
  PAGODA_CHECK(0 < num_prompt_tokens_ && num_prompt_tokens_ <= max_num_tokens_,
               fmt::format("[sequence] expected a prompt of 1 to {} tokens, got {}",
                           max_num_tokens_, num_prompt_tokens_));
  tokens_ = request.generation.prompt_token_ids;
  if (request.generation.mask_source) mask_source_ = request.generation.mask_source->clone();
}

}  // namespace pagoda
