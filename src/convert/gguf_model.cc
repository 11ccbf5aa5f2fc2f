#include "convert/gguf_model.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <string>
#include <utility>

#include "convert/hf_metadata.h"
#include "convert/hf_vocabulary.h"
#include "model/checkpoint_tensors.h"
#include "model/family.h"
#include "model/model_config.h"
#include "quant/owned_bytes.h"
#include "weights/printable.h"

namespace pagoda {
namespace {

constexpr std::string_view kLeftOut[] = {"split.no", "split.count", "split.tensors.count",
                                         "general.file_type", "general.quantization_version"};

Result<GgufModel> from_gguf(const GgufFile& file) {
  GgufModel model;
  PAGODA_ASSIGN_OR_RETURN(const std::int64_t alignment, file.integer_or("general.alignment", 32));
  model.alignment = static_cast<std::uint64_t>(alignment);
  for (const GgufEntry& entry : file.entries()) {
    const bool is_left_out =
        std::find(std::begin(kLeftOut), std::end(kLeftOut), entry.key) != std::end(kLeftOut);
    if (!is_left_out) model.metadata.copy(entry);
  }
  for (const GgufTensor& tensor : file.tensors()) {
    if (!tensor.format) {
      return unsupported("[quantize] tensor {}: {} is not supported", printable(tensor.name),
                         gguf_tensor_type_name(tensor.type_id));
    }
    model.tensors.push_back({.tensor = {.name = std::string(tensor.name),
                                        .format = *tensor.format,
                                        .shape = tensor.shape,
                                        .bytes = tensor.bytes,
                                        .storage = tensor.storage}});
  }
  return model;
}

GgufModelTensor rope_divisors_tensor(std::span<const float> divisors) {
  auto storage = std::make_shared<OwnedBytes>(std::as_bytes(divisors));
  HostTensor tensor{.name = "rope_freqs.weight",
                    .format = WeightFormat::kF32,
                    .shape = {static_cast<std::int64_t>(divisors.size())},
                    .bytes = storage->bytes,
                    .storage = {}};
  tensor.storage = std::move(storage);
  return {.tensor = std::move(tensor)};
}

// A table that follows from the config, or the output of a tied embedding.
bool is_redundant(std::string_view name, const ModelConfig& config) {
  return is_derived_tensor(name) || (config.tie_word_embeddings && name == "lm_head.weight");
}

Result<GgufModel> from_folder(const Checkpoint& checkpoint) {
  PAGODA_ASSIGN_OR_RETURN(const ModelConfig config, read_model_config(checkpoint));
  const Family& family = *find_family(config.architecture);
  PAGODA_RETURN_IF_ERROR(check_all_tensors_are_read(checkpoint, config));
  PAGODA_RETURN_IF_ERROR(check_is_written(config));
  const HfRope rope = hf_rope(config);
  PAGODA_ASSIGN_OR_RETURN(const PartialSampling defaults, read_generation_defaults(checkpoint));
  PAGODA_ASSIGN_OR_RETURN(const std::optional<EmbeddingFormat> embedding_format,
                          read_embedding_format(checkpoint));
  PAGODA_ASSIGN_OR_RETURN(const GgufVocabulary vocabulary,
                          read_hf_vocabulary(checkpoint.folder(), config.vocab_size));
  GgufModel model;
  PAGODA_RETURN_IF_ERROR(set_architecture_keys(config, rope, model.metadata));
  set_pooling_key(config, embedding_format, model.metadata);
  set_sampling_keys(defaults, model.metadata);
  PAGODA_RETURN_IF_ERROR(set_vocabulary_keys(vocabulary, config, model.metadata));
  if (!rope.divisors.empty()) model.tensors.push_back(rope_divisors_tensor(rope.divisors));
  const bool is_interleaved = family.gguf_rope_style == RopeStyle::kAdjacent;
  const int head_dim = config.layers.front().head_dim;
  for (const std::string& name : checkpoint.names()) {
    if (is_redundant(name, config)) continue;
    GgufModelTensor tensor;
    PAGODA_ASSIGN_OR_RETURN(tensor.tensor, checkpoint.tensor(name));
    tensor.tensor.name = family.gguf_tensor_names->gguf_of(name);
    if (tensor.tensor.name.empty()) {
      return unsupported("[quantize] tensor {}: GGUF has no name for it", printable(name));
    }
    const bool is_q_or_k = name.find(".self_attn.q_proj.") != std::string::npos ||
                           name.find(".self_attn.k_proj.") != std::string::npos;
    if (is_q_or_k && is_interleaved) {
      if (tensor.tensor.shape[0] % head_dim != 0) {
        return data_loss("[quantize] tensor {}: expected whole heads of {} rows, got {}", name,
                         head_dim, tensor.tensor.shape[0]);
      }
      tensor.interleaved_head_dim = head_dim;
    }
    model.tensors.push_back(std::move(tensor));
  }
  return model;
}

}  // namespace

Result<GgufModel> read_gguf_model(const Checkpoint& checkpoint) {
  return checkpoint.gguf() != nullptr ? from_gguf(*checkpoint.gguf()) : from_folder(checkpoint);
}

}  // namespace pagoda
