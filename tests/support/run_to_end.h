// Runs requests through an engine to their ends and keeps all results.
#pragma once

#include <vector>

#include "core/status.h"
#include "engine/engine.h"

namespace pagoda {

struct WholeAnswer {
  std::vector<int> token_ids;
  std::vector<TokenLogprobs> logprobs;
  std::vector<std::optional<TokenLogprobs>> prompt_logprobs;
  std::vector<float> embedding;
  FinishReason finish_reason = FinishReason::kNone;
  Status error;
  std::uint64_t logits_hash = 0;
};

void add_event(OutputEvent event, WholeAnswer& answer);

// Makes a request ask for the prompt's embedding alone.
void ask_for_embedding(Pooling pooling, GenerationRequest& request);

// Runs all requests at once. Returns one answer per sample, in the requests' order. A refused
// request's answer has kError and the refusal.
std::vector<WholeAnswer> run_to_end(Engine& engine, const std::vector<GenerationRequest>& requests);
WholeAnswer run_to_end(Engine& engine, const GenerationRequest& request);

// Returns the counters once nothing runs or waits: a step is counted after its last event.
EngineStats stats_at_rest(const Engine& engine);

}  // namespace pagoda
