// ApiClient: sends requests to the API in memory: to a Router over a fake model, without sockets.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/json.h"
#include "server/router.h"
#include "tests/support/fake_model.h"

namespace pagoda {

class ApiClient {
 public:
  explicit ApiClient(const FakeModelOptions& options = {}, const RouterOptions& access = {});
  ~ApiClient();

  // Returns the whole reply, after waiting for it. A stream's events are its body.
  HttpResponse send(HttpRequest request);
  HttpResponse get(const std::string& path) { return send({.method = "GET", .path = path}); }
  HttpResponse post(const std::string& path, const std::string& body) {
    return send({.method = "POST", .path = path, .body = body});
  }

  // Returns the parsed body; fails the test unless the status is as expected.
  nlohmann::json answer(const std::string& path, const std::string& body);
  // Returns {message, type, param, code} of a refusal with this status.
  nlohmann::json refusal(const std::string& path, const std::string& body, int status = 400);
  // Returns the data of each event of a stream.
  std::vector<std::string> event_data(const std::string& path, const std::string& body);
  // Returns this data as JSON; the stream must end with [DONE].
  std::vector<nlohmann::json> events(const std::string& path, const std::string& body);

  // Returns the data of each event of a stream whose events have names, equal to the data's types.
  std::vector<nlohmann::json> named_events(const std::string& path, const std::string& body);
  // Returns the text of the prompt in the engine's last request.
  std::string last_prompt();
  // Returns whether the mask source of the engine's last request accepts an answer with this
  // beginning.
  bool may_begin(const std::string& text);

  FakeEngine& engine() { return fake_engine(*model_); }
  ServedModel& model() { return *model_; }
  ApiService& service() { return *service_; }
  Router& router() { return *router_; }

 private:
  std::string root_path_;
  std::unique_ptr<ServedModel> model_;
  std::unique_ptr<ApiService> service_;
  std::unique_ptr<Router> router_;
};

}  // namespace pagoda
