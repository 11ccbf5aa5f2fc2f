#include "hub/model_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <string>

namespace pagoda {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

const std::string kCommit(40, 'a');

class ModelStoreTest : public testing::Test {
 protected:
  ModelStoreTest() {
    fs::remove_all(dir_);
    fs::create_directories(dir_);
  }
  ~ModelStoreTest() override { fs::remove_all(dir_); }

  void put(const fs::path& path, std::string_view text) {
    fs::create_directories((dir_ / path).parent_path());
    std::ofstream(dir_ / path) << text;
  }
  std::string message_for(std::string_view model) {
    return resolve_model(model, dir_).status().message();
  }

  const fs::path dir_ = fs::path(testing::TempDir()) / "pagoda_model_store_test" /
                        testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(ModelStoreTest, APathThatExistsIsItself) {
  put("model/config.json", "{}");
  EXPECT_EQ(resolve_model((dir_ / "model").string(), dir_).value(), dir_ / "model");
  put("some.gguf", "x");
  const std::string file = (dir_ / "some.gguf").string();
  EXPECT_EQ(resolve_model(file, dir_).value(), file);
}

TEST_F(ModelStoreTest, TheDefaultModelIsItsFileInTheStore) {
  const fs::path file = dir_ / DefaultModel::kFile;
  std::ofstream(file).put('x');
  fs::resize_file(file, DefaultModel::kSize);
  EXPECT_EQ(resolve_model("smollm2", dir_).value(), file);
}

TEST_F(ModelStoreTest, ACopyOfTheDefaultModelIsKnownByItsNameAndSize) {
  const fs::path file = dir_ / DefaultModel::kFile;
  EXPECT_FALSE(is_default_model(file));
  std::ofstream(file).put('x');
  EXPECT_FALSE(is_default_model(file));
  fs::resize_file(file, DefaultModel::kSize);
  EXPECT_TRUE(is_default_model(file));
  fs::rename(file, dir_ / "other.gguf");
  EXPECT_FALSE(is_default_model(dir_ / "other.gguf"));
}

TEST_F(ModelStoreTest, AMissingDefaultModelNamesTheCommand) {
  EXPECT_EQ(resolve_model("smollm2", dir_).status().code(), StatusCode::kNotFound);
  EXPECT_THAT(message_for("smollm2"), HasSubstr("`pagoda pull smollm2`"));
}

TEST_F(ModelStoreTest, ADefaultModelOfAWrongSizeIsRefused) {
  put(DefaultModel::kFile, "cut short");
  EXPECT_EQ(resolve_model("smollm2", dir_).status().code(), StatusCode::kDataLoss);
  EXPECT_THAT(message_for("smollm2"), HasSubstr("expected 98362432 bytes, got 9"));
}

TEST_F(ModelStoreTest, AHubModelIsTheFolderOfTheRevisionsCommit) {
  put("hf/org/name/refs/main", kCommit + "\n");
  put("hf/org/name/" + kCommit + "/config.json", "{}");
  const fs::path folder = dir_ / "hf/org/name" / kCommit;
  EXPECT_EQ(resolve_model("hf:org/name", dir_).value(), folder);
  EXPECT_EQ(resolve_model("hf:org/name@main", dir_).value(), folder);
  EXPECT_EQ(resolve_model("hf:org/name@" + kCommit, dir_).value(), folder);
}

TEST_F(ModelStoreTest, AHubModelInGgufIsItsFirstFile) {
  put("hf/org/name/refs/main", kCommit);
  put("hf/org/name/" + kCommit + "/config.json", "{}");
  put("hf/org/name/" + kCommit + "/m-00002-of-00002.gguf", "");
  put("hf/org/name/" + kCommit + "/m-00001-of-00002.gguf", "");
  EXPECT_EQ(resolve_model("hf:org/name", dir_).value().filename(), "m-00001-of-00002.gguf");
}

TEST_F(ModelStoreTest, AHubModelThatIsNotThereNamesTheCommand) {
  EXPECT_THAT(message_for("hf:org/name@v1"), HasSubstr("`pagoda pull hf:org/name@v1`"));
  put("hf/org/name/refs/v1", kCommit);  // the ref alone is not the model
  EXPECT_THAT(message_for("hf:org/name@v1"), HasSubstr("`pagoda pull hf:org/name@v1`"));
  put("hf/org/name/refs/v1", "../../../elsewhere");
  EXPECT_THAT(message_for("hf:org/name@v1"), HasSubstr("`pagoda pull hf:org/name@v1`"));
}

TEST_F(ModelStoreTest, AnUnfinishedPullIsNotTheModel) {
  put("hf/org/name/refs/main", kCommit);
  put("hf/org/name/" + kCommit + ".partial/config.json", "{}");
  EXPECT_EQ(resolve_model("hf:org/name", dir_).status().code(), StatusCode::kNotFound);
}

TEST_F(ModelStoreTest, AnUnknownNameSaysWhatWouldDo) {
  EXPECT_EQ(message_for("gpt-17"),
            "[model] gpt-17: no such file or folder; expected a GGUF file, a folder, smollm2 or "
            "hf:ORG/NAME[@REVISION][:QUANTIZATION]");
  EXPECT_EQ(message_for("models/gpt.gguf.part/x"),
            "[model] models/gpt.gguf.part/x: no such file or folder");
}

TEST_F(ModelStoreTest, ATypoGetsTheNameItIsNearest) {
  EXPECT_THAT(message_for("smolm2"), HasSubstr("did you mean smollm2?"));
  EXPECT_THAT(message_for("SmolLM2"), HasSubstr("did you mean smollm2?"));
  put("hf/Qwen/Qwen3-0.6B/refs/main", kCommit);
  EXPECT_THAT(message_for("hg:qwen/Qwen3-0.6B"), HasSubstr("did you mean hf:Qwen/Qwen3-0.6B?"));
}

TEST_F(ModelStoreTest, AHubsNameWithoutItsPrefixIsHinted) {
  EXPECT_THAT(message_for("Qwen/Qwen3-0.6B"), HasSubstr("`pagoda pull hf:Qwen/Qwen3-0.6B`"));
}

TEST_F(ModelStoreTest, AFolderOfOneGgufModelIsThatModel) {
  put("one/m.gguf", "");
  put("one/README.md", "");
  EXPECT_EQ(resolve_model((dir_ / "one").string(), dir_).value().filename(), "m.gguf");
  put("split/m-00002-of-00002.gguf", "");
  put("split/m-00001-of-00002.gguf", "");
  EXPECT_EQ(resolve_model((dir_ / "split").string(), dir_).value().filename(),
            "m-00001-of-00002.gguf");
  put("both/m.gguf", "");
  put("both/model.safetensors", "");
  EXPECT_EQ(resolve_model((dir_ / "both").string(), dir_).value(), dir_ / "both");
  put("two/a.gguf", "");
  put("two/b.gguf", "");
  EXPECT_THAT(message_for((dir_ / "two").string()),
              HasSubstr("expected one GGUF model in the folder, got a.gguf, b.gguf"));
}

TEST_F(ModelStoreTest, ASafetensorsFileIsTheFolderAroundIt) {
  put("model/model-00001-of-00002.safetensors", "");
  const std::string file = (dir_ / "model/model-00001-of-00002.safetensors").string();
  EXPECT_THAT(message_for(file), HasSubstr("expected config.json and tokenizer.json beside it"));
  put("model/config.json", "{}");
  EXPECT_EQ(resolve_model(file, dir_).value(), dir_ / "model");
}

TEST(TypedNameTest, IsTheHubsNameOrWhatWasTyped) {
  EXPECT_EQ(typed_name("hf:Qwen/Qwen3-0.6B@v1"), "Qwen/Qwen3-0.6B");
  EXPECT_EQ(typed_name("smollm2"), "smollm2");
  EXPECT_EQ(typed_name("some/model.gguf"), "some/model.gguf");
}

TEST(HubNameTest, IsReadInItsParts) {
  const HubName name = parse_hub_name("hf:Qwen/Qwen3-0.6B@refs/pr/1").value();
  EXPECT_EQ(name.org, "Qwen");
  EXPECT_EQ(name.name, "Qwen3-0.6B");
  EXPECT_EQ(name.revision, "refs/pr/1");
  EXPECT_EQ(name.quantization, "");
  EXPECT_EQ(parse_hub_name("hf:a/b").value().revision, "main");
  const HubName quantized = parse_hub_name("hf:a/b@v1:ud-Q4_k_xl").value();
  EXPECT_EQ(quantized.revision, "v1");
  EXPECT_EQ(quantized.quantization, "UD-Q4_K_XL");
  EXPECT_EQ(typed_name("hf:a/b:q8_0"), "a/b:Q8_0");
}

TEST(HubNameTest, WhatCouldLeaveTheStoreIsRefused) {
  for (const char* text :
       {"a/b",       "hf:",       "hf:a",       "hf:/b",     "hf:a/",      "hf:../b",
        "hf:a/..",   "hf:a/.",    "hf:a/b/c",   "hf:a/b@",   "hf:a/b@..",  "hf:a/b@x/../y",
        "hf:a/b@/x", "hf:a/b@x/", "hf:a/b:",    "hf:a/b:..", "hf:a/b:x/y", "hf:a/b:x:y",
        "hf:a/b c",  "hf:a/b?x",  "hf:a/b@x@y", "hf:a\\b/c"}) {
    EXPECT_EQ(parse_hub_name(text).status().code(), StatusCode::kInvalidArgument) << text;
  }
}

class ModelDirTest : public testing::Test {
 protected:
  ModelDirTest() {
    for (const char* name : {"PAGODA_MODEL_DIR", "XDG_CACHE_HOME"}) unsetenv(name);
    setenv("HOME", "/home/ada", 1);
  }
};

TEST_F(ModelDirTest, FollowsTheEnvironment) {
  EXPECT_EQ(default_model_dir().value(), "/home/ada/.cache/pagoda/models");
  setenv("XDG_CACHE_HOME", "/cache", 1);
  EXPECT_EQ(default_model_dir().value(), "/cache/pagoda/models");
  setenv("PAGODA_MODEL_DIR", "/models", 1);
  EXPECT_EQ(default_model_dir().value(), "/models");
}

TEST_F(ModelDirTest, WithoutAHomeThereIsNone) {
  unsetenv("HOME");
  EXPECT_EQ(default_model_dir().status().code(), StatusCode::kNotFound);
  EXPECT_EQ(resolve_model("/").value(), "/");  // a path needs no store
}

}  // namespace
}  // namespace pagoda
