#include "bench_serve/completion_events.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pagoda {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr std::string_view kToken = R"(data: {"choices":[{"text":"a","finish_reason":null}]})"
                                    "\n\n";
constexpr std::string_view kLast = R"(data: {"choices":[{"text":"","finish_reason":"length"}]})"
                                   "\n\n";

struct Reading {
  RequestRecord record{.num_input_tokens = 5};
  CompletionEvents events{record};

  Status push(std::string_view bytes, double now_s = 0) { return events.push(bytes, now_s); }
};

TEST(CompletionEvents, NotesWhenEachEventCame) {
  Reading reading;
  EXPECT_TRUE(reading.push(kToken, 0.5).ok());
  EXPECT_TRUE(reading.push(": keep-alive\n\n", 0.6).ok());
  EXPECT_TRUE(reading.push(std::string(kToken) + std::string(kLast), 0.75).ok());
  EXPECT_TRUE(reading.push("data: [DONE]\n\n", 0.8).ok());
  EXPECT_THAT(reading.record.events_s, ElementsAre(0.5, 0.75, 0.75));
  EXPECT_TRUE(reading.events.finish().ok());
}

TEST(CompletionEvents, CountsTextsWithoutUsage) {
  Reading reading;
  EXPECT_TRUE(reading.push(std::string(kToken) + std::string(kToken) + std::string(kLast)).ok());
  EXPECT_EQ(reading.record.num_output_tokens, 2);
  EXPECT_EQ(reading.record.num_input_tokens, 5);
  EXPECT_FALSE(reading.record.counted_by_server);
}

TEST(CompletionEvents, TakesUsageWhereverItStands) {
  for (const std::string_view usage :
       {R"(data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3}})",
        R"(data:{"choices":[{"text":""}],"usage":{"prompt_tokens":7,"completion_tokens":3}})"}) {
    Reading reading;
    EXPECT_TRUE(reading.push(kToken).ok());
    EXPECT_TRUE(reading.push(std::string(usage) + "\r\n\r\n").ok());
    EXPECT_EQ(reading.record.num_input_tokens, 7);
    EXPECT_EQ(reading.record.num_output_tokens, 3);
    EXPECT_TRUE(reading.record.counted_by_server);
  }
}

TEST(CompletionEvents, ReadsTheSameFromSingleBytes) {
  const std::string whole = std::string(kToken) + std::string(kToken) + std::string(kLast) +
                            R"(data: {"choices":[],"usage":{"completion_tokens":9}})" +
                            "\n\ndata: [DONE]\n\n";
  Reading reading;
  for (const char& byte : whole) EXPECT_TRUE(reading.push({&byte, 1}).ok());
  EXPECT_THAT(reading.record.events_s, SizeIs(3));
  EXPECT_EQ(reading.record.num_output_tokens, 9);
  EXPECT_TRUE(reading.events.finish().ok());
}

TEST(CompletionEvents, AnErrorInMidStreamIsTheServersMessage) {
  Reading reading;
  EXPECT_TRUE(reading.push(kToken).ok());
  const Status status = reading.push(R"(data: {"error":{"message":"out of luck"}})"
                                     "\n\n");
  EXPECT_EQ(status.code(), StatusCode::kInternal);
  EXPECT_EQ(status.message(), "out of luck");
}

TEST(CompletionEvents, AStreamMayNotEndEarly) {
  Reading empty;
  EXPECT_THAT(empty.events.finish().message(), HasSubstr("without a token"));
  Reading cut;
  EXPECT_TRUE(cut.push(kToken).ok());
  EXPECT_THAT(cut.events.finish().message(), HasSubstr("before the answer did"));
}

TEST(CompletionEvents, WhatIsNoEventIsRefused) {
  for (const std::string_view line : {"data: <html>\n", "data: 7\n", "data: {\"choices\":[3]}\n",
                                      "data: \xff\xfe\n", "data:\n"}) {
    Reading reading;
    EXPECT_EQ(reading.push(line).code(), StatusCode::kDataLoss) << line;
  }
  Reading endless;
  Status status;
  for (int i = 0; i < 100 && status.ok(); ++i) status = endless.push(std::string(1 << 16, 'x'));
  EXPECT_THAT(status.message(), HasSubstr("at most 1048576 bytes"));
}

TEST(CompletionEvents, ErrorMessagesComeFromAnyShape) {
  EXPECT_EQ(error_message(R"({"error":{"message":"two\nlines"}})"), "two lines");
  EXPECT_EQ(error_message(R"({"error":"plain"})"), "plain");
  EXPECT_EQ(error_message("<html>"), "<html>");
  EXPECT_EQ(error_message(""), "no body");
}

}  // namespace
}  // namespace pagoda
