#include "kv/private_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/temporary_folder.h"

namespace pagoda {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using Wish = PrivateFolder::Wish;

int mode_of(const std::string& path) {
  struct stat info = {};
  return ::stat(path.c_str(), &info) == 0 ? static_cast<int>(info.st_mode & 07777) : -1;
}

class PrivateFolderTest : public ::testing::Test {
 protected:
  PrivateFolderTest() : parent_(folder_ / "parent"), own_(parent_ + "/own") {
    fs::create_directory(parent_);
  }
  Result<PrivateFolder> open(Wish wish = Wish::kMade) const {
    return PrivateFolder::open(parent_, "own", wish);
  }
  void expect_refused(const std::string& why) const {
    const auto opened = open();
    EXPECT_EQ(opened.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(opened.status().message()), HasSubstr(why));
  }

  testing::TemporaryFolder folder_;
  const std::string parent_;
  const std::string own_;
};

// Modes of one's own folder, of another user's that a group may write (a Kubernetes volume with
// fsGroup), and of /tmp.
TEST_F(PrivateFolderTest, IsMadeInFoldersThatOthersMayUse) {
  for (const mode_t mode : {0700, 0755, 02770, 02775, 01777}) {
    fs::remove_all(own_);
    ASSERT_EQ(::chmod(parent_.c_str(), mode), 0);
    if (::geteuid() == 0) {
      ASSERT_EQ(::chown(parent_.c_str(), 4711, 4712), 0);
    }
    EXPECT_EQ(open(Wish::kFound).status().code(), StatusCode::kNotFound);
    const auto made = open();
    ASSERT_TRUE(made.ok()) << made.status().message();
    EXPECT_EQ(mode_of(own_) & 0777, 0700);
    EXPECT_EQ(mode_of(parent_), static_cast<int>(mode));
    EXPECT_TRUE(open(Wish::kFound).ok());
  }
}

// systemd's StateDirectory= is a link if the service has a dynamic user.
TEST_F(PrivateFolderTest, TheParentMayBeALinkAndIsMade) {
  fs::create_directory_symlink(parent_, folder_ / "link");
  EXPECT_TRUE(PrivateFolder::open(folder_ / "link", "own", Wish::kMade).ok());
  EXPECT_EQ(mode_of(own_), 0700);
  const std::string deep = folder_ / "a/b/c";
  EXPECT_EQ(PrivateFolder::open(deep, "own", Wish::kFound).status().code(), StatusCode::kNotFound);
  EXPECT_TRUE(PrivateFolder::open(deep, "own", Wish::kMade).ok());
  EXPECT_EQ(mode_of(deep), 0700);
  EXPECT_EQ(mode_of(folder_ / "a/b") & 0700, 0700);
}

TEST_F(PrivateFolderTest, AParentWhereAllUsersWriteIsRefused) {
  ASSERT_EQ(::chmod(parent_.c_str(), 0777), 0);
  expect_refused("all users may write in " + parent_);
  EXPECT_FALSE(fs::exists(own_));
}

// Kubernetes gives a volume's group access to all of it when it is mounted again.
TEST_F(PrivateFolderTest, OthersThatWereLetInNoLongerMay) {
  ASSERT_TRUE(open().ok());
  std::ofstream(own_ + "/file") << "kept";
  for (const mode_t mode : {02770, 0750, 0755}) {
    ASSERT_EQ(::chmod(own_.c_str(), mode), 0);
    ASSERT_TRUE(open().ok());
    EXPECT_EQ(mode_of(own_), 0700);
    EXPECT_TRUE(fs::exists(own_ + "/file"));
  }
  ASSERT_EQ(::chmod(own_.c_str(), 0777), 0);
  expect_refused("all users may write in " + own_);
}

TEST_F(PrivateFolderTest, AnotherUsersIsRefused) {
  if (::geteuid() == 0) {
    ASSERT_TRUE(open().ok());
    ASSERT_EQ(::chown(own_.c_str(), 4711, 0), 0);
    expect_refused("belongs to the user with the number 4711, this process is 0's");
    EXPECT_EQ(mode_of(own_), 0700);
  } else {
    const auto roots = PrivateFolder::open("/", "etc", Wish::kFound);
    EXPECT_EQ(roots.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(roots.status().message()), HasSubstr("belongs to the user"));
  }
}

TEST_F(PrivateFolderTest, LinksAndFilesAreNoFolders) {
  fs::create_directory(folder_ / "elsewhere");
  fs::create_directory_symlink(folder_ / "elsewhere", own_);
  expect_refused("is a link or a file, and no folder");
  fs::remove(own_);
  std::ofstream(own_) << "x";
  expect_refused("is a link or a file, and no folder");
  fs::remove(own_);
  const auto own = open();
  ASSERT_TRUE(own.ok());
  fs::create_directory_symlink(folder_ / "elsewhere", own_ + "/below");
  EXPECT_EQ(own->open_below("below", Wish::kMade).status().code(), StatusCode::kInvalidArgument);
}

TEST_F(PrivateFolderTest, NamesWhatIsThere) {
  const auto own = open();
  ASSERT_TRUE(own.ok());
  EXPECT_THAT(own->names().value(), ::testing::IsEmpty());
  ASSERT_TRUE(own->open_below("a", Wish::kMade).ok());
  std::ofstream(own_ + "/b") << "x";
  for (int again = 0; again < 2; ++again)
    EXPECT_THAT(own->names().value(), ::testing::UnorderedElementsAre("a", "b"));
}

}  // namespace
}  // namespace pagoda
