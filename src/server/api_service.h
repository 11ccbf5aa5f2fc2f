// ApiService: what every endpoint needs of the process: the model, its names, the metrics.
#pragma once

#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "server/api_error.h"
#include "server/metrics.h"
#include "server/request_token_rules.h"
#include "serving/served_model.h"

namespace pagoda {

// Says once for each name that a field is not known. Thread-safe, bounded.
class UnknownFieldLog {
 public:
  void report(const std::vector<std::string>& names);

 private:
  std::mutex mutex_;
  std::set<std::string> seen_;
};

struct ApiService {
  ServedModel& model;
  std::vector<std::string>
      model_names;  // at least one; answers carry the first where the request names none
  ServerMetrics metrics;
  UnknownFieldLog unknown_fields;
  VocabularyText vocabulary_text{model.tokenizer};
};

// make_token_rules() for the model.
ApiResult<std::shared_ptr<const TokenRules>> make_token_rules(ApiService& service,
                                                              const GenerationFields& fields);

// The state before the first token of the grammar that is asked for, or null. 400 with the field
// and what is wrong with its grammar.
ApiResult<std::shared_ptr<const TokenMaskSource>> make_mask_source(ApiService& service,
                                                                   const GenerationFields& fields);

// 404 with the code model_not_found, unless `name` is empty or served.
std::optional<ApiError> check_model_name(const ApiService& service, const std::string& name);

}  // namespace pagoda
