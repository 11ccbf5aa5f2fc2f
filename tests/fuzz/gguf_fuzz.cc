// Any bytes as a GGUF file: parses them, then reads everything that a caller could ask for, and the
// config of a model.
#include <spdlog/spdlog.h>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <span>
#include <vector>

#include "model/model_config.h"
#include "tests/fuzz/check_config.h"
#include "tests/support/temporary_folder.h"
#include "weights/checkpoint.h"
#include "weights/gguf.h"
#include "weights/name_map.h"

namespace pagoda {
namespace {

constexpr TensorName kOfModel[] = {{"output", "lm_head"}};
constexpr TensorName kOfLayer[] = {{"ffn_up", "mlp.up_proj"}};
constexpr TensorNames kNames = {.of_model = kOfModel, .of_layer = kOfLayer};

void read_entry(const GgufFile& file, const GgufEntry& entry) {
  (void)to_string(entry);
  (void)file.string(entry.key);
  (void)file.integer(entry.key);
  (void)file.number(entry.key);
  (void)file.boolean(entry.key);
  (void)file.integers(entry.key);
  (void)file.numbers(entry.key);
  (void)file.booleans(entry.key);
  const auto strings = file.strings(entry.key);
  if (!strings.ok()) return;
  volatile std::size_t sum = 0;  // so that the compiler keeps the reads
  for (const std::string_view text : *strings) {
    for (const char c : text) sum = sum + static_cast<unsigned char>(c);
  }
}

void read_tensor(const GgufTensor& tensor) {
  (void)kNames.canonical_of(tensor.name);
  (void)gguf_tensor_type_name(tensor.type_id);
  if (!tensor.format) return;
  const auto num_values = static_cast<std::size_t>(tensor.shape.num_elements());
  PAGODA_CHECK(packed_bytes(*tensor.format, tensor.shape.num_elements()) ==
                   static_cast<std::int64_t>(tensor.bytes.size()),
               "the bytes are those of the shape");
  std::vector<float> values(num_values);
  traits_of(*tensor.format).dequantize(tensor.bytes, values.data());
}

// Reads the config of a model from a file.
void read_config(std::span<const std::byte> bytes) {
  spdlog::set_level(spdlog::level::off);  // a warning for each input would fill the log
  static const testing::TemporaryFolder folder;
  const std::string path = folder / "model.gguf";
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  const auto checkpoint = Checkpoint::open(path);
  if (!checkpoint.ok()) return;
  const auto config = read_model_config(*checkpoint);
  if (config.ok()) check_config(*config);
  (void)read_generation_defaults(*checkpoint);
}

}  // namespace
}  // namespace pagoda

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto file = pagoda::GgufFile::parse(std::as_bytes(std::span(data, size)), nullptr);
  if (!file.ok()) return 0;
  for (const auto& entry : (*file)->entries()) pagoda::read_entry(**file, entry);
  for (const auto& tensor : (*file)->tensors()) pagoda::read_tensor(tensor);
  if ((*file)->has("general.architecture"))
    pagoda::read_config(std::as_bytes(std::span(data, size)));
  return 0;
}
