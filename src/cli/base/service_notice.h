// Tells the service manager how this process is doing, by the protocol of systemd's sd_notify(3).
#pragma once

#include <string_view>

namespace pagoda {

// Sends `state`, such as "READY=1", as one datagram to the socket that $NOTIFY_SOCKET names: a path,
// or '@' and an abstract name. Does nothing without that variable. Waits five seconds at most, and
// only logs an error, since a process that was not heard works all the same. Thread-safe.
void notify_service_manager(std::string_view state);

}  // namespace pagoda
