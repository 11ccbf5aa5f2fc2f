// A whole server over a fake model, kept from input to input, and up to three clients at a time.
// Each client sends what http_grammar.h draws, with bodies from the field table, in pieces among
// the other clients' pieces. Then it reads to the end, or goes away. Every answer must begin as
// HTTP, and the server must still answer.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/check.h"
#include "server/server.h"
#include "tests/fuzz/field_grammar.h"
#include "tests/fuzz/http_grammar.h"
#include "tests/support/fake_model.h"

namespace pagoda {
namespace {

constexpr int kMaxClients = 3;
constexpr std::size_t kMaxAnswerBytes = 4 << 20;
// The time after which a client goes away, since an order to the fake model may take any time.
constexpr int kPatienceMs = 1000;
constexpr int kPatienceForHealthMs = 5000;  // on a machine that is busy

struct Rig {
  Rig() {
    spdlog::set_level(spdlog::level::off);
    options.port = 0;
    options.limits.max_body_bytes = 1 << 20;
    server = Server::listen(options).value();
    server->serve(*model, {model->name});
  }

  ServerOptions options;
  std::unique_ptr<ServedModel> model = make_fake_model();
  std::unique_ptr<Server> server;
};

// Returns the rig of this thread, which is destroyed before static objects. So the server has ended
// when OpenSSL and the tables that its threads read are destroyed. libFuzzer runs every input on
// its first thread.
Rig& rig() {
  thread_local Rig rig;
  return rig;
}

class Client {
 public:
  explicit Client(std::string bytes) : bytes_(std::move(bytes)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(rig().server->port());
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int status = connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof(address));
    PAGODA_CHECK(status == 0 || (errno == EINTR && connects_at_last()),
                 "the server accepts connections");
  }
  // Closes without leaving the port in TIME_WAIT: an hour has more connections than there are
  // ports.
  ~Client() {
    const linger at_once = {.l_onoff = 1, .l_linger = 0};
    (void)setsockopt(socket_, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    close(socket_);
  }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  bool has_more() const { return num_sent_ < bytes_.size(); }
  // Sends up to `num_bytes`: fewer if the server does not read, and nothing more if it has closed.
  void send_some(std::size_t num_bytes) {
    num_bytes = std::min(num_bytes, bytes_.size() - num_sent_);
    const auto num_sent =
        ::send(socket_, bytes_.data() + num_sent_, num_bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
    num_sent_ = num_sent > 0 ? num_sent_ + static_cast<std::size_t>(num_sent) : bytes_.size();
  }

  // Reads the answer until the server closes or the time is over.
  std::string read_to_end(int patience_ms = kPatienceMs) {
    (void)shutdown(socket_, SHUT_WR);
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(patience_ms);
    std::string answer;
    std::string piece(64 << 10, '\0');
    while (std::chrono::steady_clock::now() < end && answer.size() < kMaxAnswerBytes) {
      if (!becomes_ready(POLLIN, patience_ms)) break;
      const auto num_read = recv(socket_, piece.data(), piece.size(), 0);
      if (num_read <= 0) break;
      answer.append(piece, 0, static_cast<std::size_t>(num_read));
    }
    return answer;
  }

 private:
  // libFuzzer's timer interrupts a waiting poll(), which is then repeated.
  bool becomes_ready(short event, int patience_ms) const {
    pollfd waiting = {.fd = socket_, .events = event, .revents = 0};
    int num_ready = poll(&waiting, 1, patience_ms);
    while (num_ready < 0 && errno == EINTR) num_ready = poll(&waiting, 1, patience_ms);
    return num_ready > 0;
  }

  // Waits for a connect() that the timer interrupted: it continues in the background.
  bool connects_at_last() const {
    int error = 0;
    socklen_t size = sizeof(error);
    return becomes_ready(POLLOUT, kPatienceForHealthMs) &&
           getsockopt(socket_, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0;
  }

  const int socket_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const std::string bytes_;
  std::size_t num_sent_ = 0;
};

// Checks the first line of the answer, if there is one.
void check_answer(std::string_view answer) {
  if (answer.empty()) return;
  PAGODA_CHECK(answer.starts_with("HTTP/1."), "an answer begins as HTTP");
  const std::string_view status = answer.substr(0, answer.find('\r'));
  PAGODA_CHECK(status.find(" 500 ") == std::string_view::npos, "nobody makes the server fail");
}

void check_server_answers() {
  Client client("GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  while (client.has_more()) client.send_some(1000);
  PAGODA_CHECK(client.read_to_end(kPatienceForHealthMs).starts_with("HTTP/1.1 200 "),
               "the server answers");
}

void converse(FuzzedDataProvider& draws) {
  std::vector<std::unique_ptr<Client>> clients;
  const int num_clients = draws.ConsumeIntegralInRange(1, kMaxClients);
  for (int i = 0; i < num_clients; ++i)
    clients.push_back(std::make_unique<Client>(draw_http(draws, draw_body)));
  const auto has_more = [](const auto& client) { return client->has_more(); };
  while (std::any_of(clients.begin(), clients.end(), has_more)) {
    for (const auto& client : clients) {
      if (client->has_more())
        client->send_some(draws.PickValueInArray<std::size_t>({100'000, 1, 40, 4096}));
    }
  }
  for (const auto& client : clients) {
    if (draws.ConsumeIntegralInRange(0, 7) != 7) check_answer(client->read_to_end());
  }
  clients.clear();
  if (draws.ConsumeIntegralInRange(0, 63) == 0) check_server_answers();
}

}  // namespace
}  // namespace pagoda

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzedDataProvider draws(data, size);
  pagoda::converse(draws);
  return 0;
}
