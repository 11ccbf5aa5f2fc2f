// TlsCertificate: the certificate and the key by which clients know the server, as files have them.
//
// A certificate that was renewed is taken without a restart: the files are looked at again while
// connections come. Belongs to the strand that accepts them.
#pragma once

#include <boost/asio/ssl/context.hpp>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>

#include "core/status.h"

namespace pagoda {

struct TlsFiles {
  std::string certificate;  // PEM: the server's own first, then those that sign it; empty: no TLS
  std::string key;          // PEM, without a passphrase
};

class TlsCertificate {
 public:
  // Reads both files. kNotFound, kInvalidArgument: one can't be read, or is not what it should be;
  // the key is another certificate's.
  static Result<std::unique_ptr<TlsCertificate>> load(TlsFiles files);

  // Returns what a connection that is accepted now is served with: TLS 1.2 or newer. Files that
  // have changed are read anew, at most once a second; where they can't be taken, a warning says
  // so, and the certificate at hand goes on.
  std::shared_ptr<boost::asio::ssl::context> context();

 private:
  using FileTimes = std::pair<std::filesystem::file_time_type, std::filesystem::file_time_type>;

  explicit TlsCertificate(TlsFiles files) : files_(std::move(files)) {}
  Status read();
  FileTimes file_times() const;

  const TlsFiles files_;
  std::shared_ptr<boost::asio::ssl::context> context_;
  FileTimes times_;  // of what was read last, taken or not
  std::chrono::steady_clock::time_point looked_at_;
};

}  // namespace pagoda
