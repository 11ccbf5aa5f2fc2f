#include "serving/template_probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <string>

#include "core/json.h"
#include "core/log.h"

namespace pagoda {
namespace {

// Words that no template has. They are looked for in what it prints.
constexpr std::string_view kSystem = "Qzsystem", kOtherSystem = "Qzother", kThirdSystem = "Qzthird",
                           kUser = "Qzuser", kOtherUser = "Qzsecond", kAnswer = "Qzanswer",
                           kOtherAnswer = "Qzreply", kName = "qzname", kOtherName = "qzcall",
                           kPlace = "Qzplace", kOtherPlace = "Qzwhere", kResult = "Qzresult",
                           kOtherResult = "Qzoutput";
constexpr std::string_view kLongId = "call_0123456789abcdef01234567", kShortId = "a1b2c3d4e",
                           kOtherShortId = "b2c3d4e5f";

using Texts = std::initializer_list<std::string_view>;

std::string list_of(std::initializer_list<std::string> messages) {
  std::string list = "[";
  for (const std::string& message : messages) list += (list.size() > 1 ? "," : "") + message;
  return list + "]";
}

std::string message(std::string_view role, std::string_view text) {
  return fmt::format(R"({{"role":"{}","content":"{}"}})", role, text);
}

// Returns a call. `arguments`: a text.
std::string call(std::string_view id, std::string_view name, std::string_view arguments) {
  return fmt::format(R"({{"id":"{}","type":"function","function":{{"name":"{}","arguments":{}}}}})",
                     id, name, json_string(arguments));
}

std::string arguments_of(std::string_view place) {
  return fmt::format(R"({{"place":"{}"}})", place);
}

// Returns a message with calls. `content`: JSON.
std::string calls_message(std::string_view content, std::string_view calls) {
  return fmt::format(R"({{"role":"assistant","content":{},"tool_calls":[{}]}})", content, calls);
}

// Returns a result. `name`: the function's; "": none.
std::string result_message(std::string_view id, std::string_view text, std::string_view name) {
  const std::string named = name.empty() ? "" : fmt::format(R"("name":"{}",)", name);
  return fmt::format(R"({{"role":"tool",{}"tool_call_id":"{}","content":"{}"}})", named, id, text);
}

std::string tool(std::string_view function) {
  return fmt::format(R"({{"type":"function","function":{{"name":"{}"{}}}}})", kName, function);
}

std::string whole_tool() {
  return tool(
      R"(,"description":"Tells.","parameters":{"type":"object","properties":{"place":{"type":"string","description":"Where."}},"required":["place"]})");
}

// The template that is probed.
struct Probed {
  const ChatTemplate& chat_template;
  std::string_view bos_token, eos_token;
  std::chrono::microseconds time_left;  // of all probers
};

// Renders conversations, all with the same tools.
class Prober {
 public:
  Prober(Probed& probed, ToolVariable variable, const std::string& tools)
      : probed_(probed), tools_json_(variable == ToolVariable::kNone ? "" : tools) {
    if (variable == ToolVariable::kXmlTools || variable == ToolVariable::kPythonTools)
      kwargs_json_ = fmt::format(R"({{"{}":{}}})", variable_name(variable), tools);
  }

  // Returns whether the template prints all these texts.
  bool shows(const std::string& messages, Texts texts) const {
    if (probed_.time_left.count() == 0) return false;
    const Result<std::string> rendered =
        probed_.chat_template.render_within(probed_.time_left, {.messages_json = messages,
                                                                .tools_json = tools_json_,
                                                                .kwargs_json = kwargs_json_,
                                                                .bos_token = probed_.bos_token,
                                                                .eos_token = probed_.eos_token});
    return rendered.ok() && std::all_of(texts.begin(), texts.end(), [&](std::string_view text) {
             return rendered->find(text) != std::string::npos;
           });
  }

 private:
  Probed& probed_;
  std::string tools_json_, kwargs_json_;
};

// The form of calls and results that a template takes.
struct CallForm {
  bool has_short_ids, has_names;
};

std::string one_call(const CallForm& form, std::string_view content, std::string_view arguments) {
  const std::string_view id = form.has_short_ids ? kShortId : kLongId;
  return list_of({message("user", kUser), calls_message(content, call(id, kName, arguments)),
                  result_message(id, kResult, form.has_names ? kName : "")});
}

std::string two_calls(const CallForm& form) {
  const std::string calls = call(kShortId, kName, arguments_of(kPlace)) + "," +
                            call(kOtherShortId, kOtherName, arguments_of(kOtherPlace));
  return list_of({message("user", kUser), calls_message("null", calls),
                  result_message(kShortId, kResult, form.has_names ? kName : ""),
                  result_message(kOtherShortId, kOtherResult, form.has_names ? kOtherName : "")});
}

std::string text_before_call(const CallForm& form) {
  return list_of({message("user", kUser), message("assistant", kAnswer),
                  calls_message("null", call(kShortId, kName, arguments_of(kPlace))),
                  result_message(kShortId, kResult, form.has_names ? kName : ""),
                  message("assistant", kOtherAnswer), message("user", kOtherUser)});
}

// Finds the places for messages of a role. `called`: a conversation with a call and its result; "":
// the template does not take both.
InstructionPlaces probe_places(const Prober& prober, std::string_view role,
                               const std::string& called) {
  const std::string system = message("system", kSystem), user = message("user", kUser),
                    answer = message("assistant", kAnswer), last = message("user", kOtherUser);
  const std::string one = message(role, kSystem), other = message(role, kOtherSystem);
  const bool is_first_shown = prober.shows(list_of({one, user}), {kSystem});
  return {
      .first = is_first_shown,
      .before_answering = called.empty()
                              ? is_first_shown
                              : prober.shows("[" + one + "," + called.substr(1), {kSystem}),
      .alone = prober.shows(list_of({one}), {kSystem}),
      .second = prober.shows(list_of({system, other, message(role, kThirdSystem), user}),
                             {kSystem, kOtherSystem, kThirdSystem}),
      .later = prober.shows(list_of({user, answer, one, last}), {kSystem}),
      .later_again =
          prober.shows(list_of({system, user, answer, other, last}), {kSystem, kOtherSystem}),
  };
}

// Finds the form that shows most of a call and its result.
CallForm probe_calls(const Prober& prober, MessageTraits& traits) {
  CallForm form = {false, false};
  traits.takes_calls = traits.takes_results = false;
  for (const CallForm each : {CallForm{false, false}, {true, false}, {false, true}, {true, true}}) {
    const std::string conversation = one_call(each, "null", arguments_of(kPlace));
    const bool shows_call = prober.shows(conversation, {kName, kPlace});
    const bool shows_result = prober.shows(conversation, {kResult});
    if (shows_call + shows_result <= traits.takes_calls + traits.takes_results) continue;
    form = each;
    traits.takes_calls = shows_call;
    traits.takes_results = shows_result;
    if (shows_call && shows_result) break;
  }
  traits.needs_short_ids = form.has_short_ids;
  traits.needs_names_of_results = form.has_names;
  return form;
}

MessageTraits probe_messages(const Prober& prober) {
  MessageTraits traits;
  const CallForm form = probe_calls(prober, traits);
  traits.takes_several_calls = prober.shows(
      two_calls(form), {kName, kPlace, kOtherName, kOtherPlace, kResult, kOtherResult});
  traits.takes_text_beside_calls =
      prober.shows(one_call(form, fmt::format("\"{}\"", kAnswer), arguments_of(kPlace)),
                   {kAnswer, kName, kPlace, kResult});
  traits.takes_text_before_calls =
      prober.shows(text_before_call(form), {kAnswer, kName, kPlace, kResult, kOtherAnswer});
  traits.takes_calls_without_results =
      prober.shows(list_of({message("user", kUser),
                            calls_message("null", call(kShortId, kName, arguments_of(kPlace))),
                            message("user", kOtherUser)}),
                   {kUser, kName, kOtherUser});
  traits.takes_users_after_results =
      prober.shows(list_of({message("user", kUser),
                            calls_message("null", call(kShortId, kName, arguments_of(kPlace))),
                            result_message(kShortId, kResult, form.has_names ? kName : ""),
                            message("user", kOtherUser)}),
                   {kUser, kName, kResult, kOtherUser});
  // Arguments within a JSON string are better than none, where text beside calls has no place.
  const std::string broken = fmt::format("{{\"place\": \"{}", kPlace);
  const bool has_place_for_text = traits.takes_text_beside_calls || traits.takes_text_before_calls;
  traits.takes_arguments_as_text =
      prober.shows(one_call(form, "null", broken), {kName, has_place_for_text ? broken : kPlace});
  const std::string called = traits.takes_calls && traits.takes_results
                                 ? one_call(form, "null", arguments_of(kPlace))
                                 : std::string();
  traits.system = probe_places(prober, "system", called);
  traits.developer = probe_places(prober, "developer", called);
  const std::string user = message("user", kUser), last = message("user", kOtherUser);
  traits.takes_users_in_a_row = prober.shows(list_of({user, last}), {kUser, kOtherUser});
  traits.takes_answers_in_a_row = prober.shows(
      list_of({user, message("assistant", kAnswer), message("assistant", kOtherAnswer), last}),
      {kAnswer, kOtherAnswer});
  traits.takes_empty_answers =
      prober.shows(list_of({user, message("assistant", ""), last}), {kOtherUser});
  return traits;
}

TemplateTraits probe(Probed& probed) {
  TemplateTraits traits;
  const auto prober_of = [&](ToolVariable variable, const std::string& tool) {
    return Prober(probed, variable, "[" + tool + "]");
  };
  const std::string question = list_of({message("user", kUser)});
  const std::string whole = whole_tool();
  for (const ToolVariable variable :
       {ToolVariable::kTools, ToolVariable::kXmlTools, ToolVariable::kPythonTools}) {
    if (!prober_of(variable, whole).shows(question, {kName})) continue;
    traits.tool_variable = variable;
    break;
  }
  traits.without_tools = probe_messages(prober_of(ToolVariable::kNone, whole));
  if (traits.tool_variable == ToolVariable::kNone) return traits;
  traits.with_tools = probe_messages(prober_of(traits.tool_variable, whole));
  for (const std::string_view function :
       {R"(,"parameters":{"type":"object","properties":{"place":{"type":"string"}}})", ""}) {
    if (!prober_of(traits.tool_variable, tool(function)).shows(question, {kName}))
      traits.needs_whole_tools = true;
  }
  return traits;
}

}  // namespace

std::string_view variable_name(ToolVariable variable) {
  switch (variable) {
    case ToolVariable::kXmlTools:
      return "xml_tools";
    case ToolVariable::kPythonTools:
      return "python_tools";
    case ToolVariable::kTools:
    case ToolVariable::kNone:
      break;
  }
  return "tools";
}

TemplateTraits probe_template(const ChatTemplate& chat_template, std::string_view bos_token,
                              std::string_view eos_token, std::chrono::microseconds time) {
  Probed probed = {chat_template, bos_token, eos_token, time};
  const TemplateTraits traits = probe(probed);
  if (probed.time_left.count() == 0) {
    log_warning(
        "[chat template] rendering a few short messages took {} s: what was not rendered counts as "
        "left out",
        static_cast<double>(time.count()) / 1e6);
  }
  return traits;
}

}  // namespace pagoda
