// Templates that change lists, such as Kimi-K2's. jinja_goldens_test.cc compares the list methods
// with Python's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "text/chat_template.h"

namespace pagoda {
namespace {

using ::testing::HasSubstr;

std::string rendered(std::string_view text) {
  const auto chat_template = ChatTemplate::from_text("t", text);
  if (!chat_template.ok()) return chat_template.status().message();
  const ChatInput input = {.messages_json = R"([{"role": "user", "content": "Hi"}])"};
  const auto first = chat_template->render(input);
  const auto second = chat_template->render(input);
  EXPECT_EQ(first.ok(), second.ok());
  if (!first.ok()) return first.status().message();
  EXPECT_EQ(*first, *second);  // each rendering starts with a new list
  return *first;
}

TEST(ChangedLists, AreNewInEachRendering) {
  EXPECT_EQ(
      rendered("{% set l = [1, [2]] %}{% set _ = l.append(3) %}{% set _ = l[1].pop() %}{{ l }}"),
      "[1, [], 3]");
}

TEST(ChangedLists, WhatCannotBeIsSaid) {
  EXPECT_THAT(rendered("{% set l = [] %}{{ l.pop() }}"), HasSubstr("the list has no such item"));
  EXPECT_THAT(rendered("{% set l = [] %}{{ l.remove(1) }}"), HasSubstr("is not in the list"));
  EXPECT_THAT(rendered("{% set l = [] %}{{ l.extend(none) }}"), HasSubstr("got none"));
  EXPECT_THAT(rendered("{{ messages.append(1) }}"),
              HasSubstr("expected a list that the template has written"));
  // A list that holds itself could neither be printed nor freed.
  EXPECT_THAT(rendered("{% set l = [] %}{{ l.append(l) }}"), HasSubstr("cannot hold itself"));
  EXPECT_THAT(rendered("{% set l = [] %}{% set m = [{'a': (l,)}] %}{{ l.extend(m) }}"),
              HasSubstr("cannot hold itself"));
  EXPECT_THAT(rendered("{% set l = [] %}{{ l.append(namespace(a=1)) }}"),
              HasSubstr("expected text, a number, a list or a dict"));
}

}  // namespace
}  // namespace pagoda
