#include "cli/flags/prompt_spec.h"

#include <CLI/CLI.hpp>
#include <filesystem>
#include <limits>

#include "cli/flags/flag_values.h"
#include "cli/flags/prompt_text.h"
#include "core/json.h"
#include "sampling/sampling_fields.h"
#include "server/fields/tool_fields.h"
#include "serving/answer_reader.h"
#include "serving/prompt.h"

namespace pagoda {

using nlohmann::json;

namespace {

constexpr int kDefaultMaxTokens = 128;  // for `run`; `chat` may use the rest of the context

// These functions pass every field to a visitor once, so that flags and JSON names have one list.

template <typename Visitor>
void for_each_source(PromptSpec& spec, Visitor&& visit) {
  visit("prompt", spec.prompt, "Text to go on with; -: standard input, as without any prompt");
  visit("prompt_file", spec.prompt_file, "A file with that text; -: standard input");
  visit("chat", spec.chat, "A user's message; goes through the chat template");
  visit("system", spec.system, "A system message before --chat");
  visit("tools", spec.tools,
        "Functions that --chat may call, a list of OpenAI's tools or its file");
}

template <typename Visitor>
void for_each_answer_field(PromptSpec& spec, Visitor&& visit) {
  visit("max_tokens", spec.max_tokens, "Tokens of the answer at most");
  for_each_sampling_field([&](const auto& field) {
    if (std::string_view(field.name) == "n") return;  // one answer to each prompt
    if (field.partial != nullptr) {
      visit(field.name, spec.asked.*field.partial, field.help);
    } else {
      visit(field.name, spec.sampling.*field.member, field.help);
    }
  });
  visit("seed", spec.seed, "Of this prompt's draws");
  visit("stop", spec.stop, "A text that ends the answer; may be given more than once");
  visit("json_schema", spec.json_schema, "Hold the answer to a JSON Schema, or to that of a file");
  visit("regex", spec.regex, "Hold the answer to a regular expression");
  visit("grammar", spec.grammar, "Hold the answer to a grammar, as Lark or GBNF");
  visit("choice", spec.choice, "Hold the answer to this text; may be given more than once");
}

template <typename Visitor>
void for_each_field(PromptSpec& spec, Visitor&& visit) {
  for_each_source(spec, visit);
  for_each_answer_field(spec, visit);
  visit("logprobs", spec.logprobs, "Print log-probabilities, and those of the N likeliest");
  visit("prompt_logprobs", spec.prompt_logprobs, "Print the prompt's log-probabilities");
}

struct FlagAdder {
  CLI::App& command;

  std::string flag(const char* name) const {
    std::string flag = std::string("--") + name;
    std::replace(flag.begin(), flag.end(), '_', '-');
    return flag == "--prompt" ? "PROMPT," + flag : flag;
  }
  void operator()(const char* name, bool& value, const char* help) {
    command.add_flag(flag(name), value, help);
  }
  // Adds no flag for the seed: `run` takes a prompt's missing seed from --seed, unless that is 0.
  void operator()(const char*, std::optional<std::uint64_t>&, const char*) {}
  void operator()(const char* name, std::optional<int>& value, const char* help) {
    command.add_option(flag(name), value, help)->transform(whole_number<int>());
  }
  void operator()(const char* name, int& value, const char* help) {
    command.add_option(flag(name), value, help)->transform(whole_number<int>());
  }
  void operator()(const char* name, std::optional<float>& value, const char* help) {
    command.add_option(flag(name), value, help)->check(real_number());
  }
  void operator()(const char* name, float& value, const char* help) {
    command.add_option(flag(name), value, help)->check(real_number());
  }
  void operator()(const char* name, std::vector<int>& value, const char* help) {
    command.add_option(flag(name), value, help)->delimiter(',')->transform(whole_number<int>());
  }
  template <typename T>
  void operator()(const char* name, T& value, const char* help) {
    command.add_option(flag(name), value, help);
  }
};

// Reads fields without converting JSON's types: a fraction is no integer, and a number is no bool.
struct JsonReader {
  const json& object;
  Status status;

  template <typename T>
  void operator()(const char* name, T& value, const char*) {
    const auto found = object.find(name);
    if (found == object.end() || found->is_null() || !status.ok()) return;
    if (!assign(*found, value)) {
      status = invalid_argument("[prompts-file] {}: {} is not of its type, or out of range", name,
                                found->dump());
    }
  }

  template <typename T>
  static bool assign(const json& from, std::optional<T>& to) {
    T value{};
    if (!assign(from, value)) return false;
    to = std::move(value);
    return true;
  }
  static bool assign(const json& from, std::string& to) {
    if (!from.is_string()) return false;
    to = from.get<std::string>();
    return true;
  }
  static bool assign(const json& from, bool& to) {
    if (!from.is_boolean()) return false;
    to = from.get<bool>();
    return true;
  }
  static bool assign(const json& from, float& to) {
    if (!from.is_number()) return false;
    to = from.get<float>();
    return true;
  }
  static bool assign(const json& from, int& to) {
    if (!from.is_number_integer()) return false;
    const auto value = from.get<std::int64_t>();
    if (value < std::numeric_limits<int>::min() || value > std::numeric_limits<int>::max())
      return false;
    to = static_cast<int>(value);
    return true;
  }
  static bool assign(const json& from, std::uint64_t& to) {
    if (!from.is_number_unsigned()) return false;
    to = from.get<std::uint64_t>();
    return true;
  }
  template <typename T>
  static bool assign(const json& from, std::vector<T>& to) {
    to.clear();
    if (from.is_string()) {  // one stop string needs no list
      to.emplace_back();
      return assign(from, to.back());
    }
    if (!from.is_array()) return false;
    for (const json& element : from) {
      if (!assign(element, to.emplace_back())) return false;
    }
    return true;
  }
};

struct NameChecker {
  const std::string& name;
  bool known = false;
  template <typename T>
  void operator()(const char* field, T&, const char*) {
    known = known || name == field;
  }
};

}  // namespace

void add_prompt_flags(CLI::App& command, PromptSpec& spec) {
  for_each_field(spec, FlagAdder{command});
  command.add_option("--prompt-ids", spec.prompt_ids, "Token ids, as 1,2,3")
      ->delimiter(',')
      ->transform(whole_number<int>());
}

void add_answer_flags(CLI::App& command, PromptSpec& spec) {
  for_each_answer_field(spec, FlagAdder{command});
}

Result<PromptSpec> parse_prompt_line(const std::string& line, const PromptSpec& defaults) {
  const json object = parse_json(line);
  if (!object.is_object())
    return invalid_argument("[prompts-file] expected a JSON object a line, got {}",
                            line.substr(0, 60));
  PromptSpec spec = defaults;
  for (const auto& [name, value] : object.items()) {
    NameChecker checker{name};
    for_each_field(spec, checker);
    if (!checker.known && name != "prompt_ids")
      return invalid_argument("[prompts-file] {}: not a field of a prompt", name);
  }
  JsonReader reader{object};
  for_each_field(spec, reader);
  reader("prompt_ids", spec.prompt_ids, "");
  PAGODA_RETURN_IF_ERROR(reader.status);
  return spec;
}

namespace {

int num_sources(const PromptSpec& spec) {
  return spec.prompt.has_value() + spec.prompt_file.has_value() + spec.prompt_ids.has_value() +
         spec.chat.has_value();
}

// Returns the conversation that the flags make. It keeps the order of keys, since templates may
// print them.
OrderedJson messages_of(const PromptSpec& spec) {
  OrderedJson messages = OrderedJson::array();
  if (spec.system) messages.push_back({{"role", "system"}, {"content", *spec.system}});
  messages.push_back({{"role", "user"}, {"content", *spec.chat}});
  return messages;
}

Result<std::vector<int>> token_ids_of(const ServedModel& model, const PromptSpec& spec) {
  if (spec.prompt_ids) return *spec.prompt_ids;
  std::optional<std::string> text = spec.prompt;
  if (!text) {
    PAGODA_ASSIGN_OR_RETURN(text, read_prompt_text("prompt-file", *spec.prompt_file));
  }
  auto encoded = encode_prompt(model, *std::move(text), /*add_special_tokens=*/true);
  if (!encoded.ok()) return encoded.status().with_context("[prompt]");
  return std::move(encoded->token_ids);
}

Result<ToolUse> tools_of(const PromptSpec& spec) {
  ToolUse tools;
  if (!spec.tools) return tools;
  const OrderedJson list = parse_ordered_json(*spec.tools);
  if (list.is_discarded())
    return invalid_argument("[tools] expected a list of OpenAI's tools in JSON, got other text");
  if (const auto error = read_tools(list, ToolShape::kNested, tools))
    return invalid_argument("[tools] {}", error->message);
  return tools;
}

// Returns the grammar that is asked for, or none.
Result<std::optional<GrammarRequest>> grammar_of(const PromptSpec& spec) {
  std::vector<GrammarRequest> asked;
  const auto add = [&](const char* flag, GrammarKind kind, const std::optional<std::string>& text) {
    if (!text) return;
    asked.push_back({.spec = {.kind = kind, .text = *text, .asked_by = flag}, .param = flag});
  };
  add("--json-schema", GrammarKind::kJsonSchema, spec.json_schema);
  add("--regex", GrammarKind::kRegex, spec.regex);
  add("--grammar", GrammarKind::kContextFree, spec.grammar);
  if (!spec.choice.empty()) add("--choice", GrammarKind::kChoice, json_text(json(spec.choice)));
  if (asked.size() > 1) {
    return invalid_argument(
        "[run] expected one of --json-schema, --regex, --grammar and --choice, got {}",
        asked.size());
  }
  return asked.empty() ? std::nullopt : std::optional(std::move(asked.front()));
}

// Makes the request of a prompt of token ids. `fallback`: max_tokens if the flags do not set it.
Result<TextRequest> text_request_of(const ServedModel& model, const PromptSpec& spec,
                                    std::vector<int> token_ids, int fallback,
                                    const std::optional<GrammarRequest>& grammar) {
  TextRequest request;
  request.stop = spec.stop;
  SamplingParams& sampling = request.generation.sampling;
  sampling = spec.sampling;
  resolve_sampling(spec.asked, model.defaults, sampling);
  sampling.seed = spec.seed;
  sampling.logprobs = spec.logprobs;
  if (spec.prompt_logprobs) sampling.prompt_logprobs = 0;
  sampling.max_tokens = spec.max_tokens.value_or(fallback);
  request.generation.prompt_token_ids = std::move(token_ids);
  if (grammar) {
    PAGODA_ASSIGN_OR_RETURN(request.generation.mask_source, model.grammars->compile(grammar->spec));
  }
  return request;
}

// Makes the request of a conversation's next answer. `fallback`: max_tokens if the flags do not set
// it.
Result<PromptRequest> chat_request_of(const ServedModel& model, const PromptSpec& spec,
                                      const OrderedJson& messages, int fallback) {
  PAGODA_ASSIGN_OR_RETURN(const ToolUse tools, tools_of(spec));
  PAGODA_ASSIGN_OR_RETURN(EncodedPrompt encoded,
                          encode_chat_prompt(model, {.messages_json = json_text(messages),
                                                     .tools_json = tools.tools_json}));
  PAGODA_ASSIGN_OR_RETURN(std::optional<GrammarRequest> grammar, grammar_of(spec));
  PAGODA_ASSIGN_OR_RETURN(AnswerForm form, resolve_answer_form(model, encoded.text, tools,
                                                               /*reads_thoughts=*/true, grammar));
  PromptRequest request = {.text = {},
                           .is_chat = true,
                           .asked_tokens = spec.max_tokens,
                           .parsing = std::move(form.parsing)};
  PAGODA_ASSIGN_OR_RETURN(
      request.text, text_request_of(model, spec, std::move(encoded.token_ids), fallback, grammar));
  if (form.shows_special_tokens) request.text.skip_special_tokens = false;
  return request;
}

}  // namespace

Status read_prompt(PromptSpec& spec) {
  if (num_sources(spec) == 0 && is_text_piped_in()) {
    PAGODA_ASSIGN_OR_RETURN(std::string text, read_prompt_text("prompt", "-"));
    if (!text.empty()) spec.prompt = std::move(text);
    return ok_status();
  }
  if (num_sources(spec) != 1) return ok_status();
  if (spec.prompt == "-") spec.prompt_file = "-";
  if (!spec.prompt_file) return ok_status();
  PAGODA_ASSIGN_OR_RETURN(spec.prompt, read_prompt_text("prompt-file", *spec.prompt_file));
  spec.prompt_file.reset();
  return ok_status();
}

namespace {

// Replaces a file's name by the text of the file, unless `is_json`.
Status read_named_file(const char* flag, const char* expected, bool is_json, std::string& text) {
  if (is_json) return ok_status();
  std::error_code error;
  if (!std::filesystem::exists(text, error))
    return invalid_argument("[run] --{}: expected {}, got {}", flag, expected, text);
  PAGODA_ASSIGN_OR_RETURN(text, read_prompt_text(flag, text));
  return ok_status();
}

bool begins_with(const std::string& text, char c) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  return begin != std::string::npos && text[begin] == c;
}

}  // namespace

Status read_named_files(PromptSpec& spec) {
  if (spec.json_schema) {
    std::string& schema = *spec.json_schema;
    const bool is_schema = begins_with(schema, '{') || schema == "true" || schema == "false";
    PAGODA_RETURN_IF_ERROR(
        read_named_file("json-schema", "a schema in JSON, or a file with one", is_schema, schema));
  }
  if (!spec.tools) return ok_status();
  return read_named_file("tools", "tools in JSON, or a file with them",
                         begins_with(*spec.tools, '['), *spec.tools);
}

bool is_without_text(const PromptSpec& spec) {
  return spec.prompt_ids && spec.stop.empty() && !spec.json_schema && !spec.regex &&
         !spec.grammar && spec.choice.empty();
}

Result<PromptRequest> make_prompt_request(const ServedModel& model, const PromptSpec& spec) {
  if (num_sources(spec) != 1) {
    return invalid_argument(
        "[run] expected one of PROMPT, --prompt-file, --prompt-ids, --chat, --prompts-file and a "
        "text on standard input, got {}",
        num_sources(spec));
  }
  if (!model.tokenizer && !is_without_text(spec)) return model.no_tokenizer;
  if (spec.chat) return chat_request_of(model, spec, messages_of(spec), kDefaultMaxTokens);
  if (spec.tools) return invalid_argument("[run] --tools: expected --chat beside them");
  PAGODA_ASSIGN_OR_RETURN(std::vector<int> token_ids, token_ids_of(model, spec));
  PAGODA_ASSIGN_OR_RETURN(const std::optional<GrammarRequest> grammar, grammar_of(spec));
  PromptRequest request = {.text = {}, .asked_tokens = spec.max_tokens};
  PAGODA_ASSIGN_OR_RETURN(
      request.text, text_request_of(model, spec, std::move(token_ids), kDefaultMaxTokens, grammar));
  return request;
}

Result<PromptRequest> make_chat_request(const ServedModel& model, const PromptSpec& spec,
                                        const OrderedJson& messages) {
  return chat_request_of(model, spec, messages, model.engine->limits().max_model_len);
}

}  // namespace pagoda
