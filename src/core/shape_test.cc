#include "core/shape.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace pagoda {
namespace {

TEST(Shape, CountsItsElements) {
  EXPECT_EQ((Shape{4, 3, 2}).num_elements(), 24);
  EXPECT_EQ((Shape{4, 0, 2}).num_elements(), 0);
  EXPECT_EQ(Shape{}.num_elements(), 1) << "a scalar";
  EXPECT_EQ((Shape{1 << 20, 1 << 20}).num_elements(), std::int64_t{1} << 40);
}

TEST(Shape, IndexesFromBothEnds) {
  const Shape shape{5, 6, 7};
  EXPECT_EQ(shape.rank(), 3);
  EXPECT_EQ(shape[0], 5);
  EXPECT_EQ(shape[2], 7);
  EXPECT_EQ(shape[-1], 7);
  EXPECT_EQ(shape[-3], 5);
}

TEST(Shape, SetsFromBothEnds) {
  Shape shape{5, 6};
  shape.set(0, 1);
  shape.set(-1, 2);
  EXPECT_EQ(shape, (Shape{1, 2}));
}

TEST(Shape, EqualityIsOfRankAndExtents) {
  EXPECT_EQ((Shape{2, 3}), Shape(std::vector<std::int64_t>{2, 3}));
  EXPECT_NE((Shape{2, 3}), (Shape{3, 2}));
  EXPECT_NE((Shape{2}), (Shape{2, 0}));
}

TEST(Shape, PrintsAsMessagesShowIt) {
  EXPECT_EQ(to_string(Shape{576, 1536}), "576 x 1536");
  EXPECT_EQ(to_string(Shape{}), "");
}

TEST(ShapeDeath, HasAtMostFourExtents) {
  EXPECT_DEATH((Shape{1, 2, 3, 4, 5}), "at most four extents");
}

}  // namespace
}  // namespace pagoda
