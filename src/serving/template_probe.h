// Finds out what a chat template makes of messages and tools, by rendering small conversations.
// Templates differ: some refuse a role or an id, others leave out a message without a word.
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

#include "text/chat_template.h"

namespace pagoda {

// Places of a system message or a developer message that the template prints.
struct InstructionPlaces {
  bool first = true;             // at the beginning
  bool before_answering = true;  // there, if the conversation does not end with the user's message
  bool alone = true;             // there, without other messages
  bool second = true;            // behind others, before all other messages
  bool later = true;             // among the other messages
  bool later_again = true;       // there, beside one at the beginning
  bool operator==(const InstructionPlaces&) const = default;
};

// The messages that a template prints. The defaults are those of a template that reads everything.
struct MessageTraits {
  InstructionPlaces system, developer;
  bool takes_users_in_a_row = true;
  bool takes_answers_in_a_row = true;
  bool takes_empty_answers = true;
  bool takes_calls = true;
  bool takes_results = true;
  bool takes_several_calls = true;      // in one message
  bool takes_text_beside_calls = true;  // in one message
  bool takes_text_before_calls = true;  // in a message of its own
  bool takes_calls_without_results = true;
  bool takes_users_after_results = true;
  bool takes_arguments_as_text = true;  // prints arguments even if they are no JSON
  bool needs_short_ids = false;         // ids of calls have nine letters and digits
  bool needs_names_of_results = false;  // a result names its function
  bool operator==(const MessageTraits&) const = default;
};

// The variable by which a template takes tools.
enum class ToolVariable : std::uint8_t { kTools, kXmlTools, kPythonTools, kNone };

struct TemplateTraits {
  ToolVariable tool_variable = ToolVariable::kNone;
  bool needs_whole_tools = false;  // with descriptions and parameters
  MessageTraits without_tools, with_tools;
};

// Returns the variable's name in templates; REQUIRES: there is one.
std::string_view variable_name(ToolVariable variable);

// The CPU time of all probes of one template. Known templates take less than a tenth of it.
inline constexpr std::chrono::microseconds kProbeTime = std::chrono::seconds(5);

// Renders some dozen conversations, each within the template's limits and all within `time`. What
// is not rendered any more counts as left out; the log then says so.
TemplateTraits probe_template(const ChatTemplate& chat_template, std::string_view bos_token,
                              std::string_view eos_token,
                              std::chrono::microseconds time = kProbeTime);

}  // namespace pagoda
