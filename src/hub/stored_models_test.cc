#include "hub/stored_models.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "hub/folder_lock.h"
#include "hub/model_store.h"
#include "tests/support/temporary_folder.h"

namespace pagoda {
namespace {

using ::testing::HasSubstr;

class StoredModelsTest : public ::testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = folder_ / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  bool exists(const std::string& path) const { return std::filesystem::exists(folder_ / path); }
  // Returns "NAME BYTES" for each model, with a '+' after those that are not whole.
  std::vector<std::string> listed_models() {
    std::vector<std::string> lines;
    for (const StoredModel& model : stored_models(folder_.path()))
      lines.push_back(model.name + " " + std::to_string(model.num_bytes) +
                      (model.is_whole ? "" : "+"));
    return lines;
  }

  testing::TemporaryFolder folder_;
  const std::string a_ = std::string(40, 'a'), b_ = std::string(40, 'b');
};

TEST_F(StoredModelsTest, AnEmptyOrMissingStoreHasNone) {
  EXPECT_TRUE(stored_models(folder_ / "none").empty());
  EXPECT_TRUE(stored_models(folder_.path()).empty());
}

TEST_F(StoredModelsTest, NamesAreThoseThatCommandsTake) {
  write(std::string(DefaultModel::kFile), "12345");
  write("hf/o/m/refs/main", a_);
  write("hf/o/m/refs/pr/1", a_);
  write("hf/o/m/" + a_ + "/model.safetensors", "123");
  write("hf/o/m/" + a_ + "/sub/config.json", "1");
  write("hf/o/m/" + b_ + ".partial/model.safetensors", "12");
  write("hf/o/m/refs/broken", "no commit");
  write("notes.txt", "x");
  EXPECT_EQ(listed_models(), (std::vector<std::string>{"smollm2 5", "hf:o/m 4", "hf:o/m@pr/1 4",
                                                       "hf:o/m@" + b_ + " 2+"}));
}

TEST_F(StoredModelsTest, FilesStayWhileARevisionMeansThem) {
  write("hf/o/m/refs/main", a_);
  write("hf/o/m/refs/v1", a_);
  write("hf/o/m/" + a_ + "/model.safetensors", "123");
  EXPECT_EQ(remove_model("hf:o/m", folder_.path()).value(), 0);
  EXPECT_EQ(listed_models(), std::vector<std::string>{"hf:o/m@v1 3"});
  EXPECT_EQ(remove_model("hf:o/m@v1", folder_.path()).value(), 3);
  EXPECT_FALSE(exists("hf"));
}

TEST_F(StoredModelsTest, RemovesTheDefaultModelAndBrokenPulls) {
  write(std::string(DefaultModel::kFile), "12345");
  write("hf/o/m/" + b_ + ".partial/model.safetensors", "12");
  EXPECT_EQ(remove_model("smollm2", folder_.path()).value(), 5);
  EXPECT_EQ(remove_model("hf:o/m@" + b_, folder_.path()).value(), 2);
  EXPECT_TRUE(listed_models().empty());
}

TEST_F(StoredModelsTest, QuantisationsAreModelsBesideTheRepositorysOwn) {
  write("hf/o/m/refs/main", a_);
  write("hf/o/m/" + a_ + "/m-Q8_0.gguf", "123");
  write("hf/o/m/.lock", "");
  write("hf/o/m/gguf/Q4_0/refs/main", a_);
  write("hf/o/m/gguf/Q4_0/refs/v1", a_);
  write("hf/o/m/gguf/Q4_0/" + a_ + "/m-Q4_0.gguf", "12");
  EXPECT_EQ(listed_models(),
            (std::vector<std::string>{"hf:o/m 3", "hf:o/m:Q4_0 2", "hf:o/m@v1:Q4_0 2"}));
  EXPECT_EQ(remove_model("hf:o/m", folder_.path()).value(), 3);
  EXPECT_EQ(remove_model("hf:o/m:Q4_0", folder_.path()).value(), 0);
  EXPECT_EQ(remove_model("hf:o/m@v1:Q4_0", folder_.path()).value(), 2);
  EXPECT_FALSE(exists("hf"));
}

// A pull leaves its lock's file in the folder.
TEST_F(StoredModelsTest, AModelThatIsRemovedLeavesNothing) {
  write("hf/o/m/refs/main", a_);
  write("hf/o/m/" + a_ + "/model.safetensors", "123");
  write("hf/o/m/.lock", "");
  EXPECT_EQ(remove_model("hf:o/m", folder_.path()).value(), 3);
  EXPECT_FALSE(exists("hf"));
}

TEST_F(StoredModelsTest, AModelThatIsPulledIsNotRemoved) {
  write("hf/o/m/refs/main", a_);
  write("hf/o/m/" + a_ + "/model.safetensors", "123");
  const Result<FolderLock> pull = FolderLock::take(folder_ / "hf/o/m");
  ASSERT_TRUE(pull.ok());
  EXPECT_EQ(remove_model("hf:o/m", folder_.path()).status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(listed_models(), std::vector<std::string>{"hf:o/m 3"});
}

TEST_F(StoredModelsTest, WhatIsNotThereIsNotRemoved) {
  for (const char* name : {"smollm2", "hf:o/m", "../x", ""})
    EXPECT_THAT(remove_model(name, folder_.path()).status().message(),
                HasSubstr("no such model is here"));
}

}  // namespace
}  // namespace pagoda
