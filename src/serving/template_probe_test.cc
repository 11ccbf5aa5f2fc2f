#include "serving/template_probe.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/cpu_time.h"

namespace pagoda {
namespace {

TemplateTraits traits_of(std::string_view text) {
  const auto chat_template = ChatTemplate::from_text("t", text);
  EXPECT_TRUE(chat_template.ok()) << text;
  return probe_template(*chat_template, "<s>", "</s>");
}

// Prints all messages with their calls, after `before` has looked at each message `m`.
std::string template_of(std::string_view before,
                        std::string_view tools = "{{ tools | tojson if tools }}") {
  return std::string(tools) + "{% for m in messages %}" + std::string(before) +
         "{{ m.role }}:{{ m.content }}{{ m.tool_calls | tojson if m.tool_calls is defined }}"
         "{% endfor %}";
}

TEST(TemplateProbeTest, ATemplateThatPrintsEverything) {
  const TemplateTraits traits = traits_of(template_of(""));
  EXPECT_EQ(traits.tool_variable, ToolVariable::kTools);
  EXPECT_FALSE(traits.needs_whole_tools);
  // Arguments that are no object are a text within JSON.
  EXPECT_EQ(traits.with_tools, MessageTraits{.takes_arguments_as_text = false});
  EXPECT_EQ(traits.without_tools, traits.with_tools);
}

TEST(TemplateProbeTest, RolesThatAreRefusedOrLeftOut) {
  const auto system_of = [](std::string_view before) {
    return traits_of(template_of(before)).without_tools.system;
  };
  constexpr InstructionPlaces kNowhere = {false, false, false, false, false, false};
  EXPECT_EQ(system_of("{% if m.role == 'system' %}{{ raise_exception('no') }}{% endif %}"),
            kNowhere);
  EXPECT_EQ(system_of("{% if m.role == 'system' %}{% continue %}{% endif %}"), kNowhere);
  EXPECT_EQ(
      system_of(
          "{% if m.role == 'system' and not loop.first %}{{ raise_exception('no') }}{% endif %}"),
      (InstructionPlaces{.second = false, .later = false, .later_again = false}));
  EXPECT_EQ(
      system_of(
          "{% if m.role == 'system' and messages[-1].role != 'user' %}{% continue %}{% endif %}"),
      (InstructionPlaces{.before_answering = false, .alone = false}));
  const MessageTraits drops =
      traits_of(template_of("{% if m.role == 'developer' %}{% continue %}{% endif %}"))
          .without_tools;
  EXPECT_EQ(drops.developer, kNowhere);
  EXPECT_EQ(drops.system, InstructionPlaces());
}

TEST(TemplateProbeTest, CallsAndTheirResults) {
  const auto of = [](std::string_view before) { return traits_of(template_of(before)).with_tools; };
  EXPECT_TRUE(of("{% if m.tool_calls is defined and m.tool_calls[0].id | length != 9 %}"
                 "{{ raise_exception('nine') }}{% endif %}")
                  .needs_short_ids);
  EXPECT_TRUE(of("{% if m.role == 'tool' %}{{ m.name + '' }}{% endif %}").needs_names_of_results);
  EXPECT_FALSE(of("{% if m.role == 'tool' %}{% continue %}{% endif %}").takes_results);
  EXPECT_FALSE(of("{% if m.tool_calls is defined %}{% continue %}{% endif %}").takes_calls);
  EXPECT_FALSE(of("{% if m.tool_calls is defined and m.tool_calls | length > 1 %}"
                  "{{ raise_exception('one') }}{% endif %}")
                   .takes_several_calls);
  EXPECT_FALSE(
      of("{% if m.tool_calls is defined and m.content %}{{ raise_exception('no') }}{% endif %}")
          .takes_text_beside_calls);
  EXPECT_TRUE(
      of("{% if m.tool_calls is defined %}{{ m.tool_calls[0].function.arguments }}{% endif %}")
          .takes_arguments_as_text);
}

TEST(TemplateProbeTest, RowsOfOneRole) {
  const MessageTraits traits =
      traits_of(template_of("{% if not loop.first and messages[loop.index0 - 1].role == m.role %}"
                            "{{ raise_exception('alternate') }}{% endif %}"))
          .without_tools;
  EXPECT_FALSE(traits.takes_users_in_a_row);
  EXPECT_FALSE(traits.takes_answers_in_a_row);
}

TEST(TemplateProbeTest, ToolsByTheirVariable) {
  EXPECT_EQ(traits_of(template_of("", "")).tool_variable, ToolVariable::kNone);
  EXPECT_EQ(traits_of(template_of("", "{# tools #}{% if tools %}{% endif %}")).tool_variable,
            ToolVariable::kNone);
  EXPECT_EQ(traits_of(template_of("", "{{ xml_tools }}")).tool_variable, ToolVariable::kXmlTools);
  EXPECT_EQ(traits_of(template_of("", "{{ python_tools }}")).tool_variable,
            ToolVariable::kPythonTools);
  EXPECT_TRUE(traits_of(template_of("",
                                    "{% for t in tools or [] %}{{ t.function.name + ': ' + "
                                    "t.function.description }}{% endfor %}"))
                  .needs_whole_tools);
}

// Each of the renderings may take some tenths of a second, and there are dozens of them.
TEST(TemplateProbeTest, ProbesShareTheirTime) {
  const auto slow = ChatTemplate::from_text(
      "t", template_of("{% for i in range(9999) %}{% for j in range(9999) %}{% endfor %}"
                       "{% endfor %}"));
  ASSERT_TRUE(slow.ok());
  const double begin_s = process_cpu_seconds();
  const TemplateTraits traits =
      probe_template(*slow, "<s>", "</s>", std::chrono::milliseconds(300));
  EXPECT_LT(process_cpu_seconds() - begin_s, 1);
  EXPECT_EQ(traits.tool_variable, ToolVariable::kNone);
  EXPECT_FALSE(traits.without_tools.takes_calls);
}

}  // namespace
}  // namespace pagoda
