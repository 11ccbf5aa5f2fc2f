#include "text/chat_template.h"

#include <ctime>

#include "core/json.h"
#include "core/text_file.h"
#include "text/rust_bridge.h"

namespace pagoda {

struct ChatTemplate::Rust {
  ::rust::Box<rust_text::Template> chat_template;
};

namespace {

constexpr std::string_view kTemplateContext = "[chat template] ";

Status no_template(std::string_view where) {
  return not_found(
      "[chat template] {}: the checkpoint has none, so it takes no conversations; --chat-template "
      "FILE gives it one",
      where);
}

// Returns the text of the named template from a list [{"name": "default", "template": "..."}, ...].
std::optional<std::string> named_template(const nlohmann::json& list, std::string_view name) {
  for (const auto& entry : list) {
    if (!entry.is_object() || entry.value("name", nlohmann::json()) != name) continue;
    const auto text = entry.find("template");
    if (text != entry.end() && text->is_string()) return text->get<std::string>();
  }
  return std::nullopt;
}

}  // namespace

ChatTemplate::ChatTemplate(std::unique_ptr<Rust> rust, std::string_view text)
    : rust_(std::move(rust)), text_(text) {}
ChatTemplate::~ChatTemplate() = default;
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;

Result<ChatTemplate> ChatTemplate::from_text(std::string_view name, std::string_view text,
                                             const SandboxLimits& limits) {
  auto rust = call_rust(StatusCode::kInvalidArgument, kTemplateContext, [&] {
    return std::make_unique<Rust>(Rust{
        rust_text::template_from_text(rust_bytes(name), rust_bytes(text), rust_limits(limits))});
  });
  if (!rust.ok()) return rust.status();
  return ChatTemplate(*std::move(rust), text);
}

Result<ChatTemplate> ChatTemplate::from_file(const std::filesystem::path& file) {
  PAGODA_ASSIGN_OR_RETURN(const std::string text, read_text_file(file));
  return from_text(file.filename().string(), text);
}

Result<ChatTemplate> ChatTemplate::from_folder(const std::filesystem::path& folder) {
  std::error_code error;
  if (const auto file = folder / "chat_template.jinja"; std::filesystem::exists(file, error)) {
    return from_file(file);
  }
  const std::filesystem::path file = folder / "tokenizer_config.json";
  if (!std::filesystem::exists(file, error)) return no_template(folder.string());
  PAGODA_ASSIGN_OR_RETURN(const std::string config_text, read_text_file(file));
  PAGODA_ASSIGN_OR_RETURN(const auto config, parse_json_file(config_text, file.string()));
  const auto entry = config.find("chat_template");
  if (entry == config.end() || entry->is_null()) return no_template(folder.string());
  if (entry->is_string()) return from_text(file.filename().string(), entry->get<std::string>());

  const auto fallback = named_template(*entry, "default");
  if (!fallback)
    return no_template(fmt::format("{}: chat_template of the name default", file.string()));
  PAGODA_ASSIGN_OR_RETURN(ChatTemplate result, from_text(file.filename().string(), *fallback));
  if (const auto tool_use = named_template(*entry, "tool_use")) {
    PAGODA_ASSIGN_OR_RETURN(ChatTemplate with_tools, from_text("tool_use", *tool_use));
    result.tool_use_ = std::make_unique<ChatTemplate>(std::move(with_tools));
  }
  return result;
}

Result<ChatTemplate> ChatTemplate::from_gguf(const GgufVocabulary& vocabulary) {
  if (!vocabulary.chat_template) return no_template("tokenizer.chat_template");
  return from_text("tokenizer.chat_template", *vocabulary.chat_template);
}

Result<std::string> ChatTemplate::render(const ChatInput& input) const {
  std::chrono::microseconds time_left = std::chrono::microseconds::max();
  return render_within(time_left, input);
}

Result<std::string> ChatTemplate::render_within(std::chrono::microseconds& time_left,
                                                const ChatInput& input) const {
  if (tool_use_ != nullptr && !input.tools_json.empty())
    return tool_use_->render_within(time_left, input);
  if (rust_->chat_template->is_busy())
    return resource_exhausted("{}renderings that take too long have not ended yet",
                              kTemplateContext);
  const rust_text::ChatInputView view = {
      .messages = rust_bytes(input.messages_json),
      .tools = rust_bytes(input.tools_json),
      .kwargs = rust_bytes(input.kwargs_json),
      .bos_token = rust_bytes(input.bos_token),
      .eos_token = rust_bytes(input.eos_token),
      .add_generation_prompt = input.add_generation_prompt,
      .continue_final_message = input.continue_final_message,
      .unix_time = input.unix_time.value_or(static_cast<std::int64_t>(std::time(nullptr))),
  };
  auto left = static_cast<std::uint64_t>(time_left.count());
  auto text = call_rust(StatusCode::kInvalidArgument, kTemplateContext,
                        [&] { return std::string(rust_->chat_template->render(view, left)); });
  time_left = std::chrono::microseconds(left);
  return text;
}

}  // namespace pagoda
