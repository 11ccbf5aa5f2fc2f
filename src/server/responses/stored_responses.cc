#include "server/responses/stored_responses.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "core/json.h"
#include "server/base/error_response.h"
#include "server/base/json_body.h"
#include "server/fields/field_reader.h"
#include "server/generation/endpoint.h"
#include "server/responses/stored_items.h"

namespace pagoda {
namespace {

// A part of a list of items.
struct ItemPage {
  bool is_ascending = false;
  std::string after;  // the id of the item before the first; "": none
  std::size_t limit = std::string::npos;
};

// Reads the query of a request for items. Other names in it are ignored.
ApiResult<ItemPage> read_page(std::string_view query) {
  ItemPage page;
  while (!query.empty()) {
    const std::string_view pair = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), pair.size() + 1));
    const std::size_t equals = std::min(pair.find('='), pair.size());
    const std::string_view name = pair.substr(0, equals);
    const std::string_view value = pair.substr(std::min(pair.size(), equals + 1));
    if (name == "after") page.after = value;
    if (name == "order") {
      page.is_ascending = value == "asc";
      if (!page.is_ascending && value != "desc")
        return bad_request("order", fmt::format("'order': expected asc or desc, got {}", value));
    }
    if (name == "limit") {
      const char* const end = value.data() + value.size();
      const auto read = std::from_chars(value.data(), end, page.limit);
      if (read.ec != std::errc() || read.ptr != end || page.limit == 0) {
        return bad_request("limit",
                           fmt::format("'limit': expected a number above 0, got {}", value));
      }
    }
  }
  return page;
}

ApiResult<RequestJson> list_of(RequestJson items, const ItemPage& page) {
  auto& list = items.get_ref<RequestJson::array_t&>();
  if (!page.is_ascending) std::ranges::reverse(list);
  if (!page.after.empty()) {
    const auto found = std::ranges::find_if(
        list, [&](const RequestJson& item) { return item.at("id") == RequestJson(page.after); });
    if (found == list.end()) {
      return ApiError{404, fmt::format("'after': the input has no item '{}'", page.after), "after",
                      "item_not_found"};
    }
    list.erase(list.begin(), found + 1);
  }
  const bool has_more = list.size() > page.limit;
  if (has_more) list.resize(page.limit);
  const auto id_of = [&](std::size_t i) { return list.empty() ? RequestJson() : list[i].at("id"); };
  RequestJson first = id_of(0), last = id_of(list.size() - 1);
  return RequestJson({{"object", "list"},
                      {"data", std::move(items)},
                      {"first_id", std::move(first)},
                      {"last_id", std::move(last)},
                      {"has_more", has_more}});
}

}  // namespace

ApiError no_response(std::string param, const std::string& id) {
  return {404, fmt::format("no response '{}' is stored", id), std::move(param),
          "response_not_found"};
}

HttpResponse stored_response(const ServerFacts& facts) {
  const auto found = facts.service.responses.find(facts.client, facts.parameter);
  if (!found) return error_response(no_response("", facts.parameter));
  return {.shared_body = found->body};
}

HttpResponse delete_response(const ServerFacts& facts) {
  if (!facts.service.responses.erase(facts.client, facts.parameter))
    return error_response(no_response("", facts.parameter));
  return json_response(
      {{"id", facts.parameter}, {"object", "response.deleted"}, {"deleted", true}});
}

HttpReply handle_input_items(ApiService& service, const HttpRequest& request, const Wake& wake) {
  const std::string id = parameter_in_path(kInputItemsPath, request.path);
  auto found = service.responses.find(request.client, id);
  if (!found) return {error_response(no_response("", id)), {}};
  auto page = read_page(request.query);
  if (!page.ok()) return {error_response(page.error()), {}};
  const std::size_t num_bytes = found->num_input_bytes;
  auto work = [id, page = *std::move(page), response = *std::move(found)]() -> HttpReply {
    const auto list = list_of(input_items_of(response, id), page);
    if (!list.ok()) return {error_response(list.error()), {}};
    return {HttpResponse{.body = json_text(*list)}, {}};
  };
  return service.text_workers.run({.lane = lane_of_text(num_bytes), .num_bytes = num_bytes}, wake,
                                  std::move(work));
}

nlohmann::json item_page_parameters() {
  const auto parameter = [](const char* name, nlohmann::json schema) {
    return nlohmann::json{{"name", name}, {"in", "query"}, {"schema", std::move(schema)}};
  };
  return {parameter("order", {{"type", "string"}, {"enum", {"asc", "desc"}}}),
          parameter("after", {{"type", "string"}}),
          parameter("limit", {{"type", "integer"}, {"minimum", 1}})};
}

}  // namespace pagoda
