// SPDX-License-Identifier: Apache-2.0
#include "profiler/import/csv_table.h"

#include <algorithm>
#include <cmath>

#include "core/input_error.h"
#include "core/text.h"
#include "profiler/import/csv_text.h"
#include "profiler/import/detail/table_row.h"

namespace towtank {
namespace {

using detail::TableRow;
using Severity = ImportStats::Severity;

constexpr std::array<std::string_view, 3> kPassNames{"forward", "input_grad", "weight_grad"};
constexpr double kLongest = 7 * 86400;  // of one op: longer durations are corrupt
constexpr double kLargestShape = 1e15;
constexpr std::int64_t kMostCounted = 10'000'000;  // ranks, repeats, kernels
constexpr double kMostBytes = 1e17;                // as op_signature.cpp

/// Why a row gives no measurement.
struct Refusal {
  std::string why;
  Severity severity = Severity::kError;
};

template <std::size_t N>
std::optional<std::size_t> index_of(const std::array<std::string_view, N>& names,
                                    std::string_view name) {
  const auto it = std::find(names.begin(), names.end(), name);
  if (it == names.end()) return std::nullopt;
  return static_cast<std::size_t>(it - names.begin());
}

/// A name of an enumeration. A look-up without the text refuses the row; a text that names nothing
/// is a fault of the mapping.
template <class Enum, std::size_t N>
Enum named(TableRow& row, const TextRule& rule, const std::array<std::string_view, N>& names) {
  const auto text = row.text(rule);
  if (!text) throw Refusal{"rows with " + row.looked_up(rule), Severity::kLoss};
  if (const auto index = index_of(names, *text)) return static_cast<Enum>(*index);
  throw InputError({rule.where, in_quotes(*text) + " is not a known value",
                    "known: " + join({names.begin(), names.end()}, ", "), ""});
}

double real(TableRow& row, const std::optional<NumberRule>& rule, double fallback,
            std::string_view what) {
  if (!rule) return fallback;
  const double value = row.number(*rule);
  if (!std::isfinite(value)) throw Refusal{"rows whose " + std::string(what) + " is not a number"};
  if (value < 0) throw Refusal{"rows whose " + std::string(what) + " is below zero"};
  return value;
}

std::int64_t whole(TableRow& row, const std::optional<NumberRule>& rule, std::int64_t fallback,
                   std::string_view what) {
  if (!rule) return fallback;
  const double value = real(row, rule, 0, what);
  const double rounded = std::round(value);
  constexpr double kRounding = 1e-9;  // of the arithmetic in expressions
  if (rounded < 1 || rounded > kLargestShape || std::abs(value - rounded) > kRounding * rounded) {
    throw Refusal{"rows whose " + std::string(what) + " is not a whole number above zero"};
  }
  return static_cast<std::int64_t>(rounded);
}

int count(TableRow& row, const std::optional<NumberRule>& rule, int fallback,
          std::string_view what) {
  const std::int64_t value = whole(row, rule, fallback, what);
  if (value > kMostCounted) throw Refusal{"rows whose " + std::string(what) + " are too many"};
  return static_cast<int>(value);
}

Seconds seconds(TableRow& row, const NumberRule& rule, double unit, std::string_view what) {
  const double value = row.number(rule) * unit;
  if (std::isnan(value)) throw Refusal{"rows whose " + std::string(what) + " is not a number"};
  if (!(value > 0)) throw Refusal{"rows with times of zero or less", Severity::kLoss};
  if (value > kLongest) throw Refusal{"rows with times of more than a week", Severity::kLoss};
  return Seconds{value};
}

Duration duration(TableRow& row, const TimeRule& rule) {
  std::vector<Seconds> times;
  for (const NumberRule& value : rule.values) {
    times.push_back(seconds(row, value, rule.seconds_per_unit, "time"));
  }
  Duration out = duration_of(times);
  if (times.size() == 1) out.low = out.high = std::nullopt;
  if (rule.low) out.low = seconds(row, *rule.low, rule.seconds_per_unit, "least time");
  if (rule.high) out.high = seconds(row, *rule.high, rule.seconds_per_unit, "largest time");
  if (rule.repeats) out.repeats = count(row, rule.repeats, 1, "repeats");
  if (out.low.value_or(out.median) > out.median || out.high.value_or(out.median) < out.median) {
    throw Refusal{"rows whose least, median and largest time are out of order"};
  }
  return out;
}

OpMeasurement op_of(TableRow& row, const OpRule& rule) {
  const auto kind = named<OpKind>(row, rule.kind, kOpKindNames);
  const auto dtype = named<DType>(row, rule.dtype, kDTypeNames);
  OpMeasurement out;
  OpSignature& s = out.signature;
  const std::int64_t copies = rule.both_gradients ? 2 : 1;
  if (kind == OpKind::kMatmul) {
    s = matmul(dtype, copies * whole(row, rule.batch, 1, "batch"), whole(row, rule.m, 1, "m"),
               whole(row, rule.n, 1, "n"), whole(row, rule.k, 1, "k"));
    s.kernels = static_cast<int>(copies);
  } else {
    s = memory_op(kind, dtype,
                  bytes_from(std::min(real(row, rule.traffic, 0, "traffic"), kMostBytes)),
                  Flop{real(row, rule.work, 0, "work")});
    s.batch = whole(row, rule.batch, 1, "batch");
    s.m = whole(row, rule.m, 0, "m");
    s.n = whole(row, rule.n, 0, "n");
    s.k = whole(row, rule.k, 0, "k");
  }
  s.pass = named<Pass>(row, rule.pass, kPassNames);
  s.causal = rule.causal;
  s.fused = rule.fused;
  s.work += Flop{real(row, rule.extra_work, 0, "extra work")};
  s.traffic += bytes_from(std::min(real(row, rule.extra_traffic, 0, "extra traffic"), kMostBytes));
  s.kernels = count(row, rule.kernels, s.kernels, "kernels");
  out.time = duration(row, rule.time);
  out.label = row.text(rule.label).value_or("");
  out.group = row.text(rule.group).value_or("");
  return out;
}

int ranks_of(TableRow& row, const std::optional<NumberRule>& rule, std::optional<int> given,
             std::string_view what, const CollectiveRule& entry) {
  if (given) return *given;
  if (rule) return count(row, rule, 1, what);
  throw InputError({entry.op.where, "nothing says how many " + std::string(what), "",
                    "Give --ranks, and --ranks-per-node where they are fewer."});
}

CollectiveMeasurement collective_of(TableRow& row, const CollectiveRule& rule,
                                    const ImportOptions& options) {
  CollectiveMeasurement out;
  out.op = named<Collective>(row, rule.op, kCollectiveNames);
  const double payload = real(row, rule.payload, 0, "payload");
  if (payload > kMostBytes) throw Refusal{"rows whose payload is beyond any machine"};
  out.payload = bytes_from(payload);
  out.ranks = ranks_of(row, rule.ranks, options.ranks, "ranks", rule);
  out.ranks_per_node = out.ranks;
  if (rule.ranks_per_node || options.ranks_per_node) {
    out.ranks_per_node =
        std::min(out.ranks,
                 ranks_of(row, rule.ranks_per_node, options.ranks_per_node, "ranks a node", rule));
  }
  if (out.ranks < 2) throw Refusal{"collectives of one rank", Severity::kLoss};
  out.time = duration(row, rule.time);
  out.group = row.text(rule.group).value_or("");
  return out;
}

class CsvImport {
 public:
  CsvImport(const CsvMapping& mapping, const ImportOptions& options)
      : mapping_(&mapping), options_(&options) {
    out_.name = options.name.empty() ? mapping.name : options.name;
    out_.launch_included = mapping.launch_included;
    out_.source = options.source.empty() ? mapping.source : options.source;
    out_.machine = mapping.machine;
    out_.device_kind = options.device_kind;
    out_.fabric_intranode = options.fabric_intranode;
    out_.fabric_internode = options.fabric_internode;
  }

  void read(const SourceText& file) {
    CsvReader records(file.text, mapping_->separator);
    std::vector<std::string> cells;
    std::vector<std::string> columns = mapping_->columns;
    if (mapping_->header) {
      if (!records.next(cells)) {
        throw InputError({printable(file.name, 400), "has no header line", "", ""});
      }
      if (columns.empty()) columns = cells;
      if (columns.size() != cells.size()) {
        throw InputError({at_line(file.name, records.line()),
                          "has " + std::to_string(cells.size()) + " columns",
                          "the mapping names " + std::to_string(columns.size()), ""});
      }
    }
    TableRow row(*mapping_, file.name, columns);
    while (records.next(cells)) {
      ++out_.stats.rows_read;
      if (cells.size() != row.columns().size() || records.unclosed()) {
        out_.stats.add(records.unclosed() ? "rows with a quote that is not closed"
                                          : "rows with more or fewer cells than columns",
                       Severity::kError, 1, at_line(file.name, records.line()));
        continue;
      }
      row.take(std::move(cells), records.line());
      take(row);
    }
  }

  Profile finish(const std::vector<SourceText>& files) {
    if (!out_.ops.empty() || !out_.collectives.empty()) return std::move(out_);
    std::vector<std::string> reasons;
    for (const auto& count : out_.stats.counts) {
      reasons.push_back(std::to_string(count.rows) + " " + count.what);
    }
    throw InputError({files.empty() ? "no file" : printable(files.front().name, 400),
                      "no row gives a measurement",
                      reasons.empty() ? "it has no rows" : join(reasons, "; "), ""});
  }

 private:
  void take(TableRow& row) {
    ImportStats& stats = out_.stats;
    if (!selected(row)) {
      stats.add("rows that are not selected", Severity::kInfo, 1, row.place());
      return;
    }
    if (dropped(row, mapping_->drops)) return;
    applied_ = measured_ = false;
    for (const OpRule& rule : mapping_->ops) {
      measure(row, rule, [&] { out_.ops.push_back(op_of(row, rule)); });
    }
    for (const CollectiveRule& rule : mapping_->collectives) {
      measure(row, rule, [&] { out_.collectives.push_back(collective_of(row, rule, *options_)); });
    }
    if (measured_) {
      ++stats.rows_kept;
      same(row, mapping_->device_kind, options_->device_kind, out_.device_kind, "devices",
           "--device");
      same(row, mapping_->fabric_intranode, options_->fabric_intranode, out_.fabric_intranode,
           "fabrics", "--fabric");
      same(row, mapping_->fabric_internode, options_->fabric_internode, out_.fabric_internode,
           "fabrics between nodes", "--fabric-internode");
    }
    if (!applied_) {
      stats.add("rows that no entry of the mapping takes", Severity::kLoss, 1, row.place());
    }
  }

  bool selected(TableRow& row) const {
    for (const auto& [column, text] : options_->select) {
      if (!row.has_text(column, text, "--select " + column)) return false;
    }
    return row.holds(mapping_->conditions);
  }

  bool dropped(TableRow& row, const std::vector<DropRule>& drops) {
    for (const DropRule& drop : drops) {
      if (!row.holds(drop.conditions)) continue;
      out_.stats.add(drop.because, drop.severity, 1, row.place());
      return true;
    }
    return false;
  }

  template <class Rule, class Make>
  void measure(TableRow& row, const Rule& rule, Make make) {
    if (!row.holds(rule.conditions)) return;
    applied_ = true;
    if (dropped(row, rule.drops)) return;
    try {
      make();
      measured_ = true;
    } catch (const Refusal& refusal) {
      out_.stats.add(refusal.why, refusal.severity, 1, row.place());
    }
  }

  /// A profile is of one device and one fabric.
  static void same(TableRow& row, const std::optional<TextRule>& rule, const std::string& given,
                   std::string& kept, std::string_view what, std::string_view option) {
    if (!rule || !given.empty()) return;
    const std::string value = row.text(*rule).value_or("");
    if (kept.empty()) kept = value;
    if (kept == value) return;
    throw InputError(
        {row.place(), "is of " + in_quotes(value),
         "rows before are of " + in_quotes(kept) + "; a profile is not of two " + std::string(what),
         "Choose rows with --select COLUMN=TEXT, or say it with " + std::string(option) + "."});
  }

  const CsvMapping* mapping_;
  const ImportOptions* options_;
  Profile out_;
  bool applied_ = false, measured_ = false;
};

}  // namespace

Profile import_csv(const std::vector<SourceText>& files, const CsvMapping& mapping,
                   const ImportOptions& options) {
  CsvImport importer(mapping, options);
  for (const SourceText& file : files) importer.read(file);
  return importer.finish(files);
}

}  // namespace towtank
