#include "server/base/gzip.h"

#include <zlib.h>

#include <new>

#include "core/check.h"

namespace pagoda {

std::string gzip(std::string_view text) {
  constexpr int kGzipWindow = 15 + 16;  // 32 KB, in gzip's format
  constexpr int kMemoryLevel = 8;
  z_stream stream = {};
  if (deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, kGzipWindow, kMemoryLevel,
                   Z_DEFAULT_STRATEGY) != Z_OK) {
    throw std::bad_alloc();
  }
  std::string compressed(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(compressed.data());
  stream.avail_out = static_cast<uInt>(compressed.size());
  const int status = deflate(&stream, Z_FINISH);
  compressed.resize(stream.total_out);
  deflateEnd(&stream);
  PAGODA_CHECK(status == Z_STREAM_END, "[gzip] its own bound was too small");
  return compressed;
}

}  // namespace pagoda
