#include "backend/gpu/template_argument.h"

#include <string>
#include <vector>

#include "core/check.h"

namespace pagoda::gpu {

std::string_view template_argument(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return "float";
    case DType::kBFloat16:
      return "bfloat";
    case DType::kFloat16:
      return "half";
    case DType::kInt32:
      return "int";
    case DType::kInt8:
      return "char";
    case DType::kUInt8:
      return "uchar";
  }
  return {};
}

std::string_view template_argument(std::int64_t number) {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> numbers;
    for (int i = 0; i <= kMostTemplateNumber; ++i) numbers.push_back(std::to_string(i));
    return numbers;
  }();
  return all.at(static_cast<std::size_t>(number));
}

}  // namespace pagoda::gpu
