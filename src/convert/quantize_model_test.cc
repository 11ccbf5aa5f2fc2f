// `pagoda quantize` over whole checkpoints: the file has the same model, with less precision.
#include "convert/quantize_model.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <vector>

#include "convert/quantize_fixture.h"
#include "model/model_config.h"
#include "serving/gguf_text.h"
#include "serving/pooling/embedding_format.h"
#include "tests/support/gguf_writer.h"
#include "tests/support/layer_windows.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/wide_checkpoint.h"
#include "text/tokenizer.h"

namespace pagoda {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::make_wide_checkpoint;
using testing::TemporaryFolder;
using ::testing::UnorderedElementsAre;

constexpr const char* kTinyModels[] = {"tiny-llama", "tiny-llama31", "tiny-mistral", "tiny-qwen2",
                                       "tiny-qwen3"};

std::vector<std::string> files_in(const TemporaryFolder& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder.path())) {
    names.push_back(entry.path().filename());
  }
  return names;
}

std::string contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

QuantizeSummary quantize(const std::string& input, const std::string& output, WeightFormat format,
                         int num_threads = 2) {
  const auto summary = quantize_model(
      {.input = input, .output = output, .format = format, .num_threads = num_threads});
  EXPECT_TRUE(summary.ok()) << summary.status().message();
  return summary.ok() ? *summary : QuantizeSummary();
}

ModelConfig config_of(const std::string& path) {
  return *read_model_config(*Checkpoint::open(path));
}

// Returns the mean absolute difference of log-probabilities.
double distance(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += std::fabs(a[i] - b[i]);
  return sum / static_cast<double>(a.size());
}

TEST(QuantizeModel, EightBitsAnswerAsTheOriginal) {
  const TemporaryFolder folder;
  for (const std::string model : kTinyModels) {
    const std::string path = folder / (model + ".gguf");
    quantize(kData + model, path, WeightFormat::kQ8_0);
    EXPECT_LE(distance(prompt_logprobs(path), prompt_logprobs(kData + model)), 0.12) << model;
  }
}

TEST(QuantizeModel, AffineGroupsAreDecodedFirst) {
  const TemporaryFolder affine;
  for (const auto& entry : fs::directory_iterator(kData + "tiny-llama-affine")) {
    fs::copy_file(entry.path(), affine / entry.path().filename().string());
  }
  fs::copy_file(kData + "tiny-llama/tokenizer.json", affine / "tokenizer.json");
  const TemporaryFolder folder;
  quantize(affine.path(), folder / "m.gguf", WeightFormat::kQ8_0);
  EXPECT_LE(distance(prompt_logprobs(folder / "m.gguf"), prompt_logprobs(affine.path())), 0.12);
}

TEST(QuantizeModel, TheConfigStaysTheSame) {
  const TemporaryFolder folder;
  for (const std::string model : kTinyModels) {
    const std::string path = folder / (model + ".gguf");
    quantize(kData + model, path, WeightFormat::kQ4_0);
    const ModelConfig before = config_of(kData + model), after = config_of(path);
    EXPECT_EQ(after.architecture, before.architecture);
    EXPECT_EQ(after.num_layers(), before.num_layers()) << model;
    EXPECT_EQ(after.layers.front().attention().head_dim, before.layers.front().attention().head_dim)
        << model;
    EXPECT_EQ(after.vocab_size, before.vocab_size) << model;
    EXPECT_EQ(after.max_position_embeddings, before.max_position_embeddings) << model;
    EXPECT_EQ(after.rms_norm_eps, before.rms_norm_eps) << model;
    EXPECT_EQ(after.tie_word_embeddings, before.tie_word_embeddings) << model;
    EXPECT_EQ(testing::windows_of(after), testing::windows_of(before)) << model;
    EXPECT_EQ(after.bos_token_id, before.bos_token_id) << model;
    for (const int id : before.eos_token_ids) {
      EXPECT_THAT(after.eos_token_ids, ::testing::Contains(id)) << model;
    }
    for (std::size_t i = 0; i < before.rope_tables.front().inv_freq.size(); ++i) {
      EXPECT_NEAR(after.rope_tables.front().inv_freq[i] / before.rope_tables.front().inv_freq[i], 1,
                  1e-6)
          << model << " " << i;
    }
  }
}

TEST(QuantizeModel, FewerBitsAreCoarserByWhatTheyLeaveOut) {
  const TemporaryFolder wide;
  make_wide_checkpoint(wide);
  const TemporaryFolder folder;
  const std::vector<float> original = prompt_logprobs(wide.path());
  double distances[3];
  for (int i = 0; i < 3; ++i) {
    const WeightFormat format = kQuantizeFormats[i];
    const std::string path = folder / fmt::format("wide-{}.gguf", i);
    const QuantizeSummary summary = quantize(wide.path(), path, format);
    EXPECT_EQ(summary.num_tensors.at(traits_of(format).name), 15);
    EXPECT_EQ(summary.num_tensors.at("F32"), 5);
    distances[i] = distance(prompt_logprobs(path), original);
  }
  EXPECT_LE(distances[0], 0.02);          // Q8_0
  EXPECT_LE(distances[1], 0.35);          // Q4_0
  EXPECT_LT(distances[2], distances[1]);  // Q4_K, with as many bits per value
  const ModelConfig config = config_of(folder / "wide-0.gguf");
  EXPECT_EQ(config.rope_tables.front().inv_freq,
            config_of(wide.path()).rope_tables.front().inv_freq);
  EXPECT_EQ(config.eos_token_ids, (std::vector<int>{1, 3}));
}

TEST(QuantizeModel, TheTokenizerIsTheFoldersOwn) {
  const TemporaryFolder folder;
  quantize(kData + "tiny-llama", folder / "m.gguf", WeightFormat::kQ8_0);
  const auto vocabulary = *read_gguf_vocabulary(**GgufFile::open(folder / "m.gguf"));
  const auto rebuilt = *Tokenizer::from_gguf(vocabulary);
  const auto own = *Tokenizer::from_folder(kData + "tiny-llama");
  for (const char* text :
       {"", "def main():\n    return 12345", "it's <|im_start|>user", "naïve 🙂"}) {
    EXPECT_EQ(*rebuilt->encode(text), *own->encode(text)) << text;
  }
  EXPECT_EQ(rebuilt->bos_token(), own->bos_token());
  EXPECT_EQ(rebuilt->eos_token(), own->eos_token());
  EXPECT_EQ(vocabulary.chat_template, contents(kData + "tiny-llama/chat_template.jinja"));
}

TEST(QuantizeModel, TheWayToAnEmbeddingIsTheFoldersOwn) {
  const TemporaryFolder folder, copy;
  fs::copy(kData + "tiny-llama", copy.path(), fs::copy_options::recursive);
  const auto format_of = [&] {
    EXPECT_TRUE(quantize_model({.input = copy.path(),
                                .output = folder / "m.gguf",
                                .overwrites = true,
                                .format = WeightFormat::kQ8_0})
                    .ok());
    return *read_embedding_format(*Checkpoint::open(folder / "m.gguf"));
  };
  EXPECT_FALSE(format_of().has_value());
  for (const auto& [name, pooling] : {std::pair("cls", Pooling::kFirst),
                                      {"mean", Pooling::kMean},
                                      {"lasttoken", Pooling::kLast}}) {
    std::ofstream(copy / "modules.json") << fmt::format(
        R"([{{"type": "sentence_transformers.models.Pooling", "path": "{}"}}])", name);
    fs::create_directory(copy / name);
    std::ofstream(copy / (std::string(name) + "/config.json"))
        << fmt::format(R"({{"pooling_mode": "{}"}})", name);
    EXPECT_EQ(format_of()->pooling, pooling) << name;
  }
  std::ofstream(copy / "modules.json") << R"([{"type": "sentence_transformers.models.Dense"}])";
  const Status status =
      quantize_model({.input = copy.path(), .output = folder / "n.gguf"}).status();
  EXPECT_THAT(status.message(), HasSubstr("sentence_transformers.models.Dense"));
}

TEST(QuantizeModel, WhatHasTheFormatAlreadyStaysBitForBit) {
  const TemporaryFolder folder;
  quantize(kData + "tiny-qwen3", folder / "once.gguf", WeightFormat::kQ4_0, 1);
  quantize(folder / "once.gguf", folder / "twice.gguf", WeightFormat::kQ4_0, 3);
  EXPECT_EQ(contents(folder / "once.gguf"), contents(folder / "twice.gguf"));
}

TEST(QuantizeModel, ASplitSetBecomesOneFile) {
  const TemporaryFolder folder;
  std::vector<float> values(64 * 64);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<float>(i));
  const std::string first =
      testing::GgufWriter()
          .set("general.architecture", "llama")
          .set("general.file_type", std::uint32_t{1})
          .set("some.list", std::vector<std::string>{"a", "b"})
          .add_tensor("blk.0.ffn_up.weight", {64, 64}, WeightFormat::kF16, values)
          .add_tensor("output_norm.weight", {64}, WeightFormat::kF16, std::span(values).first(64))
          .write_split(folder / "part", 2);
  quantize(first, folder / "whole.gguf", WeightFormat::kQ8_0);
  const auto file = *GgufFile::open(folder / "whole.gguf");
  EXPECT_FALSE(file->has("split.count"));
  EXPECT_EQ(*file->integer("general.file_type"), 7);
  EXPECT_EQ(file->strings("some.list")->size(), 2u);
  ASSERT_EQ(file->tensors().size(), 2u);
  EXPECT_EQ(file->tensors()[0].format, WeightFormat::kQ8_0);
  EXPECT_EQ(file->tensors()[1].format, WeightFormat::kF32);

  const Status status =
      quantize_model({.input = first, .output = folder / "part-00002-of-00002.gguf"}).status();
  EXPECT_THAT(status.message(), HasSubstr("part-00002-of-00002.gguf: this is the input"));
}

TEST(QuantizeModel, RowsThatNoBlockFillsTakeTheNextFormat) {
  using enum WeightFormat;
  const auto format = [](std::int64_t cols, WeightFormat wanted, const char* name = "x.weight") {
    return quantized_format(name, {7, cols}, wanted);
  };
  EXPECT_EQ(format(512, kQ4_K), kQ4_K);
  EXPECT_EQ(format(576, kQ4_K), kQ5_0);
  EXPECT_EQ(format(576, kQ4_K, "token_embd.weight"), kQ8_0);
  EXPECT_EQ(format(100, kQ4_K), kF16);
  EXPECT_EQ(format(576, kQ4_0), kQ4_0);
  EXPECT_EQ(format(100, kQ4_0), kF16);
  EXPECT_EQ(format(100, kQ8_0), kF16);
  EXPECT_EQ(quantized_format("x.weight", {512}, kQ8_0), kF32);
  EXPECT_EQ(quantized_format("blk.0.ffn_gate_inp.weight", {8, 512}, kQ8_0), kF32);
  EXPECT_EQ(quantized_format("blk.0.ffn_gate_inp_shexp.weight", {1, 512}, kQ8_0), kF32);
  EXPECT_EQ(quantized_format("blk.0.exp_probs_b.bias", {1, 512}, kQ8_0), kF32);
  EXPECT_EQ(quantized_format("blk.0.ffn_gate_exps.weight", {8, 32, 512}, kQ8_0), kQ8_0);
}

TEST(QuantizeModel, FailuresNameTheThingAndLeaveNothing) {
  const TemporaryFolder folder;
  const auto error = [](const QuantizeOptions& options) {
    const auto summary = quantize_model(options);
    EXPECT_FALSE(summary.ok());
    return summary.ok() ? "" : summary.status().message();
  };
  const std::string tiny = kData + "tiny-llama";
  const std::string output = folder / "m.gguf";
  EXPECT_THAT(error({.input = folder / "nowhere", .output = output}), HasSubstr("nowhere"));
  EXPECT_THAT(error({.input = tiny, .output = folder / "m.bin"}), HasSubstr("ends in .gguf"));
  EXPECT_THAT(error({.input = tiny, .output = folder / "no/m.gguf"}), HasSubstr("No such file"));
  int calls = 0;
  const auto cancel = [&calls](double) {
    return ++calls == 5 ? cancelled("stopped") : ok_status();
  };
  EXPECT_EQ(error({.input = tiny, .output = output, .on_progress = cancel}), "stopped");

  const std::vector<float> values = {1, 2, NAN, 3};
  testing::GgufWriter()
      .set("general.architecture", "llama")
      .add_tensor("output.weight", {2, 2}, WeightFormat::kF32, values)
      .write(folder / "nan.gguf");
  EXPECT_EQ(error({.input = folder / "nan.gguf", .output = output}),
            "[quantize] tensor output.weight: expected values of at most 65504, got nan at 1, 0");
  EXPECT_THAT(error({.input = folder / "nan.gguf", .output = folder / "nan.gguf"}),
              HasSubstr("this is the input"));
  testing::GgufWriter().set("general.architecture", "llama").write(folder / "empty.gguf");
  EXPECT_THAT(error({.input = folder / "empty.gguf", .output = output}),
              HasSubstr("empty.gguf: expected a model's tensors, got none"));
  const TemporaryFolder hollow;
  make_wide_checkpoint(hollow);
  testing::SafetensorsWriter()
      .add("model.embed_tokens.weight", {4, 0}, WeightFormat::kF16, {})
      .write(hollow / "model.safetensors");
  EXPECT_THAT(error({.input = hollow.path(), .output = output}),
              HasSubstr("token_embd.weight: expected a vector or a matrix of values, got"));
  EXPECT_THAT(files_in(folder), UnorderedElementsAre("nan.gguf", "empty.gguf"));
}

TEST(QuantizeModel, RefusesATokenizerThatGgufCannotSay) {
  const TemporaryFolder wide;
  make_wide_checkpoint(wide);
  const TemporaryFolder folder;
  const auto error = [&](const char* find, const char* replace) {
    std::string json = contents(kData + "tiny-llama/tokenizer.json");
    json.replace(json.find(find), std::string(find).size(), replace);
    std::ofstream(wide / "tokenizer.json") << json;
    const auto summary = quantize_model({.input = wide.path(), .output = folder / "m.gguf"});
    EXPECT_FALSE(summary.ok());
    EXPECT_THAT(files_in(folder), IsEmpty());
    return summary.status().message();
  };
  EXPECT_THAT(error(R"("normalizer": null)", R"("normalizer": {"type": "Lowercase"})"),
              HasSubstr("tokenizer.json: no GGUF vocabulary cuts text as this tokenizer does"));
  EXPECT_THAT(error(R"("type": "BPE")", R"("type": "WordLevel")"), HasSubstr("tokenizer.json"));
}

}  // namespace
}  // namespace pagoda
