// Completes the calls of a conversation and their results: types, ids, arguments.
#pragma once

#include "core/ordered_json.h"
#include "serving/template_probe.h"

namespace pagoda {

// Gives calls a type and an id of their own, results the ids of their calls, and null results an
// empty text. An id that the template takes and no earlier call has stays as it is. A result
// belongs to the first open call of its id, else of its function's name, else to the first one.
// REQUIRES: the messages have passed the checks of a request.
void complete_calls(const MessageTraits& traits, OrderedJson& messages);

// Replaces arguments that are no JSON object. A template that needs an object gets an empty one,
// and their text as the message's content; others get the text.
void complete_arguments(const MessageTraits& traits, OrderedJson& messages);

// Gives each tool of OpenAI's list descriptions and parameters; absent ones are empty.
void complete_tools(OrderedJson& tools);

}  // namespace pagoda
