#include "server/generation/api_service.h"

#include <algorithm>

#include "core/log.h"
#include "serving/allowed_tokens.h"
#include "serving/repeated_call_guard.h"

namespace pagoda {
namespace {

constexpr std::size_t kMaxReportedNames = 256;
constexpr std::size_t kMaxNameBytes = 64;

// Returns a client's field name, shortened and printable, so that it fits one line of a log.
std::string printable(std::string name) {
  name.resize(std::min(name.size(), kMaxNameBytes));
  for (char& c : name) {
    if (c < 0x20 || c > 0x7e) c = '?';
  }
  return name;
}

}  // namespace

void UnknownFieldLog::report(const std::vector<std::string>& names) {
  std::lock_guard lock(mutex_);
  for (const std::string& name : names) {
    if (seen_.size() >= kMaxReportedNames) return;
    const std::string shown = printable(name);
    if (seen_.insert(shown).second)
      log_warning("[server] field '{}' is not known and is ignored", shown);
  }
}

ApiResult<Constraints> make_constraints(ApiService& service, const GenerationFields& fields) {
  auto rules = make_token_rules({.tokenizer = *service.model.tokenizer,
                                 .vocabulary_text = service.vocabulary_text,
                                 .vocab_size = service.model.engine->limits().vocab_size},
                                fields);
  if (!rules.ok()) return std::move(rules).error();
  Constraints constraints;
  constraints.token_rules = *std::move(rules);
  const auto& [grammar, white_space] = fields.grammar;
  if (white_space && !(grammar && grammar->spec.kind == GrammarKind::kJsonSchema)) {
    // No grammar uses the pattern here. It is compiled only to refuse an invalid one.
    auto tried = service.model.grammars->compile({.text = R"({"const": 0})",
                                                  .white_space = white_space->pattern,
                                                  .asked_by = white_space->param});
    if (!tried.ok()) return api_error(tried.status(), white_space->param);
  }
  if (grammar) {
    GrammarSpec spec = grammar->spec;
    if (white_space) spec.white_space = white_space->pattern;
    auto source = service.model.grammars->compile(spec);
    if (!source.ok()) return api_error(source.status(), grammar->param);
    constraints.mask_source = *std::move(source);
    if (const auto& token_rules = constraints.token_rules;
        token_rules && !token_rules->allowed_tokens.empty()) {
      constraints.mask_source = std::make_shared<const AllowedTokens>(
          constraints.mask_source->clone(), token_rules, grammar->param);
    }
  }
  if (fields.only_calls && constraints.mask_source) {
    constraints.mask_source = std::make_shared<const RepeatedCallGuard>(
        service.model.tokenizer, service.model.config.eos_token_ids, *fields.only_calls,
        constraints.mask_source->clone());
  }
  if (fields.thought_budget) {
    auto source = ThoughtBudget::make(service.model.tokenizer, *fields.thought_budget,
                                      constraints.mask_source.get());
    if (!source.ok()) return api_error(source.status(), "thinking_token_budget");
    constraints.mask_source = *std::move(source);
  }
  return constraints;
}

TextRequest to_text_request(const GenerationFields& fields, const Constraints& constraints,
                            std::vector<int> prompt_token_ids, SamplingParams sampling) {
  TextRequest request;
  request.generation.prompt_token_ids = std::move(prompt_token_ids);
  request.generation.sampling = std::move(sampling);
  request.generation.sampling.token_rules = constraints.token_rules;
  request.generation.mask_source = constraints.mask_source;
  request.generation.priority = fields.priority;
  request.generation.cache_owner = fields.client;
  request.generation.cache_salt = fields.cache_salt;
  request.stop = fields.stop;
  request.include_stop_str_in_output = fields.include_stop_str_in_output;
  request.skip_special_tokens = fields.skip_special_tokens;
  return request;
}

const std::string& answered_name(const ApiService& service, const std::string& asked) {
  return asked.empty() ? service.model_names.front() : asked;
}

std::optional<ApiError> check_model_name(const ApiService& service, const std::string& name) {
  const auto& names = service.model_names;
  if (name.empty() || std::find(names.begin(), names.end(), name) != names.end()) return {};
  return ApiError{404,
                  fmt::format("the model '{}' is not served here; '{}' is", name, names.front()),
                  "model", "model_not_found"};
}

}  // namespace pagoda
