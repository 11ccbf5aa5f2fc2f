#include "ops/linear/prefetch_choices.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "backend/cpu/processor_name.h"
#include "core/cache_folder.h"
#include "core/text_file.h"
#include "ops/linear/linear.h"
#include "ops/linear/prefetch_probe.h"

namespace pagoda::cpu {
namespace {

namespace fs = std::filesystem;

// The number changes when kernels change how they prefetch: files with another one are ignored.
constexpr std::string_view kFirstLine = "pagoda prefetch 1\n";
constexpr std::size_t kMostFileBytes = 64 << 10;

constexpr std::array<std::string_view, kNumPanelKinds> kKindNames = {
    "F32",   "Int14",   "Q8_0",    "Q4_0",    "Q4_1",    "Q5_0",    "Q5_1",
    "Q2_K",  "Q3_K",    "Q4_K",    "Q5_K",    "Q6_K",    "IQ4_NL",  "IQ4_XS",
    "MXFP4", "Affine2", "Affine3", "Affine4", "Affine5", "Affine6", "Affine8"};
// In the order of WeightPrefetch.
constexpr std::array<std::string_view, 3> kWayNames = {"past-caches", "second-level",
                                                       "second-level-half"};

// Returns the file's text, or only its first line if the file is missing or not understood.
std::string read_notes(const fs::path& file) {
  const Result<std::string> text = read_text_file(file);
  const bool is_understood = text.ok() && text->size() <= kMostFileBytes &&
                             text->starts_with(kFirstLine) && text->ends_with('\n');
  return is_understood ? *text : std::string(kFirstLine);
}

// Replaces the file as a whole, so that no process reads half of it.
void write_notes(const fs::path& file, const std::string& notes) {
  std::error_code error;
  fs::create_directories(file.parent_path(), error);
  fs::path unfinished = file;
  unfinished += fmt::format(".{}", ::getpid());
  std::ofstream stream(unfinished, std::ios::binary);
  stream << notes;
  stream.close();
  if (stream) fs::rename(unfinished, file, error);
  if (!stream || error) fs::remove(unfinished, error);
}

// Returns the way in the line that begins with `key`.
std::optional<WeightPrefetch> noted_way(std::string_view notes, const std::string& key) {
  const std::size_t at = notes.find('\n' + key);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view rest = notes.substr(at + 1 + key.size());
  for (std::size_t i = 0; i < kWayNames.size(); ++i) {
    if (rest.starts_with(fmt::format("{}\n", kWayNames[i]))) return static_cast<WeightPrefetch>(i);
  }
  return std::nullopt;
}

}  // namespace

void choose_prefetch(CpuExec& exec, const fs::path& file) {
  if (exec.isa() != CpuIsa::kAvx2 && !includes_avx512(exec.isa())) return;
  const std::string known = read_notes(file);
  std::string notes = known;
  const std::string machine = fmt::format("{}, {}, {} threads", processor_name(),
                                          cpu_isa_name(exec.isa()), exec.num_threads());
  for (int i = 0; i < kNumPanelKinds; ++i) {
    const auto kind = static_cast<PanelKind>(i);
    if (kind == PanelKind::kF32 || !exec.has_panels(kind)) continue;
    const std::string key = fmt::format("{}, {}: ", machine, kKindNames[i]);
    std::optional<WeightPrefetch> way = noted_way(known, key);
    if (!way) {
      way = measure_prefetch(exec, kind);
      notes += fmt::format("{}{}\n", key, kWayNames[static_cast<std::size_t>(*way)]);
    }
    exec.set_prefetch(kind, *way);
  }
  if (notes != known && !file.empty()) write_notes(file, notes);
}

void choose_prefetch(Exec& exec) {
  const Result<fs::path> folder = cache_folder();
  choose_prefetch(static_cast<CpuExec&>(exec), folder.ok() ? *folder / "prefetch" : fs::path());
}

}  // namespace pagoda::cpu
