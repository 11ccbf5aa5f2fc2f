#include "convert/gguf_model.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "convert/hf_metadata.h"
#include "convert/hf_rotation.h"
#include "convert/hf_vocabulary.h"
#include "convert/same_number.h"
#include "core/json.h"
#include "core/text_file.h"
#include "model/blocks/projection.h"
#include "model/checkpoint_tensors.h"
#include "model/family.h"
#include "model/gguf/gguf_config.h"
#include "model/hf/json_fields.h"
#include "model/layer_spec.h"
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

void add_divisors(const char* name, const std::vector<float>& divisors, GgufModel& model) {
  if (divisors.empty()) return;
  auto storage = std::make_shared<OwnedBytes>(std::as_bytes(std::span(divisors)));
  HostTensor tensor{.name = name,
                    .format = WeightFormat::kF32,
                    .shape = {static_cast<std::int64_t>(divisors.size())},
                    .bytes = storage->bytes,
                    .storage = {}};
  tensor.storage = std::move(storage);
  model.tensors.push_back({.tensor = std::move(tensor)});
}

// Returns the factor of queries, for the last weights before the rotation. Some families have no
// key for the scale of scores, so readers assume a scale. The factor corrects it to the model's
// scale.
Result<float> query_factor(const TensorPlace& place, const ModelConfig& config,
                           const std::string& name) {
  const Family& family = *find_family(config.architecture);
  const bool is_norm = place.vector != nullptr && place.vector->role == VectorRole::kQueryNorm;
  const bool is_projected = place.projection != nullptr && place.part <= 0 &&
                            place.projection->role == ProjectionRole::kQueriesKeysValues;
  if ((!is_norm && !is_projected) || family.reads_gguf("attention.scale")) return 1.0f;
  const AttentionConfig& attention = config.layers[place.layer].attention();
  const GgufSizes sizes = {.num_layers = config.num_layers(), .hidden_size = config.hidden_size};
  const float factor = attention.score_scale / gguf_score_scale(family, sizes, attention);
  if (are_same(factor, 1)) return 1.0f;
  if (place.part < 0)
    return unsupported("[quantize] tensor {}: a scale of scores of its own is not written as GGUF",
                       printable(name));
  return is_norm == (attention.qk_norm != QkNorm::kNone) ? factor : 1.0f;
}

// Returns the rows of a head, if GGUF has the head's rows of queries or keys in another order; else
// 0.
int interleaved_head_dim(const TensorPlace& place, const ModelConfig& config) {
  const Family& family = *find_family(config.architecture);
  const bool is_q_or_k = place.projection != nullptr && (place.part == 0 || place.part == 1) &&
                         place.projection->role == ProjectionRole::kQueriesKeysValues;
  if (!is_q_or_k || family.gguf_rope_style == family.rope_style) return 0;
  return config.layers[place.layer].attention().head_dim;
}

// Returns a tensor's name in GGUF. There names end in ".weight", ".bias" or ".scale".
std::string gguf_name(const std::string& name, const TensorPlace& place, const Family& family) {
  const bool lacks_ending = place.vector != nullptr && name == place.vector->name;
  if (!lacks_ending) return family.gguf_tensor_names->gguf_of(name);
  const VectorRole role = place.vector->role;
  const bool is_scale = role == VectorRole::kRouterScale || role == VectorRole::kExpertScales;
  const char* const ending = is_scale ? "" : role == VectorRole::kChoiceBias ? ".bias" : ".weight";
  return family.gguf_tensor_names->gguf_of(name + ending);
}

// Sets the sections of Qwen3-VL's rotation (by time, and by an image's rows and columns), which
// llama.cpp requires.
Status set_sections(const Checkpoint& checkpoint, const Family& family, GgufMetadata& metadata) {
  constexpr std::string_view kKey = "rope.dimension_sections";
  if (!family.reads_gguf(kKey)) return ok_status();
  PAGODA_ASSIGN_OR_RETURN(
      const std::string text,
      read_text_file(std::filesystem::path(checkpoint.folder()) / "config.json"));
  PAGODA_ASSIGN_OR_RETURN(const nlohmann::json config, parse_json_object(text, "config.json"));
  const nlohmann::json keys = config.value("text_config", config);
  std::vector<int> sections = {0, 0, 0, 0};
  for (const char* block : {"rope_parameters", "rope_scaling"}) {
    const nlohmann::json list = keys.value(block, nlohmann::json::object());
    if (!list.is_object() || !list.contains("mrope_section")) continue;
    PAGODA_ASSIGN_OR_RETURN(
        const std::vector<std::int64_t> read,
        JsonFields(list, "config.json").integers("mrope_section", kHeadDimRange));
    if (read.size() >= sections.size())
      return data_loss("[quantize] config.json: mrope_section: expected 3 numbers, got {}",
                       read.size());
    std::copy(read.begin(), read.end(), sections.begin());
  }
  metadata.set(std::string(family.gguf_architecture) + "." + std::string(kKey), sections);
  return ok_status();
}

Result<GgufModelTensor> read_tensor(const Checkpoint& checkpoint, const ModelConfig& config,
                                    const TensorPlace& place, const std::string& name) {
  const Family& family = *find_family(config.architecture);
  GgufModelTensor tensor;
  PAGODA_ASSIGN_OR_RETURN(tensor.tensor, checkpoint.tensor(name));
  tensor.tensor.name = gguf_name(name, place, family);
  if (tensor.tensor.name.empty())
    return unsupported("[quantize] tensor {}: GGUF has no name for it", printable(name));
  // Some files have a vector as a single row.
  if (place.vector != nullptr && tensor.tensor.shape.num_elements() == place.vector->dim)
    tensor.tensor.shape = {place.vector->dim};
  if (name.ends_with("norm.weight")) tensor.offset = config.norm_offset;
  PAGODA_ASSIGN_OR_RETURN(tensor.factor, query_factor(place, config, name));
  const int head_dim = interleaved_head_dim(place, config);
  if (head_dim > 0 && tensor.tensor.shape[0] % head_dim != 0) {
    return data_loss("[quantize] tensor {}: expected whole heads of {} rows, got {}", name,
                     head_dim, tensor.tensor.shape[0]);
  }
  tensor.interleaved_head_dim = head_dim;
  return tensor;
}

// Returns whether a tensor has several parts, which GGUF has one by one.
bool is_split_in_gguf(const std::string& name, const TensorPlace& place, const Family& family) {
  return place.projection != nullptr && place.part < 0 && !place.is_bias &&
         gguf_name(name, place, family).empty();
}

// Adds the parts of a projection whose matrices the checkpoint has joined.
Status add_parts(const Checkpoint& checkpoint, const Family& family, const ProjectionSpec& spec,
                 GgufModel& model) {
  PAGODA_ASSIGN_OR_RETURN(ProjectionTensors tensors, find_projection(checkpoint, spec));
  for (std::size_t i = 0; i < spec.parts.size(); ++i) {
    HostTensor& part = tensors.weights[i];
    part.name = family.gguf_tensor_names->gguf_of(spec.parts[i].name + ".weight");
    if (part.name.empty())
      return unsupported("[quantize] tensor {}: GGUF has no name for it", spec.parts[i].name);
    model.tensors.push_back({.tensor = std::move(part)});
  }
  return ok_status();
}

// Returns GGUF's name of the tensor that has a part of all experts.
Result<std::string> gguf_name_of_part(const Family& family, const ExpertPart& part,
                                      const char* ending) {
  for (const std::string& name : part.stacked) {
    std::string known = family.gguf_tensor_names->gguf_of(name + ending);
    if (!known.empty()) return known;
  }
  return unsupported("[quantize] experts {}: GGUF has no name for them", part.before);
}

Status add_expert_biases(const Checkpoint& checkpoint, const Family& family,
                         const ExpertsSpec& spec, GgufModel& model) {
  PAGODA_ASSIGN_OR_RETURN(std::vector<HostTensor> biases, find_expert_biases(checkpoint, spec));
  for (std::size_t i = 0; i < spec.parts.size(); ++i) {
    PAGODA_ASSIGN_OR_RETURN(biases[i].name, gguf_name_of_part(family, spec.parts[i], ".bias"));
    model.tensors.push_back({.tensor = std::move(biases[i])});
  }
  return ok_status();
}

// Adds the tensors of a mixture's half: GGUF has one for each part, with the matrices of all experts.
Status add_experts(const Checkpoint& checkpoint, const Family& family, const ExpertsSpec& spec,
                   GgufModel& model) {
  PAGODA_ASSIGN_OR_RETURN(std::vector<HostTensor> all, find_experts(checkpoint, spec));
  if (family.gguf_joins_gate_up && spec.parts.size() > 1) {
    GgufModelTensor joined = {
        .tensor = {.name = family.gguf_tensor_names->gguf_of(spec.joined + ".weight"),
                   .format = all.front().format,
                   .shape = {spec.num_experts, spec.rows(), spec.cols}},
        .parts = std::move(all)};
    model.tensors.push_back(std::move(joined));
    return ok_status();
  }
  for (std::size_t i = 0; i < spec.parts.size(); ++i) {
    const ExpertPart& part = spec.parts[i];
    GgufModelTensor tensor;
    for (std::size_t at = i; at < all.size(); at += spec.parts.size())
      tensor.parts.push_back(all[at]);
    tensor.tensor.format = tensor.parts.front().format;
    tensor.tensor.shape = {spec.num_experts, part.rows, spec.cols};
    PAGODA_ASSIGN_OR_RETURN(tensor.tensor.name, gguf_name_of_part(family, part, ".weight"));
    model.tensors.push_back(std::move(tensor));
  }
  return spec.has_bias ? add_expert_biases(checkpoint, family, spec, model) : ok_status();
}

Result<GgufModel> from_folder(const Checkpoint& files) {
  PAGODA_ASSIGN_OR_RETURN(const ModelConfig config, read_model_config(files));
  const Family& family = *find_family(config.architecture);
  PAGODA_ASSIGN_OR_RETURN(const Checkpoint checkpoint, files.renamed(*family.gguf_tensor_names));
  PAGODA_RETURN_IF_ERROR(check_all_tensors_are_read(checkpoint, config));
  GgufModel model;
  PAGODA_RETURN_IF_ERROR(set_architecture_keys(config, model.metadata));
  PAGODA_ASSIGN_OR_RETURN(const GgufDivisors divisors, set_rotation_keys(config, model.metadata));
  PAGODA_RETURN_IF_ERROR(set_sections(files, family, model.metadata));
  PAGODA_ASSIGN_OR_RETURN(const PartialSampling defaults, read_generation_defaults(files));
  PAGODA_ASSIGN_OR_RETURN(const std::optional<EmbeddingFormat> embedding_format,
                          read_embedding_format(files));
  PAGODA_ASSIGN_OR_RETURN(const GgufVocabulary vocabulary,
                          read_hf_vocabulary(files.folder(), config.vocab_size));
  set_pooling_key(config, embedding_format, model.metadata);
  set_sampling_keys(defaults, model.metadata);
  PAGODA_RETURN_IF_ERROR(set_vocabulary_keys(vocabulary, config, model.metadata));
  add_divisors("rope_freqs.weight", divisors.always, model);
  add_divisors("rope_factors_long.weight", divisors.of_long, model);
  add_divisors("rope_factors_short.weight", divisors.of_short, model);
  const LayerSpecs layers(family, config);
  for (const std::string& name : checkpoint.names()) {
    const TensorPlace place = layers.find(name).value_or(TensorPlace());
    const bool is_of_tied_head = config.tie_word_embeddings && name == "lm_head.weight";
    if (place.is_passed_over || is_of_tied_head || is_derived_tensor(name)) continue;
    if (place.experts != nullptr) continue;  // add_experts() finds them
    if (is_split_in_gguf(name, place, family)) {
      PAGODA_RETURN_IF_ERROR(add_parts(checkpoint, family, *place.projection, model));
      continue;
    }
    PAGODA_ASSIGN_OR_RETURN(GgufModelTensor tensor, read_tensor(checkpoint, config, place, name));
    model.tensors.push_back(std::move(tensor));
  }
  for (int i = 0; i < config.num_layers(); ++i) {
    for (const ExpertsSpec& experts : layer_spec(family, config, i).experts)
      PAGODA_RETURN_IF_ERROR(add_experts(checkpoint, family, experts, model));
  }
  return model;
}

}  // namespace

Result<GgufModel> read_gguf_model(const Checkpoint& checkpoint) {
  return checkpoint.gguf() != nullptr ? from_gguf(*checkpoint.gguf()) : from_folder(checkpoint);
}

}  // namespace pagoda
