// Answers of a scripted model, for tests: plain text, thoughts, and calls in each syntax, whole,
// broken or cut off.
#pragma once

#include <string_view>

#include "answer/answer_format.h"

namespace pagoda {

struct ScriptedAnswer {
  ToolSyntax syntax = ToolSyntax::kHermes;
  std::string_view text;
  std::string_view stop = {};  // the request's stop string; "": none
  bool must_call = false;      // the request asks for calls alone
  bool has_one_call = false;   // and for one at most
};

using namespace std::string_view_literals;

// The functions are get_weather, which has a schema, and f, g and now, which have none.
inline constexpr ScriptedAnswer kPlainAnswers[] = {
    {.text = "A pagoda is a tower."},
    {.text = ""},
    {.text = "  \n "},
    {.text = "\n\n  a  \n b \n\n"},
    {.text = "a\r\nb\tc\r\n"},
    {.text = "**b** `x`\n```json\n{\"name\": \"f\", \"arguments\": {}}\n```"},
    {.text = "再见 👋 é à e\u0301 👩‍👩‍👧‍👦"},
    {.text = "a\0b\x01\x1b[0m\x7f c"sv},
    {.text = "a\u2028b\u00a0c\ufeffd\ufffd"},
    {.text = R"(<b>&amp; \"quoted\" \u0041 \\ / </b>)"},
    {.text = R"({"a": [1, null, true], "b": "c"})"},
    {.text = "null"},
    {.text = "a<|im_start|>b<|endoftext|>c"},
    {.text = "a <tool_cal b <|tool_call|> </tool_call>"},
    {.text = "Stop here, not there.", .stop = "here"},
    {.text = "再见 👋 é", .stop = "👋"},
    {.text = "Hm. One\n\nTwo", .stop = "\n\n"},
};

inline constexpr ScriptedAnswer kThoughtAnswers[] = {
    {.text = "<think>Hm.</think>Beta"},
    {.text = "<think></think>Beta"},
    {.text = "<think>\n\n</think>\n\nBeta"},
    {.text = "<think>\nHm.\n\nSo.\n</think>\n\nBeta\n"},
    {.text = "<think>Hm."},
    {.text = "<think>Hm.</thi"},
    {.text = "<think>Hm.</think>"},
    {.text = "<think>"},
    {.text = "<thin"},
    {.text = " \n<think> Hm </think> Beta </think> x"},
    {.text = "Beta <think>Hm.</think> Gamma"},
    {.text = "<think>a<think>b</think>c</think>d"},
    {.text = "<think>再见👋\0\x01</think>é"sv},
    {.text = "<think>Hm, stop</think>Beta", .stop = "stop"},
    {.text = "<think>Hm.</think>", .must_call = true},
    {.text = R"(<think>or <tool_call>{"name": "f"}</tool_call>?</think>Beta)"},
    {.text = R"(<think>Hm.</think><tool_call>{"name": "f", "arguments": {"b": 1}}</tool_call>)"},
    {.text = R"(<think>Hm.</think> Look: <tool_call>{"name": "f"}</tool_call>)"},
    {.text = R"(<tool_call>{"name": "f"}</tool_call><think>Hm.</think>Beta)"},
    {.text = R"(<think>Hm.</think><tool_call>{"name": "f", "arguments": {"b": [1, )"},
};

inline constexpr ScriptedAnswer kHermesAnswers[] = {
    {.text =
         R"(<tool_call>{"name": "get_weather", "arguments": {"zip": "1", "city": "Ulm", "days": 2}}</tool_call>)"},
    {.text = "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"b\": 1, \"a\": 2}}\n</tool_call>"},
    {.text =
         R"(<tool_call>{"name": "f", "arguments": {"z": 1}}</tool_call><tool_call>{"name": "g", "arguments": {"y": 2}}</tool_call>)"},
    {.text = R"(Look: <tool_call>{"name": "f"}</tool_call>
<tool_call>{"name": "f"}</tool_call>)"},
    {.text =
         R"(One <tool_call>{"name": "f"}</tool_call> two <tool_call>{"name": "g"}</tool_call> three)"},
    {.text = R"(<tool_call>{"name": "f"}</tool_call>Behind it.)"},
    {.text = R"(<tool_call>{"name": "f", "arguments": null}</tool_call>)"},
    {.text = R"(<tool_call>{"name": "f", "arguments": {}}</tool_call>)"},
    {.text = R"(<tool_call>{"name": "f", "arguments": "{\"b\": 1, \"a\": 2}"}</tool_call>)"},
    {.text = R"(<tool_call>{"name": "f", "parameters": {"b": 1}}</tool_call>)"},
    {.text =
         R"(<tool_call>{"arguments": {"b": 1, "a": {"d": 1, "c": 2}}, "name": "f"}</tool_call>)"},
    {.text =
         R"(<tool_call>{"id": "7", "type": "function", "name": "f", "arguments": {"b": null, "a": false}}</tool_call>)"},
    {.text = R"(<tool_call>{"name": "f", "arguments": {"b": 1, "a": 2, "b": 3}}</tool_call>)"},
    {.text =
         R"(<tool_call>{"name": "f", "arguments": {"n": 123456789012345678901234567890, "m": -0.0, "k": 2.0, "j": 2e3, "i": 1E-400}}</tool_call>)"},
    {.text =
         R"(<tool_call>{"name": "f", "arguments": {"n": 0.1, "m": 3.141592653589793238462643, "l": 18446744073709551615}}</tool_call>)"},
    {.text =
         R"(<tool_call>{"name": "f", "arguments": {"s": "\u00e9\n\"\\\/ \ud83d\udc4b \u0000", "": 1}}</tool_call>)"},
    {.text = R"(<tool_call>{"name": "f", "arguments": {"s": "\ud83d"}}</tool_call>)"},
    {.text = "<tool_call>{\"name\": \"f\", \"arguments\": {\"s\": \"a\nb\tc\x01\"}}</tool_call>"},
    {.text = "<tool_call>{\"name\": \"f\", \"arguments\": {\"s\": \"a\0b\"}}</tool_call>"sv},
    {.text = "<tool_call>{\"name\": \"f\", \0\"arguments\": {}}</tool_call>"sv},
    {.text =
         R"(<tool_call>{"name": "f", "arguments": {"s": "</tool_call><tool_call>"}}</tool_call>)"},
    {.text = R"(<tool_call>{"name": "f", "arguments": {"s": "再见👋"}}</tool_call>再见)"},
    {.text =
         R"(<tool_call>{"name": "f", "arguments": {"a": [[[[{"b": [[[{"c": [1, {"d": []}]}]]]}]]]]}}</tool_call>)"},
    {.text = R"(<tool_call>{"name": "f", "arguments": {"v": NaN}}</tool_call> end)"},
    {.text = R"(<tool_call>{"name": "f", "arguments": {"v": 1,}}</tool_call>)"},
    {.text = R"(<tool_call>{"name": "f", "arguments": {'v': 1}}</tool_call>)"},
    {.text = R"(<tool_call>{"name": "f", "arguments": {"v": 1}</tool_call>)"},
    {.text = R"(<tool_call>{"name": "f", "arguments": {"v": 1}}}</tool_call>)"},
    {.text = R"(<tool_call>{"name": "f", "arguments": {"v": 1}, "n": {"k": 3}}</tool_call>)"},
    {.text = R"(<tool_call>{"name": "f", "why": {"k": 1}, "arguments": {"v": 1}}</tool_call>)"},
    {.text = R"(<tool_call>[{"name": "f"}, {"name": "g", "arguments": {"b": 1}}]</tool_call>)"},
    {.text = R"(<tool_call>{"name": "f", "arguments": [1]}</tool_call>)"},
    {.text = R"(<tool_call>{"name": "f", "arguments": 7}</tool_call>)"},
    {.text = R"(<tool_call>{"name": "unknown", "arguments": {"a": 1}}</tool_call>)"},
    {.text = R"(<tool_call>{"name": null}</tool_call> <tool_call>{}</tool_call>)"},
    {.text = R"(Write <tool_call> and then </tool_call>.)"},
    {.text = R"(<tool_call>{"name": "f", "arguments": {"v": 1}})"},
    {.text =
         R"(<tool_call>{"name": "f", "arguments": {"v": NaN}}</tool_call><tool_call>{"name": "g"}</tool_call>)"},
    {.text = R"(<tool_call>{"name": "f", "argum)"},
    {.text = R"(<tool_call>{"name": "f", "arguments": {"s": "Ul)"},
    {.text = R"(a <tool_call>{"name": "f", "arguments": {"s": "stop it"}}</tool_call>)",
     .stop = "stop"},
    {.text = R"(a <tool_call>{"name": "f"}</tool_call> b)", .stop = "</tool_call>"},
    {.text = R"(a <tool_call>{"name": "f"}</tool_call> b)", .stop = "<tool_call>"},
    {.text = R"(<tool_call>{"name": "f"}</tool_call><tool_call>{"name": "g"}</tool_call>)",
     .has_one_call = true},
    {.text = R"(<tool_call>{"name": "f"}</tool_call>)", .must_call = true},
    {.text = R"(<tool_call>{"name": "f", "arguments": {"a": )", .must_call = true},
    {.text = R"(<tool_call>{"na)", .must_call = true},
    {.text = "<tool_call><function=f><parameter=a>1</parameter></function></tool_call>"},
};

inline constexpr ScriptedAnswer kXmlAnswers[] = {
    {ToolSyntax::kQwenXml,
     "<tool_call>\n<function=get_weather>\n<parameter=zip>\n1\n</parameter>\n<parameter=city>\n"
     "Ulm\n</parameter>\n<parameter=days>\n2\n</parameter>\n</function>\n</tool_call>"},
    {ToolSyntax::kQwenXml, "Look: <function=now></function>"},
    {ToolSyntax::kQwenXml,
     "<tool_call><function=f><parameter=b>1</parameter><parameter=a>{\"d\": 1, \"c\": "
     "2}</parameter>"
     "</function></tool_call>\n<tool_call><function=g></function></tool_call>"},
    {ToolSyntax::kQwenXml, "To call, write <function=NAME> and then the parameters."},
    {ToolSyntax::kQwenXml,
     "<function=get_weather><parameter=city>a </parameter> \"b\"\n\0\x01 é</parameter></function>"sv},
    {ToolSyntax::kQwenXml,
     "<tool_call>\n<function=get_weather>\n<parameter=city>\nUlm\n<parameter=zip>\n7\n</function>\n"
     "</tool_call>"},
    {ToolSyntax::kQwenXml, "<function=get_weather>\n<parameter=city>\nhalf done\n</param"},
    {ToolSyntax::kQwenXml, "<function=get_weather>\n<parameter=days>\n1"},
    {ToolSyntax::kQwenXml, "<function=f>\n<parameter=v>\n12 apples, NaN"},
    {ToolSyntax::kQwenXml,
     "<function=get_weather>\n<parameter=days>\nsome\n</parameter></function>"},
    {ToolSyntax::kQwenXml,
     "<function=f><parameter=a>1</parameter><parameter=a>2</parameter></function>"},
    {ToolSyntax::kQwenXml, "<function=f><parameter=a>1</parameter>prose</function>"},
    {ToolSyntax::kQwenXml, "<function=unknown><parameter=a>1</parameter></function>"},
    {ToolSyntax::kQwenXml,
     R"(<tool_call>{"name": "f", "arguments": {"b": 1, "a": 2}}</tool_call>)"},
    {ToolSyntax::kQwenXml,
     "<think>Hm.</think>\n\n<tool_call><function=f></function></tool_call> b"},
};

inline constexpr ScriptedAnswer kLlamaAnswers[] = {
    {ToolSyntax::kLlama3, R"({"name": "get_weather", "parameters": {"days": 2, "city": "Ulm"}})"},
    {ToolSyntax::kLlama3,
     R"(<|python_tag|>{"name": "f", "parameters": {"b": 1}}; {"name": "g", "parameters": {"a": 2}})"},
    {ToolSyntax::kLlama3, "{\"name\": \"f\", \"parameters\": {}}\n{\"name\": \"g\"}"},
    {ToolSyntax::kLlama3, R"({"type": "function", "name": "f", "parameters": {"a": "b"}} end)"},
    {ToolSyntax::kLlama3, R"({"name": "unknown", "parameters": {}})"},
    {ToolSyntax::kLlama3, R"({"answer": 1})"},
    {ToolSyntax::kLlama3, R"(Look: {"name": "f", "parameters": {}})"},
    {ToolSyntax::kLlama3, R"({"name": "f", "parameters": {"a": "Cu)"},
    {ToolSyntax::kLlama3, R"(<|python_tag|>import os)"},
    {ToolSyntax::kLlama3, R"({"name": "f", "parameters": {}};)"},
};

inline constexpr ScriptedAnswer kPythonAnswers[] = {
    {ToolSyntax::kPythonic, R"([get_weather(days=2, city="Ulm"), now()])"},
    {ToolSyntax::kPythonic,
     R"(<|python_start|>[f(b={'d': [1, None], 'c': True}, a=-1.5e3)]<|python_end|>)"},
    {ToolSyntax::kPythonic, "[f(s='''tri\n'ple''', t='\\u00e9\\n')]"},
    {ToolSyntax::kPythonic, "[see(note=1)] in the text"},
    {ToolSyntax::kPythonic, "[f(a=1)] and more"},
    {ToolSyntax::kPythonic, "[f(a=1), unknown()]"},
    {ToolSyntax::kPythonic, "[f(a=open('x'))]"},
    {ToolSyntax::kPythonic, "[1, 2]"},
    {ToolSyntax::kPythonic, "[f(a=12345678901234567890123, a=2)]"},
    {ToolSyntax::kPythonic, "[f(a='Cu"},
};

inline constexpr ScriptedAnswer kMistralAnswers[] = {
    {ToolSyntax::kMistral,
     R"([TOOL_CALLS][{"name": "get_weather", "arguments": {"days": 2, "city": "Ulm"}}])"},
    {ToolSyntax::kMistral,
     R"(Look: [TOOL_CALLS] [{"name": "f", "arguments": {"b": 1}}, {"name": "g", "arguments": {}}] end)"},
    {ToolSyntax::kMistral,
     R"([TOOL_CALLS][{"name": "f", "arguments": {"b": 1}}, {"name": "unkn"}])"},
    {ToolSyntax::kMistral, R"([TOOL_CALLS][{"name": "f", "arguments": {"b": "Cu)"},
    {ToolSyntax::kMistral, R"([TOOL_CALLS]prose)"},
    {ToolSyntax::kMistralV11, R"([TOOL_CALLS]get_weather[ARGS]{"days": 2, "city": "Ulm"})"},
    {ToolSyntax::kMistralV11,
     R"(a [TOOL_CALLS]f[CALL_ID]abcdefghi[ARGS]{"b": 1}[TOOL_CALLS]g[ARGS]{"a": 2})"},
    {ToolSyntax::kMistralV11, R"([TOOL_CALLS]f[ARGS]{"b": 'x'} c)"},
    {ToolSyntax::kMistralV11, R"([TOOL_CALLS]unknown[ARGS]{"b": 1})"},
    {ToolSyntax::kMistralV11, R"([TOOL_CALLS]f[ARGS]{"b": "Cu)"},
    {ToolSyntax::kMistralV11, R"([TOOL_CALLS][{"name": "f", "arguments": {"b": 1}}])"},
};

}  // namespace pagoda
