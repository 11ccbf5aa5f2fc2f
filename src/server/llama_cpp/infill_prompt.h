// The prompt of a text at a cursor, cut so that it and an answer fit the context.
#pragma once

#include <vector>

#include "server/base/api_error.h"
#include "server/llama_cpp/infill_request.h"
#include "serving/served_model.h"

namespace pagoda {

struct InfillPrompt {
  std::vector<int> token_ids;
  bool is_cut = false;  // not all of the request's texts had room
};

// Makes the prompt. The text behind the cursor has up to a quarter of the room, the one before it
// the rest. Other texts have what these leave, the last one first. Errors: a model that knows of no
// gaps, and the tokenizer's.
ApiResult<InfillPrompt> make_infill_prompt(const ServedModel& model, const InfillRequest& request);

}  // namespace pagoda
