// Answers in llama.cpp's shape: an object with a text, why it ended, and figures. Streams send parts
// of the text as events, and such an object last.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "server/generation/generation_job.h"
#include "server/llama_cpp/llama_cpp_fields.h"

namespace pagoda {

// A request that has passed every check, with its prompt encoded.
struct LlamaCppJob : GenerationJob {
  std::string model_name;
  std::vector<int> prompt_token_ids;  // empty after submission
  bool is_cut = false;                // some of the prompt's texts were cut or left out
  bool only_reads = false;            // LlamaCppFields::only_reads()
  std::vector<std::string> response_fields;
  int num_probs = 0;  // how many of the likeliest tokens are shown for each token; 0: none
  bool returns_tokens = false;
  bool times_parts = false;

  std::int64_t num_kept_bytes() const;
  void drop_submitted();
};

// Makes the job of a request whose prompt is not encoded yet. Errors: another model's name.
ApiResult<std::unique_ptr<LlamaCppJob>> make_llama_cpp_job(const ApiService& service,
                                                           const HttpRequest& request,
                                                           LlamaCppFields& fields);
// Submits the job's prompt. Errors are replies.
HttpReply submit_llama_cpp(ApiService& service, std::unique_ptr<LlamaCppJob> job, const Wake& wake);

}  // namespace pagoda
