#include "serving/embedding_format.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>

#include "core/json.h"
#include "core/text_file.h"
#include "model/json_fields.h"
#include "weights/printable.h"

namespace pagoda {
namespace {

constexpr std::string_view kModules = "modules.json";
constexpr std::size_t kMaxModules = 16;

// A pooling by its name, and by the key that older files have of each.
struct PoolingName {
  std::string_view name;
  const char* key;
  std::optional<Pooling> pooling;  // absent: nothing here computes it
};

constexpr PoolingName kPoolingNames[] = {
    {"cls", "pooling_mode_cls_token", Pooling::kFirst},
    {"mean", "pooling_mode_mean_tokens", Pooling::kMean},
    {"lasttoken", "pooling_mode_lasttoken", Pooling::kLast},
    {"max", "pooling_mode_max_tokens", {}},
    {"mean_sqrt_len_tokens", "pooling_mode_mean_sqrt_len_tokens", {}},
    {"weightedmean", "pooling_mode_weightedmean_tokens", {}},
};

Result<Pooling> named_pooling(std::string_view name, const std::string& where) {
  const auto* const found = std::ranges::find(kPoolingNames, name, &PoolingName::name);
  if (found != std::end(kPoolingNames) && found->pooling) return *found->pooling;
  return unsupported("[embedding] {}: the pooling {} is not supported; cls, mean and lasttoken are",
                     where, printable(name));
}

// Older files have a flag for each way, newer ones its name.
Result<Pooling> parse_pooling(const JsonFields& fields) {
  if (fields.has("pooling_mode")) {
    PAGODA_ASSIGN_OR_RETURN(const std::string name, fields.text("pooling_mode"));
    return named_pooling(name, fields.where());
  }
  std::string names;
  for (const PoolingName& each : kPoolingNames) {
    PAGODA_ASSIGN_OR_RETURN(const bool is_asked, fields.boolean_or(each.key, false));
    if (is_asked) names += (names.empty() ? "" : "+") + std::string(each.name);
  }
  // Files of the time before the flags mean the mean.
  return names.empty() ? Pooling::kMean : named_pooling(names, fields.where());
}

Result<Pooling> read_pooling(const std::filesystem::path& folder, const std::string& module) {
  const std::filesystem::path path = std::filesystem::path(module).lexically_normal();
  if (path.is_absolute() || path.string().starts_with(".."))
    return data_loss("[embedding] {}: path: expected a folder of the checkpoint's, got {}",
                     kModules, printable(module));
  const std::filesystem::path file = path / "config.json";
  PAGODA_ASSIGN_OR_RETURN(const std::string text, read_text_file(folder / file));
  PAGODA_ASSIGN_OR_RETURN(const nlohmann::json json, parse_json_object(text, file.string()));
  return parse_pooling(JsonFields(json, file.string()));
}

// Reads the list of what a text goes through: a transformer, a pooling, perhaps a norm.
Result<EmbeddingFormat> read_modules(const std::filesystem::path& folder, const std::string& text) {
  const auto modules = parse_json(text);
  if (!modules.is_array() || modules.size() > kMaxModules)
    return data_loss("[embedding] {}: expected a list of at most {} modules", kModules,
                     kMaxModules);
  EmbeddingFormat format = {.normalizes = false};
  for (const nlohmann::json& module : modules) {
    if (!module.is_object())
      return data_loss("[embedding] {}: expected objects in the list", kModules);
    const JsonFields fields(module, std::string(kModules));
    PAGODA_ASSIGN_OR_RETURN(const std::string type, fields.text("type"));
    PAGODA_ASSIGN_OR_RETURN(const std::string path, fields.text_or("path", ""));
    const std::string name = type.substr(type.rfind('.') + 1);
    if (name == "Pooling") {
      PAGODA_ASSIGN_OR_RETURN(format.pooling, read_pooling(folder, path));
    } else if (name == "Normalize") {
      format.normalizes = true;
    } else if (name != "Transformer") {
      return unsupported(
          "[embedding] {}: the module {} is not supported; Transformer, Pooling and Normalize are",
          kModules, printable(type));
    }
  }
  return format;
}

// ggml's numbers are the places in the list; 0 says nothing.
constexpr Pooling kGgufPoolings[] = {Pooling::kNone, Pooling::kMean, Pooling::kFirst,
                                     Pooling::kLast};

}  // namespace

std::uint32_t gguf_pooling_type(Pooling pooling) {
  return static_cast<std::uint32_t>(std::ranges::find(kGgufPoolings, pooling) -
                                    std::begin(kGgufPoolings));
}

Result<std::optional<EmbeddingFormat>> read_embedding_format(const Checkpoint& checkpoint) {
  if (const GgufFile* const file = checkpoint.gguf()) {
    PAGODA_ASSIGN_OR_RETURN(const std::string_view architecture,
                            file->string("general.architecture"));
    const std::string key = std::string(architecture) + ".pooling_type";
    PAGODA_ASSIGN_OR_RETURN(const std::int64_t type, file->integer_or(key, 0));
    // The head of a reranker (serving/read_score_format.h) is read instead.
    constexpr std::int64_t kRank = 4;
    if (type == 0 || type == kRank) return std::optional<EmbeddingFormat>();
    if (type < 0 || type >= std::ssize(kGgufPoolings))
      return unsupported("[embedding] {}: {} is not supported", key, type);
    return std::optional(EmbeddingFormat{.pooling = kGgufPoolings[type]});
  }
  const std::filesystem::path folder = checkpoint.folder();
  const Result<std::string> text = read_text_file(folder / kModules);
  if (text.status().code() == StatusCode::kNotFound) return std::optional<EmbeddingFormat>();
  if (!text.ok()) return text.status();
  PAGODA_ASSIGN_OR_RETURN(const EmbeddingFormat format, read_modules(folder, *text));
  return std::optional(format);
}

}  // namespace pagoda
