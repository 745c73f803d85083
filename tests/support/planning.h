// SPDX-License-Identifier: Apache-2.0
#pragma once
/// A planning question in one line, for tests: a model, a machine of the catalogue, a batch.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "core/json.h"
#include "model/cost/analytic.h"
#include "model/graph/hf_import.h"
#include "placement/search.h"
#include "platforms/catalogue.h"

namespace towtank::testing {

/// Owns everything that a PlanProblem refers to.
class Question {
 public:
  Question(const std::string& config_json, const std::string& platform, int devices, int sequence,
           int global_batch, DType precision = DType::kBf16)
      : Question(config_json, load_platform(platform), devices, sequence, global_batch, precision) {
  }

  Question(const std::string& config_json, Platform platform, int devices, int sequence,
           int global_batch, DType precision = DType::kBf16)
      : graph_(import_model(JsonFile::parse(config_json, "config.json"), sequence)),
        platform_(std::move(platform)) {
    workload_.sequence_length = sequence;
    workload_.global_batch = global_batch;
    workload_.precision = precision;
    problem_ = std::get<PlanProblem>(make_problem(graph_, workload_, platform_, devices));
    costs_ = std::make_unique<AnalyticCostModel>(problem_.device(), problem_.view);
    problem_.costs = costs_.get();
  }
  Question(const Question&) = delete;
  Question& operator=(const Question&) = delete;
  ~Question() = default;

  [[nodiscard]] const PlanProblem& problem() const { return problem_; }
  [[nodiscard]] PlanProblem& problem() { return problem_; }
  [[nodiscard]] const Workload& workload() const { return workload_; }
  [[nodiscard]] const ModelGraph& graph() const { return graph_; }
  [[nodiscard]] Prediction predict(const Plan& plan) const {
    return ClosedFormEvaluator(problem_).evaluate(plan);
  }
  [[nodiscard]] SearchResult best_first(const SearchOptions& options = {}) const {
    return BestFirstSearch().search(problem_, options);
  }
  [[nodiscard]] SearchResult exhaustive(const SearchOptions& options = {}) const {
    return ExhaustiveSearch().search(problem_, options);
  }

 private:
  ModelGraph graph_;
  Workload workload_;
  Platform platform_;
  PlanProblem problem_;
  std::unique_ptr<AnalyticCostModel> costs_;
};

inline std::string gpt2_config(int hidden, int layers, int heads, int vocabulary, int positions) {
  return R"({"model_type": "gpt2", "n_embd": )" + std::to_string(hidden) + R"(, "n_layer": )" +
         std::to_string(layers) + R"(, "n_head": )" + std::to_string(heads) +
         R"(, "n_positions": )" + std::to_string(positions) + R"(, "vocab_size": )" +
         std::to_string(vocabulary) + "}";
}

inline std::string llama_config(int hidden, int layers, int heads, int kv_heads, int ffn,
                                int vocabulary) {
  return R"({"model_type": "llama", "hidden_size": )" + std::to_string(hidden) +
         R"(, "num_hidden_layers": )" + std::to_string(layers) + R"(, "num_attention_heads": )" +
         std::to_string(heads) + R"(, "num_key_value_heads": )" + std::to_string(kv_heads) +
         R"(, "intermediate_size": )" + std::to_string(ffn) + R"(, "vocab_size": )" +
         std::to_string(vocabulary) + R"(, "tie_word_embeddings": false})";
}

inline std::string llama_405b() { return llama_config(16384, 126, 128, 8, 53248, 128256); }
inline std::string llama_70b() { return llama_config(8192, 80, 64, 8, 28672, 128256); }

}  // namespace towtank::testing
