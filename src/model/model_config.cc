#include "model/model_config.h"

#include <filesystem>
#include <utility>

#include "model/config_limits.h"
#include "model/gguf_config.h"
#include "model/hf_config.h"
#include "weights/mapped_file.h"

namespace pagoda {
namespace {

constexpr std::size_t kMaxJsonBytes = 16 << 20;  // real ones have a few kilobytes

Result<std::string> read_json_file(const std::string& path) {
  PAGODA_ASSIGN_OR_RETURN(const auto file, MappedFile::open(path));
  const auto bytes = file->bytes();
  if (bytes.size() > kMaxJsonBytes) {
    return data_loss("[config] {}: expected at most {} bytes, got {}", path, kMaxJsonBytes,
                     bytes.size());
  }
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

std::string path_in(const Checkpoint& checkpoint, const char* name) {
  return (std::filesystem::path(checkpoint.folder()) / name).string();
}

// Empty: the checkpoint has none.
Result<std::string> read_generation_json(const Checkpoint& checkpoint) {
  const std::string path = path_in(checkpoint, "generation_config.json");
  std::error_code ignored;  // what cannot be looked at is not there
  if (!std::filesystem::exists(path, ignored)) return std::string();
  PAGODA_ASSIGN_OR_RETURN(std::string json, read_json_file(path));
  if (json.empty()) return data_loss("[config] {}: expected a JSON object, got nothing", path);
  return json;
}

}  // namespace

Status check_consistency(const ModelConfig& config) {
  if (config.num_heads % config.num_kv_heads != 0) {
    return invalid_argument("[config] expected heads to be a multiple of kv heads, got {} and {}",
                            config.num_heads, config.num_kv_heads);
  }
  if (config.head_dim < kHeadDimRange.min || config.head_dim > kHeadDimRange.max ||
      config.head_dim % 2 != 0) {
    return invalid_argument("[config] expected an even head_dim of {} to {}, got {}",
                            kHeadDimRange.min, kHeadDimRange.max, config.head_dim);
  }
  return ok_status();
}

Result<ModelConfig> read_model_config(const Checkpoint& checkpoint) {
  if (checkpoint.gguf() != nullptr) return read_gguf_config(checkpoint);
  PAGODA_ASSIGN_OR_RETURN(const std::string config,
                          read_json_file(path_in(checkpoint, "config.json")));
  PAGODA_ASSIGN_OR_RETURN(const std::string generation, read_generation_json(checkpoint));
  return parse_hf_config(config, generation);
}

Result<GenerationDefaults> read_generation_defaults(const Checkpoint& checkpoint) {
  if (checkpoint.gguf() != nullptr) return read_gguf_generation_defaults(*checkpoint.gguf());
  PAGODA_ASSIGN_OR_RETURN(const std::string generation, read_generation_json(checkpoint));
  return parse_hf_generation_defaults(generation);
}

}  // namespace pagoda
