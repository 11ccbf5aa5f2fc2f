#include "tests/support/api_client.h"

#include "server/base/error_response.h"

#include <sstream>

#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>

namespace pagoda {
namespace {

using nlohmann::json;

// Is rung by a reply's Wake callback; a thread waits for it.
class Bell {
 public:
  void ring() {
    std::lock_guard lock(mutex_);
    rung_ = true;
    changed_.notify_one();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return rung_; });
    rung_ = false;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool rung_ = false;
};

}  // namespace

ApiClient::ApiClient(const FakeModelOptions& options, const RouterOptions& access)
    : root_path_(access.root_path),
      model_(make_fake_model(options)),
      service_(
          new ApiService{*model_, {"fake-model", "other-name"}, ServerMetrics("fake-model"), {}}),
      router_(std::make_unique<Router>(*service_, access)) {}

ApiClient::~ApiClient() = default;

HttpResponse ApiClient::send(HttpRequest request) {
  if (request.request_id.empty()) request.request_id = "req-1";
  const std::string path = request.path, request_id = request.request_id;
  const FailedRequest failed = {path, request_id, request.is_for_anthropic()};
  const auto written = [&](HttpResponse response) {
    write_error(
        response,
        [&](const FailedRequest& r, const ApiError& e) { return error_body_for(root_path_, r, e); },
        failed);
    return response;
  };
  if (std::optional<HttpResponse> refusal = router_->refuse(request))
    return written(*std::move(refusal));
  Bell bell;
  request.held = std::make_shared<MemoryAccount>(service_->memory);
  HttpReply reply = router_->handle(std::move(request), [&bell] { bell.ring(); });
  while (auto* pending = std::get_if<std::unique_ptr<PendingReply>>(&reply.content)) {
    std::optional<HttpReply> known = (*pending)->poll();
    if (known) {
      reply.become(*std::move(known));
    } else {
      bell.wait();
    }
  }
  HttpResponse response;
  if (auto* whole = std::get_if<HttpResponse>(&reply.content)) {
    response = written(std::move(*whole));
    if (response.shared_body) response.body = response.shared_body->view();
  } else {
    auto& stream = *std::get<std::unique_ptr<EventStream>>(reply.content);
    response.content_type = "text/event-stream";
    while (!stream.finished()) {
      const std::string events = stream.poll();
      response.body += events;
      if (events.empty() && !stream.finished()) bell.wait();
    }
  }
  response.headers.insert(response.headers.end(), reply.headers.begin(), reply.headers.end());
  return response;
}

json ApiClient::answer(const std::string& path, const std::string& body) {
  const HttpResponse response = post(path, body);
  EXPECT_EQ(response.status, 200) << response.body;
  return json::parse(response.body);
}

json ApiClient::refusal(const std::string& path, const std::string& body, int status) {
  const HttpResponse response = post(path, body);
  EXPECT_EQ(response.status, status) << response.body;
  const json error = response.error ? json::parse(error_body(*response.error)).at("error") : json();
  for (const char* name : {"message", "type", "param", "code"})
    EXPECT_TRUE(error.contains(name)) << response.body;
  return error;
}

std::vector<std::string> ApiClient::event_data(const std::string& path, const std::string& body) {
  const HttpResponse response = post(path, body);
  EXPECT_EQ(response.content_type, "text/event-stream") << response.body;
  std::vector<std::string> all;
  std::string_view rest = response.body;
  while (!rest.empty()) {
    const std::size_t end = rest.find("\n\n");
    if (end == std::string_view::npos || !rest.starts_with("data: ")) {
      ADD_FAILURE() << "not an event: " << rest;
      return all;
    }
    all.emplace_back(rest.substr(6, end - 6));
    rest.remove_prefix(end + 2);
  }
  return all;
}

std::vector<json> ApiClient::events(const std::string& path, const std::string& body) {
  std::vector<json> events;
  for (const std::string& data : event_data(path, body)) {
    EXPECT_TRUE(events.empty() || !events.back().is_null()) << "behind [DONE]: " << data;
    events.push_back(data == "[DONE]" ? json(nullptr) : json::parse(data));
  }
  const bool is_done = !events.empty() && events.back().is_null();
  EXPECT_TRUE(is_done) << "the stream has no [DONE]";
  if (is_done) events.pop_back();
  return events;
}

std::vector<json> ApiClient::named_events(const std::string& path, const std::string& body) {
  const HttpResponse response = post(path, body);
  EXPECT_EQ(response.status, 200) << response.body;
  std::vector<json> events;
  std::istringstream lines(response.body);
  for (std::string name, data, empty;
       std::getline(lines, name) && std::getline(lines, data) && std::getline(lines, empty);) {
    events.push_back(json::parse(std::string_view(data).substr(6)));
    EXPECT_EQ("event: " + events.back().at("type").get<std::string>(), name);
    EXPECT_EQ(empty, "");
  }
  return events;
}

std::string ApiClient::last_prompt() {
  return model_->tokenizer->decode(engine().last_request().prompt_token_ids, false).value();
}

bool ApiClient::may_begin(const std::string& text) {
  const auto held = engine().last_request().mask_source;
  if (!held) return true;
  const auto follower = held->clone();
  const std::vector<int> ids = model_->tokenizer->encode(text).value();
  return std::ranges::all_of(ids, [&](int id) { return follower->accept(id).ok(); });
}

}  // namespace pagoda
