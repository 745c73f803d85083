// SPDX-License-Identifier: Apache-2.0
// Layer graphs in JSON: what they say, their order, the round trip of imported models.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/file.h"
#include "core/rng.h"
#include "model/graph/graph_json.h"
#include "tests/model/graph/graph_testing.h"
#include "tests/support/expect_fault.h"

namespace towtank::graph_json_test {
namespace {

using graph_testing::import_example;
using graph_testing::rules;
using graph_testing::shard_bf16;
using ::testing::ElementsAre;

ModelGraph parse(const std::string& text) { return parse_graph(JsonFile::parse(text, "net.json")); }

ModelGraph example(const std::string& name) {
  return import_model(
      JsonFile::load(std::string(TOWTANK_SOURCE_DIR) + "/examples/graphs/" + name + ".json"), 0);
}

std::vector<std::string> names_of(const ModelGraph& graph) {
  std::vector<std::string> names;
  for (const Layer& layer : graph.layers) names.push_back(layer.name);
  return names;
}

// --- round trip ----------------------------------------------------------------------------------

class DifferGraph : public ::testing::TestWithParam<const char*> {};

void expect_equal(const ModelGraph& a, const ModelGraph& b) {
  EXPECT_TRUE(std::equal(a.kinds.begin(), a.kinds.end(), b.kinds.begin(), b.kinds.end()));
  EXPECT_TRUE(std::equal(a.layers.begin(), a.layers.end(), b.layers.begin(), b.layers.end()));
  EXPECT_EQ(a.edges, b.edges);
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.family, b.family);
  EXPECT_EQ(a.sample_tokens, b.sample_tokens);
  EXPECT_EQ(a.sample_shape, b.sample_shape);
  EXPECT_EQ(a.tied_embedding, b.tied_embedding);
  EXPECT_EQ(a.tied_parameters, b.tied_parameters);
  EXPECT_EQ(a.mtp_parameters, b.mtp_parameters);
  EXPECT_EQ(a.assumptions, b.assumptions);
}

// A transformer given as a graph is the same model imported.
TEST_P(DifferGraph, GraphOfAModelEqualsTheModel) {
  const ModelGraph imported =
      import_example(GetParam(), std::string(GetParam()) == "vit-base" ? 0 : 512);
  const std::string text = to_text(to_json(imported));
  const ModelGraph graph = parse(text);
  expect_equal(imported, graph);
  EXPECT_EQ(graph.total_parameters(), imported.total_parameters());
  EXPECT_EQ(graph.active_parameters(), imported.active_parameters());
  EXPECT_EQ(graph.cut_elements(), imported.cut_elements());
  EXPECT_EQ(to_text(to_json(graph)), text);
}

TEST_P(DifferGraph, ShardsAlike) {
  const ModelGraph imported =
      import_example(GetParam(), std::string(GetParam()) == "vit-base" ? 0 : 512);
  const ModelGraph graph = parse(to_text(to_json(imported)));
  for (std::size_t k = 0; k < imported.kinds.size(); ++k) {
    const LayerKindId id{static_cast<std::int32_t>(k)};
    for (const ShardDegrees& degrees :
         {ShardDegrees{}, ShardDegrees{.tensor = 2, .context = 2, .expert_tensor = 2},
          ShardDegrees{.tensor = 4, .expert = 2, .microbatch = 2, .sequence_parallel = true}}) {
      for (const bool dropout : {false, true}) {
        const FrameworkRules r = rules(!dropout, dropout);
        EXPECT_EQ(check_shard(imported.kinds[id], degrees, r),
                  check_shard(graph.kinds[id], degrees, r));
        const LocalLayer a = shard_bf16(imported.kinds[id], degrees, r);
        const LocalLayer b = shard_bf16(graph.kinds[id], degrees, r);
        EXPECT_EQ(a.saved.without_recompute().value, b.saved.without_recompute().value);
        EXPECT_EQ(a.saved.logits.value, b.saved.logits.value);
        EXPECT_EQ(a.dense_parameters, b.dense_parameters);
        EXPECT_EQ(a.expert_parameters, b.expert_parameters);
        ASSERT_EQ(a.ops.size(), b.ops.size());
        for (std::size_t i = 0; i < a.ops.size(); ++i) {
          EXPECT_EQ(a.ops[i].forward.work.value, b.ops[i].forward.work.value);
          EXPECT_EQ(a.ops[i].forward.traffic.value, b.ops[i].forward.traffic.value);
          EXPECT_EQ(a.ops[i].input_grad.traffic.value, b.ops[i].input_grad.traffic.value);
        }
        ASSERT_EQ(a.collectives.size(), b.collectives.size());
        for (std::size_t i = 0; i < a.collectives.size(); ++i) {
          EXPECT_EQ(a.collectives[i].payload.value, b.collectives[i].payload.value);
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Examples, DifferGraph,
                         ::testing::Values("llama-3.1-405b", "mixtral-8x7b", "gpt2", "gpt3-175b",
                                           "deepseek-v3", "deepseek-v2-lite", "qwen2-7b",
                                           "qwen1.5-moe-a2.7b", "qwen3-8b", "qwen3-30b-a3b",
                                           "gemma-7b", "gemma2-9b", "gemma3-4b", "falcon-7b",
                                           "falcon-40b", "bloom-176b", "bert-large", "vit-base",
                                           "t5-base", "nemotron-4-15b", "gpt-oss-120b",
                                           "mistral-7b"));

// --- networks that are no transformers -----------------------------------------------------------

// He et al. 2016, table 1, with batch norms of two parameters a channel.
TEST(UnitResNet, HasItsPublishedParametersAndWork) {
  const ModelGraph graph = example("resnet50");
  double parameters = 3 * 49 * 64 + 2 * 64;
  double products = 3 * 49 * 64 * 112.0 * 112;
  double channels = 64, side = 56;
  const std::vector<std::pair<int, double>> stages{{3, 64}, {4, 128}, {6, 256}, {3, 512}};
  for (const auto& [blocks, width] : stages) {
    for (int b = 0; b < blocks; ++b) {
      const double out = (b == 0 && width > 64) ? side / 2 : side;
      const double area = out * out;
      parameters += channels * width + 9 * width * width + 4 * width * width + 2 * (6 * width);
      products += channels * width * side * side + (9 * width * width + 4 * width * width) * area;
      if (b == 0) {
        parameters += channels * 4 * width + 2 * 4 * width;
        products += channels * 4 * width * area;
      }
      channels = 4 * width;
      side = out;
    }
  }
  parameters += 2048 * 1000 + 1000;
  products += 2048 * 1000;
  EXPECT_EQ(parameters, 25'557'032);
  EXPECT_EQ(graph.total_parameters(), parameters);
  EXPECT_EQ(forward_work(graph).matmul.value, 2 * products);
  EXPECT_EQ(graph.free_layers(), 16);
}

TEST(UnitResNet, BlockKeepsItsInputAndWhatItsOpsRead) {
  const ModelGraph graph = example("resnet50");
  const LayerKind& block = graph_testing::kind_of(graph, 2);
  ASSERT_EQ(block.name, "stage 1");
  const LocalLayer layer = shard_bf16(block, {.microbatch = 4}, rules(true, false));
  const double area = 56.0 * 56;
  // Input of 256 channels; norms and products after it read 64, 64, 64, 64 and 256 channels.
  EXPECT_EQ(static_cast<double>(layer.saved.layer_input.value), 4 * 2 * 256 * area);
  EXPECT_EQ(graph_testing::group_bytes(layer, RecomputeGroup::kNone),
            4 * 2 * (4 * 64 + 256) * area);
  const LocalOp& conv = graph_testing::op_named(layer, "conv2");
  EXPECT_EQ(conv.forward.kind, OpKind::kConvolution);
  EXPECT_EQ(conv.forward.m, 4 * 56 * 56);
  EXPECT_EQ(conv.forward.n, 64);
  EXPECT_EQ(conv.forward.k, 9 * 64);
  // Input, output and weights, not the unfolded matrix of nine times the input.
  EXPECT_EQ(static_cast<double>(conv.forward.traffic.value), 2 * (4 * 2 * 64 * area + 9 * 64 * 64));
  EXPECT_EQ(conv.weight_grad.work.value, conv.forward.work.value);
}

TEST(UnitResNet, IsDataParallelOnly) {
  const ModelGraph graph = example("resnet50");
  EXPECT_THAT(check_shard(graph_testing::kind_of(graph, 1), {.tensor = 2}, rules(true, false)),
              ElementsAre("layer stage 1 first has no sharding over tensor ranks (valid: tensor = "
                          "1)"));
}

TEST(UnitTwoBranches, BothBranchesCrossACut) {
  const ModelGraph graph = example("two-branch");
  EXPECT_THAT(names_of(graph), ElementsAre("lift", "fine.0", "fine.1", "down", "coarse.0",
                                           "coarse.1", "merge", "project"));
  const double fine = 32 * 256.0 * 256, coarse = 64 * 128.0 * 128;
  // In front of fine.0, fine.1, down, coarse.0, coarse.1 and merge. Both branches read lift, so it
  // crosses once at first and stays until down has it.
  EXPECT_THAT(graph.cut_elements(),
              ElementsAre(fine, 2 * fine, 2 * fine, fine + coarse, fine + coarse, fine + coarse));
}

TEST(UnitTwoBranches, RowsOfTheFieldAreSplitWithTheirNeighbours) {
  const ModelGraph graph = example("two-branch");
  const LayerKind& fine = graph_testing::kind_of(graph, 1);
  EXPECT_TRUE(check_shard(fine, {.context = 4}, rules(true, false)).empty());
  const LocalLayer one = shard_bf16(fine, {}, rules(true, false));
  const LocalLayer four = shard_bf16(fine, {.context = 4}, rules(true, false));
  EXPECT_EQ(4 * four.ops[0].forward.work.value, one.ops[0].forward.work.value);
  // A row of 256 points with 32 channels, however many ranks there are.
  EXPECT_EQ(four.collectives[0].payload.value, 2 * 256 * 32);
  EXPECT_EQ(four.collectives[0].forward, Collective::kSendRecv);
}

// --- order ---------------------------------------------------------------------------------------

/// Layers of one kind, named and joined as told.
std::string net(const std::vector<std::string>& layers,
                const std::vector<std::pair<std::string, std::string>>& edges,
                const std::string& pins = "") {
  Json json;
  json["format"] = "towtank-graph";
  json["version"] = 1;
  json["name"] = "net";
  json["sample"]["shape"] = {4};
  Json op{{"name", "product"}, {"op", "matmul"}, {"rows", 1}, {"inner", 4}, {"columns", 4}};
  json["kinds"] = Json::array({Json{{"name", "k"}, {"ops", Json::array({op})}}});
  for (std::size_t i = 0; i < layers.size(); ++i) {
    Json layer{{"name", layers[i]}, {"kind", "k"}};
    if (i < pins.size() && pins[i] != '.') layer["pin"] = pins[i] == 'f' ? "first" : "last";
    json["layers"].push_back(layer);
  }
  json["edges"] = Json::array();
  for (const auto& [from, to] : edges) {
    json["edges"].push_back(Json{{"from", from}, {"to", to}, {"elements", 4}});
  }
  return json.dump();
}

TEST(UnitOrder, TopologicalWithTiesByTheFile) {
  EXPECT_THAT(
      names_of(parse(net({"d", "b", "c", "a"}, {{"a", "b"}, {"a", "c"}, {"b", "d"}, {"c", "d"}}))),
      ElementsAre("a", "b", "c", "d"));
  EXPECT_THAT(
      names_of(parse(net({"d", "c", "b", "a"}, {{"a", "b"}, {"a", "c"}, {"b", "d"}, {"c", "d"}}))),
      ElementsAre("a", "c", "b", "d"));
}

TEST(UnitOrder, PinnedLayersStandAtTheEnds) {
  // "last" could run second; "first" could run late.
  EXPECT_THAT(names_of(parse(net({"last", "a", "b", "first"},
                                 {{"a", "last"}, {"a", "b"}, {"first", "b"}}, "l..f"))),
              ElementsAre("first", "a", "b", "last"));
}

TEST(LawOrder, EveryEdgePointsForward) {
  Rng rng(7);
  for (int round = 0; round < 200; ++round) {
    const auto count = static_cast<std::size_t>(rng.integer(2, 30));
    // A random hidden order; every layer but the first reads an earlier one.
    std::vector<std::string> names;
    for (std::size_t i = 0; i < count; ++i) names.push_back(std::to_string(rng.next()));
    std::vector<std::pair<std::string, std::string>> edges;
    for (std::size_t i = 1; i < count; ++i) {
      edges.emplace_back(
          names[static_cast<std::size_t>(rng.integer(0, static_cast<std::int64_t>(i) - 1))],
          names[i]);
    }
    std::vector<std::string> shuffled = names;
    for (std::size_t i = count; i > 1; --i) {
      std::swap(
          shuffled[i - 1],
          shuffled[static_cast<std::size_t>(rng.integer(0, static_cast<std::int64_t>(i) - 1))]);
    }
    const ModelGraph graph = parse(net(shuffled, edges));
    ASSERT_EQ(graph.layers.size(), count);
    for (const Edge& edge : graph.edges) EXPECT_LT(edge.from.value, edge.to.value);
  }
}

// --- what is not said ----------------------------------------------------------------------------

TEST(UnitGraphDefaults, ParametersOfAProductFollowFromItsShape) {
  EXPECT_EQ(parse(net({"a"}, {})).total_parameters(), 16);
}

TEST(UnitGraphDefaults, UnsplitLayersStayOnOneRank) {
  const ModelGraph graph = parse(net({"a"}, {}));
  EXPECT_FALSE(graph_testing::kind_of(graph, 0).limits.tensor);
  EXPECT_FALSE(graph_testing::kind_of(graph, 0).limits.context);
}

TEST(UnitGraphDefaults, SplitProductsShareTheirColumns) {
  Json json = Json::parse(net({"a"}, {}));
  json["kinds"][0]["ops"][0]["split"] = "column";
  const ModelGraph graph = parse(json.dump());
  EXPECT_TRUE(graph_testing::kind_of(graph, 0).limits.tensor);
  EXPECT_EQ(shard_bf16(graph_testing::kind_of(graph, 0), {.tensor = 2}, rules(true, false))
                .dense_parameters,
            8);
}

TEST(GoldenGraphDocs, TheExampleOfTheFormatIsRead) {
  const std::string page = read_file(std::string(TOWTANK_SOURCE_DIR) + "/docs/formats.md");
  const std::size_t start = page.find("```json\n", page.find("## towtank-graph")) + 8;
  const ModelGraph graph = parse(page.substr(start, page.find("```", start) - start));
  EXPECT_EQ(graph.total_parameters(), 2 * 2 * 1024.0 * 4096);
  EXPECT_THAT(graph.cut_elements(), ElementsAre(0, 512 * 1024));
}

// --- faults --------------------------------------------------------------------------------------

TEST(FaultGraph, CycleIsNamed) {
  EXPECT_FAULT(parse(net({"a", "b", "c"}, {{"a", "b"}, {"b", "c"}, {"c", "a"}})),
               "net.json: /edges: the layers form a cycle: a -> b -> c -> a");
  EXPECT_FAULT(parse(net({"a", "b"}, {{"a", "b"}, {"b", "b"}})),
               "net.json: /edges: the layers form a cycle: b -> b");
}

TEST(FaultGraph, PiecesAreNamed) {
  EXPECT_FAULT(parse(net({"a", "b", "c", "d"}, {{"a", "b"}, {"b", "c"}})),
               "net.json: /edges: no edge joins d to the other layers");
}

TEST(FaultGraph, EdgesAgainstPins) {
  EXPECT_FAULT(parse(net({"a", "b"}, {{"a", "b"}}, ".f")),
               "net.json: /edges: b reads a, which is pinned behind it");
}

TEST(FaultGraph, NamesThatAreNotThere) {
  EXPECT_FAULT(parse(net({"alpha", "beta"}, {{"alpha", "bta"}})),
               "net.json: /edges/0/to: there is no layer \"bta\". Did you mean \"beta\"?");
  Json json = Json::parse(net({"a"}, {}));
  json["layers"][0]["kind"] = "pool";
  EXPECT_FAULT(parse(json.dump()), "net.json: /layers/0/kind: there is no kind \"pool\"");
}

TEST(FaultGraph, NamesGivenTwice) {
  EXPECT_FAULT(parse(net({"a", "a"}, {{"a", "a"}})),
               "net.json: /layers/1: there is another one named \"a\" (names differ)");
  Json json = Json::parse(net({"a"}, {}));
  json["kinds"][0]["ops"].push_back(json["kinds"][0]["ops"][0]);
  EXPECT_FAULT(
      parse(json.dump()),
      "net.json: /kinds/0/ops/1: there is another op \"product\" in this layer (names of ops "
      "differ)");
}

TEST(FaultGraph, ValuesOutOfRangeAndUnknown) {
  Json json = Json::parse(net({"a"}, {}));
  json["kinds"][0]["ops"][0]["rows"] = -1;
  json["kinds"][0]["ops"][0]["inner"] = 1e18;
  json["kinds"][0]["ops"][0]["splitt"] = "row";
  json["kinds"][0]["ops"][0]["split"] = "rows";
  EXPECT_FAULT(parse(json.dump()),
               "net.json: /kinds/0/ops/0/split: \"rows\" is not one of the known values (known: "
               "replicate, sequence, column, row). Did you mean \"row\"?\n"
               "net.json: /kinds/0/ops/0/rows: -1 is too small (must be in 0 to 1e+15)\n"
               "net.json: /kinds/0/ops/0/inner: 1e+18 is too large (must be in 1 to 67108864)\n"
               "net.json: /kinds/0/ops/0/splitt: unknown key. Did you mean \"split\"?");
}

TEST(FaultGraph, NothingInIt) {
  EXPECT_FAULT(parse(R"({"format": "towtank-graph", "version": 1, "name": "n", "sample": {},
                         "kinds": [], "layers": []})"),
               "net.json: /sample: says neither tokens nor shape (a sample has one of them)\n"
               "net.json: /layers: has 0 layers (1 to 100000)");
  EXPECT_FAULT(parse(R"({"format": "towtank-plan", "version": 1})"),
               "net.json: /format: \"towtank-plan\" is another format (must be \"towtank-graph\")");
}

}  // namespace
}  // namespace towtank::graph_json_test
