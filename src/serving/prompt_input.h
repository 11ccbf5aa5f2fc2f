// Prompts as users give them, before tokenization. Plain structs.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace pagoda {

// /tokenize accepts texts far beyond the context, but not of any length, because encoding takes
// time for which other requests wait.
inline constexpr std::size_t kMaxTokenizedBytes = 4 << 20;
// The limit for Tokenizer::longest_piece(), which determines the memory that encoding uses.
inline constexpr std::size_t kMaxTokenizedPiece = 256 << 10;

// Text, or token ids that are used unchanged.
using PromptInput = std::variant<std::string, std::vector<int>>;

// A conversation, with the inputs of its template.
struct ChatPrompt {
  std::string messages_json;  // a list of OpenAI's messages, with a known role and text content
  std::string tools_json;     // a list of OpenAI's tools; "": none
  std::string template_kwargs_json = "{}";
  bool add_generation_prompt = true;
  bool continue_final_message = false;
  bool add_special_tokens = false;      // templates write these tokens
  std::optional<std::string> raw_text;  // a prompt used unchanged instead of a conversation
  std::string suffix;             // text after a gap; the answer is put between raw_text and it
  std::string last_message_text;  // for echo, if the last message is the assistant's
  // Token ids of what was said before, which the prompt goes on from: the prompt's own tokens begin
  // no text then. Empty: nothing.
  std::vector<int> context;
  std::optional<int> cut_to;     // the most tokens: the first ones of a longer prompt are left out
  bool is_for_counting = false;  // only counts tokens; it may be longer than the context
};

// A text that may help: of another file, or of another place in this one.
struct FillInFile {
  std::string filename;  // "": it has no name
  std::string text;
};

// The texts around a cursor, between which an answer belongs.
struct CursorTexts {
  std::string prefix;             // before the cursor
  std::string suffix;             // after the cursor
  std::vector<FillInFile> files;  // the most useful last
};

}  // namespace pagoda
