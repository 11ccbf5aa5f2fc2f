#include "server/chat/chat_job.h"

#include "serving/answer_reader.h"
#include "serving/cut_prompt.h"
#include "serving/prompt.h"

namespace pagoda {
namespace {

// Resolves how answers to `prompt` are parsed into parts, and what constrains their tokens.
std::optional<ApiError> resolve_form(const ServedModel& model, const ChatRequest& request,
                                     std::string_view prompt, ChatJob& job) {
  const std::optional<ThoughtMarks>& thought = model.answer_format.thought;
  if (const int budget = request.reasoning.token_budget.value_or(-1); thought && budget >= 0) {
    job.generation.thought_budget =
        ThoughtBudgetOptions{budget, *thought, begins_in_thought(model, prompt)};
  }
  auto form = resolve_answer_form(model, prompt, request.tools, request.reasoning.is_separate,
                                  job.generation.grammar.grammar);
  if (!form.ok()) return api_error(form.status());
  if (form->parsing && form->parsing->has_only_calls) job.generation.only_calls = form->parsing;
  job.parsing = std::move(form->parsing);
  if (form->shows_special_tokens) job.generation.skip_special_tokens = false;
  return {};
}

}  // namespace

std::int64_t ChatJob::num_kept_bytes() const {
  std::size_t num_bytes = prompt_token_ids.size() * sizeof(int) + echoed.size();
  if (parsing && parsing->tools) {
    for (const ToolDefinition& tool : *parsing->tools)
      num_bytes +=
          sizeof(tool) + tool.name.size() + tool.parameters_json.size() + tool.input_regex.size();
  }
  return GenerationJob::num_kept_bytes() + static_cast<std::int64_t>(num_bytes);
}

void ChatJob::drop_submitted() {
  GenerationJob::drop_submitted();
  if (!repeats_prompt_ids) prompt_token_ids = {};
}

std::optional<ApiError> prepare_chat(ApiService& service, RequestOrigin origin,
                                     ChatRequest& request, std::string_view id_prefix,
                                     ChatJob& job) {
  job.origin = std::move(origin);
  job.generation = std::move(request.generation);
  job.logprobs = request.logprobs;
  job.top_logprobs = request.top_logprobs;
  job.is_thought_told = request.reasoning.is_included;
  job.has_functions = request.tools.are_functions;
  job.repeats_prompt_ids = job.generation.return_token_ids;
  job.generation.client = job.origin.client;
  const std::string& model_name = job.generation.model;
  if (auto error = check_model_name(service, model_name)) return error;
  job.identity = AnswerIdentity::make(id_prefix, answered_name(service, model_name));
  if (job.generation.echo) job.echoed = request.prompt.last_message_text;
  const auto cut_to = resolve_answered_cut(service.model, request.truncate_prompt_tokens,
                                           job.generation.max_tokens);
  if (!cut_to.ok()) return api_error(cut_to.status());
  request.prompt.cut_to = *cut_to;
  auto encoded = encode_chat_prompt(service.model, std::move(request.prompt));
  if (!encoded.ok()) return api_error(encoded.status());
  job.prompt_token_ids = std::move(encoded->token_ids);
  return resolve_form(service.model, request, encoded->text, job);
}

GroupRequest group_request_of(const ChatJob& job, const ServedModel& model) {
  const GenerationFields& fields = job.generation;
  const int num_prompt_tokens = static_cast<int>(job.prompt_token_ids.size());
  const int max_tokens = resolve_max_tokens(model, num_prompt_tokens, fields.max_tokens);
  std::optional<int> logprobs;
  if (job.logprobs) logprobs = job.top_logprobs;
  GroupRequest request = {.num_echoed_bytes = std::ssize(job.echoed) * fields.sampling.n};
  if (job.repeats_prompt_ids) request.num_echoed_tokens = std::ssize(job.prompt_token_ids);
  request.texts.push_back(
      to_text_request(fields, job.constraints, job.prompt_token_ids,
                      to_sampling_params(fields, model.defaults, logprobs, max_tokens)));
  return request;
}

std::optional<ApiError> check_chat(const ChatJob& job, const ServedModel& model) {
  const GroupRequest request = group_request_of(job, model);
  const SamplingParams& sampling = request.texts.front().generation.sampling;
  const Status checked = validate(sampling, model.engine->limits().vocab_size);
  if (!checked.ok()) return api_error(checked);
  return {};
}

std::optional<ApiError> check_counted(ChatJob& job, const ServedModel& model) {
  job.generation.max_tokens.reset();
  job.prompt_token_ids.resize(1);
  return check_chat(job, model);
}

}  // namespace pagoda
