// Rewrites conversations, whatever API they came by, to what a chat template can read. A message
// that the template prints as it was sent stays so.
#pragma once

#include <string>
#include <vector>

#include "core/status.h"
#include "serving/prompt_input.h"
#include "serving/template_probe.h"

namespace pagoda {

// Rewrites the messages and tools of a prompt:
// - calls and results are completed (serving/call_completion.h);
// - several calls of a message, or text beside a call, become messages of their own;
// - a blank answer stands between a result and a user message, if the template wants an answer;
// - calls and results become text, if the template leaves them out;
// - a system or developer message that the template leaves out becomes a system message, or is
//   joined to the one before it or to the user's next message;
// - messages of one role in a row become one, if the template does not take them.
// If tools_in_words, the tools are described in the messages, and the prompt's tools are removed.
// An error if the last message is to be continued and has calls. REQUIRES: the prompt has passed
// the checks of a request.
Status fit_conversation(const TemplateTraits& traits, bool tools_in_words, ChatPrompt& prompt);

// Returns the names of OpenAI's tools, a JSON list; "": none.
std::vector<std::string> names_of_tools(const std::string& tools_json);

}  // namespace pagoda
