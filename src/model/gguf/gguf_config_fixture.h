// A builder of GGUF files of any family, for tests.
#pragma once

#include "model/gguf/gguf_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "model/rope_frequencies.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/layer_windows.h"
#include "tests/support/temporary_folder.h"

namespace pagoda {
using ::testing::Each;
using ::testing::ElementsAre;
using testing::GgufWriter;
using ::testing::HasSubstr;
using testing::TemporaryFolder;

inline constexpr int kVocab = 8;
inline constexpr int kHidden = 64;

// Builds a GGUF file. It stores keys by name, so that a test may replace one.
class GgufModel {
 public:
  explicit GgufModel(std::string architecture) : architecture_(std::move(architecture)) {
    set("general.architecture", architecture_);
    set_own("block_count", std::uint32_t{3});
    set_own("context_length", std::uint32_t{2048});
    set_own("embedding_length", std::uint32_t{kHidden});
    set_own("feed_forward_length", std::uint32_t{112});
    set_own("attention.head_count", std::uint32_t{4});
    set_own("attention.head_count_kv", std::uint32_t{2});
    set_own("attention.layer_norm_rms_epsilon", 1e-5f);
    set("tokenizer.ggml.bos_token_id", std::uint32_t{1});
    set("tokenizer.ggml.eos_token_id", std::uint32_t{2});
    tensor("token_embd.weight", {kVocab, kHidden});
  }

  template <typename T>
  GgufModel& set(const std::string& key, const T& value) {
    erase(key);
    entries_.emplace_back(key, [key, value](GgufWriter& writer) { writer.set(key, value); });
    return *this;
  }
  // Sets "<architecture>.<key>".
  template <typename T>
  GgufModel& set_own(const std::string& key, const T& value) {
    return set(architecture_ + "." + key, value);
  }
  GgufModel& erase(const std::string& key) {
    std::erase_if(entries_, [&key](const auto& entry) { return entry.first == key; });
    return *this;
  }
  GgufModel& tensor(const std::string& name, const Shape& shape, std::vector<float> values = {}) {
    values.resize(shape.num_elements(), 1.0f);
    std::erase_if(tensors_, [&name](const Tensor& other) { return other.name == name; });
    tensors_.push_back({name, shape, std::move(values)});
    return *this;
  }

  Checkpoint open() const {
    GgufWriter writer;
    for (const auto& [key, write] : entries_) write(writer);
    for (const Tensor& tensor : tensors_) {
      writer.add_tensor(tensor.name, tensor.shape, WeightFormat::kF32, tensor.values);
    }
    const std::string path = folder_ / "m.gguf";
    writer.write(path);
    return *Checkpoint::open(path);
  }
  Result<ModelConfig> read() const { return read_model_config(open()); }

 private:
  struct Tensor {
    std::string name;
    Shape shape;
    std::vector<float> values;
  };
  std::string architecture_;
  std::vector<std::pair<std::string, std::function<void(GgufWriter&)>>> entries_;
  std::vector<Tensor> tensors_;
  TemporaryFolder folder_;
};

}  // namespace pagoda
