#include "server/http/http_head.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pagoda {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

TEST(HttpHead, DatesAreRfc9110s) {
  EXPECT_EQ(http_date(784111777), "Sun, 06 Nov 1994 08:49:37 GMT");
  EXPECT_EQ(http_date(951782400), "Tue, 29 Feb 2000 00:00:00 GMT");
}

TEST(HttpHead, TheIdHasBothNamesThatClientsLookFor) {
  const ResponseLine line = {.request_id = "abc"};
  for (const std::string& head : {whole_head(line, {}), stream_head(line, "text/plain", {})}) {
    EXPECT_THAT(head, HasSubstr("\r\nX-Request-Id: abc\r\n"));
    EXPECT_THAT(head, HasSubstr("\r\nRequest-Id: abc\r\n"));
  }
}

TEST(HttpHead, AClientsOwnRequestIdIsKeptIfItIsSane) {
  EXPECT_EQ(request_id_for("trace-7/a=b"), "trace-7/a=b");
  EXPECT_EQ(request_id_for(std::string(128, 'x')), std::string(128, 'x'));
  for (const std::string& other :
       {std::string(), std::string(129, 'x'), std::string("a b"), std::string("a\nb"),
        std::string("a\0b", 3), std::string("\x7f"), std::string("é")}) {
    const std::string fresh = request_id_for(other);
    EXPECT_THAT(fresh, MatchesRegex("req-[0-9a-f]{32}"));
    EXPECT_NE(fresh, request_id_for(other));
  }
}

}  // namespace
}  // namespace pagoda
