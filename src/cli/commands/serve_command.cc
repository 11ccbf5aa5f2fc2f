// pagoda serve: the OpenAI API over HTTP.
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/base/command.h"
#include "cli/base/report_error.h"
#include "cli/base/service_notice.h"
#include "cli/commands/serve_summary.h"
#include "cli/flags/api_keys.h"
#include "cli/flags/engine_flags.h"
#include "cli/flags/flag_values.h"
#include "core/log.h"
#include "core/log_thread.h"
#include "core/start_thread.h"
#include "kv/cache_events.h"
#include "server/kv_event_publisher.h"
#include "server/memory_trimmer.h"
#include "server/server.h"
#include "serving/request_memory.h"

namespace pagoda {

namespace {

struct ServeFlags {
  EngineFlags engine;
  ServerOptions server;
  ApiKeySources api_keys;
  std::vector<std::string> served_model_names;
  bool tells_cache_events = false;
  KvEventOptions kv_events;  // without an endpoint: none are published
  double shutdown_timeout_s = 30;
  std::string log_level = "info";
  std::string log_format = "text";
  std::string config_file;  // read before the command line is parsed (flag_sources.h)
};

// The signals that end a server, blocked in this thread and in the threads that it starts until
// release() or destruction. So serve() alone receives the first one; the next ends the process,
// even if the process was started with the signal ignored, as by a script's `&`.
class EndSignals {
 public:
  EndSignals() {
    sigemptyset(&signals_);
    for (const int signal : {SIGINT, SIGTERM}) {
      sigaddset(&signals_, signal);
      std::signal(signal, SIG_DFL);
    }
    pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
  }
  ~EndSignals() { release(); }
  EndSignals(const EndSignals&) = delete;
  EndSignals& operator=(const EndSignals&) = delete;

  void wait() const {
    int signal = 0;
    sigwait(&signals_, &signal);
  }
  void release() const { pthread_sigmask(SIG_UNBLOCK, &signals_, nullptr); }
  // Ends the process if one of the signals is pending.
  void take() const {
    sigset_t pending;
    sigpending(&pending);
    if (sigismember(&pending, SIGINT) == 1 || sigismember(&pending, SIGTERM) == 1) release();
  }

 private:
  sigset_t signals_;
};

// Returns the URL for clients, with brackets around an IPv6 address.
std::string url_of(const ServerOptions& options, std::uint16_t port) {
  if (!options.path.empty()) return "unix:" + options.path;
  const bool is_v6 = options.host.find(':') != std::string::npos;
  return fmt::format("{}://{}:{}", options.tls.certificate.empty() ? "http" : "https",
                     is_v6 ? "[" + options.host + "]" : options.host, port);
}

// Calls load() on another thread. Loading cannot be interrupted and leaves nothing to clean up, so
// a signal during it ends the process.
Result<std::unique_ptr<ServedModel>> load_unless_interrupted(const EngineFlags& flags,
                                                             const EndSignals& signals) {
  std::future<Result<std::unique_ptr<ServedModel>>> loading =
      start_async([&flags] { return load(flags); });
  while (loading.wait_for(std::chrono::milliseconds(20)) != std::future_status::ready)
    signals.take();
  return loading.get();
}

Status serve(ServeFlags& flags) {
  const bool publishes = !flags.kv_events.endpoint.empty();
  if (!publishes && !flags.kv_events.replay_endpoint.empty())
    return invalid_argument(
        "[serve] --kv-events-replay-endpoint: expected --kv-events-endpoint too");
  if (flags.tells_cache_events || publishes)
    flags.engine.engine.cache_events = std::make_shared<CacheEvents>(publishes);
  if (flags.tells_cache_events) flags.server.cache_events = flags.engine.engine.cache_events;
  if (flags.server.tls.certificate.empty() != flags.server.tls.key.empty())
    return invalid_argument("[tls] expected both --ssl-certfile and --ssl-keyfile, got one");
  const std::int64_t most_body_bytes = limit_of_bodies(flags.server.max_request_memory_bytes);
  if (std::cmp_greater(flags.server.limits.max_body_bytes, most_body_bytes)) {
    return invalid_argument(
        "[serve] --max-body-bytes: expected at most half of --max-request-memory-bytes, {}, got {}",
        most_body_bytes, flags.server.limits.max_body_bytes);
  }
  PAGODA_ASSIGN_OR_RETURN(flags.server.api_keys, read_api_keys(flags.api_keys));
  const EndSignals signals;
  const LogThread log_thread;  // outlives all code that logs
  spdlog::set_level(spdlog::level::from_str(flags.log_level));
  if (flags.log_format == "json") flags.server.log_format = LogFormat::kJson;
  use_log_format(flags.server.log_format);
  std::unique_ptr<KvEventPublisher> publisher;
  if (publishes) {
    PAGODA_ASSIGN_OR_RETURN(
        publisher, KvEventPublisher::start(flags.kv_events, flags.engine.engine.cache_events));
  }
  std::unique_ptr<ServedModel> model;  // declared first, so that it outlives the server
  PAGODA_ASSIGN_OR_RETURN(const std::unique_ptr<Server> server, Server::listen(flags.server));
  PAGODA_ASSIGN_OR_RETURN(model, load_unless_interrupted(flags.engine, signals));
  const std::vector<std::string> names = flags.served_model_names.empty()
                                             ? names_in_api(flags.engine, *model)
                                             : flags.served_model_names;
  server->serve(*model, names);
  const EngineLimits& limits = model->engine->limits();
  log_info("{} on {}: {} sequences of {} tokens at most, loaded in {:.2f} s", model->name,
           model->device, limits.max_num_seqs, limits.max_model_len, model->load_s);
  log_info("arithmetic: {}", limits.arithmetic);
  const std::string url = url_of(flags.server, server->port());
  for (const std::string& line : lines_of({.flags = flags.engine,
                                 .model = *model,
                                 .names = names,
                                 .num_keys = flags.server.api_keys.size(),
                                 .page = url + flags.server.root_path + "/"}))
    log_info("{}", line);
  log_info("listening on {}", url);
  notify_service_manager(fmt::format("READY=1\nSTATUS=serving {}", model->name));
  signals.wait();
  signals.release();
  notify_service_manager("STOPPING=1\nSTATUS=finishing what runs");
  log_info("finishing what runs; a second Ctrl-C ends it at once");
  server->stop(flags.shutdown_timeout_s);
  return ok_status();
}

void add_access_flags(CLI::App& command, ServeFlags& flags) {
  ServerOptions& server = flags.server;
  server.port = 8000;
  command.add_option("--host", server.host, "The address to listen on")->capture_default_str();
  command.add_option("--port", server.port, "0: any free one")
      ->transform(whole_number<std::uint16_t>())
      ->capture_default_str();
  command
      .add_option("--uds", server.path,
                  "A path to listen on, as a Unix socket, instead of --host and --port")
      ->type_name(kPathType);
  command
      .add_option("--ssl-certfile", server.tls.certificate,
                  "The certificate to serve https by, in PEM, with those that sign it behind it; "
                  "read anew when it was renewed")
      ->type_name(kPathType);
  command.add_option("--ssl-keyfile", server.tls.key, "Its key, in PEM, without a passphrase")
      ->type_name(kPathType);
  command.add_option("--api-key", flags.api_keys.flags,
                     "A key that requests must bring, or sha256:HEX of it; may be given more than "
                     "once. Without: PAGODA_API_KEY of the environment");
  command
      .add_option("--api-key-file", flags.api_keys.file,
                  "A file with a key a line, which no list of processes shows: KEY, or NAME KEY "
                  "to have the name in the log; sha256:HEX may stand for a key")
      ->type_name(kPathType);
  command.add_option(
      "--allowed-origins", server.allowed_origins,
      "An origin whose pages may call the API, or * for all; none by default. May be "
      "given more than once");
  command.add_option("--allowed-hosts", server.allowed_hosts,
                     "A name by which the server may be asked, such as llm.example.com, "
                     "*.example.com or *; may be given more than once");
  command
      .add_option("--root-path", server.root_path,
                  "The path below which a proxy serves this, such as /llm")
      ->transform(path_prefix());
}

void add_limit_flags(CLI::App& command, ServeFlags& flags) {
  ServerOptions& server = flags.server;
  command
      .add_option("--max-queue", flags.engine.engine.max_queue,
                  "Prompts waiting, each with all its samples; one more is answered 429")
      ->transform(whole_number(1, 1 << 20))
      ->capture_default_str();
  command
      .add_option("--max-connections", server.limits.max_connections,
                  "Open at a time, three quarters of them from one peer elsewhere; one more is "
                  "answered 503")
      ->transform(whole_number(1, 1 << 20))
      ->capture_default_str();
  command
      .add_option("--max-body-bytes", server.limits.max_body_bytes,
                  "Of a request; a longer one is answered 413")
      ->transform(whole_number<std::size_t>(1 << 10, std::size_t{1} << 40))
      ->capture_default_str();
  command
      .add_option(
          "--max-request-memory-bytes", server.max_request_memory_bytes,
          "Of all requests, and of their answers until their clients have them; one past it is "
          "answered 503")
      ->transform(whole_number<std::int64_t>(1 << 20, std::int64_t{1} << 40))
      ->capture_default_str();
}

void add_kv_event_flags(CLI::App& command, KvEventOptions& options) {
  command.add_option("--kv-events-endpoint", options.endpoint,
                     "An endpoint of ZeroMQ, such as tcp://*:5557, at which routers are told which "
                     "blocks the prefix cache holds, as vLLM does; whoever reaches it reads all "
                     "prompts as token ids");
  command.add_option("--kv-events-replay-endpoint", options.replay_endpoint,
                     "One at which routers ask for messages that they have missed");
  command.add_option("--kv-events-topic", options.topic, "The topic of these messages");
}

}  // namespace

void add_serve_command(CLI::App& app, CommandBody& body) {
  auto flags = std::make_shared<ServeFlags>();
  CLI::App& command =
      *app.add_subcommand("serve", "Answer the OpenAI API over HTTP, with a page at /");
  add_model_flags(command, flags->engine);
  add_fetch_flag(command, flags->engine);
  add_sampling_flags(command, flags->engine);
  add_batching_flags(command, flags->engine);
  add_access_flags(command, *flags);
  command.add_option("--served-model-name", flags->served_model_names,
                     "A name of the model in the API, instead of its file's and the one typed");
  add_limit_flags(command, *flags);
  command.add_flag("--prefix-cache-events", flags->tells_cache_events,
                   "Tells which blocks the prefix cache holds, at /v1/prefix_cache/events/0, for "
                   "routers; whoever may ask can tell of a guessed prompt whether it was sent");
  add_kv_event_flags(command, flags->kv_events);
  command
      .add_option("--shutdown-timeout", flags->shutdown_timeout_s,
                  "Seconds that running answers have after the first Ctrl-C or SIGTERM")
      ->transform(real_number(0, 86400))
      ->capture_default_str();
  command.add_option("--otlp-traces-endpoint", flags->server.traces_url,
                     "A collector of OpenTelemetry's traces, by OTLP in JSON over HTTP, such as "
                     "http://localhost:4318/v1/traces; a span a request is sent there");
  command
      .add_option(
          "--log-level", flags->log_level,
          "What goes to stderr; info: a line a request; debug: also when the engine starts it")
      ->check(one_of({"debug", "info", "warning", "error"}))
      ->capture_default_str();
  command
      .add_option("--log-format", flags->log_format,
                  "How those lines are written; json: an object a line, with fields of requests")
      ->check(one_of({"text", "json"}))
      ->capture_default_str();
  command
      .add_option("--chat-template", flags->engine.chat_template,
                  "A Jinja file instead of the checkpoint's template")
      ->type_name(kPathType);
  std::vector<std::string> parsers = tool_syntax_names();
  parsers.insert(parsers.begin(), "auto");
  command
      .add_option("--tool-call-parser", flags->engine.tool_call_parser,
                  "How the model writes calls of tools; auto: as its template shows")
      ->check(one_of(std::move(parsers)))
      ->capture_default_str();
  command
      .add_option("--config", flags->config_file,
                  "A TOML file with a line a flag, such as port = 8080; PAGODA_PORT=8080 in the "
                  "environment says the same and goes before it")
      ->type_name(kPathType);
  command.callback([flags, &body] {
    body = [flags] {
      give_back_large_blocks();
      flags->api_keys.environment = std::getenv("PAGODA_API_KEY");
      const Status status = serve(*flags);
      return status.ok() ? kExitOk : report_error(status);
    };
  });
}

}  // namespace pagoda
