#include "answer/answer_grammar.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <vector>

#include "answer/schema_types.h"
#include "core/json.h"
#include "text/grammar.h"

namespace pagoda {
namespace {

using Json = OrderedJson;  // answers have properties in the schema's order

// Writes a grammar as Lark, one rule per line. Literals are written as JSON strings.
class AnswerGrammarWriter {
 public:
  explicit AnswerGrammarWriter(const AnswerGrammarOptions& options) : options_(options) {}

  std::string write(std::span<const ToolDefinition> tools) {
    std::string calls;
    for (std::size_t i = 0; i < tools.size(); ++i) {
      const std::string name = fmt::format("tools_{}", i);
      add_rule(name, call(tools[i], name));
      calls += (i == 0 ? "" : " | ") + name;
    }
    if (!tools.empty()) add_rule("call", calls);
    if (options_.json_schema) {
      add_rule("json", "%json " + in_one_line(*options_.json_schema));
      return fmt::format("start: {} ({}json)\n{}", thought(), tools.empty() ? "" : answer() + " | ",
                         rules_);
    }
    if (options_.may_hold_prose) return fmt::format("start: {}\n{}", answer_with_prose(), rules_);
    return fmt::format("start: {} {}\n{}", thought(), answer(), rules_);
  }

 private:
  void add_rule(std::string_view name, std::string_view body) {
    rules_ += fmt::format("{}: {}\n", name, body);
  }

  // Puts JSON into one line. Valid JSON has line ends only where other white space is allowed too.
  static std::string in_one_line(std::string text) {
    std::replace_if(
        text.begin(), text.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
    return text;
  }

  std::string mark(std::string_view text) const {
    const auto id = options_.special_token_id(text);
    return id ? fmt::format("<[{}]>", *id) : json_string(text);
  }

  std::string thought() {
    if (!options_.thought) return "";
    const std::string end = mark(options_.thought->end);
    const bool is_special = end.front() == '<';
    if (is_special) {
      add_rule("thought_text", R"(/(?s:.*)/)");
    } else {
      rules_ += fmt::format("thought_text[suffix={}]: /(?s:.*)/\n", end);
    }
    add_rule("thought_rest",
             fmt::format("thought_text {} thought_space?", is_special ? end : std::string()));
    add_rule("thought_space", R"(/[ \n]{1,4}/)");
    if (options_.begins_in_thought) return "thought_rest";
    add_rule("thought", fmt::format("{} thought_rest", mark(options_.thought->begin)));
    return "thought?";
  }

  // Allows calls after each mark, or as the whole answer if the syntax has no marks. Thoughts count
  // as prose.
  std::string answer_with_prose() {
    const char bare = bare_call_beginning(options_.syntax);
    if (bare != 0) {
      add_rule("prose", fmt::format(R"(/(?s:[ \t\r\n]*([^{} \t\r\n].*)?)/)",
                                    bare == '[' ? "\\[" : std::string(1, bare)));
      return fmt::format("{} | prose", answer());
    }
    const std::string begin = call_marks(options_.syntax).front();
    const std::string begin_mark = mark(begin);
    add_rule("place", options_.syntax == ToolSyntax::kMistral ? answer() : "call");
    if (begin_mark.front() == '<') {
      add_rule("prose", R"(/(?s:.+)/)");
      return "prose? (place prose?)*";
    }
    rules_ += fmt::format("prose_and_mark[suffix={}]: /(?s:.*)/\n", begin_mark);
    add_rule("PROSE", fmt::format(R"(/(?s:.*)/ & ~/(?s:.*)({})(?s:.*)/)", regex_of(begin)));
    return "(prose_and_mark place)* PROSE?";
  }

  // Returns a regular expression for a mark.
  static std::string regex_of(std::string_view text) {
    std::string regex;
    for (const char c : text) {
      if (std::string_view("[]|").find(c) != std::string_view::npos) regex += '\\';
      regex += c;
    }
    return regex;
  }

  // Returns the mark that begins a call; empty if the rule for the prose before it includes the
  // mark.
  std::string call_mark(std::string_view text) const {
    const std::string written = mark(text);
    return options_.may_hold_prose && written.front() != '<' ? std::string() : written;
  }

  std::string several(std::string_view separator) const {
    if (options_.has_one_call) return "call";
    return fmt::format("call ({} call){{0,{}}}", json_string(separator), kMaxCalls - 1);
  }

  std::string answer() const {
    switch (options_.syntax) {
      case ToolSyntax::kHermes:
      case ToolSyntax::kQwenXml:
        return several("\n");
      case ToolSyntax::kLlama3:
        return several("; ");
      case ToolSyntax::kPythonic:
        return fmt::format("\"[\" {} \"]\"", several(", "));
      case ToolSyntax::kMistral:
        return fmt::format("{} \"[\" {} \"]\"", call_mark("[TOOL_CALLS]"), several(", "));
      case ToolSyntax::kMistralV11:
        return options_.has_one_call ? "call" : fmt::format("call{{1,{}}}", kMaxCalls);
    }
    return "call";
  }

  std::string call(const ToolDefinition& tool, const std::string& rule) {
    switch (options_.syntax) {
      case ToolSyntax::kHermes:
        return fmt::format(
            "{} {} {} {} {}", call_mark("<tool_call>"),
            json_string(fmt::format("\n{{\"name\": {}, \"arguments\": ", json_string(tool.name))),
            arguments(tool, rule), json_string("}\n"), mark("</tool_call>"));
      case ToolSyntax::kQwenXml:
        return fmt::format("{} {} {} {} {}", call_mark("<tool_call>"),
                           json_string(fmt::format("\n<function={}>\n", tool.name)),
                           tags(tool, rule), json_string("\n"), mark("</tool_call>"));
      case ToolSyntax::kLlama3:
        return object(tool, rule, "parameters");
      case ToolSyntax::kMistral:
        return object(tool, rule, "arguments");
      case ToolSyntax::kPythonic:
        return fmt::format("{} {} \")\"", json_string(tool.name + "("), named_values(tool, rule));
      case ToolSyntax::kMistralV11:
        return fmt::format("{} {} {} {}", call_mark("[TOOL_CALLS]"), json_string(tool.name),
                           mark("[ARGS]"), arguments(tool, rule));
    }
    return "";
  }

  // Returns the rule of a call as an object with its arguments. Its terminals are split like those
  // of JSON text, because both may be allowed at the same place. The lexer matches the longest
  // terminal and does not backtrack, so a longer terminal here would rule the JSON text out.
  std::string object(const ToolDefinition& tool, const std::string& rule, std::string_view key) {
    return fmt::format(R"("{{" {} ": " {} ", " {} ": " {} "}}")", json_string(R"("name")"),
                       json_string(json_string(tool.name)),
                       json_string(json_string(std::string(key))), arguments(tool, rule));
  }

  // Returns the name of a rule for all arguments as one JSON object.
  std::string arguments(const ToolDefinition& tool, const std::string& rule) {
    Json schema = parameters_of(tool);
    schema["type"] = "object";
    return json_rule(rule + "_arguments", schema);
  }

  std::string json_rule(const std::string& name, const Json& schema) {
    add_rule(name, "%json " + json_text(schema));
    return name;
  }

  // Returns whether any arguments are allowed.
  bool is_free(const ToolDefinition& tool) const {
    return (options_.may_hold_prose || options_.json_schema) && !tool.is_strict;
  }

  Json parameters_of(const ToolDefinition& tool) const {
    if (is_free(tool)) return {{"type", "object"}};
    if (tool.parameters_json.empty()) return {{"type", "object"}, {"properties", Json::object()}};
    Json parameters = parse_ordered_json(tool.parameters_json);
    if (!tool.input_regex.empty())
      parameters["properties"][std::string(kCustomInput)]["pattern"] =
          fmt::format("^(?:{})$", tool.input_regex);
    return parameters;
  }

  // A property of a tool's parameters. The parameters must outlive it.
  struct Argument {
    std::string_view name;
    const Json* property;
    bool is_required;
  };

  // Returns the arguments in the parameters' order.
  static std::vector<Argument> arguments_of(const Json& parameters) {
    std::set<std::string_view> required;
    if (const auto names = parameters.find("required"); names != parameters.end()) {
      for (const Json& name : *names) {
        if (name.is_string()) required.insert(name.get_ref<const std::string&>());
      }
    }
    std::vector<Argument> result;
    const auto properties = parameters.find("properties");
    if (properties != parameters.end() && properties->is_object()) {
      for (const auto& [name, property] : properties->items())
        result.push_back({name, &property, required.contains(name)});
    }
    return result;
  }

  // Returns an argument's schema with the definitions to which it may refer. Call it for one
  // argument at a time, because each result has a copy of the definitions.
  static Json whole_schema(const Argument& argument, const Json& parameters) {
    Json whole = *argument.property;
    for (const char* shared : {"$defs", "definitions"}) {
      if (whole.is_object() && parameters.contains(shared)) whole[shared] = parameters.at(shared);
    }
    return whole;
  }

  // Returns whether the grammar is so long already that it will be refused.
  bool is_too_long() const { return rules_.size() > kMaxGrammarBytes; }

  // Returns the rule of all arguments' tags and the function's closing tag.
  std::string tags(const ToolDefinition& tool, const std::string& rule) {
    constexpr std::string_view kEnd = "</function>";
    if (is_free(tool)) {
      rules_ += fmt::format("{}_tags[suffix={}]: /(?s:.*)/\n", rule, json_string(kEnd));
      return rule + "_tags";
    }
    std::string body;
    int index = 0;
    const Json parameters = parameters_of(tool);
    for (const Argument& argument : arguments_of(parameters)) {
      if (is_too_long()) break;
      const std::string name = fmt::format("{}_{}", rule, index++);
      add_rule(name,
               fmt::format("{} {}", json_string(fmt::format("<parameter={}>\n", argument.name)),
                           tag_value(tool, argument, parameters, name)));
      body += name + (argument.is_required ? " " : "? ");
    }
    return body + json_string(kEnd);
  }

  // Writes a regular expression for Lark, where slashes enclose it.
  static std::string regex_in_lark(std::string_view regex) {
    std::string text;
    bool is_escaped = false;
    for (const char c : regex) {
      if ((c == '/' || c == '\n') && !is_escaped) text += '\\';
      text += c == '\n' ? 'n' : c;
      is_escaped = c == '\\' && !is_escaped;
    }
    return fmt::format("/(?:{})/", text);
  }

  // Returns the rule of a value and its closing tag. Where a schema allows strings, the value is one
  // and has no quotes.
  std::string tag_value(const ToolDefinition& tool, const Argument& argument,
                        const Json& parameters, const std::string& rule) {
    constexpr std::string_view kEnd = "\n</parameter>\n";
    const JsonTypes types = types_of(*argument.property, parameters);
    if (types == kAnyType || (types & kStringType) == 0) {
      return fmt::format("{} {}", json_rule(rule + "_value", whole_schema(argument, parameters)),
                         json_string(kEnd));
    }
    const auto choices = string_choices_of(*argument.property, parameters);
    if (!choices) {
      const std::string text =
          tool.input_regex.empty() ? "/(?s:.*)/" : regex_in_lark(tool.input_regex);
      rules_ += fmt::format("{}_value[suffix={}]: {}\n", rule, json_string(kEnd), text);
      return rule + "_value";
    }
    std::string texts;
    for (const std::string& choice : *choices)
      texts += (texts.empty() ? "" : " | ") + json_string(choice);
    return fmt::format("({}) {}", texts.empty() ? "\"\"" : texts, json_string(kEnd));
  }

  // Returns the rule of named arguments. Required arguments come first, so that the optional ones
  // are at the end and can be left out with their commas.
  std::string named_values(const ToolDefinition& tool, const std::string& rule) {
    if (is_free(tool)) {
      add_rule(rule + "_name", "/[A-Za-z_][A-Za-z0-9_]*/");
      const std::string value = json_rule(rule + "_value", Json::object());
      add_rule(rule + "_one", fmt::format("{}_name \"=\" {}", rule, value));
      return fmt::format("({0}_one (\", \" {0}_one)*)?", rule);
    }
    const Json parameters = parameters_of(tool);
    std::vector<Argument> all = arguments_of(parameters);
    std::stable_partition(all.begin(), all.end(), [](const Argument& a) { return a.is_required; });
    // The rules are built from the last argument backwards. `first` and `later` are the rules of
    // the rest of the list, at its beginning and after another argument.
    std::string first = "\"\"", later = "\"\"";
    for (std::size_t i = all.size(); i-- > 0 && !is_too_long();) {
      const std::string value = fmt::format("{}_value_{}", rule, i);
      json_rule(value, whole_schema(all[i], parameters));
      const std::string one =
          fmt::format("{} {}", json_string(fmt::format("{}=", all[i].name)), value);
      const std::string at_first = fmt::format("{}_first_{}", rule, i);
      const std::string at_later = fmt::format("{}_later_{}", rule, i);
      const bool is_required = all[i].is_required;
      add_rule(at_first, fmt::format("{} {}{}", one, later, is_required ? "" : " | " + first));
      add_rule(at_later,
               fmt::format("\", \" {} {}{}", one, later, is_required ? "" : " | " + later));
      first = at_first;
      later = at_later;
    }
    return first;
  }

  const AnswerGrammarOptions& options_;
  std::string rules_;
};

}  // namespace

std::string answer_grammar(std::span<const ToolDefinition> tools,
                           const AnswerGrammarOptions& options) {
  return AnswerGrammarWriter(options).write(tools);
}

}  // namespace pagoda
