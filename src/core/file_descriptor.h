// FileDescriptor: an open file, which the destructor closes. Thread-compatible.
#pragma once

#include <unistd.h>

#include <utility>

namespace pagoda {

class FileDescriptor {
 public:
  // Takes over the descriptor that open() returned. A negative one means that no file is open.
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(other.release()) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~FileDescriptor() {
    if (fd_ >= 0) ::close(fd_);
  }

  int get() const { return fd_; }
  // Gives the file up to the caller, who closes it.
  int release() { return std::exchange(fd_, -1); }
  // Closes the file now. Returns false if the system could not store all that was written.
  bool close() { return ::close(release()) == 0; }

 private:
  int fd_;
};

}  // namespace pagoda
