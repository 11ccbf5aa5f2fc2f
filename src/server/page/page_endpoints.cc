#include "server/page/page_endpoints.h"

#include "server/page/page.h"

namespace pagoda {
namespace {

constexpr Endpoint kPageEndpoints[] = {
    {.path = "/",
     .tell = [](const ServerFacts& facts) { return page_response(facts.page); },
     .asks_for_no_key = true,
     .operation_id = "page",
     .summary = "A page to chat on",
     .answer_type = "text/html"},
};

}  // namespace

EndpointTable page_endpoints() {
  return {kPageEndpoints};
}

}  // namespace pagoda
