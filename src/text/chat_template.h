// Conversations to prompts, by the checkpoint's own chat template, as Hugging Face transformers
// renders it (apply_chat_template): Jinja2 with trim_blocks and lstrip_blocks, Python's methods,
// operators and way to print values, loop controls, raise_exception, strftime_now, and a tojson
// that writes as Python's json.dumps. jinja_goldens_test.cc holds it to Jinja2. Beyond transformers
// lists that the template writes may be changed (append, extend, insert, pop, remove, clear,
// reverse), because templates do so; a list never holds itself or a namespace.
//
// No template is guessed: a checkpoint without one gives kNotFound. A template is a program from
// outside, so it runs on its own thread and within a budget. The budget is 5 million instructions,
// memory of 64 MiB and 32 times the input, and 10 s of the processor's time. A rendering that
// passes a limit, raises an exception or contradicts itself gives kInvalidArgument with the
// template's name, the line and the reason. It concerns its own input alone: what it took is given
// back, and the next one is rendered.
//
// Messages are prepared as in vLLM:
// - of a message and its calls only the keys that templates read are there, and none of them holds
//   null or an empty list: a template may take `"tool_calls": null` for a call;
// - content as parts becomes one string, joined by newlines, unless the template walks through
//   parts itself; a string becomes one part for a template that does nothing else; no content
//   becomes empty content, unless the template finds calls by it;
// - `developer` becomes `system` for a template that does not know developers;
// - the arguments of tool calls, a string of JSON in the API, become the value that the string
//   holds, unless the template adds them to text;
// - reasoning has each of the names that templates and clients give it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/status.h"
#include "text/gguf_vocabulary.h"
#include "text/sandbox_limits.h"

namespace pagoda {

// Objects are printed with their keys in the order that they have here, so keep the client's.
struct ChatInput {
  std::string_view messages_json;  // a list of objects with at least a role, as the API has it
  std::string_view tools_json;     // a list; empty: no tools
  std::string_view
      kwargs_json;             // an object of further variables (chat_template_kwargs); empty: none
  std::string_view bos_token;  // Tokenizer::bos_token()
  std::string_view eos_token;
  bool add_generation_prompt = true;
  // Ends the text inside of the last message, so that the model goes on with it; not together with
  // the former.
  bool continue_final_message = false;
  std::optional<std::int64_t> unix_time;  // what strftime_now shows; absent: the clock
};

// Immutable and thread-safe.
class ChatTemplate {
 public:
  // The limits of a rendering, besides 32 bytes for each of its input's.
  static constexpr SandboxLimits kRenderLimits = {.num_bytes = 64 << 20,
                                                  .processor_time = std::chrono::seconds(10)};

  // Compiles a template. `name` is for messages.
  static Result<ChatTemplate> from_text(std::string_view name, std::string_view text,
                                        const SandboxLimits& limits = kRenderLimits);
  static Result<ChatTemplate> from_file(const std::filesystem::path& file);
  // Reads chat_template.jinja, else the chat_template of tokenizer_config.json: a string, or a list
  // of named ones, of which tool_use serves requests with tools and default all others.
  static Result<ChatTemplate> from_folder(const std::filesystem::path& folder);
  static Result<ChatTemplate> from_gguf(const GgufVocabulary& vocabulary);

  ~ChatTemplate();
  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;

  // Returns the template's text; of two, the one that serves tools.
  const std::string& text() const { return tool_use_ != nullptr ? tool_use_->text_ : text_; }

  // Renders the prompt's text; encode it without adding special tokens. kResourceExhausted:
  // renderings that were to be stopped for their time are at work still, and no other one is
  // started beside four. kUnavailable: the system has no memory or no thread left for one.
  Result<std::string> render(const ChatInput& input) const;

 private:
  struct Rust;
  ChatTemplate(std::unique_ptr<Rust> rust, std::string_view text);

  std::unique_ptr<Rust> rust_;
  std::string text_;
  std::unique_ptr<ChatTemplate> tool_use_;  // null: the one template serves all
};

}  // namespace pagoda
