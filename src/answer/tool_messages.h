// Describes tools in messages, for templates without support for tools.
#pragma once

#include <string>
#include <string_view>

namespace pagoda {

// Returns the messages, a JSON list as in the API, with the tools described in text:
// - the system message, added if there is none, describes the tools and how to call them
//   (ToolSyntax::kHermes);
// - earlier calls are written into the assistant's content;
// - results of tools become user messages.
// tools_json: a JSON list of OpenAI's tools. REQUIRES: both have passed the checks of a request.
std::string describe_tools(std::string_view messages_json, std::string_view tools_json);

}  // namespace pagoda
