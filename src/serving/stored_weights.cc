#include "serving/stored_weights.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <span>
#include <vector>

#include "core/sha256.h"
#include "core/text_file.h"
#include "weights/checkpoint.h"

namespace pagoda {
namespace {

constexpr std::size_t kMaxByteSamples = 64;
constexpr std::size_t kSampleBytes = 4096;

std::span<const std::byte> middle_of(std::span<const std::byte> bytes) {
  const std::size_t size = std::min(kSampleBytes, bytes.size());
  return bytes.subspan((bytes.size() - size) / 2, size);
}

std::int64_t newest_time_ns(const std::vector<std::string>& paths) {
  std::int64_t newest = 0;
  for (const std::string& path : paths) {
    struct stat file;
    if (stat(path.c_str(), &file) != 0) continue;
    newest = std::max<std::int64_t>(newest, std::int64_t{1'000'000'000} * file.st_mtime);
  }
  return newest;
}

}  // namespace

StoredWeights read_stored_weights(const Checkpoint& checkpoint) {
  StoredWeights weights = {.num_bytes = checkpoint.file_bytes(),
                           .is_gguf = checkpoint.gguf() != nullptr,
                           .modified_ns = newest_time_ns(checkpoint.paths())};
  Sha256 hash;
  if (!weights.is_gguf) {
    const auto config = read_text_file(checkpoint.folder() + "/config.json");
    if (config.ok()) hash.update(*config);
  }
  const std::vector<std::string> names = checkpoint.names();
  const std::size_t tensors_per_sample = (names.size() + kMaxByteSamples - 1) / kMaxByteSamples;
  std::map<std::string, std::int64_t> num_by_format;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const Result<HostTensor> tensor = checkpoint.tensor(names[i]);
    if (!tensor.ok()) continue;
    const std::string format = format_name(*tensor);
    const std::int64_t num_elements = tensor->shape.num_elements();
    weights.num_parameters += num_elements;
    num_by_format[format] += num_elements;
    hash.update(fmt::format("{} {} {}\n", names[i], format, to_string(tensor->shape)));
    if (i % tensors_per_sample == 0) hash.update(middle_of(tensor->bytes));
  }
  std::int64_t most = 0;
  for (const auto& [format, count] : num_by_format) {
    if (count <= most) continue;
    most = count;
    weights.format = format;
  }
  weights.digest = to_hex(hash.finish());
  return weights;
}

}  // namespace pagoda
