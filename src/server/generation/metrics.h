// ServerMetrics: what /metrics shows, under vLLM's names with the prefix "pagoda:". Thread-safe.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "engine/engine.h"

namespace pagoda {

class ServerMetrics {
 public:
  explicit ServerMetrics(const std::string& model_name);
  ~ServerMetrics();

  // Notes the seconds from a request's arrival to its first token.
  void observe_first_token(double seconds);
  // Notes the seconds between two deliveries of tokens to one sample.
  void observe_inter_token(double seconds);

  struct FinishedSample {
    FinishReason reason = FinishReason::kNone;
    double latency_s = 0;  // from the request's arrival to the sample's end
    // The times from the arrival to the prompt's first step, from there to the first token, and
    // from there to the last token. Valid if there is a token.
    double queue_s = 0;
    double prefill_s = 0;
    double decode_s = 0;
    int num_prompt_tokens = 0;
    int num_output_tokens = 0;
  };
  void observe_finished(const FinishedSample& sample);

  // Counts an answer of `handler`, a path of the endpoints' table. Both names come from short
  // lists, because each pair is a permanent line of /metrics. `status` 0: no answer was begun.
  // seconds: from the request's first byte to the answer's last.
  void count_http_answer(std::string_view handler, std::string_view method, int status,
                         double seconds);

  enum class Format { kPrometheus, kOpenMetrics };
  // Returns these metrics, the engine's and the process'.
  std::string text(const EngineStats& stats, const EngineLimits& limits, Format format) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace pagoda
