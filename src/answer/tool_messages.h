// Tells of tools in the text of messages, for templates without support for them. Messages are a
// list as in the API; REQUIRES: they have passed the checks of a request.
#pragma once

#include <string>

#include "core/ordered_json.h"

namespace pagoda {

// Describes tools, a list of OpenAI's tools, and how to call them (ToolSyntax::kHermes), in the
// system message. Adds that message if the first one is neither the system's nor the developer's.
void describe_tools(OrderedJson& messages, const OrderedJson& tools);

// Writes a message's calls into its content.
void write_calls_as_text(OrderedJson& message);
// Turns a tool's result into a user message.
void write_result_as_text(OrderedJson& message);

bool has_calls(const OrderedJson& message);
// Returns a message's content as one string.
std::string content_text(const OrderedJson& message);

}  // namespace pagoda
