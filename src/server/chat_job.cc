#include "server/chat_job.h"

#include "server/chat_constraints.h"

namespace pagoda {

std::optional<ApiError> prepare_chat(ApiService& service, const HttpRequest& request,
                                     std::string_view id_prefix, ChatJob& job) {
  job.arrival = request.arrival;
  job.trace = request.trace;
  job.request.generation.client = request.client;
  const std::string& model_name = job.request.generation.model;
  if (auto error = check_model_name(service, model_name)) return error;
  job.identity = AnswerIdentity::make(id_prefix, answered_name(service, model_name));
  if (job.request.generation.echo) job.echoed = job.request.prompt.last_message_text;
  auto encoded = encode_chat_prompt(service.model, job.request.prompt);
  if (!encoded.ok()) return std::move(encoded).error();
  job.prompt = *std::move(encoded);
  return settle_answer_format(service.model, job);
}

ApiResult<GroupRequest> group_request_of(const ChatJob& job, const ServedModel& model) {
  const GenerationFields& fields = job.request.generation;
  const int num_prompt_tokens = static_cast<int>(job.prompt.token_ids.size());
  auto max_tokens = settle_max_tokens(model, num_prompt_tokens, fields.max_tokens, std::nullopt);
  if (!max_tokens.ok()) return std::move(max_tokens).error();
  std::optional<int> logprobs;
  if (job.request.logprobs) logprobs = job.request.top_logprobs;
  GroupRequest request = {.num_echoed_bytes = std::ssize(job.echoed) * fields.sampling.n,
                          .is_streamed = fields.stream,
                          .arrival = job.arrival,
                          .trace = job.trace};
  if (fields.return_token_ids) request.num_echoed_tokens = std::ssize(job.prompt.token_ids);
  request.texts.push_back(
      to_text_request(fields, job.constraints, job.prompt.token_ids,
                      to_sampling_params(fields, model.defaults, logprobs, *max_tokens)));
  return request;
}

std::optional<ApiError> check_chat(const ChatJob& job, const ServedModel& model) {
  auto request = group_request_of(job, model);
  if (!request.ok()) return std::move(request).error();
  const SamplingParams& sampling = request->texts.front().generation.sampling;
  const Status checked = validate(sampling, model.engine->limits().vocab_size);
  if (!checked.ok()) return api_error(checked);
  return {};
}

}  // namespace pagoda
