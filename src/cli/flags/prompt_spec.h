// PromptSpec: one prompt of `pagoda run` or `chat` and what is asked of its answer, from flags or
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

// Absent: the checkpoint's default, or vLLM's.
struct PromptSpec {
  std::optional<std::string> prompt;
  std::optional<std::string> prompt_file;
  std::optional<std::vector<int>> prompt_ids;
  std::optional<std::string> chat;
  std::optional<std::string> system;
  std::optional<std::string> tools;  // that --chat may call: OpenAI's list, as JSON text
  std::optional<int> max_tokens;
  SamplingParams sampling;  // of sampling/sampling_fields.h, where `asked` has no place for them
  PartialSampling asked;
  std::optional<std::uint64_t> seed;
  std::vector<std::string> stop;
  std::optional<int> logprobs;
  bool prompt_logprobs = false;
  // Constraints on the answer; one of them at most.
  std::optional<std::string> json_schema;  // as JSON text
  std::optional<std::string> regex;
  std::optional<std::string> grammar;  // Lark or GBNF
  std::vector<std::string> choice;
};

// Adds a flag for each field.
void add_prompt_flags(CLI::App& command, PromptSpec& spec);
// Adds those that say how to answer, whatever the prompt: lengths, sampling, stops, constraints.
void add_answer_flags(CLI::App& command, PromptSpec& spec);

// Parses a line of --prompts-file: a JSON object with any of the fields by name; those it lacks are
// `defaults`'. A wrong type or an unknown name is kInvalidArgument.
Result<PromptSpec> parse_prompt_line(const std::string& line, const PromptSpec& defaults);

// Reads what is to be read before a model is loaded: `prompt_file`, and standard input where "-"
// stands for a prompt or its file, or where something is piped in and no prompt is given.
Status read_prompt(PromptSpec& spec);

// Puts the texts of files that --json-schema and --tools name in their places, before a model is
// loaded. kInvalidArgument: neither JSON nor a file's name.
Status read_named_files(PromptSpec& spec);

// Returns whether token ids will do: nothing of this prompt is text, nor held to one.
bool is_without_text(const PromptSpec& spec);

struct PromptRequest {
  TextRequest text;
  bool is_chat = false;
  std::optional<AnswerParserOptions>
      parsing;  // how an answer is taken apart; absent: it is content
};

// Makes the request of a prompt; exactly one of its sources must be there. Without max_tokens the
// answer has at most 128 tokens. Errors are those of serving/prompt.h, and of a grammar.
Result<PromptRequest> make_prompt_request(const ServedModel& model, const PromptSpec& spec);
// Makes the request of a conversation's next answer, whatever prompt `spec` has. Without max_tokens
// the answer may take the rest of the context. messages: a list of OpenAI's.
Result<PromptRequest> make_chat_request(const ServedModel& model, const PromptSpec& spec,
                                        const OrderedJson& messages);

}  // namespace pagoda
