#include "serving/pooling/embedding_batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>

#include "tests/support/eventually.h"
#include "tests/support/fake_model.h"

namespace pagoda {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Vector = std::vector<float>;

Vector normalized(Vector numbers, std::size_t count) {
  numbers.resize(count);
  double squares = 0;
  for (const float number : numbers) squares += static_cast<double>(number) * number;
  for (float& number : numbers) number = static_cast<float>(number / std::sqrt(squares));
  return numbers;
}

class EmbeddingBatchTest : public ::testing::Test {
 protected:
  void make_model(const FakeModelOptions& options) { model_ = make_fake_model(options); }
  FakeEngine& engine() { return fake_engine(*model_); }
  std::vector<int> ids(const std::string& text) { return model_->tokenizer->encode(text).value(); }

  // Makes prompts with different texts, so that their embeddings differ.
  EmbeddingBatchRequest request_of(int num_prompts, const std::string& order = "say ") {
    EmbeddingBatchRequest request;
    for (int i = 0; i < num_prompts; ++i) request.prompts.push_back(ids(order + std::to_string(i)));
    request.on_end = [this](const EmbeddingEnd& end) { ends_.push_back(end.reason); };
    return request;
  }

  Result<std::vector<Vector>> run(EmbeddingBatchRequest request) {
    std::atomic<int> num_wakes = 0;
    PAGODA_ASSIGN_OR_RETURN(
        const auto batch, EmbeddingBatch::start(*model_, std::move(request), [&] { ++num_wakes; }));
    std::vector<Vector> all;
    for (int num_seen = 0; !batch->finished(); ++num_seen) {
      eventually([&] { return num_wakes > num_seen; });
      PAGODA_ASSIGN_OR_RETURN(const std::vector<Vector> some, batch->take());
      all.insert(all.end(), some.begin(), some.end());
    }
    num_prompt_tokens_ = batch->num_prompt_tokens();
    return all;
  }

  std::unique_ptr<ServedModel> model_ = make_fake_model();
  std::vector<FinishReason> ends_;
  int num_prompt_tokens_ = 0;
};

TEST_F(EmbeddingBatchTest, MoreThanTheQueueHoldsComeInOrder) {
  make_model({.max_queue = 8});
  const EmbeddingBatchRequest request = request_of(2048);
  const auto embeddings = run(request);
  ASSERT_TRUE(embeddings.ok()) << embeddings.status().message();
  ASSERT_EQ(embeddings->size(), 2048U);
  int num_tokens = 0;
  for (std::size_t i = 0; i < request.prompts.size(); ++i) {
    EXPECT_EQ((*embeddings)[i], normalized(fake_embedding(request.prompts[i]), 8)) << i;
    num_tokens += static_cast<int>(request.prompts[i].size());
  }
  EXPECT_EQ(num_prompt_tokens_, num_tokens);
  EXPECT_EQ(ends_, std::vector<FinishReason>(2048, FinishReason::kLength));
}

TEST_F(EmbeddingBatchTest, TheEngineIsAskedForAnEmbeddingAndNoTokens) {
  EmbeddingBatchRequest request = request_of(1);
  request.priority = -3;
  request.cache_salt = "salt";
  model_->embedding_format.pooling = Pooling::kMean;
  ASSERT_TRUE(run(request).ok());
  const GenerationRequest asked = engine().last_request();
  EXPECT_EQ(asked.pooling, Pooling::kMean);
  EXPECT_EQ(asked.sampling.max_tokens, 0);
  EXPECT_EQ(asked.sampling.n, 1);
  EXPECT_EQ(asked.priority, -3);
  EXPECT_EQ(asked.cache_salt, "salt");
}

TEST_F(EmbeddingBatchTest, OnlySomeAreInTheEngineAndTheEndCancelsThem) {
  make_model({.max_queue = 1000});
  {
    auto batch = EmbeddingBatch::start(*model_, request_of(100, "think 9"), nullptr);
    ASSERT_TRUE(batch.ok());
    EXPECT_EQ(engine().stats().num_running, EmbeddingBatch::kMaxInFlight);
    EXPECT_TRUE((*batch)->take()->empty());
    EXPECT_EQ(engine().stats().num_running, EmbeddingBatch::kMaxInFlight);
    EXPECT_TRUE(ends_.empty());
  }
  EXPECT_EQ(ends_, std::vector<FinishReason>(100, FinishReason::kCancelled));
  EXPECT_TRUE(
      eventually([&] { return engine().num_cancelled_samples() == EmbeddingBatch::kMaxInFlight; }));
}

TEST_F(EmbeddingBatchTest, AFullQueueIsAnErrorWhereNoneOfItsOwnIsInIt) {
  make_model({.max_queue = 1});
  const auto other =
      engine().submit({.prompt_token_ids = ids("think 9")}, [](const OutputEvent&) {});
  ASSERT_TRUE(other.ok());
  EXPECT_EQ(run(request_of(2)).status().code(), StatusCode::kResourceExhausted);
  EXPECT_TRUE(ends_.empty());
  engine().cancel(*other);
}

TEST_F(EmbeddingBatchTest, DimensionsCutAndNormalise) {
  EmbeddingBatchRequest request = request_of(1);
  const Vector raw = fake_embedding(request.prompts.front());
  model_->embedding_format.normalizes = false;
  EXPECT_THAT(*run(request), ElementsAre(raw));
  request.dimensions = 8;  // not shorter than the embedding, so nothing is cut
  EXPECT_THAT(*run(request), ElementsAre(raw));
  request.dimensions = 3;
  EXPECT_THAT(*run(request), ElementsAre(normalized(raw, 3)));
  model_->embedding_format.normalizes = true;
  EXPECT_THAT(*run(request), ElementsAre(normalized(raw, 3)));
}

TEST_F(EmbeddingBatchTest, AFailureOfTheEngineEndsIt) {
  EmbeddingBatchRequest request = request_of(3);
  request.prompts[1] = ids("fail it broke");
  const auto failed = run(request);
  EXPECT_EQ(failed.status().code(), StatusCode::kInternal);
  EXPECT_EQ(failed.status().message(), "it broke");
  EXPECT_EQ(ends_.size(), 3U);
}

TEST_F(EmbeddingBatchTest, AnEngineThatEndsIsUnavailable) {
  auto batch = EmbeddingBatch::start(*model_, request_of(2, "think 9"), nullptr);
  ASSERT_TRUE(batch.ok());
  engine().drain(0);
  EXPECT_EQ((*batch)->take().status().code(), StatusCode::kUnavailable);
}

}  // namespace
}  // namespace pagoda
