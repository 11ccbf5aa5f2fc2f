// Quantises a checkpoint and writes it as a GGUF file.
//
// Matrices are quantised row by row, in whole blocks. A matrix that already has the wanted format
// is copied; one in another quantised format is decoded first. Norms, biases and other vectors, and
// the routers of mixtures, become F32. If a row is no multiple of the format's block:
//
//   Q8_0, Q4_0   F16                 rows that are no multiple of 32
//   Q4_K         Q5_0, else F16      as llama.cpp does; embeddings and the output matrix, which
//                                    every token uses: Q8_0, else F16
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "core/shape.h"
#include "core/status.h"
#include "quant/weight_format.h"

namespace pagoda {

struct QuantizeOptions {
  std::string input;   // a GGUF file, the first of a split set too, or a Hugging Face folder
  std::string output;  // name.gguf
  bool overwrites =
      false;  // an existing file is replaced when the new one is complete; else refused
  WeightFormat format = WeightFormat::kQ8_0;
  int num_threads = 1;
  // Called with the share that is done, in [0, 1]. If it returns an error, the work ends and no
  // file is left.
  std::function<Status(double share)> on_progress;
};

struct QuantizeSummary {
  std::int64_t num_values = 0;
  std::int64_t input_bytes = 0;                 // of the weights
  std::int64_t output_bytes = 0;                // likewise
  std::map<std::string_view, int> num_tensors;  // by format
};

// The formats that `--format` takes.
inline constexpr WeightFormat kQuantizeFormats[] = {WeightFormat::kQ8_0, WeightFormat::kQ4_0,
                                                    WeightFormat::kQ4_K};

// Returns the format in which a tensor of this GGUF name and shape is written. Tensors in MXFP4
// stay so whatever is wanted.
WeightFormat quantized_format(std::string_view name, const Shape& shape, WeightFormat wanted);

// Writes a quantised copy of a model. kInvalidArgument: an output whose name does not end in .gguf,
// that is the input, or that exists and may not be replaced. kUnavailable: an output that cannot be
// written, or is no file. kDataLoss: a model without tensors, a value that no quantised format holds (not finite, or beyond 65504).
// Other errors as in read_gguf_model and write_gguf.
Result<QuantizeSummary> quantize_model(const QuantizeOptions& options);

}  // namespace pagoda
