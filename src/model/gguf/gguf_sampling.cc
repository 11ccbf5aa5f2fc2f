// A GGUF file's default sampling: the keys general.sampling.*, which converters take from
// generation_config.json and llama.cpp reads.
#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>

#include "core/log.h"
#include "model/config_limits.h"
#include "model/gguf/gguf_config.h"
#include "weights/printable.h"

namespace pagoda {
namespace {

class SamplingKeys {
 public:
  explicit SamplingKeys(const GgufFile& file) : file_(file) {}

  bool has(std::string_view key) const { return file_.has(name(key)); }

  template <typename T>
  Status read(std::string_view key, NumberRange range, std::optional<T>& value) const {
    if (!has(key)) return ok_status();
    PAGODA_ASSIGN_OR_RETURN(const double number, file_.number(name(key)));
    if (!(number >= range.min && number <= range.max)) {
      return data_loss("[gguf] key {}: expected {} to {}, got {}", name(key), range.min, range.max,
                       number);
    }
    value = static_cast<T>(number);
    return ok_status();
  }

  static std::string name(std::string_view key) {
    return std::string("general.sampling.").append(key);
  }

 private:
  const GgufFile& file_;
};

// Reads the repetition penalty and its window, which is left alone without a penalty.
Status read_penalty(const SamplingKeys& keys, PartialSampling& defaults) {
  PAGODA_RETURN_IF_ERROR(keys.read("penalty_repeat", kPenaltyRange, defaults.repetition_penalty));
  std::optional<int> last_n;
  PAGODA_RETURN_IF_ERROR(keys.read("penalty_last_n", {-1, 1 << 28}, last_n));
  if (!last_n || defaults.repetition_penalty.value_or(1) == 1) return ok_status();
  if (*last_n == 0) {
    defaults.repetition_penalty.reset();
  } else if (*last_n > 0) {
    defaults.repeat_last_n = last_n;
  }
  return ok_status();
}

Status read_mirostat(const SamplingKeys& keys, PartialSampling& defaults) {
  PAGODA_RETURN_IF_ERROR(keys.read("mirostat", {0, 2}, defaults.mirostat));
  PAGODA_RETURN_IF_ERROR(keys.read("mirostat_tau", kMirostatTauRange, defaults.mirostat_tau));
  PAGODA_RETURN_IF_ERROR(keys.read("mirostat_eta", kProbabilityRange, defaults.mirostat_eta));
  return ok_status();
}

// Warns of "general.sampling." keys that nothing here reads. They are not refused, because they are
// only defaults that a request may override.
void warn_of_others(const GgufFile& file) {
  constexpr std::string_view kRead[] = {
      "top_k",          "top_p",          "min_p",    "xtc_probability", "xtc_threshold", "temp",
      "penalty_last_n", "penalty_repeat", "mirostat", "mirostat_tau",    "mirostat_eta"};
  const std::string prefix = SamplingKeys::name("");
  for (const GgufEntry& entry : file.entries()) {
    if (!entry.key.starts_with(prefix)) continue;
    const std::string_view key = entry.key.substr(prefix.size());
    if (std::find(std::begin(kRead), std::end(kRead), key) != std::end(kRead)) continue;
    log_warning("[gguf] key {}: {} is ignored", printable(entry.key), printable(to_string(entry)));
  }
}

}  // namespace

Result<PartialSampling> read_gguf_generation_defaults(const GgufFile& file) {
  const SamplingKeys keys(file);
  PartialSampling defaults;
  PAGODA_RETURN_IF_ERROR(keys.read("temp", kTemperatureRange, defaults.temperature));
  PAGODA_RETURN_IF_ERROR(keys.read("top_p", kProbabilityRange, defaults.top_p));
  PAGODA_RETURN_IF_ERROR(keys.read("min_p", kProbabilityRange, defaults.min_p));
  PAGODA_RETURN_IF_ERROR(
      keys.read("top_k", {kTopKRange.min * 1.0, kTopKRange.max * 1.0}, defaults.top_k));
  PAGODA_RETURN_IF_ERROR(keys.read("xtc_probability", kProbabilityRange, defaults.xtc_probability));
  PAGODA_RETURN_IF_ERROR(keys.read("xtc_threshold", kProbabilityRange, defaults.xtc_threshold));
  PAGODA_RETURN_IF_ERROR(read_penalty(keys, defaults));
  PAGODA_RETURN_IF_ERROR(read_mirostat(keys, defaults));
  warn_of_others(file);
  return defaults;
}

}  // namespace pagoda
