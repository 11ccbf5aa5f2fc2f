// Prompts as users state them, before any of them is tokens. Plain structs.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace pagoda {

// /tokenize answers texts far beyond the context, but not without end: encoding takes time that
// others wait for.
inline constexpr std::size_t kMaxTokenizedBytes = 4 << 20;
// The bound of Tokenizer::longest_piece(), which bounds the memory.
inline constexpr std::size_t kMaxTokenizedPiece = 256 << 10;

// Text, or token ids that are taken as they are.
using PromptInput = std::variant<std::string, std::vector<int>>;

// A conversation as its template takes it.
struct ChatPrompt {
  std::string messages_json;  // a list of OpenAI's messages, with a known role and text content
  std::string tools_json;     // a list of OpenAI's tools; "": none
  std::string template_kwargs_json = "{}";
  bool add_generation_prompt = true;
  bool continue_final_message = false;
  bool add_special_tokens = false;      // templates write them
  std::optional<std::string> raw_text;  // a prompt as it is, instead of the conversation's
  std::string suffix;                   // where the answer stands between raw_text and this
  std::string last_message_text;        // for echo, where the last message is the assistant's
  bool is_for_counting = false;         // it may be longer than the context
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
