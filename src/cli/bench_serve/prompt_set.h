// PromptSet: the prompts of a load run, by vLLM's data sets' names.
//
//   random             random tokens, every prompt and answer as long as asked
//   sharegpt           of a ShareGPT file the first question and the length of its answer, in
//                      random order, filtered as vLLM does; without a file random tokens with
//                      lengths spread like those
//   sonnet             lines of verse picked from one poem after a shared start; of a file, or of
//                      verses made here
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
  std::string path;  // "": none
  int num_prompts = 0;
  std::optional<int> input_len;   // tokens; of sharegpt: instead of the data's
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

// kInvalidArgument: options that contradict one another; kNotFound, kDataLoss: the file.
Result<std::vector<BenchPrompt>> make_prompts(const PromptSetOptions& options,
                                              const Encode& encode);

}  // namespace pagoda
