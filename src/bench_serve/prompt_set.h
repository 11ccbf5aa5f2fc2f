// PromptSet: the prompts of a load run. Data sets have vLLM's names.
//
//   random             random tokens; every prompt and answer has the requested length
//   sharegpt           the first question of each conversation in a ShareGPT file, and the length
//                      of its answer; in random order, filtered as in vLLM
//   sonnet             lines picked from a file (a poem), after a shared start
//   prefix_repetition  random tokens after one of a few shared beginnings
//
// The same options and the same tokens give the same prompts.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/status.h"

namespace pagoda {

// Returns the tokens of a text from the server's own tokenizer; nothing if the server cannot tell.
using Encode = std::function<std::optional<std::vector<int>>(const std::string& text)>;

struct PromptSetOptions {
  std::string name = "random";
  std::string path;  // required by sharegpt and sonnet
  int num_prompts = 0;
  std::optional<int> input_len;   // in tokens; sharegpt has its own lengths
  std::optional<int> output_len;  // in tokens
  // For sonnet and prefix_repetition: the number of shared tokens, a part of input_len.
  std::optional<int> prefix_len;
  int num_prefixes = 10;  // for prefix_repetition
  unsigned long seed = 0;
};

struct BenchPrompt {
  std::vector<int> token_ids;  // if it is empty, `text` is the prompt
  std::string text;
  int num_tokens = 0;  // of `text`: counted by `encode`, or estimated
  int output_len = 0;
};

// Returns the errors that make_prompts finds before it asks for tokens: an unknown data set, or a
// path that is missing or not needed.
Status check_prompt_set(const PromptSetOptions& options);

// Makes the prompts of a benchmark. kInvalidArgument: options contradict each other; kNotFound or
// kDataLoss: the file is missing or wrong.
Result<std::vector<BenchPrompt>> make_prompts(const PromptSetOptions& options,
                                              const Encode& encode);

}  // namespace pagoda
