#include "core/text_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "tests/support/temporary_folder.h"

namespace pagoda {
namespace {

TEST(TextFile, APointerOfGitLfsIsNotTheFile) {
  const testing::TemporaryFolder folder;
  const std::string file = folder / "tokenizer.json";
  std::ofstream(file) << "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 12\n";
  const Status status = read_text_file(file).status();
  EXPECT_EQ(status.code(), StatusCode::kDataLoss);
  EXPECT_THAT(status.message(),
              ::testing::HasSubstr("tokenizer.json: this is a pointer of git-lfs"));
  EXPECT_THAT(status.message(), ::testing::HasSubstr("git lfs pull"));
}

}  // namespace
}  // namespace pagoda
