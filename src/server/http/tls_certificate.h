// TlsCertificate: the server's certificate and its key, read from files.
//
// A renewed certificate is used without a restart. A thread of its own checks the files while
// connections come, so that no connection waits for a file system. Thread-safe.
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
  // Reads both files. kNotFound: one can't be read. kInvalidArgument: one has other content, or the
  // key belongs to another certificate. Throws NoThread.
  static Result<std::unique_ptr<TlsCertificate>> load(TlsFiles files);
  // Does not wait for the thread if a file system blocks it.
  ~TlsCertificate();
  TlsCertificate(const TlsCertificate&) = delete;
  TlsCertificate& operator=(const TlsCertificate&) = delete;

  // Returns the context (TLS 1.2 or newer) for a connection that is accepted now. At most once a
  // second it makes the thread check for changed files. It does not wait: later connections get the
  // new certificate. If that can't be used, a warning is logged and the old one stays.
  std::shared_ptr<boost::asio::ssl::context> context();

 private:
  class Files;
  explicit TlsCertificate(std::shared_ptr<Files> files);

  const std::shared_ptr<Files> files_;
  StallableThread thread_;
};

}  // namespace pagoda
