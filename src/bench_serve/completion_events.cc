#include "bench_serve/completion_events.h"

#include <algorithm>

#include "core/json.h"

namespace pagoda {

namespace {

using nlohmann::json;

constexpr std::size_t kMaxLineBytes = 1 << 20;
constexpr std::size_t kMaxShownBytes = 300;

std::string one_line(std::string_view text) {
  std::string line(text.substr(0, kMaxShownBytes));
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  }
  return line;
}

std::optional<int> count_in(const json& usage, const char* name) {
  const auto found = usage.find(name);
  if (found == usage.end() || !found->is_number_integer()) return {};
  return found->get<int>();
}

bool is_nonempty_list(const json& event, const char* name) {
  const auto found = event.find(name);
  return found != event.end() && found->is_array() && !found->empty();
}

bool has_text(const json& choice) {
  const auto text = choice.find("text");
  return text != choice.end() && text->is_string() && !text->get_ref<const std::string&>().empty();
}

bool has_finish_reason(const json& choice) {
  const auto reason = choice.find("finish_reason");
  return reason != choice.end() && reason->is_string();
}

}  // namespace

std::string error_message(std::string_view body) {
  const json parsed = parse_json(body);
  if (parsed.is_object() && parsed.contains("error")) {
    const json& error = parsed["error"];
    if (error.is_string()) return one_line(error.get_ref<const std::string&>());
    if (error.is_object() && error.contains("message") && error["message"].is_string())
      return one_line(error["message"].get_ref<const std::string&>());
  }
  return body.empty() ? "no body" : one_line(body);
}

Status CompletionEvents::push(std::string_view bytes, double now_s) {
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    if (end == std::string_view::npos) {
      if (partial_line_.size() + bytes.size() > kMaxLineBytes)
        return data_loss("expected events of at most {} bytes, got more", kMaxLineBytes);
      partial_line_ += bytes;
      return ok_status();
    }
    if (partial_line_.empty()) {
      PAGODA_RETURN_IF_ERROR(take_line(bytes.substr(0, end), now_s));
    } else {
      partial_line_ += bytes.substr(0, end);
      PAGODA_RETURN_IF_ERROR(take_line(std::exchange(partial_line_, {}), now_s));
    }
    bytes.remove_prefix(end + 1);
  }
  return ok_status();
}

Status CompletionEvents::take_line(std::string_view line, double now_s) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  constexpr std::string_view kData = "data:";
  // Ignores comments, names of events, and the blank lines after events.
  if (!line.starts_with(kData)) return ok_status();
  line.remove_prefix(kData.size());
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  if (line == "[DONE]") {
    ended_ = true;
    return ok_status();
  }
  return take_event(line, now_s);
}

Status CompletionEvents::take_event(std::string_view data, double now_s) {
  const json event = parse_json(data);
  if (!event.is_object())
    return data_loss("expected events of JSON objects, got: {}", one_line(data));
  if (event.contains("error") && !event["error"].is_null())
    return internal_error("{}", error_message(data));
  if (is_nonempty_list(event, "choices")) {
    const json& choice = event["choices"].front();
    if (!choice.is_object())
      return data_loss("expected choices of JSON objects, got: {}", one_line(data));
    record_.events_s.push_back(now_s);
    if (!record_.counted_by_server && has_text(choice)) ++record_.num_output_tokens;
    if (has_finish_reason(choice)) ended_ = true;
  }
  const auto usage = event.find("usage");
  if (usage == event.end() || !usage->is_object()) return ok_status();
  if (const auto count = count_in(*usage, "prompt_tokens")) record_.num_input_tokens = *count;
  if (const auto count = count_in(*usage, "completion_tokens")) {
    record_.num_output_tokens = *count;
    record_.counted_by_server = true;
  }
  return ok_status();
}

Status CompletionEvents::finish() const {
  if (record_.events_s.empty()) return data_loss("the stream ended without a token");
  if (!ended_) return data_loss("the stream ended before the answer did");
  return ok_status();
}

}  // namespace pagoda
