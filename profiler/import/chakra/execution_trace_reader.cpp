// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "core/input_error.h"
#include "core/json.h"
#include "core/text.h"
#include "profiler/import/chakra/chakra_reader.h"
#include "profiler/import/chakra/node_builder.h"

namespace towtank {
namespace {

constexpr std::size_t kLargest = 512U << 20U;

std::int64_t integer(const Json& node, const char* key, std::int64_t fallback) {
  const auto at = node.find(key);
  return at != node.end() && at->is_number_integer() ? at->get<std::int64_t>() : fallback;
}

/// The name of a collective stands among its inputs; its size follows from its first tensor.
void set_collective(const Json& node, chakra::Node& out) {
  const auto inputs = node.find("inputs");
  if (inputs == node.end() || !inputs->is_array()) return;
  for (const Json& input : *inputs) {
    if (input.is_string() && out.collective.empty()) out.collective = input.get<std::string>();
  }
  // A tensor: [id, storage, offset, elements, bytes of one, device].
  const Json* tensor = inputs->empty() ? nullptr : &(*inputs)[0];
  if (tensor != nullptr && tensor->is_array() && !tensor->empty() && (*tensor)[0].is_array()) {
    tensor = &(*tensor)[0];
  }
  if (tensor == nullptr || !tensor->is_array() || tensor->size() < 5) return;
  const Json& count = (*tensor)[3];
  const Json& size = (*tensor)[4];
  if (!count.is_number_integer() || !size.is_number_integer()) return;
  const double bytes = count.get<double>() * size.get<double>();
  if (bytes > 0 && bytes < 1e18) out.collective_bytes = static_cast<std::int64_t>(bytes);
}

void add_node(const Json& node, chakra::NodeBuilder& builder, Trace& trace) {
  if (!node.is_object() || !node.contains("name") || !node["name"].is_string()) {
    ++trace.stats.rows_read;
    trace.stats.add("nodes without a name", ImportStats::Severity::kError);
    return;
  }
  chakra::Node out;
  out.id = integer(node, "id", -1);
  out.parent = integer(node, "parent", integer(node, "ctrl_deps", -1));
  out.thread = integer(node, "tid", 0);
  out.name = node["name"].get<std::string>();
  const auto text = [&](const char* key) {
    const auto at = node.find(key);
    return at != node.end() && at->is_array() ? at->dump() : std::string();
  };
  out.shapes = text("input_shapes");
  out.types = text("input_types");
  if (out.name == "record_param_comms") set_collective(node, out);
  builder.add(out);
}

class ExecutionTraceReader final : public TraceReader {
 public:
  [[nodiscard]] std::string_view format() const override { return "PyTorch execution trace"; }
  [[nodiscard]] bool recognises(std::string_view head) const override {
    const std::size_t first = head.find_first_not_of(" \t\r\n");
    return first != std::string_view::npos && head[first] == '{' &&
           head.find("\"schema\"") != std::string_view::npos &&
           head.find("\"nodes\"") != std::string_view::npos;
  }
  [[nodiscard]] Trace read(ByteSource& source) const override {
    Trace trace;
    trace.name = source.name();
    trace.format = format();
    const Json file = Json::parse(read_rest(source, kLargest), nullptr, false);
    if (!file.is_object() || !file.contains("nodes") || !file["nodes"].is_array()) {
      throw InputError(
          {trace.name, "is no execution trace", "it is no JSON with an array of nodes", ""});
    }
    chakra::NodeBuilder builder(trace);
    for (const Json& node : file["nodes"]) add_node(node, builder, trace);
    builder.finish();
    return trace;
  }
};

}  // namespace

std::unique_ptr<TraceReader> execution_trace_reader() {
  return std::make_unique<ExecutionTraceReader>();
}

}  // namespace towtank
