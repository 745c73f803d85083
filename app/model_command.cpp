// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <nlohmann/json.hpp>

#include "app/commands.h"
#include "app/question.h"
#include "app/report.h"
#include "app/text_table.h"
#include "core/text.h"
#include "core/unit_text.h"
#include "model/graph/graph_json.h"

namespace towtank {
namespace {

/// What one kind of layer holds and runs, over all layers of it.
struct Part {
  std::string name;
  int layers = 0;
  double parameters = 0;  ///< of one layer
  Flop forward;           ///< of one layer and sample, a causal kernel's attention
};

std::vector<Part> parts_of(const ModelGraph& graph) {
  std::vector<Part> parts;
  for (const LayerKind& kind : graph.kinds) {
    Part part;
    part.name = kind.name;
    for (const Op& op : kind.ops) part.parameters += op.parameters + op.replicated_parameters;
    const ForwardWork work = forward_work(kind);
    part.forward = work.matmul + work.attention_run;
    parts.push_back(std::move(part));
  }
  for (const Layer& layer : graph.layers) {
    ++parts[static_cast<std::size_t>(layer.kind.value)].layers;
  }
  return parts;
}

std::string report(const ModelGraph& graph, const Workload& workload) {
  const double total = graph.total_parameters();
  const double active = graph.active_parameters();
  std::string out = printable(workload.model_name) + " (" + graph.family +
                    "): " + with_thousands(std::llround(total)) + " parameters (" +
                    parameters_text(total) + ")";
  if (active < total) {
    out += ", " + with_thousands(std::llround(active)) + " active a token (" +
           parameters_text(active) + ")";
  }
  out = wrapped(out, 2) + "\n\n";
  TextTable table({{"part", Align::kLeft, 2},
                   {"layers", Align::kRight, 2},
                   {"parameters each", Align::kRight, 2},
                   {"in all", Align::kRight, 2},
                   {"forward each", Align::kRight, 2}});
  for (const Part& part : parts_of(graph)) {
    table.add_row(
        {part.name, std::to_string(part.layers), with_thousands(std::llround(part.parameters)),
         with_thousands(std::llround(part.layers * part.parameters)), to_text(part.forward)});
  }
  out += table.text() + "\n";
  const ForwardWork work = forward_work(graph);
  const std::string sample = graph.sample_tokens > 0
                                 ? "a sample of " + with_thousands(graph.sample_tokens) + " tokens"
                                 : "a sample";
  out += wrapped("Forward of " + sample + ": products " + to_text(work.matmul) + ", attention " +
                     to_text(work.attention_run) + " (" + to_text(work.attention_counted) +
                     " as MFU counts it)",
                 2) +
         "\n";
  if (graph.tied_embedding) {
    out += "Tied: the head uses the embedding's table, which is counted once\n";
  }
  if (graph.mtp_parameters > 0) {
    out += "Not in the total: " + with_thousands(std::llround(graph.mtp_parameters)) +
           " parameters of further heads\n";
  }
  if (graph.assumptions.empty()) return out + "Nothing was left to the family's defaults.\n";
  out += "Not in the file, the family's default taken:\n";
  for (const std::string& assumption : graph.assumptions) {
    out += "  - " + wrapped(assumption, 4) + "\n";
  }
  return out;
}

std::string report_json(const ModelGraph& graph, const Workload& workload) {
  const ForwardWork work = forward_work(graph);
  Json out{{"format", "towtank-model"},
           {"version", 1},
           {"name", workload.model_name},
           {"family", graph.family},
           {"hash", workload.model_hash},
           {"sequence_length", graph.sample_tokens},
           {"parameters", std::llround(graph.total_parameters())},
           {"active_parameters", std::llround(graph.active_parameters())},
           {"further_head_parameters", std::llround(graph.mtp_parameters)},
           {"tied_embedding", graph.tied_embedding},
           {"free_layers", graph.free_layers()}};
  out["parts"] = Json::array();
  for (const Part& part : parts_of(graph)) {
    out["parts"].push_back({{"name", part.name},
                            {"layers", part.layers},
                            {"parameters_each", std::llround(part.parameters)},
                            {"forward_flop_each", part.forward.value}});
  }
  out["forward_flop"] = {{"matmul", work.matmul.value},
                         {"attention_run", work.attention_run.value},
                         {"attention_counted", work.attention_counted.value}};
  out["assumptions"] = graph.assumptions;
  return to_text(out);
}

}  // namespace

Outcome run_model(const Arguments& parsed, const Terminal&) {
  Faults faults;
  const ArgumentReader arguments(parsed, faults);
  ModelGraph graph;
  Workload workload;
  read_model(arguments, graph, workload);
  faults.throw_if_any();
  Outcome outcome;
  if (const auto path = arguments.text("--graph")) {
    outcome.files.emplace_back(*path, to_text(to_json(graph)));
  }
  outcome.out = arguments.flag("--json") ? report_json(graph, workload) : report(graph, workload);
  return outcome;
}

}  // namespace towtank
