#include "server/http/listening_socket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <filesystem>
#include <fstream>
#include <optional>

#include "tests/support/temporary_folder.h"

namespace pagoda {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

class ListeningSocketTest : public ::testing::Test {
 protected:
  Status listen(StreamAcceptor& acceptor) { return listen_on_path(acceptor, path_); }
  StreamAcceptor acceptor() { return StreamAcceptor(context_); }

  const ::pagoda::testing::TemporaryFolder folder_;
  const std::string path_ = folder_ / "socket";
  boost::asio::io_context context_;
};

TEST_F(ListeningSocketTest, APathWhoseServerIsGoneIsTakenAgain) {
  std::optional<StreamAcceptor> killed(acceptor());
  ASSERT_TRUE(listen(*killed).ok());
  killed.reset();  // the file stays, as after a process that is killed
  EXPECT_TRUE(fs::is_socket(path_));
  StreamAcceptor next = acceptor();
  EXPECT_TRUE(listen(next).ok());
}

TEST_F(ListeningSocketTest, APathOfALivingServerIsRefused) {
  StreamAcceptor first = acceptor();
  ASSERT_TRUE(listen(first).ok());
  StreamAcceptor second = acceptor();
  EXPECT_EQ(listen(second).message(),
            "[server] " + path_ +
                ": expected a path that is free to listen on, got: Address already in use");
  StreamSocket client(context_);
  client.connect(first.local_endpoint());  // `first` still listens
  const StreamSocket accepted = first.accept();
  EXPECT_TRUE(peer_of(accepted).is_loopback());
}

TEST_F(ListeningSocketTest, AFileThatIsNoSocketStays) {
  std::ofstream(path_) << "letters";
  StreamAcceptor taken = acceptor();
  EXPECT_EQ(listen(taken).code(), StatusCode::kUnavailable);
  EXPECT_EQ(fs::file_size(path_), 7u);
}

TEST_F(ListeningSocketTest, APathThatIsTooLongIsOneClearLine) {
  StreamAcceptor any = acceptor();
  const Status status = listen_on_path(any, std::string(200, 'a'));
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("bytes, got 200"));
}

}  // namespace
}  // namespace pagoda
