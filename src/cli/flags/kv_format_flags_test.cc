#include "cli/flags/kv_format_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pagoda {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::IsEmpty;

TEST(KvFormatFlags, EveryNameAndEveryPairIsTaken) {
  EXPECT_EQ(parse_kv_formats("auto").value(), std::nullopt);
  EXPECT_EQ(parse_kv_formats("int8_per_token_head").value(),
            (KvFormats{KvFormat::kInt8, KvFormat::kInt8}));
  EXPECT_EQ(parse_kv_formats("int4_per_token_head").value(),
            (KvFormats{KvFormat::kInt4, KvFormat::kInt4}));
  for (const KvFormat keys : kKvFormats) {
    for (const KvFormat values : kKvFormats) {
      const KvFormats formats = {keys, values};
      EXPECT_EQ(parse_kv_formats(kv_formats_name(formats)).value(), formats);
      const auto pair = fmt::format("k:{},v:{}", kv_format_name(keys), kv_format_name(values));
      EXPECT_EQ(parse_kv_formats(pair).value(), formats) << pair;
      const auto turned = fmt::format("v:{},k:{}", kv_format_name(values), kv_format_name(keys));
      EXPECT_EQ(parse_kv_formats(turned).value(), formats) << turned;
    }
  }
}

TEST(KvFormatFlags, ARefusalSaysWhatToTakeInstead) {
  const auto message = [](std::string_view text) {
    const auto parsed = parse_kv_formats(text);
    EXPECT_EQ(parsed.status().code(), StatusCode::kInvalidArgument) << text;
    return parsed.status().message();
  };
  EXPECT_EQ(message("fp8"),
            "expected auto, float32, bfloat16, float16, int8, int4 or two of them as "
            "k:int8,v:int4, got fp8; take int8: the same size, and closer");
  for (const char* name : {"fp8_e4m3", "fp8_e5m2", "float8_e4m3fn", "fp8_inc", "k:fp8,v:fp8"})
    EXPECT_THAT(message(name), EndsWith("; take int8: the same size, and closer")) << name;
  EXPECT_THAT(message("q8_0"), EndsWith("; take int8"));
  EXPECT_THAT(message("nvfp4"), EndsWith("; take int4"));
  EXPECT_THAT(message("half"), EndsWith("; take float16"));
  EXPECT_THAT(message("k8v4"), EndsWith("; take k:int8,v:int4"));
  EXPECT_THAT(message("bfloat61"), EndsWith("; did you mean bfloat16?"));
  for (const char* text : {"", ",", "k:", "k:int8", "k:int8,", "k:int8,k:int4", "v:int8,v:int4",
                           "k:int8,v:int4,", "k:auto,v:int4", "k:int8,v:int4,v:int8", "k,v"})
    EXPECT_THAT(message(text), ::testing::HasSubstr(fmt::format("got {}", text))) << text;
}

TEST(KvFormatFlags, LlamaCppsNamesAreItsOwn) {
  EXPECT_EQ(parse_cache_type("f32").value(), KvFormat::kFloat32);
  EXPECT_EQ(parse_cache_type("f16").value(), KvFormat::kFloat16);
  EXPECT_EQ(parse_cache_type("bf16").value(), KvFormat::kBFloat16);
  EXPECT_EQ(parse_cache_type("q8_0").value(), KvFormat::kInt8);
  EXPECT_EQ(parse_cache_type("q4_0").value(), KvFormat::kInt4);
  EXPECT_EQ(parse_cache_type("q5_1").status().message(),
            "expected f32, f16, bf16, q8_0 or q4_0, got q5_1; take q8_0");
  EXPECT_THAT(parse_cache_type("iq4_nl").status().message(), EndsWith("; take q4_0"));
  EXPECT_THAT(parse_cache_type("int8").status().message(), EndsWith("; take q8_0"));
  EXPECT_THAT(parse_cache_type("").status().message(), EndsWith("got "));
}

TEST(KvFormatFlags, LlamaCppsFlagsChooseKeysAndValuesApart) {
  EngineOptions options;
  ASSERT_TRUE(
      apply_kv_format_flags({.cache_type_k = "q8_0", .cache_type_v = "q4_0"}, options).ok());
  EXPECT_EQ(options.kv_cache_formats, (KvFormats{KvFormat::kInt8, KvFormat::kInt4}));
  ASSERT_TRUE(apply_kv_format_flags({.cache_type_v = "q8_0"}, options).ok());
  EXPECT_EQ(options.kv_cache_formats, (KvFormats{KvFormat::kBFloat16, KvFormat::kInt8}));
  const Status both = apply_kv_format_flags({.dtype = "int8", .cache_type_k = "q8_0"}, options);
  EXPECT_EQ(both.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(both.message(), EndsWith("got both"));
}

TEST(KvFormatFlags, SkippedLayersAreARuleOrAList) {
  EXPECT_TRUE(parse_skipped_layers("sliding_window")->windowed);
  EXPECT_FALSE(parse_skipped_layers("none")->windowed);
  EXPECT_THAT(parse_skipped_layers("none")->layers, IsEmpty());
  EXPECT_THAT(parse_skipped_layers("0,12,3")->layers, ElementsAre(0, 12, 3));
  EXPECT_FALSE(parse_skipped_layers("7")->windowed);
  for (const char* text : {"", ",", "1,", ",1", "-1", "1;2", "1,,2", "all", "99999999999", "1 2"}) {
    EXPECT_EQ(parse_skipped_layers(text).status().message(),
              fmt::format("expected sliding_window, none or layers as 0,1, got {}", text));
  }
}

}  // namespace
}  // namespace pagoda
