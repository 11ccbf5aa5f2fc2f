#include "server/http/parse_request.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace pagoda {
namespace {

namespace asio = boost::asio;
using Progress = HttpRequestParser::Progress;

asio::awaitable<Progress> parse_here(HttpRequestParser& parser,
                                     boost::beast::flat_buffer& received) {
  co_return parser.parse(received);
}

}  // namespace

asio::awaitable<Progress> parse_request(HttpRequestParser& parser,
                                        boost::beast::flat_buffer& received,
                                        const asio::any_io_executor& large_bodies) {
  if (!parser.has_large_body()) co_return parser.parse(received);
  co_return co_await asio::co_spawn(large_bodies, parse_here(parser, received),
                                    asio::use_awaitable);
}

}  // namespace pagoda
