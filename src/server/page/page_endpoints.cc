#include "server/page/page_endpoints.h"

#include "server/base/accepted.h"
#include "server/page/page.h"

namespace pagoda {
namespace {

constexpr Endpoint kPageEndpoints[] = {
    {.path = "/",
     .tell =
         [](const ServerFacts& facts) {
           const bool is_gzip = accepted_weight(facts.accept_encoding, "gzip") > 0;
           return page_response(is_gzip ? facts.gzipped_page : facts.page, is_gzip);
         },
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
