#include "server/chat/chat_request.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace pagoda {
namespace {

ChatRequest read_chat(const std::string& body) {
  std::vector<std::string> unknown;
  auto request = read_chat_request(body, unknown);
  if (!request.ok()) {
    ADD_FAILURE() << request.error().message;
    return {};
  }
  return *std::move(request);
}

TEST(ChatRequest, ObjectsReachTheTemplateWithTheClientsOrderOfKeys) {
  const auto request = read_chat(
      R"({"messages": [{"role": "user", "zeta": {"y": 1, "x": 2}, "content": "a"}],
          "chat_template_kwargs": {"z": {"b": 1, "a": 2}, "enable": true}})");
  EXPECT_EQ(request.prompt.messages_json,
            R"([{"role":"user","zeta":{"y":1,"x":2},"content":"a"}])");
  EXPECT_EQ(request.prompt.template_kwargs_json, R"({"z":{"b":1,"a":2},"enable":true})");
}

TEST(ChatRequest, AllowedToolsNeedTools) {
  for (const char* allowed : {"[]", R"([{"type": "function", "function": {"name": "f"}}])"}) {
    for (const char* tools : {"null", "[]"}) {
      std::vector<std::string> unknown;
      const auto request = read_chat_request(
          fmt::format(R"({{"messages": [{{"role": "user", "content": "a"}}], "tools": {},
              "tool_choice": {{"type": "allowed_tools",
                               "allowed_tools": {{"mode": "auto", "tools": {}}}}}}})",
                      tools, allowed),
          unknown);
      ASSERT_FALSE(request.ok());
      EXPECT_EQ(request.error().message, "'tool_choice' needs 'tools'");
      EXPECT_EQ(request.error().param, "tool_choice");
    }
  }
}

}  // namespace
}  // namespace pagoda
