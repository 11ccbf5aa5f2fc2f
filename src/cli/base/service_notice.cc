#include "cli/base/service_notice.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>

#include "core/environment.h"
#include "core/file_descriptor.h"
#include "core/log.h"

namespace pagoda {
namespace {

constexpr int kPatienceS = 5;  // for a manager whose queue is full

}  // namespace

void notify_service_manager(std::string_view state) {
  const std::string name = environment("NOTIFY_SOCKET");
  if (name.empty()) return;
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  const bool is_abstract = name.front() == '@';
  // A path ends with a zero. An abstract name begins with one instead, and ends with its length.
  if ((!is_abstract && name.front() != '/') || name.size() >= sizeof(address.sun_path)) {
    log_warning("NOTIFY_SOCKET: expected '/' or '@' and at most {} bytes, got {}",
                sizeof(address.sun_path) - 1, name);
    return;
  }
  std::memcpy(address.sun_path, name.data(), name.size());
  if (is_abstract) address.sun_path[0] = '\0';
  const std::size_t length = offsetof(sockaddr_un, sun_path) + name.size() + (is_abstract ? 0 : 1);
  const FileDescriptor socket(::socket(AF_UNIX, SOCK_DGRAM, 0));
  const timeval patience = {.tv_sec = kPatienceS, .tv_usec = 0};
  if (socket.get() < 0 ||
      ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) < 0 ||
      ::sendto(socket.get(), state.data(), state.size(), 0,
               reinterpret_cast<const sockaddr*>(&address), static_cast<socklen_t>(length)) < 0) {
    log_warning("NOTIFY_SOCKET: {} was not told {}: {}", name, state, std::strerror(errno));
  }
}

}  // namespace pagoda
