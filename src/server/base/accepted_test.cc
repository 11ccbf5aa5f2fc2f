#include "server/base/accepted.h"

#include <gtest/gtest.h>

namespace pagoda {
namespace {

TEST(AcceptedWeight, IsTheNamesOwn) {
  constexpr std::string_view kPrometheus =
      "application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text; "
      "version=0.0.1; Q=0.75 , text/plain;version=0.0.4;q=0.3,*/*;q=0.1";
  EXPECT_EQ(accepted_weight(kPrometheus, "application/openmetrics-text"), 0.75);
  EXPECT_EQ(accepted_weight(kPrometheus, "text/plain"), 0.3);
  EXPECT_EQ(accepted_weight(kPrometheus, "text/html"), -1);
  EXPECT_EQ(accepted_weight("deflate, GZIP", "gzip"), 1);
  EXPECT_EQ(accepted_weight("gzip;q=0", "gzip"), 0);
}

TEST(AcceptedWeight, IsNoneWhereItIsMalformed) {
  for (const char* header : {"", ",", ";", "gzip;q=", "gzip;q=2", "gzip;q=-1", "gzip;q=nan",
                             "gzip;q=0.5x", "agzip", "gzip x", "\t;q=1"}) {
    EXPECT_EQ(accepted_weight(header, "gzip"), -1) << header;
  }
}

}  // namespace
}  // namespace pagoda
