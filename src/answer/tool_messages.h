// Tools in a conversation whose template has no place for them.
#pragma once

#include <string>
#include <string_view>

namespace pagoda {

// Returns the messages, a JSON list as the API has it, with the tools in words:
// - the system's message, which is added where there is none, describes them and how to call them
//   (ToolSyntax::kHermes);
// - earlier calls stand in the assistant's content;
// - results of tools are the user's messages.
// tools_json: a JSON list of OpenAI's tools. Both have passed the checks of a request.
std::string describe_tools(std::string_view messages_json, std::string_view tools_json);

}  // namespace pagoda
