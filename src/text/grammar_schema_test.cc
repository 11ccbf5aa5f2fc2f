// Tests each keyword of JSON Schema and each type of pydantic. A schema is accepted, with valid and
// invalid answers, or refused with the place of the error. testdata/schema_keywords.json is written
// by hand; its expectations follow the rule that an object with listed properties allows no others.
// testdata/record_pydantic_schemas.py generates the other file.
#include <gmock/gmock.h>

#include "text/grammar_test_rig.h"

namespace pagoda {
namespace {

using ::testing::HasSubstr;

class GrammarSchemaTest : public GrammarTest {
 protected:
  // Returns whether the schema is accepted.
  bool check(const OrderedJson& entry) {
    SCOPED_TRACE(entry.at("name").get<std::string>());
    const std::string schema = entry.at("schema").dump();
    if (entry.contains("refused")) {
      EXPECT_THAT(refusal(GrammarKind::kJsonSchema, schema),
                  HasSubstr(entry.at("refused").get<std::string>()));
      return false;
    }
    const auto source = compile(GrammarKind::kJsonSchema, schema);
    EXPECT_TRUE(source.ok()) << source.status().message();
    if (!source.ok()) return false;
    check_answers(entry, **source);
    return true;
  }

  void check_answers(const OrderedJson& entry, const TokenMaskSource& source) {
    for (const char* kind : {"valid", "invalid"}) {
      for (const auto& answer : entry.value(kind, OrderedJson::array())) {
        const auto state = source.clone();
        const bool is_taken =
            takes(*state, answer.get<std::string>()) && (state->is_stopped() || may_end(*state));
        EXPECT_EQ(is_taken, kind == std::string_view("valid")) << answer;
      }
    }
  }

  // Returns how many entries of "counted" are accepted, and how many there are.
  std::pair<int, int> check_table(std::string_view name) {
    const OrderedJson tables = read_golden(name);
    int num_taken = 0;
    for (const auto& entry : tables.at("counted")) num_taken += check(entry);
    for (const auto& entry : tables.at("more")) check(entry);
    return {num_taken, static_cast<int>(tables.at("counted").size())};
  }
};

TEST_F(GrammarSchemaTest, EachKeywordIsHeldToOrRefusedWithItsPlace) {
  EXPECT_EQ(check_table("schema_keywords.json"), std::pair(57, 59));
}

TEST_F(GrammarSchemaTest, EachPydanticTypeIsTakenOrRefusedWithItsPlace) {
  EXPECT_EQ(check_table("pydantic_schemas.json"), std::pair(50, 52));
}

}  // namespace
}  // namespace pagoda
