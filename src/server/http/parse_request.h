// The parsing of received bytes, with a thread of its own for large bodies.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>

#include "server/http/http_request_parser.h"

namespace pagoda {

// Returns the result of parser.parse(received). If the body is large, it runs on `large_bodies`,
// the executor of one thread of low priority (give_way() in core/machine.h). Large bodies cost page
// faults and copies, and the listener's threads have to deliver the streams of all clients.
//
// REQUIRES: nothing touches the parser or `received` until it returns.
boost::asio::awaitable<HttpRequestParser::Progress> parse_request(
    HttpRequestParser& parser, boost::beast::flat_buffer& received,
    const boost::asio::any_io_executor& large_bodies);

}  // namespace pagoda
