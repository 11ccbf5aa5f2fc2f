// ServedModel: everything needed to answer text with one model: the engine with its weights,
// tokenizer, chat template, defaults.
//
// This folder connects text/ and engine/ for the server and the command line. The engine has no
// strings.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "answer/answer_format.h"
#include "core/status.h"
#include "engine/engine.h"
#include "engine/engine_options.h"
#include "model/model_config.h"
#include "serving/fill_in_format.h"
#include "serving/pooling/embedding_format.h"
#include "serving/pooling/score_format.h"
#include "serving/stored_weights.h"
#include "serving/template_probe.h"
#include "text/chat_template.h"
#include "text/grammar.h"
#include "text/tokenizer.h"

namespace pagoda {

struct ServedModelOptions {
  std::string path;  // a GGUF file or a folder
  std::string name;  // the model's name in answers; "": the path's last part, without .gguf
  EngineOptions engine;
  std::optional<std::string> chat_template_file;  // instead of the checkpoint's
  std::optional<ToolSyntax> tool_syntax;          // instead of the syntax found in the template
  bool use_generation_config = true;              // default sampling from the checkpoint
  PartialSampling card_defaults;                  // used if the checkpoint has no defaults
  // False: a model without a tokenizer loads, and takes token ids alone.
  bool needs_tokenizer = true;
  // Called with the loaded share of the weights, on the engine's thread.
  std::function<void(double)> on_progress;
};

// Immutable after load; its members are thread-safe.
struct ServedModel {
  std::string name;
  ModelConfig config;
  PartialSampling defaults;
  std::shared_ptr<const Tokenizer> tokenizer;  // null: there is none, and answers have no text
  Status no_tokenizer;                         // why there is none
  std::shared_ptr<const ChatTemplate> chat_template;  // null: there is none, and chats are refused
  TemplateTraits template_traits;                     // what the chat template prints
  AnswerFormat answer_format;                         // how answers mark thoughts and calls
  std::optional<FillInFormat> fill_in;                // absent: no fill-in-the-middle
  EmbeddingFormat embedding_format;
  Status no_embeddings;                       // why embeddings are refused; ok: they are not
  std::optional<ScoreFormat> score_format;    // absent: the model does not score pairs
  std::unique_ptr<GrammarCompiler> grammars;  // null without a tokenizer
  std::unique_ptr<Engine> engine;
  std::string device;  // backend_name
  StoredWeights weights;
  double load_s = 0;
};

Result<std::unique_ptr<ServedModel>> load_served_model(const ServedModelOptions& options);

}  // namespace pagoda
