// Compares the chat templates of 70 models, and expressions written for the test, with the output
// of Jinja2, which testdata/make_jinja_goldens.py records. tools/fetch_chat_templates.py fetches
// the templates.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <sstream>

#include "core/sha256.h"
#include "text/chat_template.h"
#include "text/golden_files.h"

namespace pagoda {
namespace {

using Json = OrderedJson;

// In Python this template raises a TypeError, because a generator cannot be written as JSON. Here
// it prints the generator's items.
constexpr std::string_view kForgiven = "llama-cpp-deepseek-r1.jinja";

const Json& goldens() {
  static const Json result = read_golden("jinja_goldens.json");
  return result;
}

std::string read_text(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

Result<std::string> render(const std::string& name, const std::string& text,
                           const Json& conversation) {
  const auto part = [&](const char* key) {
    return conversation.contains(key) ? conversation[key].dump() : std::string();
  };
  const std::string messages = part("messages"), tools = part("tools"), kwargs = part("kwargs");
  PAGODA_ASSIGN_OR_RETURN(const ChatTemplate chat_template, ChatTemplate::from_text(name, text));
  return chat_template.render(
      {.messages_json = messages,
       .tools_json = tools,
       .kwargs_json = kwargs,
       .bos_token = "<s>",
       .eos_token = "</s>",
       .add_generation_prompt = conversation.value("add_generation_prompt", true),
       .unix_time = goldens()["unix_time"].get<std::int64_t>()});
}

// Returns the first line, with its number, whose digest differs from the golden one.
std::string first_difference(const std::string& text, const std::string& line_digits) {
  const size_t num_digits = goldens()["line_digits"];
  std::istringstream lines(text + '\n');
  std::string line;
  size_t number = 0;
  while (std::getline(lines, line)) {
    const std::string golden = number * num_digits < line_digits.size()
                                   ? line_digits.substr(number * num_digits, num_digits)
                                   : "no line";
    ++number;
    if (to_hex(sha256(line)).substr(0, num_digits) != golden) {
      return fmt::format("line {}: {}", number, line);
    }
  }
  return fmt::format("it ends after line {} of {}", number, line_digits.size() / num_digits);
}

bool is_forgiven(const std::string& name, const Json& golden) {
  return golden["exception"] == "TypeError" && name == kForgiven;
}

class JinjaGoldensTest : public ::testing::Test {
 protected:
  void SetUp() override { setenv("TZ", "UTC", 1); }
};

TEST_F(JinjaGoldensTest, ExpressionsPrintWhatTheyPrintInJinja2) {
  const Json& conversation = goldens()["conversations"]["several turns"];
  int num_exceptions = 0;
  for (const Json& entry : goldens()["expressions"]) {
    const auto text = entry[0].get<std::string>();
    const auto rendered = render("t", text, conversation);
    if (entry[1].is_null()) {
      EXPECT_FALSE(rendered.ok()) << text << " raises " << entry[2]
                                  << ", printed here: " << *rendered;
      ++num_exceptions;
      continue;
    }
    ASSERT_TRUE(rendered.ok()) << text << ": " << rendered.status().message();
    EXPECT_EQ(*rendered, entry[1].get<std::string>()) << text;
  }
  EXPECT_GE(goldens()["expressions"].size(), 150u);
  EXPECT_GE(num_exceptions, 20);
}

TEST_F(JinjaGoldensTest, TemplatesOfSeventyModelsRenderAsJinja2RendersThem) {
  const std::filesystem::path folder = chat_templates_folder(goldens());
  ASSERT_TRUE(std::filesystem::is_directory(folder))
      << "no chat templates in " << folder
      << ": tools/fetch_chat_templates.py takes them from PyPI";
  EXPECT_EQ(goldens()["templates"].size(), 70u);
  for (const auto& [name, golden] : goldens()["templates"].items()) {
    const std::string text = read_text(folder / name);
    ASSERT_EQ(to_hex(sha256(text)), golden["sha256"].get<std::string>())
        << folder / name << " is not the file that the golden renderings are of";
    for (const auto& [title, rendering] : golden["renderings"].items()) {
      const auto rendered = render(name, text, goldens()["conversations"][title]);
      const std::string again = fmt::format(
          " ({0} of {1}; make_jinja_goldens.py FOLDER {1} '{0}' prints Jinja2's)", title, name);
      if (rendering.contains("exception")) {
        EXPECT_EQ(rendered.ok(), is_forgiven(name, rendering))
            << "raises " << rendering["exception"] << again;
        continue;
      }
      ASSERT_TRUE(rendered.ok()) << rendered.status().message() << again;
      if (to_hex(sha256(*rendered)) == rendering["sha256"].get<std::string>()) continue;
      ADD_FAILURE() << first_difference(*rendered, rendering["lines"]) << again;
    }
  }
}

}  // namespace
}  // namespace pagoda
