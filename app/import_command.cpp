// SPDX-License-Identifier: Apache-2.0
#include "app/import_command.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "app/text_table.h"
#include "app/trace_report.h"
#include "core/json.h"
#include "core/text.h"
#include "core/unit_text.h"
#include "platforms/catalogue.h"
#include "platforms/shared_kinds.h"
#include "profiler/analysis/trace_profile.h"
#include "profiler/analysis/trace_summary.h"
#include "profiler/import/import_profile.h"
#include "profiler/import/trace_reader.h"
#include "profiler/profile_json.h"

namespace towtank {
namespace {

constexpr int kMostRanks = 1 << 20;

struct Range {
  double low = 0, high = 0;
  long rows = 0;
  void add(double value) {
    low = rows == 0 ? value : std::min(low, value);
    high = rows == 0 ? value : std::max(high, value);
    ++rows;
  }
};

struct OpClass {
  Range flops, bandwidth;  ///< per second; flops only of ops with work
};
using OpKey = std::tuple<OpKind, Pass, DType>;

std::map<OpKey, OpClass> op_classes(const Profile& profile) {
  std::map<OpKey, OpClass> out;
  for (const OpMeasurement& op : profile.ops) {
    const OpSignature& s = op.signature;
    OpClass& c = out[{s.kind, s.pass, s.dtype}];
    if (s.work.value > 0) c.flops.add((s.work / op.time.median).value);
    c.bandwidth.add((s.traffic / op.time.median).value);
  }
  return out;
}

struct CollectiveClass {
  Range payload, bus;
};
using CollectiveKey = std::tuple<Collective, int, int>;

std::map<CollectiveKey, CollectiveClass> collective_classes(const Profile& profile) {
  std::map<CollectiveKey, CollectiveClass> out;
  for (const CollectiveMeasurement& m : profile.collectives) {
    CollectiveClass& c = out[{m.op, m.ranks, m.ranks_per_node}];
    c.payload.add(static_cast<double>(m.payload.value));
    c.bus.add(bus_factor(m.op, m.ranks) * (m.payload / m.time.median).value);
  }
  return out;
}

std::string_view pass_name(Pass pass) {
  switch (pass) {
    case Pass::kForward:
      return "forward";
    case Pass::kInputGrad:
      return "input_grad";
    case Pass::kWeightGrad:
      return "weight_grad";
  }
  return "";  // not reached: the switch is exhaustive
}

template <class Q>
std::string span_text(const Range& range) {
  if (range.rows == 0) return "-";
  return to_text(Q{range.low}) + " .. " + to_text(Q{range.high});
}

std::string payload_text(const Range& range) {
  const auto text = [](double bytes) { return to_text(Bytes{static_cast<std::int64_t>(bytes)}); };
  return range.low == range.high ? text(range.low) : text(range.low) + " .. " + text(range.high);
}

std::string ops_text(const Profile& profile) {
  if (profile.ops.empty()) return "";
  TextTable table({{"op", Align::kLeft, 0},
                   {"pass", Align::kLeft, 2},
                   {"dtype", Align::kLeft, 2},
                   {"rows", Align::kRight, 2},
                   {"FLOP/s reached", Align::kRight, 3},
                   {"bytes/s reached", Align::kRight, 3}});
  for (const auto& [key, c] : op_classes(profile)) {
    table.add_row({std::string(to_text(std::get<0>(key))), std::string(pass_name(std::get<1>(key))),
                   std::string(to_text(std::get<2>(key))), with_thousands(c.bandwidth.rows),
                   span_text<FlopPerSecond>(c.flops), span_text<BytesPerSecond>(c.bandwidth)});
  }
  return "\n" + table.text();
}

std::string collectives_text(const Profile& profile) {
  if (profile.collectives.empty()) return "";
  TextTable table({{"collective", Align::kLeft, 0},
                   {"ranks", Align::kRight, 2},
                   {"a node", Align::kRight, 2},
                   {"rows", Align::kRight, 2},
                   {"payload", Align::kRight, 3},
                   {"bus bandwidth", Align::kRight, 3}});
  for (const auto& [key, c] : collective_classes(profile)) {
    const auto& [op, ranks, per_node] = key;
    table.add_row({std::string(kCollectiveNames[static_cast<std::size_t>(op)]),
                   std::to_string(ranks), std::to_string(per_node), with_thousands(c.bus.rows),
                   payload_text(c.payload), span_text<BytesPerSecond>(c.bus)});
  }
  return "\n" + table.text();
}

std::string or_unknown(const std::string& text) { return text.empty() ? "not stated" : text; }

Json range_json(const Range& range) { return Json::array({range.low, range.high}); }

ImportOptions options_of(const ArgumentReader& reader) {
  ImportOptions out;
  out.name = reader.text("--name").value_or("");
  out.source = reader.text("--source").value_or("");
  out.device_kind = reader.text("--device").value_or("");
  out.fabric_intranode = reader.text("--fabric").value_or("");
  out.fabric_internode = reader.text("--fabric-internode").value_or("");
  out.ranks = reader.integer("--ranks", 2, kMostRanks);
  out.ranks_per_node = reader.integer("--ranks-per-node", 1, kMostRanks);
  std::string rest = reader.text("--select").value_or("");
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(','), rest.size());
    const std::string item = rest.substr(0, end);
    rest.erase(0, std::min(end + 1, rest.size()));
    const std::size_t equals = item.find('=');
    if (equals == std::string::npos || equals == 0) {
      reader.faults().add({"--select", in_quotes(item) + " is not COLUMN=TEXT", "",
                           "For example --select gpu=A100-40,precision=fp16."});
      continue;
    }
    out.select.emplace_back(item.substr(0, equals), item.substr(equals + 1));
  }
  return out;
}

/// Calibrations are for a device kind of the catalogue; another name is allowed, and said.
std::vector<std::string> notes_on(const Profile& profile) {
  std::vector<std::string> notes;
  const std::vector<std::string> known = SharedKinds().device_names();
  if (!profile.device_kind.empty() &&
      std::find(known.begin(), known.end(), profile.device_kind) == known.end()) {
    const auto near = nearest(profile.device_kind, known);
    notes.push_back("note: " + in_quotes(profile.device_kind) +
                    " is not a device kind of the catalogue" +
                    (near ? "; the nearest is " + *near : ""));
  }
  if (!profile.ops.empty() && profile.device_kind.empty()) {
    notes.emplace_back("note: no device is stated, so these ops calibrate nothing; give --device");
  }
  const bool within =
      std::any_of(profile.collectives.begin(), profile.collectives.end(),
                  [](const CollectiveMeasurement& c) { return c.ranks == c.ranks_per_node; });
  const bool between =
      std::any_of(profile.collectives.begin(), profile.collectives.end(),
                  [](const CollectiveMeasurement& c) { return c.ranks != c.ranks_per_node; });
  if (within && profile.fabric_intranode.empty()) {
    notes.emplace_back(
        "note: no fabric is stated, so collectives in one node calibrate nothing; give --fabric");
  }
  if (between && profile.fabric_internode.empty()) {
    notes.emplace_back(
        "note: no fabric between nodes is stated, so collectives over nodes calibrate nothing; "
        "give --fabric-internode");
  }
  return notes;
}

}  // namespace

CommandSpec import_spec() {
  constexpr std::string_view kWhat = "What the files do not say";
  constexpr std::string_view kOutput = "Output";
  CommandSpec spec{
      "import",
      "turn measurements into a profile",
      "import FILE... [--mapping NAME|FILE] [options] [-o profile.json]",
      "Reads traces of PyTorch's profiler (Kineto; plain, .gz or in an archive; one file a rank) "
      "and of Nsight Systems (.sqlite), execution traces (PyTorch .json, Chakra .et), "
      "nccl-tests, rccl-tests or all_reduce_bench.py output, or tables of durations through a "
      "mapping that says which columns are what, and writes a profile, which `towtank calibrate` "
      "fits. Of traces it prints the step and what it is spent on, the rates that ops and "
      "collectives reach, and which rank the others wait for. What became of every row is told: "
      "each one left out is counted under its reason.",
      {"FILE..."},
      {{"--mapping", "NAME|FILE", kWhat,
        "what the columns of a table are: a mapping of towtank (deepbench_gemm, neusight, "
        "sailor_collectives, sailor_ops, sailor_p2p, vidur_mlp, vidur_network, vtrain_all_reduce, "
        "xla_collectives, xla_matmul) or a towtank-csv-mapping file",
        ValueKind::kFile},
       {"--select", "COLUMN=TEXT,...", kWhat, "take only rows with these texts", ValueKind::kText},
       {"--step-marker", "TEXT", kWhat,
        "annotations of a trace whose name begins so are its steps (default ProfilerStep#)",
        ValueKind::kText},
       {"--platform", "NAME|FILE", kWhat,
        "the machine of a trace: its device, fabrics and node, and what its collectives should "
        "reach",
        ValueKind::kPlatform},
       {"--ranks", "N", kWhat, "ranks of a collective", ValueKind::kText},
       {"--ranks-per-node", "N", kWhat, "those in one node (default: all, or what the file says)",
        ValueKind::kText},
       {"--device", "KIND", kWhat, "device kind, as platforms name it: h100-sxm-80g",
        ValueKind::kText},
       {"--fabric", "KIND", kWhat, "fabric in a node, as platforms name it: nvlink4",
        ValueKind::kText},
       {"--fabric-internode", "KIND", kWhat, "fabric between nodes: ib-ndr400", ValueKind::kText},
       {"--source", "TEXT", kWhat, "who measured it, and where it stands", ValueKind::kText},
       {"--name", "NAME", kOutput, "name of the profile", ValueKind::kText},
       {"--output", "FILE", kOutput, "write the profile to a file", ValueKind::kFile, {}, 'o'},
       {"--json", "", kOutput, "the summary as JSON", ValueKind::kNone}},
      {}};
  spec.examples = {
      {"import examples/traces/rank0.json examples/traces/rank1.json --platform dgx-h100",
       "the traces of a job's ranks"},
      {"import examples/profiles/all_reduce.txt --fabric nvlink4",
       "output of all_reduce_perf with its header lines"},
      {"import examples/profiles/products.csv --mapping examples/profiles/products-mapping.json "
       "--json",
       "a table of your own, through a mapping of your own"},
  };
  return spec;
}

std::string import_rows_text(const ImportStats& stats) {
  std::string out = "Rows      " + with_thousands(stats.rows_read) + " read, " +
                    with_thousands(stats.rows_kept) + " kept\n";
  constexpr std::size_t kIndent = 28;
  for (const ImportStats::Count& count : stats.counts) {
    std::string head(10, ' ');
    head += kSeverityNames[static_cast<std::size_t>(count.severity)];
    head.resize(17, ' ');
    const std::string number = with_thousands(count.rows);
    head += std::string(9 - std::min<std::size_t>(number.size(), 9), ' ') + number;
    out += labelled(head, count.what + (count.first.empty() ? "" : " (first: " + count.first + ")"),
                    kIndent);
  }
  return out;
}

Json import_counts_json(const ImportStats& stats) {
  Json counts = Json::array();
  for (const ImportStats::Count& count : stats.counts) {
    counts.push_back({{"what", count.what},
                      {"severity", kSeverityNames[static_cast<std::size_t>(count.severity)]},
                      {"rows", count.rows},
                      {"first", count.first}});
  }
  return counts;
}

std::string import_text(const Profile& profile) {
  std::string out = labelled("Profile", profile.name, 10);
  if (!profile.ops.empty()) out += labelled("Device", or_unknown(profile.device_kind), 10);
  if (!profile.collectives.empty()) {
    out += labelled("Fabric",
                    or_unknown(profile.fabric_intranode) + "; between nodes " +
                        or_unknown(profile.fabric_internode),
                    10);
  }
  out += labelled(
      "Times", profile.launch_included ? "with launches by the host" : "of the device alone", 10);
  out += labelled("Source", profile.source, 10);
  if (!profile.machine.empty()) out += labelled("Machine", profile.machine, 10);
  return out + import_rows_text(profile.stats) + ops_text(profile) + collectives_text(profile);
}

std::string import_json(const Profile& profile) {
  Json out{{"format", "towtank-import"},
           {"version", 1},
           {"name", profile.name},
           {"device_kind", profile.device_kind},
           {"fabric_intranode", profile.fabric_intranode},
           {"fabric_internode", profile.fabric_internode},
           {"launch_included", profile.launch_included},
           {"source", profile.source},
           {"machine", profile.machine},
           {"rows_read", profile.stats.rows_read},
           {"rows_kept", profile.stats.rows_kept}};
  out["counts"] = import_counts_json(profile.stats);
  Json ops = Json::array();
  for (const auto& [key, c] : op_classes(profile)) {
    Json item{{"kind", to_text(std::get<0>(key))},
              {"pass", pass_name(std::get<1>(key))},
              {"dtype", to_text(std::get<2>(key))},
              {"rows", c.bandwidth.rows}};
    item["flop_per_s"] = c.flops.rows > 0 ? range_json(c.flops) : Json(nullptr);
    item["bytes_per_s"] = range_json(c.bandwidth);
    ops.push_back(std::move(item));
  }
  out["ops"] = std::move(ops);
  Json collectives = Json::array();
  for (const auto& [key, c] : collective_classes(profile)) {
    collectives.push_back({{"op", kCollectiveNames[static_cast<std::size_t>(std::get<0>(key))]},
                           {"ranks", std::get<1>(key)},
                           {"ranks_per_node", std::get<2>(key)},
                           {"rows", c.bus.rows},
                           {"payload_bytes", range_json(c.payload)},
                           {"bus_bytes_per_s", range_json(c.bus)}});
  }
  out["collectives"] = std::move(collectives);
  return to_text(out);
}

/// Files are all traces, or all something else.
struct Measurements {
  std::vector<Trace> traces;
  std::vector<SourceText> texts;
};

Measurements read_measurements(const std::vector<std::string>& paths, bool tables) {
  Measurements out;
  for (const std::string& path : paths) {
    if (tables) {
      out.texts.push_back(read_source(path));
      continue;
    }
    auto read = read_traces_or_text(path);
    if (auto* text = std::get_if<SourceText>(&read)) {
      out.texts.push_back(std::move(*text));
    } else {
      auto& traces = std::get<std::vector<Trace>>(read);
      std::move(traces.begin(), traces.end(), std::back_inserter(out.traces));
    }
  }
  if (!out.traces.empty() && !out.texts.empty()) {
    throw InputError({printable(out.texts.front().name, 400), "is no trace, but another file is",
                      "one profile is made of one kind of files", "Import them one by one."});
  }
  return out;
}

/// What the command line does not say, a named machine does.
void take_from(const Platform& platform, ImportOptions& options) {
  if (platform.nodes.empty()) return;
  const NodeKind& node = platform.node_kinds[platform.nodes.front().kind];
  if (!options.ranks_per_node) options.ranks_per_node = node.devices;
  if (options.device_kind.empty()) options.device_kind = platform.device_kinds[node.device].name;
  if (options.fabric_intranode.empty()) options.fabric_intranode = node.intranode.kind;
  if (options.fabric_internode.empty() && !platform.levels.empty()) {
    options.fabric_internode = platform.levels.front().fabric.kind;
  }
}

std::string trace_result(std::vector<Trace> traces, ImportOptions options,
                         const ArgumentReader& reader, Profile& profile) {
  const auto name = reader.text("--platform");
  std::optional<Platform> platform;
  if (name) platform = load_platform(*name);
  const JobTrace job =
      analyse_traces(std::move(traces), {reader.text("--step-marker").value_or("")});
  const TraceSummary summary = summarise(job);
  if (platform) take_from(*platform, options);
  profile = trace_profile(job, options);
  const ExpectedBus expected = platform ? expected_bus(summary, *platform) : ExpectedBus{};
  return reader.flag("--json") ? trace_json(job, summary, profile, expected)
                               : trace_text(job, summary, profile, expected);
}

Outcome run_import(const Arguments& arguments, const Terminal& /*terminal*/) {
  Faults faults;
  const ArgumentReader reader(arguments, faults);
  const ImportOptions options = options_of(reader);
  if (arguments.positionals.empty()) {
    faults.add({"FILE", "is missing", "", "Give a file, or - for standard input."});
  }
  faults.throw_if_any();
  const std::string mapping = reader.text("--mapping").value_or("");
  Measurements read = read_measurements(arguments.positionals, !mapping.empty());
  Profile profile;
  Outcome out;
  if (!read.traces.empty()) {
    out.out = trace_result(std::move(read.traces), options, reader, profile);
  } else {
    profile = import_profile(read.texts, mapping, options);
    out.out = reader.flag("--json") ? import_json(profile) : import_text(profile);
  }
  out.messages = notes_on(profile);
  if (const auto path = reader.text("--output")) {
    out.files.emplace_back(*path, profile_text(profile));
  }
  return out;
}

}  // namespace towtank
