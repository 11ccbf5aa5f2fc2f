#include "weights/mxfp4_tensor.h"

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "weights/printable.h"

namespace pagoda {
namespace {

// Returns the shape of the values whose codes have the shape `codes`. The rank is 0 if it is none of
// the two that checkpoints have.
Shape shape_of_values(const Shape& codes, bool is_words) {
  constexpr std::int64_t kBlockBytes = BlockMXFP4::kValues / 2, kOfWord = 8;
  const int rank = is_words ? codes.rank() : codes.rank() - 1;  // of the values
  if (rank < 2 || codes.num_elements() == 0) return {};
  if (!is_words && codes[-1] != kBlockBytes) return {};
  std::vector<std::int64_t> extents;
  for (int i = 0; i < rank; ++i) extents.push_back(codes[i]);
  extents.back() *= is_words ? kOfWord : std::int64_t{BlockMXFP4::kValues};
  return Shape(std::span<const std::int64_t>(extents));
}

}  // namespace

Result<HostTensor> join_mxfp4(const StoredTensor& codes, const StoredTensor* scales) {
  HostTensor joined = codes.tensor;
  if (scales == nullptr) {
    return data_loss("[checkpoint] tensor {}: expected scales beside its codes in MXFP4, got none",
                     printable(joined.name));
  }
  joined.shape = shape_of_values(joined.shape, codes.is_words);
  if (joined.shape.rank() == 0 || joined.shape[-1] % BlockMXFP4::kValues != 0) {
    return data_loss("[checkpoint] tensor {}: expected codes of blocks of {} values, got {}",
                     printable(joined.name), BlockMXFP4::kValues, to_string(codes.tensor.shape));
  }
  Shape expected = joined.shape;
  expected.set(expected.rank() - 1, joined.shape[-1] / BlockMXFP4::kValues);
  if (!scales->is_bytes || scales->tensor.shape != expected) {
    return data_loss("[checkpoint] tensor {}: expected {} of U8, got {} of {}",
                     printable(scales->tensor.name), to_string(expected),
                     to_string(scales->tensor.shape),
                     scales->unsupported.empty() ? traits_of(scales->tensor.format).name
                                                 : std::string_view(scales->unsupported));
  }
  joined.format = WeightFormat::kMXFP4;
  joined.mxfp4 = Mxfp4Scales{.scales = scales->tensor.bytes, .storage = scales->tensor.storage};
  PAGODA_RETURN_IF_ERROR(check_mxfp4(joined));
  return joined;
}

}  // namespace pagoda
