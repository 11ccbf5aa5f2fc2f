#include "convert/quantize_model.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <span>
#include <thread>
#include <vector>

#include "convert/gguf_model.h"
#include "core/start_thread.h"
#include "quant/tensor_rows.h"
#include "weights/printable.h"

namespace pagoda {
namespace {

namespace fs = std::filesystem;

// The values that are decoded, quantised and written between two calls of on_progress.
constexpr std::int64_t kChunkValues = std::int64_t{1} << 21;
constexpr float kLargestValue = 65504;  // of f16, in which scales are kept

// Returns general.file_type, from which llama.cpp prints the type of a file.
std::uint32_t file_type(WeightFormat format) {
  if (format == WeightFormat::kQ4_0) return 2;
  return format == WeightFormat::kQ8_0 ? 7 : 14;  // 14: Q4_K for all tensors, none in Q6_K
}

// Calls work(begin, end) for ranges of [0, count) on several threads. Returns the first range's
// error.
template <typename Work>
Status parallel_ranges(int num_threads, std::int64_t count, Work work) {
  const auto num_ranges = std::clamp<std::int64_t>(num_threads, 1, count);
  std::vector<Status> statuses(num_ranges);
  std::vector<std::thread> threads;
  const auto run = [&](std::int64_t i) {
    statuses[i] = work(count * i / num_ranges, count * (i + 1) / num_ranges);
  };
  for (std::int64_t i = 1; i < num_ranges; ++i) {
    try {
      threads.push_back(start_thread([&run, i] { run(i); }));
    } catch (const NoThread&) {
      run(i);
    }
  }
  run(0);
  for (std::thread& thread : threads) thread.join();
  const auto failed = std::find_if(statuses.begin(), statuses.end(),
                                   [](const Status& status) { return !status.ok(); });
  return failed == statuses.end() ? ok_status() : *failed;
}

bool changes_values(const GgufModelTensor& source) {
  return source.offset != 0 || source.factor != 1;
}

// One tensor, row by row, in another format.
class RowConverter {
 public:
  RowConverter(const GgufModelTensor& source, WeightFormat format)
      : source_(source),
        tensor_(source.tensor),
        head_dim_(source.interleaved_head_dim),
        changes_values_(changes_values(source)),
        format_(format) {
    // A bias that is interleaved has rows of one value.
    const bool is_vector = tensor_.shape.rank() == 1;
    width_ = is_vector && head_dim_ != 0 ? 1 : tensor_.shape[-1];
    rows_ = tensor_.shape.num_elements() / width_;
  }

  std::int64_t rows() const { return rows_; }
  std::int64_t width() const { return width_; }
  std::int64_t row_size() const { return packed_bytes(format_, width_); }

  // Converts rows [begin, end) of the new tensor into `out`.
  Status convert(std::int64_t begin, std::int64_t end, std::byte* out) const {
    std::vector<float> values(width_);
    for (std::int64_t row = begin; row < end; ++row, out += row_size()) {
      if (format_ == WeightFormat::kMXFP4) {
        copy(row, out);
        continue;
      }
      decode(source_row(row), values.data());
      if (changes_values_) {
        for (float& value : values) value = (value + source_.offset) * source_.factor;
      }
      PAGODA_RETURN_IF_ERROR(check(row, values));
      traits_of(format_).quantize(values, out);
    }
    return ok_status();
  }

 private:
  std::int64_t source_row(std::int64_t row) const {
    if (head_dim_ == 0) return row;
    const std::int64_t in_head = row % head_dim_;
    return row - in_head + in_head / 2 + in_head % 2 * (head_dim_ / 2);
  }

  // Returns the tensor that has a row, and makes `row` the row's number there.
  const HostTensor& find_row(std::int64_t& row) const {
    if (source_.parts.empty()) return tensor_;
    const std::int64_t rows_of_part = source_.parts.front().shape[0];
    const HostTensor& part = source_.parts[static_cast<std::size_t>(row / rows_of_part)];
    row %= rows_of_part;
    return part;
  }

  void copy(std::int64_t row, std::byte* out) const {
    std::vector<std::byte> scratch;
    const HostTensor& tensor = find_row(row);
    const std::span<const std::byte> bytes = row_bytes(tensor, row, scratch);
    std::copy(bytes.begin(), bytes.end(), out);
  }

  void decode(std::int64_t row, float* values) const {
    const HostTensor& tensor = find_row(row);
    decode(tensor, row, values);
  }

  void decode(const HostTensor& tensor, std::int64_t row, float* values) const {
    if (!tensor.has_whole_rows()) return read_row(tensor, row, values);
    const auto size = static_cast<std::size_t>(packed_bytes(tensor.format, width_));
    traits_of(tensor.format)
        .dequantize(tensor.bytes.subspan(static_cast<std::size_t>(row) * size, size), values);
  }

  Status check(std::int64_t row, std::span<const float> values) const {
    if (format_ == WeightFormat::kF32) return ok_status();
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (std::fabs(values[i]) <= kLargestValue) continue;
      return data_loss("[quantize] tensor {}: expected values of at most {}, got {} at {}, {}",
                       printable(tensor_.name), kLargestValue, values[i], row, i);
    }
    return ok_status();
  }

  const GgufModelTensor& source_;
  const HostTensor& tensor_;
  const int head_dim_;
  const bool changes_values_;
  const WeightFormat format_;
  std::int64_t width_ = 0;
  std::int64_t rows_ = 0;
};

class Quantizer {
 public:
  Quantizer(const GgufModel& model, const GgufPlan& plan, const QuantizeOptions& options)
      : model_(model), plan_(plan), options_(options) {
    for (const GgufModelTensor& tensor : model.tensors) {
      num_values_ += tensor.tensor.shape.num_elements();
    }
  }

  Status write_tensor(std::size_t index, const GgufSink& sink) {
    const GgufModelTensor& source = model_.tensors[index];
    const WeightFormat format = plan_.tensors[index].format;
    const bool is_copy = format == source.tensor.format && source.interleaved_head_dim == 0 &&
                         source.parts.empty() && source.tensor.has_whole_rows() &&
                         !changes_values(source);
    PAGODA_RETURN_IF_ERROR(is_copy ? copy(source.tensor, sink) : convert(source, format, sink));
    release_pages(source.tensor);
    for (const HostTensor& part : source.parts) release_pages(part);
    return ok_status();
  }

 private:
  Status copy(const HostTensor& tensor, const GgufSink& sink) {
    PAGODA_RETURN_IF_ERROR(sink(tensor.bytes));
    return advance(tensor.shape.num_elements());
  }

  Status convert(const GgufModelTensor& source, WeightFormat format, const GgufSink& sink) {
    const RowConverter converter(source, format);
    const std::int64_t chunk = std::max<std::int64_t>(kChunkValues / converter.width(), 1);
    std::vector<std::byte> bytes;
    for (std::int64_t first = 0; first < converter.rows(); first += chunk) {
      const std::int64_t rows = std::min(chunk, converter.rows() - first);
      bytes.resize(rows * converter.row_size());
      PAGODA_RETURN_IF_ERROR(
          parallel_ranges(options_.num_threads, rows, [&](std::int64_t begin, std::int64_t end) {
            return converter.convert(first + begin, first + end,
                                     bytes.data() + begin * converter.row_size());
          }));
      PAGODA_RETURN_IF_ERROR(sink(bytes));
      PAGODA_RETURN_IF_ERROR(advance(rows * converter.width()));
    }
    return ok_status();
  }

  Status advance(std::int64_t num_values) {
    num_done_ += num_values;
    if (!options_.on_progress) return ok_status();
    return options_.on_progress(static_cast<double>(num_done_) / static_cast<double>(num_values_));
  }

  const GgufModel& model_;
  const GgufPlan& plan_;
  const QuantizeOptions& options_;
  std::int64_t num_values_ = 0;
  std::int64_t num_done_ = 0;
};

// Returns whether `output` is a file that `input` reads from: itself, a part of a split set, a
// shard.
bool is_part_of_input(const fs::path& output, const fs::path& input) {
  std::error_code error;
  const fs::path folder = fs::is_directory(input, error) ? input : input.parent_path();
  if (fs::equivalent(output, input, error)) return true;
  for (const auto& entry : fs::directory_iterator(folder.empty() ? "." : folder, error)) {
    const std::string name = entry.path().filename();
    const bool is_read = fs::is_directory(input, error) || name.find("-of-") != std::string::npos;
    if (is_read && fs::equivalent(output, entry.path(), error)) return true;
  }
  return false;
}

Status check_output(const QuantizeOptions& options) {
  const fs::path output = options.output;
  if (output.extension() != ".gguf") {
    return invalid_argument("[quantize] {}: expected a name that ends in .gguf", options.output);
  }
  std::error_code error;
  if (!fs::exists(output, error)) return ok_status();
  if (!fs::is_regular_file(output, error)) {
    return unavailable("[quantize] {}: expected a file's name, got something else's",
                       options.output);
  }
  if (is_part_of_input(output, options.input)) {
    return invalid_argument("[quantize] {}: this is the input", options.output);
  }
  if (!options.overwrites) {
    return invalid_argument(
        "[quantize] {}: expected a name that is free, got a file; --overwrite replaces it",
        options.output);
  }
  return ok_status();
}

Status check_tensors(const GgufModel& model, const std::string& input) {
  if (model.tensors.empty())
    return data_loss("[quantize] {}: expected a model's tensors, got none", input);
  for (const GgufModelTensor& each : model.tensors) {
    const Shape& shape = each.tensor.shape;
    if (shape.rank() == 0 || shape.num_elements() == 0) {
      return data_loss("[quantize] tensor {}: expected a vector or a matrix of values, got {}",
                       printable(each.tensor.name), to_string(shape));
    }
  }
  return ok_status();
}

GgufPlan make_plan(const GgufModel& model, WeightFormat wanted) {
  GgufPlan plan{.metadata = model.metadata, .tensors = {}, .alignment = model.alignment};
  plan.metadata.set("general.file_type", file_type(wanted))
      .set("general.quantization_version", std::uint32_t{2});
  for (const GgufModelTensor& source : model.tensors) {
    const HostTensor& tensor = source.tensor;
    // Smaller than any format that is written, and exact.
    const bool is_kept = tensor.format == WeightFormat::kMXFP4;
    plan.tensors.push_back(
        {.name = tensor.name,
         .shape = tensor.shape,
         .format = is_kept ? tensor.format : quantized_format(tensor.name, tensor.shape, wanted)});
  }
  return plan;
}

QuantizeSummary summary_of(const GgufModel& model, const GgufPlan& plan) {
  QuantizeSummary summary;
  for (std::size_t i = 0; i < plan.tensors.size(); ++i) {
    const GgufTensorPlan& tensor = plan.tensors[i];
    summary.num_values += tensor.shape.num_elements();
    summary.input_bytes += num_bytes(model.tensors[i].tensor);
    for (const HostTensor& part : model.tensors[i].parts) summary.input_bytes += num_bytes(part);
    summary.output_bytes += packed_bytes(tensor.format, tensor.shape.num_elements());
    ++summary.num_tensors[traits_of(tensor.format).name];
  }
  return summary;
}

}  // namespace

WeightFormat quantized_format(std::string_view name, const Shape& shape, WeightFormat wanted) {
  // A router chooses between experts that may be nearly equal, so that it stays as it is.
  const bool is_router = name.find(".ffn_gate_inp") != std::string_view::npos;
  if (shape.rank() < 2 || is_router || name.ends_with(".bias")) return WeightFormat::kF32;
  const bool is_vocabulary = name == "token_embd.weight" || name == "output.weight";
  const WeightFormat second =
      wanted == WeightFormat::kQ4_K && !is_vocabulary ? WeightFormat::kQ5_0 : WeightFormat::kQ8_0;
  for (const WeightFormat format : {wanted, second}) {
    if (shape[-1] % traits_of(format).block_size == 0) return format;
  }
  return WeightFormat::kF16;
}

Result<QuantizeSummary> quantize_model(const QuantizeOptions& options) {
  PAGODA_ASSIGN_OR_RETURN(const Checkpoint checkpoint, Checkpoint::open(options.input));
  PAGODA_RETURN_IF_ERROR(check_output(options));
  PAGODA_ASSIGN_OR_RETURN(const GgufModel model, read_gguf_model(checkpoint));
  PAGODA_RETURN_IF_ERROR(check_tensors(model, options.input));
  const GgufPlan plan = make_plan(model, options.format);
  Quantizer quantizer(model, plan, options);
  PAGODA_RETURN_IF_ERROR(
      write_gguf(options.output, plan, [&](std::size_t index, const GgufSink& sink) {
        return quantizer.write_tensor(index, sink);
      }));
  return summary_of(model, plan);
}

}  // namespace pagoda
