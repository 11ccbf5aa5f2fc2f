#include "serving/served_model.h"

#include <algorithm>
#include <filesystem>
#include <future>

#include "core/clock.h"
#include "core/log.h"
#include "core/start_thread.h"
#include "core/utf8.h"
#include "engine/create_engine.h"
#include "serving/gguf_text.h"
#include "serving/pooling/read_score_format.h"
#include "weights/checkpoint.h"

namespace pagoda {

namespace {

// Returns the model's name in the API. Invalid UTF-8 in the path is replaced, because the name is
// sent as JSON.
std::string model_name(const std::string& path) {
  std::filesystem::path name = std::filesystem::absolute(path).lexically_normal();
  if (!name.has_filename()) name = name.parent_path();
  return as_utf8(name.extension() == ".gguf" ? name.stem().string() : name.filename().string());
}

// Stores a template. A missing template is an error only when a chat needs it.
Status take_template(Result<ChatTemplate> read, std::shared_ptr<const ChatTemplate>& to) {
  if (read.ok()) {
    to = std::make_shared<const ChatTemplate>(*std::move(read));
    return ok_status();
  }
  return read.status().code() == StatusCode::kNotFound ? ok_status() : read.status();
}

// Returns kNotFound if the model has no tokenizer.
Status load_tokenizer_and_template(const Checkpoint& checkpoint, const ServedModelOptions& options,
                                   ServedModel& model) {
  if (checkpoint.gguf() != nullptr) {
    PAGODA_ASSIGN_OR_RETURN(const GgufVocabulary vocabulary,
                            read_gguf_vocabulary(*checkpoint.gguf()));
    PAGODA_ASSIGN_OR_RETURN(model.tokenizer, Tokenizer::from_gguf(vocabulary));
    if (!options.chat_template_file)
      return take_template(ChatTemplate::from_gguf(vocabulary), model.chat_template);
  } else {
    PAGODA_ASSIGN_OR_RETURN(model.tokenizer, Tokenizer::from_folder(checkpoint.folder()));
    if (!options.chat_template_file)
      return take_template(ChatTemplate::from_folder(checkpoint.folder()), model.chat_template);
  }
  PAGODA_ASSIGN_OR_RETURN(ChatTemplate given, ChatTemplate::from_file(*options.chat_template_file));
  model.chat_template = std::make_shared<const ChatTemplate>(std::move(given));
  return ok_status();
}

Status load_text(const Checkpoint& checkpoint, const ServedModelOptions& options,
                 ServedModel& model) {
  Status status = load_tokenizer_and_template(checkpoint, options, model);
  const bool is_missing = !model.tokenizer && status.code() == StatusCode::kNotFound;
  if (options.needs_tokenizer || !is_missing) return status;
  model.no_tokenizer = std::move(status);
  return ok_status();
}

// Adds the tokenizer's eos_token to the ids that end a text, as vLLM and llama.cpp do.
void add_end(std::optional<int> id, ModelConfig& config) {
  auto& ends = config.eos_token_ids;
  if (!id || *id >= config.vocab_size || std::find(ends.begin(), ends.end(), *id) != ends.end())
    return;
  ends.push_back(*id);
}

}  // namespace

Result<std::unique_ptr<ServedModel>> load_served_model(const ServedModelOptions& options) {
  const Clock::TimePoint start = Clock::system().now();
  auto model = std::make_unique<ServedModel>();
  PAGODA_ASSIGN_OR_RETURN(const Checkpoint checkpoint, Checkpoint::open(options.path));
  PAGODA_ASSIGN_OR_RETURN(model->config, read_model_config(checkpoint));
  if (options.use_generation_config) {
    PAGODA_ASSIGN_OR_RETURN(model->defaults, read_generation_defaults(checkpoint));
    if (model->defaults == PartialSampling{}) model->defaults = options.card_defaults;
  }
  model->name = options.name.empty() ? model_name(options.path) : options.name;
  model->weights = read_stored_weights(checkpoint);
  // A wrong format does not prevent generation. Requests for embeddings get the error.
  if (const auto format = read_embedding_format(checkpoint); format.ok()) {
    model->embedding_format = format->value_or(EmbeddingFormat());
  } else {
    model->no_embeddings = format.status();
    log_warning("{}; requests for embeddings are refused", format.status().message());
  }
  PAGODA_ASSIGN_OR_RETURN(model->score_format, read_score_format(checkpoint, model->config));
  if (model->score_format) {
    model->embedding_format = {.pooling = Pooling::kLast, .normalizes = false};
    model->no_embeddings = unsupported("[embedding] this checkpoint scores pairs of texts alone");
  }
  // The vocabulary is read in parallel to the engine's start, because both take about as long for a
  // small model.
  std::future<Status> text = start_async([&] { return load_text(checkpoint, options, *model); });
  if (checkpoint.gguf() == nullptr) {
    // In a folder, perhaps only the tokenizer names the end token. The engine needs that token at
    // its start. A GGUF file's own keys name it.
    PAGODA_RETURN_IF_ERROR(text.get());
    if (model->tokenizer) add_end(model->tokenizer->eos_token_id(), model->config);
  }
  Result<std::unique_ptr<Engine>> engine =
      create_engine(checkpoint, model->config, options.engine, options.on_progress);
  if (text.valid()) PAGODA_RETURN_IF_ERROR(text.get());
  if (model->chat_template) {
    model->answer_format = answer_format_of(model->chat_template->text());
    model->template_traits = probe_template(*model->chat_template, model->tokenizer->bos_token(),
                                            model->tokenizer->eos_token());
  }
  if (options.tool_syntax) model->answer_format.tool_syntax = *options.tool_syntax;
  if (model->tokenizer) {
    model->fill_in = find_fill_in_format(*model->tokenizer);
    model->grammars =
        std::make_unique<GrammarCompiler>(model->tokenizer, model->config.eos_token_ids);
  }
  PAGODA_ASSIGN_OR_RETURN(model->engine, std::move(engine));
  model->device = backend_name(model->engine->limits().backend);
  model->load_s = seconds_between(start, Clock::system().now());
  return model;
}

}  // namespace pagoda
