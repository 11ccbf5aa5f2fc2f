// The parsing of what a connection received, large bodies apart from everything else.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>

#include "server/http/http_request_parser.h"

namespace pagoda {

// Does what parser.parse(received) does, and does it on `large_bodies` where the body is large:
// that is the executor of one thread that gives way (core/machine.h). Large bodies cost page faults
// and copies, and the threads of the listener deliver the streams of all clients.
//
// REQUIRES: nothing touches the parser or `received` until it returns.
boost::asio::awaitable<HttpRequestParser::Progress> parse_request(
    HttpRequestParser& parser, boost::beast::flat_buffer& received,
    const boost::asio::any_io_executor& large_bodies);

}  // namespace pagoda
