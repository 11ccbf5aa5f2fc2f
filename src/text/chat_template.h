// Renders conversations to prompts by the checkpoint's own chat template, like Hugging Face
// transformers (apply_chat_template). This is Jinja2 with trim_blocks and lstrip_blocks, Python's
// methods, operators and printed values, loop controls, raise_exception, strftime_now, and a tojson
// that writes like Python's json.dumps. jinja_goldens_test.cc compares the results with Jinja2's.
// Unlike in transformers, a template may change the lists that it creates (append, extend, insert,
// pop, remove, clear, reverse). Some templates do. A list cannot hold itself or a namespace.
//
// No template is guessed: a checkpoint without one gives kNotFound. A template is an untrusted
// program, so it runs on its own thread and within a budget. The budget is 5 million instructions,
// 64 MiB of memory plus 32 times the input, and 10 s of CPU time. A rendering that exceeds a limit,
// raises an exception or otherwise fails gives kInvalidArgument with the template's name, the line
// and the reason. Its memory is freed, and later renderings are not affected.
//
// Messages are prepared as in vLLM:
// - a message and its calls keep only the keys that templates read, and no key with null or an
//   empty list, because a template may treat `"tool_calls": null` as a call;
// - content in parts becomes one string, joined by newlines, unless the template loops over parts
//   itself; a string becomes one part if the template reads only parts; absent content becomes
//   empty content, unless the template finds calls by testing for it;
// - the role `developer` becomes `system` if the template does not know `developer`;
// - the arguments of tool calls, a string of JSON in the API, are parsed to a value, unless the
//   template concatenates them with text;
// - reasoning is stored under every name that templates use for it.
#pragma once

#include <chrono>
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

// The keys of objects are printed in the order given here, so keep the client's order.
struct ChatInput {
  std::string_view messages_json;  // a list of objects with at least a role, as in the API
  std::string_view tools_json;     // a list; "": no tools
  std::string_view kwargs_json;    // an object of more variables (chat_template_kwargs); "": none
  std::string_view bos_token;      // Tokenizer::bos_token()
  std::string_view eos_token;
  bool add_generation_prompt = true;
  // Ends the prompt inside the last message, so that the model continues it. Cannot be combined
  // with add_generation_prompt.
  bool continue_final_message = false;
  std::optional<std::int64_t> unix_time;  // the time for strftime_now; absent: the clock's
};

// Immutable and thread-safe.
class ChatTemplate {
 public:
  // The limits of one rendering. Each byte of its input adds 32 bytes of memory to them.
  static constexpr SandboxLimits kRenderLimits = {.num_bytes = 64 << 20,
                                                  .processor_time = std::chrono::seconds(10)};

  // Compiles a template. `name` is used in error messages.
  static Result<ChatTemplate> from_text(std::string_view name, std::string_view text,
                                        const SandboxLimits& limits = kRenderLimits);
  static Result<ChatTemplate> from_file(const std::filesystem::path& file);
  // Reads chat_template.jinja, else the chat_template of tokenizer_config.json, which is a string
  // or a list of named templates. In a list, tool_use serves requests with tools, default all
  // others.
  static Result<ChatTemplate> from_folder(const std::filesystem::path& folder);
  static Result<ChatTemplate> from_gguf(const GgufVocabulary& vocabulary);

  ~ChatTemplate();
  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;

  // Returns the template's text; if there are two templates, the text of the one for tools.
  const std::string& text() const { return tool_use_ != nullptr ? tool_use_->text_ : text_; }

  // Renders the prompt's text; encode it without adding special tokens. kResourceExhausted: four
  // renderings exceeded their time but have not stopped yet, and no other starts until one ends.
  // kUnavailable: the system has no memory or no thread left.
  Result<std::string> render(const ChatInput& input) const;
  // Renders within `time_left` too, CPU time that several renderings share, and takes from it what
  // this one took, even if it failed.
  Result<std::string> render_within(std::chrono::microseconds& time_left,
                                    const ChatInput& input) const;

 private:
  struct Rust;
  ChatTemplate(std::unique_ptr<Rust> rust, std::string_view text);

  std::unique_ptr<Rust> rust_;
  std::string text_;
  std::unique_ptr<ChatTemplate> tool_use_;  // null: text_ serves requests with tools too
};

}  // namespace pagoda
