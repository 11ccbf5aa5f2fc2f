#include "core/memory_reserve.h"

#include <gtest/gtest.h>

#include <new>

namespace pagoda {
namespace {

TEST(MemoryReserve, IsFreedOnceAndPutAsideAgain) {
  const std::new_handler before = std::get_new_handler();
  for (int i = 0; i < 2; ++i) {
    keep_memory_reserve();
    keep_memory_reserve();
    const std::new_handler handler = std::get_new_handler();
    ASSERT_NE(handler, nullptr);
    EXPECT_NO_THROW(handler()) << "an allocation is tried again";
    EXPECT_THROW(handler(), std::bad_alloc);
  }
  std::set_new_handler(before);
}

}  // namespace
}  // namespace pagoda
