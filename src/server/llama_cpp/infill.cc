#include "server/llama_cpp/infill.h"

#include "server/base/error_response.h"
#include "server/llama_cpp/infill_request.h"
#include "server/llama_cpp/llama_cpp_answers.h"
#include "serving/fill_in_prompt.h"

namespace pagoda {
namespace {

ApiResult<std::unique_ptr<LlamaCppJob>> prepare_infill(ApiService& service,
                                                       const HttpRequest& request) {
  auto read = read_logged(service, read_infill_request, request.body);
  if (!read.ok()) return std::move(read).error();
  auto job = make_llama_cpp_job(service, request, read->fields);
  if (!job.ok()) return job;
  auto prompt = encode_at_cursor(service.model, read->texts, (*job)->generation.max_tokens);
  if (!prompt.ok()) return api_error(prompt.status());
  (*job)->prompt_token_ids = std::move(prompt->token_ids);
  (*job)->is_cut = prompt->is_cut;
  return job;
}

}  // namespace

HttpReply handle_infill(ApiService& service, const HttpRequest& request, const Wake& wake) {
  return start_job(service, prepare_infill(service, request), wake, submit_llama_cpp);
}

}  // namespace pagoda
