// SPDX-License-Identifier: Apache-2.0
// Damaged configs and graphs are told what is wrong or read as another valid network; nothing
// crashes, overflows or yields a negative size.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/rng.h"
#include "model/graph/graph_json.h"
#include "tests/model/graph/graph_testing.h"

namespace towtank::mutated_config_test {
namespace {

using graph_testing::rules;

const std::vector<const char*> kExamples{"llama-3-8b",       "mixtral-8x7b", "gpt2",
                                         "deepseek-v3",      "qwen2-7b",     "qwen3-30b-a3b",
                                         "gemma2-9b",        "gemma3-4b",    "falcon-40b",
                                         "bloom-176b",       "bert-base",    "t5-base",
                                         "mistral-7b",       "gpt-oss-120b", "nemotron-4-15b",
                                         "qwen3-8b",         "gemma-7b",     "deepseek-v2-lite",
                                         "qwen1.5-moe-a2.7b"};

std::size_t index(Rng& rng, std::size_t count) {
  return static_cast<std::size_t>(rng.integer(0, static_cast<std::int64_t>(count) - 1));
}

Json odd_value(Rng& rng) {
  switch (rng.integer(0, 13)) {
    case 0:
      return nullptr;
    case 1:
      return 0;
    case 2:
      return -1;
    case 3:
      return 1'000'000'000'000'000'000LL;
    case 4:
      return 1e300;
    case 5:
      return "text";
    case 6:
      return Json::array({1, "a", nullptr});
    case 7:
      return Json::object();
    case 8:
      return true;
    case 9:
      return 0.5;
    case 10:
      return 1 << 24;
    case 11:
      return 18'446'744'073'709'551'615ULL;
    case 12:
      return rng.integer(1, 1 << 16);
    default:
      return rng.integer(1, 64);
  }
}

/// A container somewhere in the value, chosen at random.
Json* some_container(Json& root, Rng& rng) {
  Json* at = &root;
  while (rng.integer(0, 2) != 0) {
    std::vector<Json*> inner;
    for (auto& item : at->items()) {
      if (item.value().is_structured() && !item.value().empty()) inner.push_back(&item.value());
    }
    if (inner.empty()) break;
    at = inner[index(rng, inner.size())];
  }
  return at;
}

void mutate_value(Json& root, Rng& rng) {
  Json& at = *some_container(root, rng);
  if (at.empty()) return;
  const std::size_t i = index(rng, at.size());
  if (at.is_array()) {
    at[i] = odd_value(rng);
    return;
  }
  auto it = at.begin();
  std::advance(it, static_cast<std::ptrdiff_t>(i));
  const std::string key = it.key();
  switch (rng.integer(0, 3)) {
    case 0:
      at.erase(key);
      break;
    case 1:
      at[key + "s"] = at[key];
      at.erase(key);
      break;
    default:
      at[key] = odd_value(rng);
  }
}

std::string mutate_bytes(std::string text, Rng& rng) {
  for (std::int64_t n = rng.integer(1, 4); n > 0 && !text.empty(); --n) {
    const std::size_t i = index(rng, text.size());
    switch (rng.integer(0, 3)) {
      case 0:
        text.resize(i);
        break;
      case 1:
        text.erase(i, 1);
        break;
      case 2:
        text[i] = static_cast<char>(rng.integer(0, 255));
        break;
      default:
        text.insert(i, 1, "0123456789{}[],:\"-e."[rng.integer(0, 19)]);
    }
  }
  return text;
}

void expect_sane(const ModelGraph& graph) {
  EXPECT_TRUE(std::isfinite(graph.total_parameters()));
  EXPECT_GE(graph.total_parameters(), 0);
  EXPECT_GE(graph.active_parameters(), -1e-6 * graph.total_parameters());
  EXPECT_EQ(graph.cut_elements().size(), static_cast<std::size_t>(graph.free_layers()));
  for (const LayerKind& kind : graph.kinds) {
    for (const bool fused : {false, true}) {
      for (const int many : {1, 1024}) {
        const ShardDegrees degrees{.tensor = 2, .expert_tensor = 2, .microbatch = many};
        static_cast<void>(check_shard(kind, degrees, rules(fused, !fused)));
        const LocalLayer layer = graph_testing::shard_bf16(kind, degrees, rules(fused, !fused));
        EXPECT_GE(layer.saved.without_recompute().value, 0);
        EXPECT_GE(layer.saved.logits.value, 0);
        EXPECT_GE(layer.transient.value, 0);
        for (const LocalOp& op : layer.ops) {
          for (const OpSignature* s : {&op.forward, &op.input_grad, &op.weight_grad}) {
            EXPECT_GE(s->traffic.value, 0);
            EXPECT_GE(s->work.value, 0);
            EXPECT_GE(s->m, 0);
          }
        }
        for (const LocalCollective& c : layer.collectives) EXPECT_GE(c.payload.value, 0);
      }
    }
  }
}

struct Outcomes {
  int read = 0, refused = 0;
};

void try_text(const std::string& text, Outcomes& outcomes) {
  try {
    expect_sane(graph_testing::import_text(text, 512));
    ++outcomes.read;
  } catch (const InputError& error) {
    EXPECT_FALSE(error.faults().empty());
    ++outcomes.refused;
  }
}

std::string example_text(const std::string& name) {
  return JsonFile::load(std::string(TOWTANK_SOURCE_DIR) + "/examples/models/" + name +
                        "/config.json")
      .root()
      .dump();
}

TEST(LawMutated, ConfigsAreReadOrRefused) {
  Rng rng(20240229);
  std::vector<std::string> texts;
  for (const char* name : kExamples) texts.push_back(example_text(name));
  Outcomes outcomes;
  for (int i = 0; i < 5000; ++i) {
    const std::string& text = texts[index(rng, texts.size())];
    SCOPED_TRACE(i);
    if (i % 2 == 0) {
      try_text(mutate_bytes(text, rng), outcomes);
      continue;
    }
    Json json = Json::parse(text);
    for (std::int64_t n = rng.integer(1, 3); n > 0; --n) mutate_value(json, rng);
    try_text(json.dump(), outcomes);
  }
  // Both happen often, so the loop has tried both.
  EXPECT_GT(outcomes.read, 500);
  EXPECT_GT(outcomes.refused, 500);
}

TEST(LawMutated, GraphsAreReadOrRefused) {
  Rng rng(19990101);
  std::vector<std::string> texts;
  for (const char* name : {"gpt2", "mixtral-8x7b", "t5-base"}) {
    Json json = to_json(graph_testing::import_example(name, 512));
    // Fewer layers, so that damage hits what matters.
    while (json["layers"].size() > 4) json["layers"].erase(json["layers"].size() - 2);
    json["edges"] = Json::array();
    for (std::size_t i = 1; i < json["layers"].size(); ++i) {
      json["edges"].push_back({{"from", json["layers"][i - 1]["name"]},
                               {"to", json["layers"][i]["name"]},
                               {"elements", 512}});
    }
    texts.push_back(json.dump());
  }
  Outcomes outcomes;
  for (int i = 0; i < 2000; ++i) {
    const std::string& text = texts[index(rng, texts.size())];
    SCOPED_TRACE(i);
    if (i % 4 == 0) {
      try_text(mutate_bytes(text, rng), outcomes);
      continue;
    }
    Json json = Json::parse(text);
    mutate_value(json, rng);
    try_text(json.dump(), outcomes);
  }
  EXPECT_GT(outcomes.read, 100);
  EXPECT_GT(outcomes.refused, 100);
}

}  // namespace
}  // namespace towtank::mutated_config_test
