#include "weights/safetensors_header.h"

#include <utility>

#include "core/json.h"
#include "weights/printable.h"

namespace pagoda {
namespace {

constexpr std::size_t kMaxHeaderEntries = 1 << 18;
constexpr std::size_t kMaxExtents = 8;
constexpr std::size_t kMaxDTypeBytes = 32;

// The place in the header of the current JSON event.
enum class Level { kOutside, kRoot, kMetadata, kTensor, kShape, kOffsets, kDone };

// Collects entries from nlohmann's JSON events; a handler that returns false ends the parse with
// status_ set.
class HeaderReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  Status status() const { return status_; }
  std::vector<SafetensorsHeaderEntry> take_entries() { return std::move(entries_); }

  bool null() override { return unexpected("null"); }
  bool boolean(bool) override { return unexpected("a bool"); }
  bool number_integer(number_integer_t) override { return unexpected("a negative number"); }
  bool number_float(number_float_t, const string_t&) override { return unexpected("a fraction"); }
  bool binary(binary_t&) override { return unexpected("binary data"); }

  bool number_unsigned(number_unsigned_t value) override {
    if (level_ == Level::kShape) {
      if (entries_.back().shape.size() == kMaxExtents) return fail("more than 8 extents");
      entries_.back().shape.push_back(value);
      return true;
    }
    if (level_ == Level::kOffsets) {
      if (entries_.back().data_offsets.size() == 2) return fail("more than two data_offsets");
      entries_.back().data_offsets.push_back(value);
      return true;
    }
    return unexpected("a number");
  }

  bool string(string_t& value) override {
    if (level_ == Level::kMetadata) return true;
    if (level_ != Level::kTensor || field_ != "dtype") return unexpected("a string");
    if (!entries_.back().dtype.empty()) return fail("dtype stands twice");
    if (value.empty() || value.size() > kMaxDTypeBytes) return fail("that dtype is no dtype");
    entries_.back().dtype = value;
    return true;
  }

  bool start_object(std::size_t) override {
    if (level_ == Level::kOutside) {
      level_ = Level::kRoot;
      return true;
    }
    if (level_ != Level::kRoot) return unexpected("an object");
    if (field_ == "__metadata__") {
      level_ = Level::kMetadata;
      return true;
    }
    if (entries_.size() == kMaxHeaderEntries) return fail("too many tensors");
    entries_.push_back({.name = field_, .dtype = {}, .shape = {}, .data_offsets = {}});
    seen_shape_ = seen_offsets_ = false;
    level_ = Level::kTensor;
    return true;
  }

  bool key(string_t& name) override {
    field_ = name;
    if (level_ != Level::kTensor || name == "dtype" || name == "shape" || name == "data_offsets") {
      return true;
    }
    return fail(fmt::format("{} is no key of a tensor", printable(name)));
  }

  bool end_object() override {
    if (level_ == Level::kRoot) {
      level_ = Level::kDone;
      return true;
    }
    if (level_ == Level::kTensor) {
      const SafetensorsHeaderEntry& entry = entries_.back();
      if (entry.dtype.empty()) return fail("dtype is missing");
      if (!seen_shape_) return fail("shape is missing");
      if (entry.data_offsets.size() != 2) return fail("data_offsets are missing");
    }
    level_ = Level::kRoot;
    return true;
  }

  bool start_array(std::size_t) override {
    if (level_ != Level::kTensor || field_ == "dtype") return unexpected("an array");
    bool& seen = field_ == "shape" ? seen_shape_ : seen_offsets_;
    if (std::exchange(seen, true)) return fail(field_ + " stands twice");
    level_ = field_ == "shape" ? Level::kShape : Level::kOffsets;
    return true;
  }

  bool end_array() override {
    level_ = Level::kTensor;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::json::exception&) override {
    return fail(fmt::format("no valid JSON at its byte {}", position));
  }

 private:
  bool fail(std::string_view why) {
    // Within an entry the message names its tensor. Between entries it is about the whole header.
    const bool inside = level_ != Level::kRoot && !entries_.empty();
    status_ = data_loss("[safetensors] {}: {}",
                        inside ? "tensor " + printable(entries_.back().name) : "header", why);
    return false;
  }
  bool unexpected(std::string_view what) {
    return fail(fmt::format("did not expect {} at {}", what, printable(field_)));
  }

  Level level_ = Level::kOutside;
  std::string field_;  // the last key
  bool seen_shape_ = false;
  bool seen_offsets_ = false;
  std::vector<SafetensorsHeaderEntry> entries_;
  Status status_;
};

}  // namespace

Result<std::vector<SafetensorsHeaderEntry>> parse_safetensors_header(std::string_view json) {
  HeaderReader reader;
  const bool parsed = nlohmann::json::sax_parse(json.begin(), json.end(), &reader);
  PAGODA_RETURN_IF_ERROR(reader.status());
  if (!parsed) return data_loss("[safetensors] header: no valid JSON");
  return reader.take_entries();
}

}  // namespace pagoda
