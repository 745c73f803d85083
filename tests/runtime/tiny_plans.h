// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Plans of models that train in milliseconds, and real processes that run them.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/file.h"
#include "core/json.h"
#include "validate/run/gradient_file.h"
#include "validate/run/launch.h"
#include "validate/run/run_record.h"

namespace towtank::runtime_testing {

inline const std::string kGpt =
    R"({"model_type":"gpt2","n_embd":32,"n_layer":4,"n_head":4,"n_positions":32,"vocab_size":64})";
inline const std::string kLlama =
    R"({"model_type":"llama","hidden_size":32,"num_hidden_layers":4,"num_attention_heads":4,)"
    R"("num_key_value_heads":2,"intermediate_size":48,"vocab_size":64,"tie_word_embeddings":false})";
/// Head norms, a tied table.
inline const std::string kQwen =
    R"({"model_type":"qwen3","hidden_size":32,"num_hidden_layers":4,"num_attention_heads":4,)"
    R"("num_key_value_heads":2,"head_dim":8,"intermediate_size":48,"vocab_size":64,)"
    R"("tie_word_embeddings":true})";
/// Experts, a sliding window.
inline const std::string kMixtral =
    R"({"model_type":"mixtral","hidden_size":32,"num_hidden_layers":2,"num_attention_heads":4,)"
    R"("num_key_value_heads":2,"intermediate_size":24,"vocab_size":64,"num_local_experts":4,)"
    R"("num_experts_per_tok":2,"tie_word_embeddings":false,"sliding_window":8})";

/// `plan` is the inside of the plan object, as R"("data":2)"; what it leaves out is 1, none or 0.
inline std::string plan_text(const std::string& model, int devices, const std::string& plan,
                             const std::string& precision = "fp32") {
  std::string keys = plan;
  const auto default_key = [&](const std::string& name, const std::string& value) {
    if (plan.find("\"" + name + "\"") != std::string::npos) return;
    keys += (keys.empty() ? "\"" : ",\"") + name + "\":" + value;
  };
  for (const char* degree :
       {"tensor", "pipeline", "data", "context", "expert", "stages_per_rank", "microbatch"}) {
    default_key(degree, "1");
  }
  default_key("schedule", "null");
  default_key("sequence_parallel", "false");
  default_key("sharding_stage", "0");
  default_key("recompute", "\"none\"");
  return R"({"format":"towtank-plan","version":1,"workload":{"model":)" + model +
         R"(,"sequence_length":16,"global_batch":8,"precision":")" + precision +
         R"("},"platform":"dgx-h100","devices":)" + std::to_string(devices) + R"(,"plan":{)" +
         keys + R"(,"framework":"towtank-runtime"}})";
}

class RunFolder {
 public:
  RunFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "towtank-run-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no scratch folder");
    path_ = name;
  }
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;
  ~RunFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

inline LaunchOptions tiny_launch(const RunFolder& folder, const std::string& plan, int ranks) {
  write_file(folder.file("plan.json"), plan);
  LaunchOptions options;
  options.program = TOWTANK_RUNTIME_EXE;
  options.words = {"run",         folder.file("plan.json"),
                   "--steps",     "3",
                   "--warm-up",   "0",
                   "--timeout",   "60",
                   "--record",    folder.file("record.json"),
                   "--gradients", folder.file("g")};
  options.ranks = ranks;
  options.limit = Seconds{120};
  return options;
}

struct Trained {
  RunRecord record;
  std::vector<double> losses;
  std::map<std::string, std::vector<double>> gradients;
};

/// Three steps by real processes. `tolerance`: how far ranks with the same gradient may differ.
inline Trained train(const std::string& plan, int ranks, bool fp64, double tolerance) {
  const RunFolder folder;
  LaunchOptions options = tiny_launch(folder, plan, ranks);
  if (fp64) options.words.push_back("--fp64");
  const LaunchResult result = launch(options);
  if (result.exit_code != 0) {
    throw std::runtime_error(result.messages.empty() ? "failed" : result.messages.front());
  }
  Trained out;
  out.record = parse_run_record(JsonFile::load(folder.file("record.json")));
  out.losses = losses(out.record);
  std::vector<std::vector<GradientPiece>> pieces;
  for (int rank = 0; rank < ranks; ++rank) {
    std::ifstream in(folder.file("g." + std::to_string(rank)), std::ios::binary);
    std::stringstream bytes;
    bytes << in.rdbuf();
    pieces.push_back(decode_gradients(bytes.str()));
  }
  out.gradients = assemble(pieces, tolerance);
  return out;
}

}  // namespace towtank::runtime_testing
