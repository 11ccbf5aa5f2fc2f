// For tests: asks for one answer by each API, whole and streamed, and sends it back with results.
#pragma once

#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/json.h"
#include "server/scripted_answers.h"

namespace pagoda {

// An answer without what differs between APIs.
struct ToldAnswer {
  std::string content, thought;
  std::vector<std::pair<std::string, std::string>> calls;  // names and arguments
  std::string reason;                                      // stop, calls or length
  bool has_broken_call = false;
  bool operator==(const ToldAnswer&) const = default;
};

void PrintTo(const ToldAnswer& answer, std::ostream* out);
// Returns the answer with the spaces of JSON in its arguments taken out.
ToldAnswer without_spaces(ToldAnswer answer);

// One API. Answers are what a client keeps of them, in the order of their text.
class ApiUnderTest {
 public:
  virtual ~ApiUnderTest() = default;

  virtual const char* path() const = 0;
  // Returns a request for a first answer of at most `max_tokens` tokens.
  virtual OrderedJson first_request(const ScriptedAnswer& script, int max_tokens) const = 0;
  // Returns the whole answer in a response's body.
  virtual OrderedJson answer_in(OrderedJson body) const = 0;
  // Puts a stream's events together, as a client does.
  virtual OrderedJson assembled(const std::vector<OrderedJson>& events) const = 0;
  virtual ToldAnswer told(const OrderedJson& answer) const = 0;
  // Returns a request that goes on behind an answer: with results of its calls and a question.
  virtual OrderedJson next_request(const OrderedJson& answer) const = 0;
};

std::unique_ptr<ApiUnderTest> chat_completions_under_test();
std::unique_ptr<ApiUnderTest> responses_under_test();
// Goes on by previous_response_id.
std::unique_ptr<ApiUnderTest> stored_responses_under_test();
std::unique_ptr<ApiUnderTest> messages_under_test();
std::unique_ptr<ApiUnderTest> ollama_under_test();

// Returns the events of a stream's body, or its lines.
std::vector<OrderedJson> events_in(std::string_view body);

// Tools and texts of which requests are made.
inline constexpr std::string_view kScriptedFunctions =
    R"([{"name": "get_weather", "description": "W.", "parameters": {"type": "object", "properties": {
        "city": {"type": "string"}, "days": {"type": "integer"}, "zip": {"type": "string"}}}},
       {"name": "f"}, {"name": "g"}, {"name": "now"}])";
inline constexpr const char* kQuestion = "Alpha";
inline constexpr const char* kResult = "Rho";
inline constexpr const char* kNextQuestion = "Omega";

inline OrderedJson message_of(const char* role, const OrderedJson& content) {
  return {{"role", role}, {"content", content}};
}

// Returns the functions in the form of chats.
inline OrderedJson nested_tools() {
  OrderedJson tools = OrderedJson::array();
  for (const OrderedJson& function : parse_ordered_json(kScriptedFunctions))
    tools.push_back({{"type", "function"}, {"function", function}});
  return tools;
}

// Returns a member's text; "": there is none.
inline std::string text_at(const OrderedJson& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? std::string() : found->get<std::string>();
}

// Appends a text to a member.
inline void extend(OrderedJson& object, const char* key, const std::string& text) {
  object[key] = text_at(object, key) + text;
}

}  // namespace pagoda
