#include "weights/mapped_file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <string_view>

#include "core/file_descriptor.h"
#include "core/lfs_pointer.h"

namespace pagoda {
namespace {

// The mapped files, for on_bus_error(): a signal handler may neither allocate nor lock. If there
// are more files than entries, some are missing here.
struct KnownMapping {
  std::atomic<const std::byte*> start = nullptr;  // null: the entry is free
  std::size_t size = 0;                           // written before `start`, like the path
  std::array<char, 512> path = {};
};

std::array<KnownMapping, 256> known_mappings;
std::mutex known_mappings_mutex;  // held by writers
struct sigaction default_bus_action;

// Writes nothing if the write would have to wait for a reader.
void write_to_stderr(std::string_view text) {
  pollfd room = {.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
  if (::poll(&room, 1, /*timeout=*/0) == 1) (void)!::write(STDERR_FILENO, text.data(), text.size());
}

void on_bus_error(int signal, siginfo_t* info, void*) {
  const auto* const address = static_cast<const std::byte*>(info->si_addr);
  for (const KnownMapping& mapping : known_mappings) {
    const std::byte* const start = mapping.start;
    if (start == nullptr || address < start || address >= start + mapping.size) continue;
    write_to_stderr("pagoda: [file] ");
    write_to_stderr(mapping.path.data());
    write_to_stderr(
        ": expected a file that stays as it is, got one that was cut while it is read\n");
    ::_exit(1);
  }
  // The address is in no mapping of ours: the instruction faults again, and the previous handler
  // runs.
  ::sigaction(signal, &default_bus_action, nullptr);
}

void handle_bus_errors() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction action {};
    action.sa_sigaction = on_bus_error;
    action.sa_flags = SA_SIGINFO;
    ::sigaction(SIGBUS, &action, &default_bus_action);
  });
}

void make_known(std::span<const std::byte> bytes, const std::string& path) {
  handle_bus_errors();
  const std::lock_guard lock(known_mappings_mutex);
  for (KnownMapping& mapping : known_mappings) {
    if (mapping.start != nullptr) continue;
    mapping.size = bytes.size();
    const std::size_t length = std::min(path.size(), mapping.path.size() - 1);
    std::copy_n(path.data(), length, mapping.path.data());
    mapping.path[length] = '\0';
    mapping.start = bytes.data();
    return;
  }
}

void forget(std::span<const std::byte> bytes) {
  const std::lock_guard lock(known_mappings_mutex);
  for (KnownMapping& mapping : known_mappings) {
    if (mapping.start == bytes.data()) mapping.start = nullptr;
  }
}

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
  const std::span<const std::byte> bytes(static_cast<const std::byte*>(start), size);
  make_known(bytes, path);
  std::shared_ptr<const MappedFile> mapped(new MappedFile(bytes));
  PAGODA_RETURN_IF_ERROR(
      check_no_lfs_pointer({reinterpret_cast<const char*>(bytes.data()), size}, path));
  return mapped;
}

MappedFile::~MappedFile() {
  if (bytes_.empty()) return;
  forget(bytes_);
  ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

void MappedFile::release_pages(std::span<const std::byte> bytes) const {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto mapping_end = reinterpret_cast<std::uintptr_t>(bytes_.data() + bytes_.size());
  const auto start = reinterpret_cast<std::uintptr_t>(bytes.data());
  const std::uintptr_t end = start + bytes.size();
  const std::uintptr_t first = (start + page - 1) / page * page;
  // No other mapping has bytes in this mapping's last page, even if the file fills it only in part.
  const std::uintptr_t last =
      end == mapping_end ? (end + page - 1) / page * page : end / page * page;
  if (first < last) ::madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

}  // namespace pagoda
