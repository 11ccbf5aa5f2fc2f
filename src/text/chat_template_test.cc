#include "text/chat_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <thread>

#include "core/machine.h"
#include "tests/support/temporary_folder.h"
#include "text/golden_files.h"
#include "text/tokenizer.h"

namespace pagoda {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr std::string_view kHello = R"([{"role": "user", "content": "Hi"}])";

Result<std::string> render(std::string_view text, std::string_view messages = kHello,
                           std::string_view kwargs = "") {
  auto chat_template = ChatTemplate::from_text("chat_template.jinja", text);
  if (!chat_template.ok()) return chat_template.status();
  return chat_template->render({.messages_json = messages, .kwargs_json = kwargs});
}

std::string text_of(const Result<std::string>& result) {
  return result.ok() ? *result : "failed: " + result.status().message();
}

TEST(ChatTemplateTest, RealCheckpointsChatsEqualTheGoldenOnes) {
  const auto golden = read_golden("smollm2.json");
  GgufVocabulary vocabulary = {.chat_template = golden["chat_template"].get<std::string>()};
  const auto chat_template = ChatTemplate::from_gguf(vocabulary);
  int num_chats = 0;
  for (const auto& entry : golden["cases"]) {
    if (entry["kind"] != "chat") continue;
    const std::string messages = entry["input"].dump();
    EXPECT_EQ(text_of(chat_template->render({.messages_json = messages})),
              entry["text"].get<std::string>());
    ++num_chats;
  }
  EXPECT_EQ(num_chats, 3);
}

TEST(ChatTemplateTest, RendersAsTransformersDoes) {
  const auto golden = read_golden("chat_templates.json");
  for (const auto& entry : golden["cases"]) {
    const std::string name = entry["template"];
    const auto chat_template =
        ChatTemplate::from_text(name, golden["templates"][name].get<std::string>());
    ASSERT_TRUE(chat_template.ok()) << chat_template.status().message();
    const std::string messages = entry["messages"].dump();
    const std::string tools = entry.contains("tools") ? entry["tools"].dump() : "";
    const std::string kwargs = entry.contains("kwargs") ? entry["kwargs"].dump() : "";
    const auto rendered =
        chat_template->render({.messages_json = messages,
                               .tools_json = tools,
                               .kwargs_json = kwargs,
                               .bos_token = "<s>",
                               .eos_token = "</s>",
                               .add_generation_prompt = entry["add_generation_prompt"],
                               .continue_final_message = entry["continue_final_message"]});
    EXPECT_EQ(text_of(rendered), entry["rendered"].get<std::string>()) << name << " " << messages;
  }
}

TEST(ChatTemplateTest, RenderedChatsAreNotPrefixedTwice) {
  GgufVocabulary vocabulary = golden_vocabulary(read_golden("sentence_piece.json")["vocabulary"]);
  vocabulary.chat_template = "{{ bos_token }}{{ messages[0].content }}";
  const auto tokenizer = *Tokenizer::from_gguf(vocabulary);
  const auto prompt = ChatTemplate::from_gguf(vocabulary)
                          ->render({.messages_json = kHello, .bos_token = tokenizer->bos_token()});
  EXPECT_EQ(text_of(prompt), "<s>Hi");
  const auto ids = *tokenizer->encode(*prompt, {.add_special_tokens = false});
  EXPECT_EQ(std::count(ids.begin(), ids.end(), tokenizer->bos_token_id()), 1);
}

TEST(ChatTemplateTest, PartsAreJoinedForATemplateThatPrintsContent) {
  const std::string_view messages =
      R"([{"role": "user", "content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]}])";
  EXPECT_EQ(text_of(render("{{ messages[0].content }}", messages)), "one\ntwo");
  EXPECT_EQ(text_of(render("{% for m in messages %}{% for c in m.tool_calls or [] %}{% endfor %}"
                           "{{ m['content'] + '!' }}{% endfor %}",
                           messages)),
            "one\ntwo!");
}

TEST(ChatTemplateTest, PartsStayPartsForATemplateThatWalksThroughThem) {
  const std::string_view walks =
      "{% for m in messages %}{% for part in m['content'] %}[{{ part.type }} {{ part['text'] }}]{% "
      "endfor %}{% endfor %}";
  EXPECT_EQ(
      text_of(render(walks,
                     R"([{"role": "user", "content": [{"type": "text", "text": "one"}, "two"]}])")),
      "[text one][text two]");
  EXPECT_EQ(text_of(render(walks)), "[text Hi]") << "a string becomes one part";
  const std::string_view asks =
      "{% set content = messages[0].content %}{% if content is string %}<{{ content }}>{% else %}"
      "{% for part in content | selectattr('type', 'equalto', 'text') %}[{{ part.text }}]{% endfor "
      "%}{% endif %}";
  EXPECT_EQ(text_of(render(asks)), "<Hi>");
  EXPECT_EQ(
      text_of(render(asks, R"([{"role": "user", "content": [{"type": "text", "text": "one"}]}])")),
      "[one]");
}

TEST(ChatTemplateTest, NoContentIsEmptyContent) {
  EXPECT_EQ(
      text_of(render("<{{ messages[0].content }}>", R"([{"role": "user", "content": null}])")),
      "<>");
  EXPECT_EQ(text_of(render("<{{ messages[0].content }}>", R"([{"role": "user"}])")), "<>");
}

TEST(ChatTemplateTest, DevelopersAreTheSystemUnlessTheTemplateKnowsThem) {
  const std::string_view messages = R"([{"role": "developer", "content": "d"}])";
  EXPECT_EQ(text_of(render("{{ messages[0].role }}", messages)), "system");
  EXPECT_EQ(text_of(render("{% if messages[0].role == 'developer' %}yes{% endif %}", messages)),
            "yes");
}

TEST(ChatTemplateTest, ArgumentsOfCallsAreReadOnce) {
  const std::string_view messages = R"([{"role": "assistant", "content": "", "tool_calls": [
      {"function": {"name": "f", "arguments": "{\"b\": 1, \"a\": [true, null]}"}},
      {"function": {"name": "g", "arguments": "not JSON"}}, {"function": {"name": "h", "arguments": ""}}]}])";
  EXPECT_EQ(
      text_of(render(
          "{% for c in messages[0].tool_calls %}{{ c.function.arguments | tojson }};{% endfor %}",
          messages)),
      R"({"b": 1, "a": [true, null]};"not JSON";{};)");
}

TEST(ChatTemplateTest, TellsTheDate) {
  setenv("TZ", "UTC", 1);
  const auto chat_template = ChatTemplate::from_text("t", "{{ strftime_now('%d %b %Y') }}");
  EXPECT_EQ(text_of(chat_template->render({.messages_json = kHello, .unix_time = 1721944800})),
            "25 Jul 2024");
  EXPECT_EQ(text_of(render("{{ strftime_now('') }}|{{ strftime_now('%Y') | length }}")), "|4");
}

TEST(ChatTemplateTest, KwargsAreVariables) {
  EXPECT_EQ(text_of(render("{{ enable_thinking }} {{ bos_token }}", kHello,
                           R"({"enable_thinking": false, "bos_token": "B"})")),
            "False B");
  EXPECT_THAT(text_of(render("x", kHello, R"({"messages": []})")),
              HasSubstr("chat_template_kwargs.messages"));
  EXPECT_THAT(text_of(render("x", kHello, "[1]")),
              HasSubstr("chat_template_kwargs: expected an object"));
}

TEST(ChatTemplateTest, ErrorsNameTheTemplateTheLineAndTheReason) {
  EXPECT_EQ(text_of(render("\n\n{{ raise_exception('no system role') }}")),
            "failed: [chat template] chat_template.jinja:3: invalid operation: no system role");
  EXPECT_THAT(text_of(render("\n{% for m in %}")),
              StartsWith("failed: [chat template] chat_template.jinja:2: syntax error"));
  EXPECT_THAT(text_of(render("{{ foo() }}")), HasSubstr("chat_template.jinja:1: unknown function"));
  EXPECT_THAT(text_of(render("{{ messages[0].nothing.at_all }}")), HasSubstr("undefined value"));
  EXPECT_THAT(text_of(render("\xff")), HasSubstr("expected UTF-8"));
}

TEST(ChatTemplateTest, MessagesThatAreNoneAreRefusedByPlace) {
  const std::pair<const char*, const char*> cases[] = {
      {"{", "messages: "},
      {"{}", "messages: expected a list"},
      {"[1]", "messages[0]: expected an object"},
      {R"([{"role": "user"}, {"content": "x"}])", "messages[1].role: expected a string"},
      {R"([{"role": "user", "content": 5}])",
       "messages[0].content: expected a string or a list of parts"},
      {R"([{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}])",
       "messages[0].content[0].type: expected text, got image_url"},
      {R"([{"role": "user", "content": [{"text": "x"}]}])",
       "messages[0].content[0].type: expected a string"},
      {R"([{"role": "user", "content": [{"type": "text"}]}])",
       "messages[0].content[0].text: expected a string"},
      {R"([{"role": "user", "content": [7]}])", "messages[0].content[0]: expected an object"},
  };
  for (const auto& [messages, message] : cases) {
    const auto rendered = render("x", messages);
    ASSERT_FALSE(rendered.ok()) << messages;
    EXPECT_EQ(rendered.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(rendered.status().message(), HasSubstr(message));
  }
}

TEST(ChatTemplateTest, AMessageIsContinuedInsideOfIt) {
  const auto chat_template = ChatTemplate::from_text(
      "t", "{% for m in messages %}<{{ m.role }}>{{ m.content }}</{{ m.role }}>{% endfor %}");
  ChatInput input = {
      .messages_json =
          R"([{"role": "assistant", "content": "a a"}, {"role": "assistant", "content": "a"}])",
      .add_generation_prompt = false,
      .continue_final_message = true};
  EXPECT_EQ(text_of(chat_template->render(input)), "<assistant>a a</assistant><assistant>a");
  input.add_generation_prompt = true;
  EXPECT_THAT(text_of(chat_template->render(input)), HasSubstr("expected one of the two"));
  input.add_generation_prompt = false;
  input.messages_json = "[]";
  EXPECT_THAT(text_of(chat_template->render(input)),
              HasSubstr("expected a last message with text"));
}

TEST(ChatTemplateTest, ATemplateThatNeverEndsIsStopped) {
  const std::string loop = "{% for i in range(100000) %}";
  EXPECT_THAT(text_of(render(loop + loop + "x{% endfor %}{% endfor %}")),
              HasSubstr("ran out of fuel"));
  EXPECT_THAT(text_of(render("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}")),
              HasSubstr("recursion limit"));
  EXPECT_THAT(text_of(render("{{ " + std::string(100000, '(') + "1 }}")),
              HasSubstr("recursion limit"));
}

TEST(ChatTemplateTest, NestingEndsNeitherTheStackNorTheProcess) {
  const std::string nested =
      "{% set ns = namespace(x=[], y=[]) %}{% for i in range(100000) %}{% set ns.x = [ns.x] %}{% "
      "set ns.y = [ns.y] %}"
      "{% endfor %}";
  EXPECT_EQ(text_of(render(nested + "{{ ns.x == ns.y }}")), "True");
  EXPECT_EQ(text_of(render(nested + "{{ (ns.x | string) | length }}")), "200002");
  EXPECT_THAT(text_of(render(nested + "{{ ns.x | tojson }}")), HasSubstr("nested too deep"));
  EXPECT_EQ(text_of(render("{{ " + std::string(100000, '-') + "1 }}")), "1");
  EXPECT_THAT(text_of(render(std::string(2 << 20, 'x'))),
              HasSubstr("expected at most 1048576 bytes"));
}

// A stopped rendering must not cost later renderings time or memory.
TEST(ChatTemplateTest, RenderingsThatAreStoppedTakeNothingFromOthers) {
  constexpr const char* kTemplate =
      "{% set ns = namespace(x='aaaaaaaa') %}{% if messages[0].content == 'memory' %}"
      "{% for i in range(60) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}"
      "{% elif messages[0].content == 'time' %}"
      "{% for i in range(2000) %}{% for j in range(2000) %}{{ j }}{% endfor %}{% endfor %}"
      "{% endif %}{{ ns.x | length }}";
  const auto of_memory = ChatTemplate::from_text(
      "t", kTemplate, {.num_bytes = 16 << 20, .processor_time = std::chrono::seconds(10)});
  const auto of_time = ChatTemplate::from_text(
      "t", kTemplate, {.num_bytes = 64 << 20, .processor_time = std::chrono::milliseconds(50)});
  const ChatInput plain = {.messages_json = kHello};
  std::int64_t resident = 0;
  for (int i = 0; i < 40; ++i) {
    // By then the allocator has reached the most freed memory that it keeps.
    if (i == 20) resident = peak_resident_bytes();
    EXPECT_THAT(
        text_of(of_memory->render({.messages_json = R"([{"role": "user", "content": "memory"}])"})),
        HasSubstr("t: the rendering of these messages was stopped: it takes more than 16 MiB of "
                  "memory"));
    EXPECT_EQ(text_of(of_memory->render(plain)), "8");
    EXPECT_THAT(
        text_of(of_time->render({.messages_json = R"([{"role": "user", "content": "time"}])"})),
        HasSubstr("t: the rendering of these messages was stopped: it takes longer than 0.05 s"));
    EXPECT_EQ(text_of(of_time->render(plain)), "8");
  }
  EXPECT_LT(peak_resident_bytes() - resident, std::int64_t{100} << 20);
}

TEST(ChatTemplateTest, ThreadsShareATemplate) {
  const auto chat_template =
      ChatTemplate::from_text("t", "{% for m in messages %}{{ m.content }}{% endfor %}");
  std::atomic<int> num_equal = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 25; ++i)
        num_equal += text_of(chat_template->render({.messages_json = kHello})) == "Hi";
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(num_equal, 100);
}

class TemplateFolderTest : public ::testing::Test {
 protected:
  void write(const char* name, std::string_view text) const {
    std::ofstream(folder_ / name) << text;
  }
  std::string rendered(std::string_view tools = "") const {
    auto chat_template = ChatTemplate::from_folder(folder_);
    if (!chat_template.ok()) return "failed: " + chat_template.status().message();
    return text_of(chat_template->render({.messages_json = kHello, .tools_json = tools}));
  }

  testing::TemporaryFolder temporary_;
  std::filesystem::path folder_ = temporary_.path();
};

TEST_F(TemplateFolderTest, FindsTheCheckpointsTemplate) {
  EXPECT_EQ(ChatTemplate::from_folder(folder_).status().code(), StatusCode::kNotFound);
  EXPECT_THAT(rendered(), HasSubstr("the checkpoint has none"));
  write("tokenizer_config.json", R"({"bos_token": "<s>"})");
  EXPECT_EQ(ChatTemplate::from_folder(folder_).status().code(), StatusCode::kNotFound);
  write("tokenizer_config.json", R"({"chat_template": "from config"})");
  EXPECT_EQ(rendered(), "from config");
  write("tokenizer_config.json",
        R"({"chat_template": [{"name": "tool_use", "template": "with tools"},
        {"name": "default", "template": "default"}]})");
  EXPECT_EQ(rendered(), "default");
  EXPECT_EQ(rendered("[{}]"), "with tools");
  write("tokenizer_config.json",
        R"({"chat_template": [{"name": "rag", "template": "x"}, 7, {"name": "default"}]})");
  EXPECT_THAT(rendered(), HasSubstr("the checkpoint has none"));
  write("chat_template.jinja", "from file");
  EXPECT_EQ(rendered(), "from file");
  EXPECT_EQ(ChatTemplate::from_gguf({}).status().code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace pagoda
