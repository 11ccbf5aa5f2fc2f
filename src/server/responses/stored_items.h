// The items of stored responses: those that a response had as its input, and those that another
// request refers to by their ids.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>

#include "server/base/api_error.h"
#include "server/base/request_json.h"
#include "server/generation/response_store.h"

namespace pagoda {

// The most bytes of the stored responses that one input refers to, and of the items that come from
// them.
inline constexpr std::size_t kMaxReferencedBytes = 16 << 20;

// Makes the id of an item from its response's id and a number: "msg_" and so on, the response's
// digits, and the number. So an item's response is found by the item's id alone.
std::string item_id(std::string_view kind, std::string_view response_id, std::size_t number);

// Returns the input of a response as items, in their order. Its messages are read again, so the
// items are not always those that were sent: parts of a text are joined.
RequestJson input_items_of(const StoredResponse& response, std::string_view response_id);

// The stored responses that an input refers to, by their ids.
using ReferencedResponses = std::map<std::string, StoredResponse>;

// Finds the responses of `client` that the items of `input` refer to. `input`: a request's field,
// of any type. Errors name the item.
ApiResult<ReferencedResponses> find_referenced(const ResponseStore& store,
                                               const std::string& client, const RequestJson& input);

// Replaces each reference in `input` by the item that it means. Errors name the item.
std::optional<ApiError> resolve_references(const ReferencedResponses& responses,
                                           RequestJson& input);

}  // namespace pagoda
