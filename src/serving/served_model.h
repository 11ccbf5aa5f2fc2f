// ServedModel: everything that one model needs to answer text: weights behind an engine, tokenizer,
// chat template, defaults.
//
// This folder joins text and engine, for the server and the command line alike; strings stop here.
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
#include "serving/embedding_format.h"
#include "serving/fill_in_format.h"
#include "serving/score_format.h"
#include "text/chat_template.h"
#include "text/grammar.h"
#include "text/tokenizer.h"

namespace pagoda {

struct ServedModelOptions {
  std::string path;  // a GGUF file or a folder
  std::string name;  // what answers call the model; "": the path's last part, without .gguf
  EngineOptions engine;
  std::optional<std::string> chat_template_file;  // instead of the checkpoint's
  std::optional<ToolSyntax> tool_syntax;          // instead of what the template shows
  bool use_generation_config = true;              // default sampling from the checkpoint
  PartialSampling card_defaults;                  // where the checkpoint says none
  bool needs_tokenizer = true;                    // else a model without one loads for token ids
  std::function<void(double)>
      on_progress;  // the share of the weights loaded; called on the engine's thread
};

// Immutable after load; its members are thread-safe.
struct ServedModel {
  std::string name;
  ModelConfig config;
  PartialSampling defaults;
  std::shared_ptr<const Tokenizer> tokenizer;  // null: there is none, and answers have no text
  Status no_tokenizer;                         // why
  std::shared_ptr<const ChatTemplate>
      chat_template;                    // null: the checkpoint has none, chat is refused
  AnswerFormat answer_format;           // how answers hold thoughts and calls
  std::optional<FillInFormat> fill_in;  // absent: the model knows of no gaps
  EmbeddingFormat embedding_format;
  Status no_embeddings;                       // why the model makes none, where it does not
  std::optional<ScoreFormat> score_format;    // absent: it scores no pairs of texts
  std::unique_ptr<GrammarCompiler> grammars;  // takes nothing before the first grammar; null
                                              // without a tokenizer
  std::unique_ptr<Engine> engine;
  std::string device;  // backend_name
  std::int64_t file_bytes = 0;
  double load_s = 0;
};

Result<std::unique_ptr<ServedModel>> load_served_model(const ServedModelOptions& options);

}  // namespace pagoda
