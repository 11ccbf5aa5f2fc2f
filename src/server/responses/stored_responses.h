// Stored responses, for the client that made them: fetched, deleted, and their input.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "server/base/http_message.h"
#include "server/generation/api_service.h"
#include "server/generation/server_facts.h"

namespace pagoda {

inline constexpr std::string_view kInputItemsPath = "/v1/responses/{response_id}/input_items";

// Makes the 404 of a response that is not stored. `param`: the field that names it; "": none.
ApiError no_response(std::string param, const std::string& id);

HttpResponse stored_response(const ServerFacts& facts);
HttpResponse delete_response(const ServerFacts& facts);
// Lists the items of a response's input, the last ones first. Of the query, `order`, `after` and
// `limit` are read; all items are listed if there is no limit.
HttpReply handle_input_items(ApiService& service, const HttpRequest& request, const Wake& wake);
// Returns OpenAPI's parameters of that query.
nlohmann::json item_page_parameters();

}  // namespace pagoda
