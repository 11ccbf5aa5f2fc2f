#include "server/llama_cpp/llama_cpp_fields.h"

#include <algorithm>

#include "core/json.h"
#include "server/fields/known_fields.h"

namespace pagoda {

std::vector<Field> llama_cpp_field_table(LlamaCppFields& fields) {
  std::vector<Field> table = generation_field_table(fields.generation, /*fewest_tokens=*/1);
  const auto n_predict = std::ranges::find(table, "n_predict", &Field::name);
  n_predict->target = &fields.generation.n_predict;
  n_predict->range = {.minimum = -1, .saturates = true};
  n_predict->description =
      "max_tokens, -1 for the rest of the context, or 0 to read the prompt and answer nothing.";
  table.push_back({.name = "response_fields",
                   .target = &fields.response_fields,
                   .size = {.max_chars = 256, .min_chars = 1, .max_items = 64},
                   .description = "Paths of the fields that the answer is to have.",
                   .from = "llama.cpp"});
  table.push_back({.name = "n_probs",
                   .target = &fields.num_probs,
                   .range = {.minimum = 0, .maximum = kMaxLogprobs},
                   .description = "How many of the likeliest tokens are shown for each token.",
                   .from = "llama.cpp"});
  table.push_back({.name = "return_tokens",
                   .target = &fields.returns_tokens,
                   .description = "Adds the ids of the answer's tokens.",
                   .from = "llama.cpp"});
  table.push_back({.name = "timings_per_token",
                   .target = &fields.times_parts,
                   .description = "Adds the figures so far to each part of a stream.",
                   .from = "llama.cpp"});
  // An answer never depends on the time that it takes, and samplers have one order.
  for (const char* name : {"t_max_predict_ms", "t_max_prompt_ms", "samplers"})
    table.push_back({.name = name, .target = IgnoredField{}, .from = "llama.cpp"});
  return table;
}

std::optional<ApiError> read_llama_cpp_body(const std::string& body,
                                            const std::vector<Field>& table, LlamaCppFields& fields,
                                            std::vector<std::string>& unknown_names) {
  GenerationFields& generation = fields.generation;
  if (auto error = read_generation_body(body, table, generation, unknown_names)) return error;
  // An answer holds one text and nothing else.
  generation.sampling.n = 1;
  generation.echo = false;
  generation.prompt_logprobs.reset();
  return {};
}

}  // namespace pagoda
