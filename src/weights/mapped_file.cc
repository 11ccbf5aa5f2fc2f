#include "weights/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

namespace pagoda {
namespace {

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

}  // namespace

Result<std::shared_ptr<const MappedFile>> MappedFile::open(const std::string& path) {
  // O_NONBLOCK: a path that is a pipe must not hang the process.
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) return not_found("[file] cannot open {}: {}", path, std::strerror(errno));
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) {
    return not_found("[file] cannot read {}: {}", path, std::strerror(errno));
  }
  if (!S_ISREG(info.st_mode)) {
    return invalid_argument("[file] {}: expected a regular file", path);
  }
  const auto size = static_cast<std::size_t>(info.st_size);
  if (size == 0) return std::shared_ptr<const MappedFile>(new MappedFile({}));
  void* start = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (start == MAP_FAILED) {
    return resource_exhausted("[file] cannot map {} ({} bytes): {}", path, size,
                              std::strerror(errno));
  }
  return std::shared_ptr<const MappedFile>(
      new MappedFile({static_cast<const std::byte*>(start), size}));
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

void MappedFile::release_pages(std::span<const std::byte> bytes) const {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto mapping_end = reinterpret_cast<std::uintptr_t>(bytes_.data() + bytes_.size());
  const auto start = reinterpret_cast<std::uintptr_t>(bytes.data());
  const std::uintptr_t end = start + bytes.size();
  const std::uintptr_t first = (start + page - 1) / page * page;
  // The mapping's last page belongs to nobody else, however short its part of the file.
  const std::uintptr_t last =
      end == mapping_end ? (end + page - 1) / page * page : end / page * page;
  if (first < last) ::madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

}  // namespace pagoda
