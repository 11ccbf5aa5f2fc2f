// The bytes of a connection, as a client may send them. An input that begins with a letter is these
// bytes; any other input draws them by http_grammar.h. However the bytes are cut into reads, the
// parser gives the same requests, within the limits, and nothing after a refusal.
#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <cctype>
#include <string>
#include <string_view>
#include <vector>

#include "core/check.h"
#include "core/json.h"
#include "server/http/access.h"
#include "server/http/http_head.h"
#include "server/http/http_request_parser.h"
#include "tests/fuzz/http_grammar.h"

namespace pagoda {
namespace {

using Progress = HttpRequestParser::Progress;

// Small limits, so that inputs reach each of them.
constexpr HttpLimits kLimits = {
    .max_header_bytes = 2048, .max_header_fields = 16, .max_body_bytes = 40 << 10};
constexpr std::int64_t kMemoryBytes = 68 << 10;  // half of it for bodies
// An error in an unfinished header may be reported at once or at the header's end. If two limits
// are exceeded, or a limit and a rule, the reads decide which is reported. They also decide whether
// too long chunk headers are, which are compared with the body received so far.
constexpr int kHeaderTooLarge = 431;
constexpr int kChunkHeadersTooLarge = 413;

struct Outcome {
  std::vector<HttpRequest> requests;
  std::size_t num_left = 0;  // bytes received that are not a whole request
  int refusal_status = 0;    // 0: none

  bool is_waiting() const { return refusal_status == 0 && num_left > 0; }
};

void check_request(const HttpRequest& request) {
  std::size_t num_header_bytes = 0;
  for (const auto& [name, value] : request.headers) num_header_bytes += name.size() + value.size();
  PAGODA_CHECK(num_header_bytes <= kLimits.max_header_bytes, "headers are within their limit");
  PAGODA_CHECK(request.headers.size() <= kLimits.max_header_fields, "fields are few");
  PAGODA_CHECK(request.body.size() <= kLimits.max_body_bytes, "a body is within its limit");
  PAGODA_CHECK(std::cmp_less_equal(request.body.size(), kMemoryBytes / 2), "bodies are, together");
  const std::string id = request_id_for(request.header("x-request-id"));
  PAGODA_CHECK(!id.empty() && id.size() <= 128, "a request has an id");
  PAGODA_CHECK(std::all_of(id.begin(), id.end(), [](char c) { return c > ' ' && c < 0x7f; }),
               "an id ends no line of a log or a header");
  AllowedHosts({}).allow(request.header("host"));
  const Cors cors({"https://a.example"});
  PAGODA_CHECK(cors.refuses(request) || cors.headers(request).size() < 10, "pages are answered");
}

void check_refusal(const HttpResponse& refusal) {
  PAGODA_CHECK(refusal.status >= 400 && refusal.status < 600, "a refusal is an error");
  PAGODA_CHECK(!reason_phrase(refusal.status).empty(), "its status is one of HTTP's");
  PAGODA_CHECK(refusal.error.has_value(), "a refusal holds its error");
  const auto body =
      nlohmann::json::parse(error_body(*refusal.error), nullptr, /*allow_exceptions=*/false);
  PAGODA_CHECK(body.is_object() && !body.at("error").at("message").get<std::string>().empty(),
               "a refusal says why, in JSON");
}

// A connection like HttpSession's: a buffer with a maximum, and one parser after another.
class Connection {
 public:
  Outcome read(std::string_view bytes, std::size_t piece_size) {
    Outcome outcome;
    bool is_open = true;
    while (is_open) {
      HttpRequestParser parser(kLimits, budget_);
      is_open = read_request(parser, bytes, piece_size, outcome);
    }
    outcome.num_left = received_.size();
    return outcome;
  }

 private:
  bool read_request(HttpRequestParser& parser, std::string_view& bytes, std::size_t piece_size,
                    Outcome& outcome) {
    while (true) {
      switch (parser.parse(received_)) {
        case Progress::kHead:
          check_request(parser.request());
          break;
        case Progress::kWhole:
          check_request(parser.request());
          outcome.requests.push_back(std::move(parser.request()));
          outcome.requests.back().held_body.reset();
          return parser.keeps_alive();
        case Progress::kRefused:
          check_refusal(parser.refusal());
          outcome.refusal_status = parser.refusal().status;
          return false;
        case Progress::kNeedsMore:
          PAGODA_CHECK(received_.size() <= kLimits.max_header_bytes, "little waits");
          PAGODA_CHECK(parser.request().body.size() <= kLimits.max_body_bytes, "nor has come");
          if (bytes.empty()) return false;
          receive(bytes, std::min(piece_size, parser.read_size()));
      }
    }
  }

  void receive(std::string_view& bytes, std::size_t num_bytes) {
    const std::string_view piece = bytes.substr(0, num_bytes);
    received_.commit(
        boost::asio::buffer_copy(received_.prepare(piece.size()), boost::asio::buffer(piece)));
    bytes.remove_prefix(piece.size());
  }

  std::shared_ptr<RequestMemory> budget_ = std::make_shared<RequestMemory>(kMemoryBytes);
  boost::beast::flat_buffer received_{kLimits.max_header_bytes + HttpRequestParser::kMaxReadBytes};
};

bool is_same(const HttpRequest& a, const HttpRequest& b) {
  return a.method == b.method && a.path == b.path && a.query == b.query && a.headers == b.headers &&
         a.body == b.body;
}

bool is_at_limit(const Outcome& outcome) {
  return outcome.refusal_status == kHeaderTooLarge ||
         outcome.refusal_status == kChunkHeadersTooLarge;
}

void check_same(const Outcome& a, const Outcome& b) {
  const std::size_t num_both = std::min(a.requests.size(), b.requests.size());
  for (std::size_t i = 0; i < num_both; ++i)
    PAGODA_CHECK(is_same(a.requests[i], b.requests[i]), "a request is the same in any pieces");
  if (is_at_limit(a) || is_at_limit(b)) return;
  PAGODA_CHECK(a.requests.size() == b.requests.size(), "so are all");
  PAGODA_CHECK(a.refusal_status == b.refusal_status || a.is_waiting() || b.is_waiting(),
               "and what is refused");
}

void read_in_pieces(std::string bytes) {
  bytes += "\r\n\r\n";  // so that most headers end
  const Outcome whole = Connection().read(bytes, bytes.size() + 1);
  for (const std::size_t piece_size : {1, 7, 1000})
    check_same(whole, Connection().read(bytes, piece_size));
}

}  // namespace
}  // namespace pagoda

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 0 && std::isalpha(data[0])) {
    pagoda::read_in_pieces(std::string(reinterpret_cast<const char*>(data), size));
    return 0;
  }
  FuzzedDataProvider draws(data, size);
  pagoda::read_in_pieces(pagoda::draw_http(draws, [](FuzzedDataProvider& of_body) {
    std::string body = of_body.ConsumeRandomLengthString(64);
    if (of_body.ConsumeIntegralInRange(0, 7) == 7)
      body.append(of_body.ConsumeIntegralInRange<std::size_t>(0, 30'000), 'b');
    return body;
  }));
  return 0;
}
