#include "server/http/http_request_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <string_view>

namespace pagoda {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using Progress = HttpRequestParser::Progress;

constexpr std::string_view kChunked =
    "POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";

// A parser and its input, in pieces of any size.
struct Feed {
  explicit Feed(HttpLimits some_limits = {}, std::int64_t num_bytes = kMaxRequestMemoryBytes)
      : limits(some_limits),
        budget(std::make_shared<RequestMemory>(num_bytes)),
        parser(limits, budget) {}

  Progress give(std::string_view bytes, std::size_t piece_size) {
    while (progress == Progress::kNeedsMore && !bytes.empty()) {
      const std::string_view piece = bytes.substr(0, piece_size);
      bytes.remove_prefix(piece.size());
      received.commit(
          boost::asio::buffer_copy(received.prepare(piece.size()), boost::asio::buffer(piece)));
      num_given += piece.size();
      progress = parser.parse(received);
      if (progress == Progress::kHead) progress = parser.parse(received);
      most_waiting = std::max(most_waiting, received.size());
    }
    return progress;
  }
  // Gives the same piece again and again until the parser needs no more.
  void give_without_end(std::string_view piece) {
    for (int i = 0; i < 1'000'000 && give(piece, piece.size()) == Progress::kNeedsMore; ++i) {
    }
  }

  HttpLimits limits;
  std::shared_ptr<RequestMemory> budget;
  HttpRequestParser parser;
  boost::beast::flat_buffer received;
  Progress progress = Progress::kNeedsMore;
  std::size_t num_given = 0;
  std::size_t most_waiting = 0;
};

TEST(HttpRequestParser, ARequestIsTheSameInAnyPieces) {
  const std::string bytes =
      "POST http://x:1/a?q=1 HTTP/1.1\r\nHost: X:1\r\nX-Odd:  b c \r\nTransfer-Encoding: Chunked"
      "\r\n\r\n4;ext=\"v\"\r\nabcd\r\n0002\r\nef\r\n0\r\nX-Trailer: t\r\n\r\n";
  for (const std::size_t piece_size : {1, 2, 3, 7, 50, 1000}) {
    Feed feed;
    ASSERT_EQ(feed.give(bytes, piece_size), Progress::kWhole) << piece_size;
    const HttpRequest& request = feed.parser.request();
    EXPECT_EQ(request.method, "POST");
    EXPECT_EQ(request.path, "/a");
    EXPECT_EQ(request.query, "q=1");
    EXPECT_EQ(request.body, "abcdef");
    EXPECT_THAT(request.headers, ElementsAre(Pair("host", "X:1"), Pair("x-odd", "b c"),
                                             Pair("transfer-encoding", "Chunked")));
    EXPECT_TRUE(feed.parser.keeps_alive());
    EXPECT_EQ(feed.received.size(), 0u);
  }
}

TEST(HttpRequestParser, WhatFollowsARequestStays) {
  Feed feed;
  const std::string next = "GET /next HTTP/1.1\r\nHost: x\r\n";
  EXPECT_EQ(feed.give(std::string(kChunked) + "1\r\na\r\n0\r\n\r\n" + next, 1000),
            Progress::kWhole);
  EXPECT_EQ(feed.received.size(), next.size());
}

TEST(HttpRequestParser, ABodyInChunksOfOneByteIsTaken) {
  Feed feed;
  std::string chunks;
  for (int i = 0; i < 100'000; ++i) chunks += "1\r\nx\r\n";
  ASSERT_EQ(feed.give(std::string(kChunked) + chunks + "0\r\n\r\n", 4096), Progress::kWhole);
  EXPECT_EQ(feed.parser.request().body, std::string(100'000, 'x'));
}

TEST(HttpRequestParser, TheLastChunkMayComeInAnyPieces) {
  for (const std::string chunks : {"0\r\n\r\n", "1\r\nx\r\n0\r\n\r\n", "00;a=b\r\nX: y\r\n\r\n"}) {
    for (std::size_t piece_size = 1; piece_size <= chunks.size(); ++piece_size) {
      Feed feed;
      ASSERT_EQ(feed.give(kChunked, 1000), Progress::kNeedsMore);
      EXPECT_EQ(feed.give(chunks, piece_size), Progress::kWhole) << chunks;
      EXPECT_EQ(feed.received.size(), 0u);
    }
  }
}

TEST(HttpRequestParser, WhatHasNoEndIsRefusedAtItsLimit) {
  const std::string filler(1000, 'x');
  const struct {
    std::string start, piece;
    int status;
  } cases[] = {
      {"", filler, 431},  // a method without end
      {"GET /", filler, 431},
      {"GET / HTTP/1.1\r\nHost: x\r\nX: ", filler, 431},
      {"GET / HTTP/1.1\r\nHost: x\r\n", "X: " + filler + "\r\n", 431},  // header lines without end
      {"GET / HTTP/1.1\r\nHost: x\r\n", "X: y\r\n", 431},
      {std::string(kChunked), std::string(1000, '0'), 413},
      {std::string(kChunked) + "1;", filler, 413},
      {std::string(kChunked) + "1", ";x=y", 413},
      {std::string(kChunked) + "1;a=\"", filler, 413},
      {std::string(kChunked), "1;" + filler + "\r\nx\r\n", 413},
      {std::string(kChunked) + "3\r\nabc\r\n1;", filler, 413},
      {std::string(kChunked) + "0;", filler, 413},
      {std::string(kChunked) + "0\r\nX: ", filler, 413},
      {std::string(kChunked) + "0\r\n", "X: y\r\n", 413},
  };
  for (const auto& each : cases) {
    Feed feed;
    feed.give(each.start, 1 << 20);
    feed.give_without_end(each.piece);
    ASSERT_EQ(feed.progress, Progress::kRefused) << each.start << each.piece;
    EXPECT_EQ(feed.parser.refusal().status, each.status) << each.start << each.piece;
    EXPECT_LE(feed.num_given, (32u << 10) + 2100) << each.start << each.piece;
    EXPECT_LE(feed.most_waiting, (32u << 10) + 1100) << each.start << each.piece;
  }
}

TEST(HttpRequestParser, AnExtensionAfterALargeBodyHasNoMoreRoom) {
  Feed feed;
  feed.give(std::string(kChunked) + "100000\r\n" + std::string(1 << 20, 'x') + "\r\n1;", 4096);
  const std::size_t num_given = feed.num_given;
  feed.give_without_end(std::string(1000, 'x'));
  EXPECT_EQ(feed.progress, Progress::kRefused);
  EXPECT_LE(feed.num_given - num_given, (32u << 10) + 1000);
}

TEST(HttpRequestParser, ManyFieldsAreRefusedByTheirNumber) {
  Feed feed({.max_header_fields = 3});
  EXPECT_EQ(feed.give("GET / HTTP/1.1\r\nHost: x\r\nB: 2\r\nC: 3\r\n\r\n", 1000), Progress::kWhole);
  Feed more({.max_header_fields = 3});
  EXPECT_EQ(more.give("GET / HTTP/1.1\r\nHost: x\r\nB: 2\r\nC: 3\r\nD: 4\r\n\r\n", 1000),
            Progress::kRefused);
  EXPECT_THAT(more.parser.refusal().error->message, HasSubstr("the header has more than 3 fields"));
}

TEST(HttpRequestParser, WhatTwoReadersMayReadDifferentlyIsRefused) {
  for (const char* fields : {
           "Transfer-Encoding: xchunked",
           "Transfer-Encoding: chunked, identity",
           "Transfer-Encoding: identity, chunked",
           "Transfer-Encoding: identity\r\nTransfer-Encoding: chunked",
           "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
           "Transfer-Encoding: chunked\r\nContent-Length: 5",
           "Content-Length: 5\r\nTransfer-Encoding: chunked",
           "Transfer-Encoding: identity\r\nContent-Length: 5",
           "Transfer-Encoding:",
           "Content-Length: 5, 5",
           "Content-Length: 5,5",
           "Content-Length: 5\r\nContent-Length: 5",
           "Content-Length: 5\r\nContent-Length: 6",
           "Content-Length: +5",
           "Content-Length: 0x5",
           "Content-Length:",
           "Content-Length: 99999999999999999999999",
           "Content-Length : 5",
           "Host : x",
           " Content-Length: 5",
           "Host: x\r\nHost: x",
           "Host: x\r\nhost: y",
       }) {
    Feed feed;
    EXPECT_EQ(
        feed.give("POST / HTTP/1.1\r\n" + std::string(fields) + "\r\nHost: x\r\n\r\nabcde", 1000),
        Progress::kRefused)
        << fields;
    EXPECT_EQ(feed.parser.refusal().status, 400) << fields;
  }
  Feed old;
  EXPECT_EQ(old.give("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 1000),
            Progress::kRefused);
}

// A proxy that reads the target and one that reads the Host would ask different servers.
TEST(HttpRequestParser, WhomARequestAsksIsCertain) {
  for (const auto& [bytes, why] : {
           std::pair("GET / HTTP/1.1", "Host: expected one, got 0"),
           {"GET http://localhost/ HTTP/1.1", "Host: expected one, got 0"},
           {"GET http://evil.example/ HTTP/1.1\r\nHost: localhost",
            "Host: expected the target's, evil.example, got localhost"},
           {"GET http://evil.example?/ HTTP/1.1\r\nHost: localhost", "evil.example, got"},
           {"GET https://localhost@evil.example/ HTTP/1.1\r\nHost: localhost",
            "@evil.example, got"},
           {"GET http://localhost:80/ HTTP/1.1\r\nHost: localhost", "localhost:80, got"},
           {"GET http://localhost/ HTTP/1.0\r\nHost:",
            "Host: expected the target's, localhost, got"},
       }) {
    Feed feed;
    EXPECT_EQ(feed.give(bytes + std::string("\r\n\r\n"), 1000), Progress::kRefused) << bytes;
    EXPECT_EQ(feed.parser.refusal().status, 400);
    EXPECT_THAT(feed.parser.refusal().error->message, HasSubstr(why)) << bytes;
  }
  for (const auto& [bytes, host] : {
           std::pair("GET / HTTP/1.0", ""),
           {"GET / HTTP/1.1\r\nHost:", ""},
           {"GET http://evil.example HTTP/1.0", "evil.example"},
           {"GET HTTP://LocalHost:80?q=/b HTTP/1.1\r\nHost: localhost:80", "localhost:80"},
       }) {
    Feed feed;
    EXPECT_EQ(feed.give(bytes + std::string("\r\n\r\n"), 1000), Progress::kWhole) << bytes;
    EXPECT_EQ(feed.parser.request().header("host"), host);
    EXPECT_EQ(feed.parser.request().path, "/");
  }
}

TEST(HttpRequestParser, ATrailerIsNoHeader) {
  Feed feed;
  ASSERT_EQ(feed.give(std::string(kChunked) + "0\r\nAuthorization: Bearer key\r\n\r\n", 1000),
            Progress::kWhole);
  EXPECT_EQ(feed.parser.request().header("authorization"), "");
}

TEST(HttpRequestParser, ABodyCountsAsItComes) {
  Feed feed({}, 200'000);
  HeldBytes others(std::make_shared<MemoryAccount>(feed.budget));
  feed.give("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 16000000\r\n\r\n", 1000);
  EXPECT_TRUE(others.grow(200'000).ok()) << "what is announced takes nothing";
  others.release(200'000);
  feed.give(std::string(60'000, 'x'), 1000);
  EXPECT_FALSE(others.grow(140'001).ok());
  EXPECT_TRUE(others.grow(40'000).ok());
  EXPECT_EQ(feed.give("x", 1), Progress::kRefused) << "half of it is taken";
  EXPECT_EQ(feed.parser.refusal().status, 503);
  EXPECT_THAT(feed.parser.refusal().headers, ElementsAre(Pair("Retry-After", "1")));
}

}  // namespace
}  // namespace pagoda
