// ApiService: what every endpoint needs of the process: the model, its names, the metrics.
#pragma once

#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "kv/cache_events.h"
#include "server/base/api_error.h"
#include "server/generation/metrics.h"
#include "server/generation/request_token_rules.h"
#include "server/generation/response_store.h"
#include "server/generation/text_workers.h"
#include "serving/request_memory.h"
#include "serving/served_model.h"
#include "serving/text_generation.h"

namespace pagoda {

// Logs each unknown field's name once. Thread-safe, bounded.
class UnknownFieldLog {
 public:
  void report(const std::vector<std::string>& names);

 private:
  std::mutex mutex_;
  std::set<std::string> seen_;
};

struct ApiService {
  ServedModel& model;
  // At least one. Answers to requests without a name have the first.
  std::vector<std::string> model_names;
  ServerMetrics metrics;
  UnknownFieldLog unknown_fields;
  // The memory budget of stored responses. Requests have accounts of the same budget.
  std::shared_ptr<RequestMemory> memory = std::make_shared<RequestMemory>();
  std::shared_ptr<const CacheEvents> cache_events = {};  // null: clients may not ask for them
  ResponseStore responses;
  VocabularyText vocabulary_text{model.tokenizer};
  TextWorkers text_workers{};  // last member: its threads use the others
};

// The constraints that a request puts on its answer's tokens; shared by all of its samples.
struct Constraints {
  std::shared_ptr<const TokenRules> token_rules;       // null: none
  std::shared_ptr<const TokenMaskSource> mask_source;  // for the first token; null: no grammar
};

// Makes the constraints. Errors are make_token_rules()'s, and a 400 that names the field and what
// is wrong with its grammar.
ApiResult<Constraints> make_constraints(ApiService& service, const GenerationFields& fields);

// Returns the HttpReply of `start()`, which calls make_constraints(). If a grammar or a pattern of
// white space must be compiled, `start` runs in the text workers' lane for grammars.
template <typename Start>
HttpReply start_constrained(ApiService& service, const GrammarFields& fields, const Wake& wake,
                            Start start) {
  if (!fields.grammar && !fields.white_space) return start();
  return service.text_workers.run({.lane = TextLane::kGrammar}, wake, std::move(start));
}

// Makes the request for one prompt. `sampling` is from to_sampling_params().
TextRequest to_text_request(const GenerationFields& fields, const Constraints& constraints,
                            std::vector<int> prompt_token_ids, SamplingParams sampling);

// Returns the result of `read`, a read_*() function, and logs the unknown names that it finds.
template <typename Read, typename... Arguments>
auto read_logged(ApiService& service, Read read, Arguments&&... arguments) {
  std::vector<std::string> unknown_names;
  auto result = read(std::forward<Arguments>(arguments)..., unknown_names);
  service.unknown_fields.report(unknown_names);
  return result;
}

// Returns the model's name in answers: the one that the request asked for, or else the first.
const std::string& answered_name(const ApiService& service, const std::string& asked);
// Returns a 404 with the code model_not_found, unless `name` is empty or served.
std::optional<ApiError> check_model_name(const ApiService& service, const std::string& name);

}  // namespace pagoda
