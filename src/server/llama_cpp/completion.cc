#include "server/llama_cpp/completion.h"

#include "server/llama_cpp/completion_request.h"
#include "server/llama_cpp/llama_cpp_answers.h"
#include "serving/prompt.h"

namespace pagoda {
namespace {

ApiResult<std::unique_ptr<LlamaCppJob>> prepare_llama_cpp_completion(ApiService& service,
                                                                     const HttpRequest& request) {
  auto read = read_logged(service, read_llama_cpp_completion, request.body);
  if (!read.ok()) return std::move(read).error();
  auto job = make_llama_cpp_job(service, request, read->fields);
  if (!job.ok()) return job;
  auto prompt = encode_prompt(service.model, read->prompts.front(), /*add_special_tokens=*/true);
  if (!prompt.ok()) return api_error(prompt.status());
  (*job)->prompt_token_ids = std::move(prompt->token_ids);
  return job;
}

}  // namespace

HttpReply handle_llama_cpp_completion(ApiService& service, const HttpRequest& request,
                                      const Wake& wake) {
  return start_job(service, prepare_llama_cpp_completion(service, request), wake, submit_llama_cpp);
}

}  // namespace pagoda
