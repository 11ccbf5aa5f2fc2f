#include "hub/model_files.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "core/json.h"

namespace pagoda {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::int64_t kGigabyte = 1'000'000'000;

std::vector<HubFile> files_of(const std::vector<std::pair<std::string, double>>& gigabytes) {
  std::vector<HubFile> files;
  for (const auto& [path, size] : gigabytes)
    files.push_back({path, {.size = static_cast<std::int64_t>(size * kGigabyte)}});
  return files;
}

std::vector<std::string> paths(const std::vector<HubFile>& files) {
  std::vector<std::string> names;
  for (const HubFile& file : files) names.push_back(file.path);
  return names;
}

// Lists a repository as most makers of GGUF files lay it out.
std::vector<HubFile> repository() {
  return files_of({{"README.md", 0},
                   {"config.json", 0},
                   {"M-8B-BF16/M-8B-BF16-00002-of-00002.gguf", 7},
                   {"M-8B-BF16/M-8B-BF16-00001-of-00002.gguf", 9},
                   {"M-8B-IQ2_XS.gguf", 2.6},
                   {"M-8B-Q4_K_M.gguf", 4.9},
                   {"M-8B-Q8_0.gguf", 8.5},
                   {"m-8b-q3_k_s.gguf", 3.6},
                   {"M-8B-UD-Q4_K_XL.gguf", 5.1},
                   {"M-8B-Q4_0_4_8.gguf", 4.6},
                   {"M-8B.imatrix.gguf", 0.1},
                   {"mmproj-M-F16.gguf", 0.8},
                   {"imatrix.dat", 0.1}});
}

std::string chosen(std::string_view quantization, double memory) {
  const auto files =
      choose_model_files(repository(), quantization, static_cast<std::int64_t>(memory * kGigabyte));
  if (!files.ok()) return files.status().message();
  EXPECT_EQ(files->files.front().path, "config.json");
  return files->quantization;
}

TEST(GgufModels, AreListedBestFirst) {
  std::vector<std::string> names;
  for (const HubModel& model : gguf_models(repository()))
    names.push_back(model.quantization + (model.is_read ? "" : " not read"));
  EXPECT_THAT(names, ElementsAre("Q8_0", "Q4_K_M", "Q3_K_S", "UD-Q4_K_XL", "BF16",
                                 "Q4_0_4_8 not read", "IQ2_XS not read"));
}

TEST(GgufModels, PartsOfASetAreOneModel) {
  const std::vector<HubModel> models = gguf_models(repository());
  const auto found = std::find_if(models.begin(), models.end(), [](const HubModel& model) {
    return model.quantization == "BF16";
  });
  ASSERT_NE(found, models.end());
  EXPECT_THAT(paths(found->files), ElementsAre("M-8B-BF16/M-8B-BF16-00001-of-00002.gguf",
                                               "M-8B-BF16/M-8B-BF16-00002-of-00002.gguf"));
  EXPECT_EQ(found->num_bytes, 16 * kGigabyte);
}

TEST(GgufModels, AQuantisationIsReadFromNamesAndFolders) {
  const std::pair<const char*, const char*> cases[] = {
      {"phi-3.Q4_K_S.gguf", "Q4_K_S"},
      {"Q8_0.gguf", "Q8_0"},
      {"gpt-MXFP4_MOE.gguf", "MXFP4_MOE"},
      {"Q6_K/model-00001-of-00003.gguf", "Q6_K"},
      {"model-fp16.gguf", "FP16"},
      {"BF16-tuned-Q4_1.gguf", "Q4_1"},
      {"model.gguf", ""},
      {"Qwen3-Q-star.gguf", ""},
  };
  for (const auto& [path, quantization] : cases) {
    const std::vector<HubModel> models = gguf_models(files_of({{path, 1}}));
    ASSERT_EQ(models.size(), 1u) << path;
    EXPECT_EQ(models[0].quantization, quantization) << path;
  }
}

TEST(ChooseModelFiles, TakesTheBestThatFits) {
  EXPECT_EQ(chosen("", 64), "Q8_0");
  EXPECT_EQ(chosen("", 8), "Q4_K_M");
  EXPECT_EQ(chosen("", 5), "Q3_K_S");
  EXPECT_THAT(chosen("", 3), AllOf(HasSubstr("fits into 3.0 GB of memory"),
                                   HasSubstr("at least Q3_K_S (3.6 GB); NAME:Q3_K_S fetches it")));
}

TEST(ChooseModelFiles, AQuantisationThatIsNamedIsTakenAtAnySize) {
  EXPECT_EQ(chosen("BF16", 1), "BF16");
  EXPECT_EQ(chosen("UD-Q4_K_XL", 1), "UD-Q4_K_XL");
  EXPECT_THAT(chosen("Q5_0", 64), HasSubstr("expected GGUF in Q5_0, got Q8_0 (8.5 GB), Q4_K_M"));
  EXPECT_THAT(chosen("IQ2_XS", 64), HasSubstr("weights that nothing here reads"));
}

TEST(ChooseModelFiles, TwoModelsOfOneQuantisationAreRefused) {
  const std::vector<HubFile> files =
      files_of({{"a-Q8_0.gguf", 1}, {"b-Q8_0.gguf", 1}, {"a-Q4_0.gguf", 0.5}});
  for (const char* quantization : {"Q8_0", ""}) {
    EXPECT_EQ(choose_model_files(files, quantization, 64 * kGigabyte).status().message(),
              "[hub] expected one GGUF model in Q8_0, got a-Q8_0.gguf and b-Q8_0.gguf");
  }
  EXPECT_TRUE(choose_model_files(files, "Q4_0", 64 * kGigabyte).ok());
}

TEST(ChooseModelFiles, SafetensorsComeFirstUnlessAQuantisationIsNamed) {
  const std::vector<HubFile> files = files_of({{"model.safetensors", 2},
                                               {"consolidated.safetensors", 2},
                                               {"onnx/model.safetensors", 2},
                                               {"m-Q8_0.gguf", 1}});
  EXPECT_THAT(paths(choose_model_files(files, "", kGigabyte).value().files),
              ElementsAre("model.safetensors"));
  EXPECT_THAT(paths(choose_model_files(files, "Q8_0", kGigabyte).value().files),
              ElementsAre("m-Q8_0.gguf"));
}

// Returns the listing of a repository with these files, of one byte each.
std::string listing_of(const std::vector<std::string>& names) {
  json files = json::array();
  for (const std::string& name : names)
    files.push_back({{"rfilename", name}, {"size", 1}, {"blobId", std::string(40, '0')}});
  return json{{"sha", std::string(40, 'a')}, {"siblings", files}}.dump();
}

TEST(HubListing, NamesThatAreNotShownAsTheyStandAreRefused) {
  for (const char* name :
       {"config\u202enosj.bin", "a\u2066b", "a\u200fb", "\u061ca", "a\u2028b", "line\nbreak",
        "\x1b[2J", "a\x7f", "a\u0085", "folder/\u009b", "a\\\\b"}) {
    const Status status = parse_hub_revision(listing_of({name})).status();
    EXPECT_EQ(status.code(), StatusCode::kDataLoss) << name;
    EXPECT_THAT(status.message(), HasSubstr("expected a path inside the model's folder")) << name;
    EXPECT_TRUE(std::all_of(status.message().begin(), status.message().end(), [](char c) {
      return c >= 0x20 && c < 0x7f;
    })) << status.message();
  }
  EXPECT_TRUE(parse_hub_revision(listing_of({"模型/读我.md", "à la carte.txt", "🙂"})).ok());
}

TEST(HubListing, AModelOfTooManyFilesIsRefused) {
  std::vector<std::string> names = {"config.json"};
  while (names.size() < 1024) names.push_back(fmt::format("model-{}.safetensors", names.size()));
  const auto chosen =
      choose_model_files(parse_hub_revision(listing_of(names)).value().files, "", kGigabyte);
  EXPECT_EQ(chosen.value().files.size(), 1024u);
  names.emplace_back("one-more.safetensors");
  const Status status =
      choose_model_files(parse_hub_revision(listing_of(names)).value().files, "", kGigabyte)
          .status();
  EXPECT_EQ(status.message(), "[hub] expected a model of at most 1024 files, got 1025");
}

}  // namespace
}  // namespace pagoda
