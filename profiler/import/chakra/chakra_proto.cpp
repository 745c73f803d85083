// SPDX-License-Identifier: Apache-2.0
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <array>
#include <optional>

#include "core/input_error.h"
#include "profiler/import/chakra/chakra_reader.h"
#include "profiler/import/chakra/node_builder.h"

namespace towtank {
namespace {

using google::protobuf::io::CodedInputStream;

constexpr std::size_t kLargest = 1U << 30U;
constexpr std::uint32_t kLongestMessage = 64U << 20U;

/// Wire types of protobuf.
enum Wire : std::uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };
/// Types of nodes: et_def.proto.
enum NodeType : std::uint64_t { kSend = 5, kReceive = 6, kCollective = 7 };
/// CollectiveCommType of et_def.proto, as profiler/analysis names them.
constexpr std::array<std::string_view, 10> kKinds{
    "all_reduce", "reduce",     "all_gather",     "gather",         "scatter",
    "broadcast",  "all_to_all", "reduce_scatter", "reduce_scatter", "barrier"};

/// One field: a number or bytes.
struct Field {
  std::uint32_t number = 0;
  std::uint64_t value = 0;
  std::string bytes;
};

std::optional<Field> next_field(CodedInputStream& in) {
  const std::uint32_t tag = in.ReadTag();
  if (tag == 0) return std::nullopt;
  Field out;
  out.number = tag >> 3U;
  std::uint32_t small = 0;
  switch (tag & 7U) {
    case kVarint:
      if (!in.ReadVarint64(&out.value)) return std::nullopt;
      return out;
    case kFixed64:
      if (!in.ReadLittleEndian64(&out.value)) return std::nullopt;
      return out;
    case kFixed32:
      if (!in.ReadLittleEndian32(&small)) return std::nullopt;
      out.value = small;
      return out;
    case kBytes:
      if (!in.ReadVarint32(&small) || small > kLongestMessage ||
          !in.ReadString(&out.bytes, static_cast<int>(small))) {
        return std::nullopt;
      }
      return out;
    default:
      return std::nullopt;
  }
}

template <class Each>
bool for_each_field(const std::string& message, Each&& each) {
  CodedInputStream in(reinterpret_cast<const std::uint8_t*>(message.data()),
                      static_cast<int>(message.size()));
  while (const auto field = next_field(in)) each(*field);
  return in.CurrentPosition() == static_cast<int>(message.size());
}

/// An attribute: its name, and the one value that it has.
void set_attribute(const std::string& message, chakra::Node& node, std::int64_t& kind) {
  constexpr std::uint32_t kName = 1;
  std::string name, text;
  std::uint64_t value = 0;
  for_each_field(message, [&](const Field& field) {
    if (field.number == kName) {
      name = field.bytes;
    } else {
      value = field.value;
      text = field.bytes;
    }
  });
  const auto number = static_cast<std::int64_t>(value);
  if (name == "is_cpu_op") node.on_host = value != 0;
  if (name == "tid" || name == "stream") node.thread = number;
  if (name == "comm_type") kind = number;
  if (name == "comm_size") node.collective_bytes = number;
  if (name == "pg_name") node.group = text;
}

/// IOData: values, shapes, types, each as text.
void set_inputs(const std::string& message, chakra::Node& node) {
  for_each_field(message, [&](const Field& field) {
    if (field.number == 2) node.shapes = field.bytes;
    if (field.number == 3) node.types = field.bytes;
  });
}

/// Splitting an op around its kernels numbers the parts: "aten::add_(0)".
void drop_number(std::string& name) {
  const std::size_t open = name.rfind('(');
  if (!name.ends_with(")") || open == std::string::npos || open == 0) return;
  const bool number = name.find_first_not_of("0123456789", open + 1) == name.size() - 1;
  if (number && open + 2 < name.size()) name.resize(open);
}

/// The last of a list of ids, packed or one by one.
void set_parent(const Field& field, chakra::Node& node) {
  std::uint64_t id = field.value;
  if (!field.bytes.empty()) {
    CodedInputStream in(reinterpret_cast<const std::uint8_t*>(field.bytes.data()),
                        static_cast<int>(field.bytes.size()));
    while (in.CurrentPosition() < static_cast<int>(field.bytes.size()) && in.ReadVarint64(&id)) {
    }
  }
  node.parent = static_cast<std::int64_t>(id);
}

bool node_of(const std::string& message, chakra::Node& node) {
  std::int64_t kind = -1;
  std::uint64_t type = 0;
  const bool whole = for_each_field(message, [&](const Field& field) {
    switch (field.number) {
      case 1:
        node.id = static_cast<std::int64_t>(field.value);
        break;
      case 2:
        node.name = field.bytes;
        drop_number(node.name);
        break;
      case 3:
        type = field.value;
        break;
      case 4:
        set_parent(field, node);
        break;
      case 7:
        node.duration_us = static_cast<std::int64_t>(field.value);
        break;
      case 8:
        set_inputs(field.bytes, node);
        break;
      case 10:
        set_attribute(field.bytes, node, kind);
        break;
      default:
        break;
    }
  });
  if (kind >= 0 && kind < static_cast<std::int64_t>(kKinds.size())) {
    node.collective = kKinds[static_cast<std::size_t>(kind)];
  } else if (!node.on_host && (type == kSend || type == kReceive)) {
    node.collective = "send_recv";
  }
  return whole;
}

class ChakraReader final : public TraceReader {
 public:
  [[nodiscard]] std::string_view format() const override { return "Chakra"; }
  [[nodiscard]] bool recognises(std::string_view head) const override {
    return chakra::looks_like_chakra(head);
  }
  [[nodiscard]] Trace read(ByteSource& source) const override {
    Trace trace;
    trace.name = source.name();
    trace.format = format();
    const std::string text = read_rest(source, kLargest);
    chakra::NodeBuilder builder(trace);
    CodedInputStream in(reinterpret_cast<const std::uint8_t*>(text.data()),
                        static_cast<int>(text.size()));
    bool first = true;
    std::uint32_t size = 0;
    while (in.CurrentPosition() < static_cast<int>(text.size())) {
      std::string message;
      if (!in.ReadVarint32(&size) || size > kLongestMessage ||
          !in.ReadString(&message, static_cast<int>(size))) {
        trace.stats.add("files that end inside of a message", ImportStats::Severity::kError, 1,
                        "byte " + std::to_string(in.CurrentPosition()));
        break;
      }
      if (std::exchange(first, false)) continue;  // GlobalMetadata
      chakra::Node node;
      if (!node_of(message, node)) {
        trace.stats.add("nodes that are cut off", ImportStats::Severity::kError);
      }
      builder.add(node);
    }
    builder.finish();
    return trace;
  }
};

}  // namespace

std::unique_ptr<TraceReader> chakra_reader() { return std::make_unique<ChakraReader>(); }

bool reads_chakra() { return true; }

}  // namespace towtank
