#include "weights/mlx_quantization.h"
#include "tests/support/case_name.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace pagoda {
namespace {

using ::testing::HasSubstr;

TEST(MlxQuantizationTest, ReadsWhatMlxLmWrites) {
  const auto config = parse_mlx_quantization(R"({
    "model_type": "llama",
    "quantization": {
      "group_size": 128, "bits": 3, "mode": "affine",
      "model.embed_tokens": {"group_size": 32, "bits": 6, "mode": "affine"},
      "model.layers.0.mlp.down_proj": {"group_size": null, "bits": 8},
      "model.layers.1.mlp.down_proj": {},
      "model.layers.2.mlp.down_proj": true,
      "lm_head": false}})");
  ASSERT_TRUE(config.ok()) << config.status().message();
  ASSERT_TRUE(config->has_value());
  const MlxQuantization& affine = **config;
  EXPECT_EQ(affine.widths.bits, 3);
  EXPECT_EQ(affine.widths.group_size, 128);
  ASSERT_EQ(affine.modules.size(), 4u);
  EXPECT_EQ(affine.modules.at("model.embed_tokens")->bits, 6);
  EXPECT_EQ(affine.modules.at("model.embed_tokens")->group_size, 32);
  // A key that an entry leaves out has MLX's default, not the checkpoint's.
  EXPECT_EQ(affine.modules.at("model.layers.0.mlp.down_proj")->bits, 8);
  EXPECT_EQ(affine.modules.at("model.layers.0.mlp.down_proj")->group_size, 64);
  EXPECT_EQ(affine.modules.at("model.layers.1.mlp.down_proj")->bits, 4);
  EXPECT_FALSE(affine.modules.at("lm_head").has_value());
}

TEST(MlxQuantizationTest, TheOtherKeyCountsWhereItIsAlone) {
  const auto alone =
      parse_mlx_quantization(R"({"quantization_config": {"group_size": 64, "bits": 5}})");
  ASSERT_TRUE(alone.ok()) << alone.status().message();
  EXPECT_EQ((*alone)->widths.bits, 5);
  const auto both = parse_mlx_quantization(
      R"({"quantization_config": {"quant_method": "awq"}, "quantization": {"group_size": 64, "bits": 4}})");
  ASSERT_TRUE(both.ok()) << both.status().message();
  EXPECT_EQ((*both)->widths.bits, 4);
}

TEST(MlxQuantizationTest, NothingIsQuantisedWithoutAKey) {
  for (const char* text : {"{}", R"({"quantization": null, "quantization_config": null})"}) {
    const auto config = parse_mlx_quantization(text);
    ASSERT_TRUE(config.ok()) << config.status().message();
    EXPECT_FALSE(config->has_value());
  }
}

struct RefusedAffine {
  const char* name;
  const char* json;
  StatusCode code;
  const char* message;
};

void PrintTo(const RefusedAffine& refused, std::ostream* out) {
  *out << refused.name;
}

const RefusedAffine kRefused[] = {
    {"NoJson", "{", StatusCode::kDataLoss,
     "[config] config.json: expected JSON, got something else at line 1, column 2"},
    {"NoObject", R"({"quantization": 4})", StatusCode::kInvalidArgument,
     "[config] config.json: quantization: expected an object, got 4"},
    {"NoBits", R"({"quantization": {"group_size": 64}})", StatusCode::kInvalidArgument,
     "quantization: bits: expected an integer of 1 to 128, got none"},
    {"BitsOfText", R"({"quantization": {"group_size": 64, "bits": "4"}})",
     StatusCode::kInvalidArgument, "bits: expected an integer of 1 to 128, got \"4\""},
    {"BitsNegative", R"({"quantization": {"group_size": 64, "bits": -4}})",
     StatusCode::kInvalidArgument, "got -4"},
    {"GroupBeyondAnyRange", R"({"quantization": {"group_size": 18446744073709551615, "bits": 4}})",
     StatusCode::kInvalidArgument, "group_size: expected an integer of 1 to 128"},
    {"SevenBits", R"({"quantization": {"group_size": 64, "bits": 7}})", StatusCode::kUnsupported,
     "7 bits in groups of 64 are not supported; 2, 3, 4, 5, 6 and 8 bits in groups of 32, 64 and "
     "128 are"},
    {"GroupsOf16", R"({"quantization": {"group_size": 16, "bits": 4}})", StatusCode::kUnsupported,
     "4 bits in groups of 16"},
    {"Mode", R"({"quantization": {"group_size": 16, "bits": 4, "mode": "nvfp4"}})",
     StatusCode::kUnsupported,
     "quantization: mode \"nvfp4\" is not supported; affine and mxfp4 are"},
    {"WidthsOfMxfp4", R"({"quantization": {"group_size": 64, "bits": 4, "mode": "mxfp4"}})",
     StatusCode::kUnsupported,
     "quantization: 4 bits in groups of 64 are not supported in mode mxfp4; 4 bits in groups of 32 "
     "are"},
    {"ModeOfAModule",
     R"({"quantization": {"group_size": 32, "bits": 4, "lm_head": {"mode": "nvfp4"}}})",
     StatusCode::kUnsupported, "quantization: lm_head: mode \"nvfp4\" is not supported"},
    {"BitsOfAModule", R"({"quantization": {"group_size": 32, "bits": 4, "lm_head": {"bits": 1}}})",
     StatusCode::kUnsupported, "quantization: lm_head: 1 bits in groups of 64"},
    {"AnotherMethod", R"({"quantization_config": {"quant_method": "gptq", "bits": 4}})",
     StatusCode::kUnsupported,
     "[config] config.json: quantization_config: quant_method \"gptq\" is not supported; MLX's "
     "affine groups and mxfp4 are"},
};

class MlxQuantizationRefuses : public ::testing::TestWithParam<RefusedAffine> {};

TEST_P(MlxQuantizationRefuses, InOneLine) {
  const Status status = parse_mlx_quantization(GetParam().json).status();
  EXPECT_EQ(status.code(), GetParam().code);
  EXPECT_THAT(status.message(), HasSubstr(GetParam().message));
  EXPECT_EQ(status.message().find('\n'), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(All, MlxQuantizationRefuses, ::testing::ValuesIn(kRefused),
                         testing::kCaseName);

TEST(MlxQuantizationTest, NestingDoesNotFillTheMemory) {
  const std::string deep(1 << 20, '[');
  EXPECT_FALSE(parse_mlx_quantization("{\"quantization\": " + deep).ok());
}

}  // namespace
}  // namespace pagoda
