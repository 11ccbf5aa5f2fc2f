// PromptSpec: one prompt of `pagoda run` or `chat` and the options of its answer, from flags or
// from a line of --prompts-file.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "answer/answer_parser.h"
#include "core/ordered_json.h"
#include "core/status.h"
#include "serving/served_model.h"
#include "serving/text_generation.h"

namespace CLI {
class App;
}

namespace pagoda {

// A field that is absent has the checkpoint's default, or vLLM's.
struct PromptSpec {
  std::optional<std::string> prompt;
  std::optional<std::string> prompt_file;
  std::optional<std::vector<int>> prompt_ids;
  std::optional<std::string> chat;
  std::optional<std::string> system;
  std::optional<std::string> tools;  // functions that --chat may call: OpenAI's list, as JSON text
  std::optional<int> max_tokens;
  SamplingParams sampling;  // the fields of sampling/sampling_fields.h that `asked` lacks
  PartialSampling asked;
  std::optional<std::uint64_t> seed;
  std::vector<std::string> stop;
  std::optional<int> logprobs;
  bool prompt_logprobs = false;
  // Constraints on the answer; at most one of them.
  std::optional<std::string> json_schema;  // as JSON text
  std::optional<std::string> regex;
  std::optional<std::string> grammar;  // Lark or GBNF
  std::vector<std::string> choice;
};

// Adds a flag for each field.
void add_prompt_flags(CLI::App& command, PromptSpec& spec);
// Adds the flags that do not depend on the prompt: lengths, sampling, stops, constraints.
void add_answer_flags(CLI::App& command, PromptSpec& spec);

// Parses a line of --prompts-file: a JSON object with any of the fields by name. Missing fields are
// taken from `defaults`. kInvalidArgument: a wrong type or an unknown name.
Result<PromptSpec> parse_prompt_line(const std::string& line, const PromptSpec& defaults);

// Reads what must be read before a model is loaded: `prompt_file`, and standard input if the prompt
// or its file is "-". If no prompt is given and something is piped in, standard input is the
// prompt.
Status read_prompt(PromptSpec& spec);

// Replaces the names of files in --json-schema and --tools by the files' texts, before a model is
// loaded. kInvalidArgument: neither JSON nor a file's name.
Status read_named_files(PromptSpec& spec);

// Returns whether token ids are enough: neither the prompt nor a limit on the answer is text.
bool is_without_text(const PromptSpec& spec);

struct PromptRequest {
  TextRequest text;
  bool is_chat = false;
  std::optional<int> asked_tokens;  // PromptSpec::max_tokens
  std::optional<AnswerParserOptions>
      parsing;  // how to split the answer into parts; absent: all of it is content
};

// Makes the request of a prompt; `spec` must have exactly one source of it. Without max_tokens the
// answer has at most 128 tokens. Errors are those of serving/prompt.h, and of a grammar.
Result<PromptRequest> make_prompt_request(const ServedModel& model, const PromptSpec& spec);
// Makes the request of a conversation's next answer; ignores the prompt in `spec`. Without
// max_tokens the answer may take the rest of the context. messages: a list in OpenAI's shape.
Result<PromptRequest> make_chat_request(const ServedModel& model, const PromptSpec& spec,
                                        const OrderedJson& messages);

}  // namespace pagoda
