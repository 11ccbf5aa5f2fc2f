// PromptSet: the prompts of a load run, by vLLM's data sets' names.
//
//   random             random tokens, every prompt and answer as long as asked
//   sharegpt           of a ShareGPT file the first question and the length of its answer, in
//                      random order, filtered as vLLM does
//   sonnet             lines picked from a file, one poem, after a shared start
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

// Tokens of a text by the server's own tokenizer; nothing where it can't tell.
using Encode = std::function<std::optional<std::vector<int>>(const std::string& text)>;

struct PromptSetOptions {
  std::string name = "random";
  std::string path;  // of sharegpt and sonnet, which are nothing without
  int num_prompts = 0;
  std::optional<int> input_len;   // tokens; sharegpt has its own
  std::optional<int> output_len;  // tokens
  std::optional<int> prefix_len;  // of sonnet and prefix_repetition: tokens of input_len, shared
  int num_prefixes = 10;          // of prefix_repetition
  unsigned long seed = 0;
};

struct BenchPrompt {
  std::vector<int> token_ids;  // or, where it is empty:
  std::string text;
  int num_tokens = 0;  // of a text: as `encode` counts, else estimated
  int output_len = 0;
};

// Returns the error that make_prompts finds before it asks for tokens: a data set that is not
// known, or a path that is missing or needless.
Status check_prompt_set(const PromptSetOptions& options);

// Makes the prompts of a benchmark. kInvalidArgument: options that contradict one another;
// kNotFound, kDataLoss: the file.
Result<std::vector<BenchPrompt>> make_prompts(const PromptSetOptions& options,
                                              const Encode& encode);

}  // namespace pagoda
