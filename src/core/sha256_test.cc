#include "core/sha256.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace pagoda {
namespace {

// The examples of FIPS 180-4 and of NIST's test vectors.
TEST(Sha256, AgreesWithThePublishedVectors) {
  EXPECT_EQ(to_hex(sha256("")), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(to_hex(sha256("abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(to_hex(sha256(std::string(1'000'000, 'a'))),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, PiecesOfAnySizeGiveTheDigestOfTheWhole) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += static_cast<char>(i * 31);
  for (const std::size_t piece : {1, 7, 63, 64, 65, 999, 1000}) {
    Sha256 incremental;
    for (std::size_t at = 0; at < text.size(); at += piece) {
      incremental.update(std::string_view(text).substr(at, piece));
    }
    EXPECT_EQ(incremental.finish(), sha256(text)) << "pieces of " << piece;
  }
}

TEST(Sha256, AMovedObjectGoesOnWhereItWas) {
  Sha256 first;
  first.update("ab");
  Sha256 second = std::move(first);
  second.update("c");
  EXPECT_EQ(second.finish(), sha256("abc"));
}

TEST(Sha256Death, AnObjectIsFinishedOnce) {
  Sha256 hash;
  hash.finish();
  EXPECT_DEATH(hash.finish(), "finish\\(\\) is called once");
}

}  // namespace
}  // namespace pagoda
