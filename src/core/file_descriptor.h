// FileDescriptor: an open file, closed when it goes. Thread-compatible.
#pragma once

#include <unistd.h>

#include <utility>

namespace pagoda {

class FileDescriptor {
 public:
  // Takes over what open() returned; negative: there is none.
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor() {
    if (fd_ >= 0) ::close(fd_);
  }

  int get() const { return fd_; }
  // Closes the file now; false: the system has not taken all that was written.
  bool close() { return ::close(std::exchange(fd_, -1)) == 0; }

 private:
  int fd_;
};

}  // namespace pagoda
