#include "core/log_thread.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <csignal>
#include <string>

#include "core/file_descriptor.h"
#include "core/log.h"

namespace pagoda {
namespace {

// A pipe that holds a page, 4096 bytes, before a write waits for the reader.
class LogThreadTest : public ::testing::Test {
 protected:
  LogThreadTest() {
    std::signal(SIGPIPE, SIG_IGN);
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    reader_ = std::make_unique<FileDescriptor>(ends[0]);
    writer_ = std::make_unique<FileDescriptor>(ends[1]);
#ifdef F_SETPIPE_SZ
    ::fcntl(writer_->get(), F_SETPIPE_SZ, 4096);
#endif
    spdlog::set_default_logger(std::make_shared<spdlog::logger>("pagoda"));
  }
  ~LogThreadTest() override { spdlog::set_default_logger(former_); }

  // Reads until the text contains `end`.
  std::string read_until(std::string_view end) {
    std::string text;
    char buffer[4096];
    while (text.find(end) == std::string::npos) {
      const ssize_t num_read = ::read(reader_->get(), buffer, sizeof(buffer));
      if (num_read <= 0) break;
      text.append(buffer, static_cast<std::size_t>(num_read));
    }
    return text;
  }

  std::shared_ptr<spdlog::logger> former_ = spdlog::default_logger();
  std::unique_ptr<FileDescriptor> reader_, writer_;
};

TEST_F(LogThreadTest, LinesComeInTheirOrderAndAllAtTheEnd) {
  {
    const LogThread thread(writer_->get());
    spdlog::default_logger()->set_pattern("%l %v");
    log_info("one {}", 1);
    log_warning("two");
  }
  EXPECT_TRUE(spdlog::default_logger()->sinks().empty());
  EXPECT_EQ(read_until("two\n"), "info one 1\nwarning two\n");
}

TEST_F(LogThreadTest, AReaderWhoStallsDelaysNobodyAndIsToldWhatIsLost) {
  const std::string text(1000, 'x');
  const LogThread thread(writer_->get());
  spdlog::default_logger()->set_pattern("%l %v");
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 5000; ++i) log_info("{} {}", i, text);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
  log_info("last");
  const std::string lines = read_until("last\n");
  EXPECT_LT(lines.size(), LogThread::kMaxWaitingBytes + 3 * 4096);
  EXPECT_TRUE(lines.find(" lines are lost here: nobody has read them in time\n") !=
              std::string::npos);
  EXPECT_TRUE(lines.find("info 4999 x") != std::string::npos);
  EXPECT_TRUE(lines.find("info 2000 x") == std::string::npos);
}

TEST_F(LogThreadTest, AReaderWhoNeverReadsKeepsNoProcess) {
  const auto start = std::chrono::steady_clock::now();
  {
    // The copy of the descriptor stays open, because the writing thread outlives the LogThread.
    const LogThread thread(::dup(writer_->get()));
    for (int i = 0; i < 5000; ++i) log_info("{}", std::string(100, 'x'));
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

}  // namespace
}  // namespace pagoda
