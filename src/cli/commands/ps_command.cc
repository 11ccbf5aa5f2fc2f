// pagoda ps: the servers that run, what they serve and how busy they are.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "bench_serve/completion_events.h"
#include "bench_serve/load_client.h"
#include "cli/base/command.h"
#include "cli/base/report_error.h"
#include "core/json.h"

namespace pagoda {

using nlohmann::json;

namespace {

struct PsFlags {
  std::vector<std::string> urls = {"http://127.0.0.1:8000"};
  std::string api_key;
  bool is_insecure = false;
};

// A row of the table.
struct RunningServer {
  std::string model, device, context, requests, url;
};

// Asks a server for a JSON object. kUnavailable: the answer is something else.
Result<json> ask_object(const ServerAccess& server, const std::string& path) {
  PAGODA_ASSIGN_OR_RETURN(const HttpAnswer answer, ask_server(server, path));
  json body = parse_json(answer.body);
  if (answer.status == 200 && body.is_object()) return body;
  return unavailable("[ps] {}{}: expected a JSON object, got HTTP {}: {}", server.url.text(), path,
                     answer.status, error_message(answer.body));
}

// Returns the value of a name as text; "?" if it is absent, as in answers of other servers.
std::string text_of(const json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end()) return "?";
  return found->is_string() ? found->get<std::string>() : found->dump();
}

Result<RunningServer> look_at(const std::string& url, const PsFlags& flags) {
  PAGODA_ASSIGN_OR_RETURN(
      const ServerAccess server,
      make_server_access("url", url, flags.api_key, /*verifies=*/!flags.is_insecure));
  PAGODA_ASSIGN_OR_RETURN(const json info, ask_object(server, "/server_info"));
  PAGODA_ASSIGN_OR_RETURN(const json load, ask_object(server, "/load"));
  return RunningServer{
      .model = text_of(info, "model"),
      .device = text_of(info, "device"),
      .context = text_of(info, "max_model_len"),
      .requests = text_of(load, "server_load") + " of " + text_of(info, "max_num_seqs"),
      .url = server.url.text()};
}

void print(const RunningServer& row) {
  std::printf("%-32s %-10s %8s %12s  %s\n", row.model.c_str(), row.device.c_str(),
              row.context.c_str(), row.requests.c_str(), row.url.c_str());
}

// Prints a row for each server that answers, and an error for each that does not. Returns the exit
// code of the last error, or success.
int list_servers(const PsFlags& flags) {
  int code = kExitOk;
  bool has_head = false;
  for (const std::string& url : flags.urls) {
    const Result<RunningServer> row = look_at(url, flags);
    if (!row.ok()) {
      code = report_error(row.status());
      continue;
    }
    if (!has_head) {
      print({.model = "MODEL",
             .device = "DEVICE",
             .context = "CONTEXT",
             .requests = "REQUESTS",
             .url = "URL"});
    }
    has_head = true;
    print(*row);
  }
  return code;
}

}  // namespace

void add_ps_command(CLI::App& app, CommandBody& body) {
  auto flags = std::make_shared<PsFlags>();
  CLI::App& command = *app.add_subcommand("ps", "What servers serve, and how busy they are");
  command.add_option("URL", flags->urls, "Servers: http://HOST:PORT, or https")
      ->capture_default_str();
  command.add_option("--api-key", flags->api_key, "By default PAGODA_API_KEY of the environment")
      ->envname("PAGODA_API_KEY");
  command.add_flag("--insecure", flags->is_insecure,
                   "Take any certificate of an https server, as one that has signed its own");
  command.callback([flags, &body] { body = [flags] { return list_servers(*flags); }; });
}

}  // namespace pagoda
