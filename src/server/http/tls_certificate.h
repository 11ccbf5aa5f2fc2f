// TlsCertificate: the certificate and the key by which clients know the server, as files have them.
//
// A certificate that was renewed is taken without a restart: a thread of its own looks at the files
// again while connections come, so that none of them waits for a file system. Thread-safe.
#pragma once

#include <boost/asio/ssl/context.hpp>
#include <memory>
#include <string>

#include "core/start_thread.h"
#include "core/status.h"

namespace pagoda {

struct TlsFiles {
  std::string certificate;  // PEM: the server's own first, then those that sign it; empty: no TLS
  std::string key;          // PEM, without a passphrase
};

class TlsCertificate {
 public:
  // Reads both files. kNotFound, kInvalidArgument: one can't be read, or is not what it should be;
  // the key is another certificate's. Throws NoThread.
  static Result<std::unique_ptr<TlsCertificate>> load(TlsFiles files);
  // Leaves a thread that waits for a file behind.
  ~TlsCertificate();
  TlsCertificate(const TlsCertificate&) = delete;
  TlsCertificate& operator=(const TlsCertificate&) = delete;

  // Returns what a connection that is accepted now is served with: TLS 1.2 or newer. At most once a
  // second it has the thread look whether the files have changed, and does not wait for that: the
  // next connections have the new certificate. Where it can't be taken, a warning says so, and the
  // one at hand goes on.
  std::shared_ptr<boost::asio::ssl::context> context();

 private:
  class Files;
  explicit TlsCertificate(std::shared_ptr<Files> files);

  const std::shared_ptr<Files> files_;
  StallableThread thread_;
};

}  // namespace pagoda
