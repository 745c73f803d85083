// SPDX-License-Identifier: Apache-2.0
#include "model/cost/fit/collective_fit.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <set>
#include <utility>

#include "core/contracts.h"
#include "core/text.h"
#include "core/unit_text.h"
#include "model/cost/fit/least_squares.h"

namespace towtank {
namespace {

constexpr std::size_t kMostOutliers = 10;
// A single payload tells a share; without smaller ones nothing else.
constexpr std::size_t kLeastPayloads = 3;
constexpr FitParameter kStep{.start = 2e-6, .low = 1e-8, .high = 5e-5, .fixed = false};
constexpr FitParameter kLowStep{.start = 5e-7, .low = 1e-8, .high = 5e-5, .fixed = false};
constexpr FitParameter kLowShare{.start = 0.25, .low = 0.05, .high = 1.0, .fixed = false};
constexpr FitParameter kLaunch{.start = 2e-5, .low = 1e-7, .high = 2e-3, .fixed = false};
// Two links to one peer of a mesh that counts as one reach 2.
constexpr FitParameter kShare{.start = 0.7, .low = 0.005, .high = 4.0, .fixed = false};
enum Fixed : std::size_t { kStepAt, kLowStepAt, kLowShareAt, kFixedCount };

std::size_t level_index(FabricLevel level) { return static_cast<std::size_t>(level); }

GroupShape shape_of(const CollectiveMeasurement& m, std::size_t levels) {
  GroupShape group;
  group.size = m.ranks;
  group.per_level.assign(levels, 1);
  group.per_level[0] = m.ranks_per_node;
  if (levels > 1) group.per_level[1] = m.ranks / m.ranks_per_node;
  return group;
}

int ranks_at(const CollectiveMeasurement& m, FabricLevel level) {
  return level == FabricLevel::kIntranode ? m.ranks : m.ranks / m.ranks_per_node;
}

class CollectiveFitter {
 public:
  CollectiveFitter(const CollectiveKey& key, const std::vector<CollectiveRow>& rows,
                   const CollectiveParameters& parameters, const std::vector<double>& weight)
      : key_(key), rows_(rows), parameters_(parameters) {
    std::set<int> ranks;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (weight[i] > 0.0) ranks.insert(ranks_at(*rows[i].measurement, key.level));
      profiles_.insert(rows[i].profile->name);
    }
    ranks_.assign(ranks.begin(), ranks.end());
    problem_.weight = weight;
    problem_.parameters = {kStep, kLowStep, kLowShare};
    problem_.parameters.insert(problem_.parameters.end(), profiles_.size(), kLaunch);
    problem_.parameters.insert(problem_.parameters.end(), ranks_.size(), kShare);
    for (const CollectiveRow& row : rows) {
      problem_.log_measured.push_back(std::log(row.measurement->time.median.value));
    }
    problem_.predict = [this](std::span<const double> values, std::span<double> out) {
      predict(values, out);
    };
  }
  CollectiveFitter(const CollectiveFitter&) = delete;
  CollectiveFitter& operator=(const CollectiveFitter&) = delete;
  ~CollectiveFitter() = default;

  /// With the protocol for small payloads where the rows tell it.
  FitResult run() {
    if (single_payload()) {
      low_ = false;
      for (std::size_t i = 0; i < kFixedCount + profiles_.size(); ++i) {
        problem_.parameters[i].fixed = true;
      }
      problem_.parameters[kStepAt].start = documented().step.value;
      for (std::size_t i = 0; i < profiles_.size(); ++i) {
        problem_.parameters[kFixedCount + i].start = documented().launch.value;
      }
      return fit_robustly(problem_);
    }
    FitResult with = fit_robustly(problem_);
    const double share = with.value[kLowShareAt];
    if (with.told[kLowShareAt] && share > 1.01 * kLowShare.low && share < kMostLowShare)
      return with;
    low_ = false;
    problem_.parameters[kLowStepAt].fixed = problem_.parameters[kLowShareAt].fixed = true;
    FitResult without = fit_robustly(problem_);
    if (without.told[kStepAt]) return without;
    tied_ = true;
    problem_.parameters[kStepAt].fixed = true;
    return fit_robustly(problem_);
  }

  /// Where launches and hops cannot be told apart, a hop costs what is documented, and less where
  /// launches do.
  [[nodiscard]] double step_of(std::span<const double> values) const {
    if (!tied_) return values[kStepAt];
    const auto launches = values.subspan(kFixedCount, profiles_.size());
    const double least = *std::min_element(launches.begin(), launches.end());
    return documented().step.value * std::min(1.0, least / documented().launch.value);
  }

  [[nodiscard]] LinkParameters link(std::span<const double> values) const {
    LinkParameters out;
    out.step = {step_of(values)};
    out.low_step = {values[kLowStepAt]};
    out.low_share = low_ ? values[kLowShareAt] : 0.0;
    std::vector<CollectiveRecord::Share> shares;
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      shares.push_back({ranks_[i], {values[first_share() + i], 0.0, true}});
    }
    for (int n = 1; n <= LinkParameters::kMostRanks; ++n) {
      out.share[static_cast<std::size_t>(n)] = share_at(shares, n);
    }
    return out;
  }

  [[nodiscard]] const std::set<std::string>& profiles() const { return profiles_; }
  [[nodiscard]] const std::vector<int>& ranks() const { return ranks_; }
  [[nodiscard]] std::size_t first_share() const { return kFixedCount + profiles_.size(); }
  [[nodiscard]] bool low() const { return low_; }
  [[nodiscard]] bool fixed(std::size_t i) const { return problem_.parameters[i].fixed; }
  [[nodiscard]] const LinkParameters& documented() const {
    return parameters_.level[level_index(key_.level)][static_cast<std::size_t>(key_.op)];
  }

 private:
  static constexpr double kMostLowShare = 0.9;

  [[nodiscard]] bool single_payload() const {
    std::set<std::int64_t> payloads;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      if (problem_.weight[i] > 0.0) payloads.insert(rows_[i].measurement->payload.value);
    }
    return payloads.size() < kLeastPayloads;
  }

  void predict(std::span<const double> values, std::span<double> out) const {
    CollectiveParameters p = parameters_;
    p.level[level_index(key_.level)][static_cast<std::size_t>(key_.op)] = link(values);
    std::map<std::string, double> launch;
    std::size_t at = kFixedCount;
    for (const std::string& profile : profiles_) launch[profile] = values[at++];
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const CollectiveMeasurement& m = *rows_[i].measurement;
      const NetworkView& view = *rows_[i].view;
      const CollectiveCall call{key_.op, m.payload, shape_of(m, view.levels.size())};
      const CollectiveCost cost = collective_cost(call, view, p);
      const double time = launch[rows_[i].profile->name] + cost.latency.value + cost.transfer.value;
      out[i] = std::log(time);
    }
  }

  const CollectiveKey& key_;
  const std::vector<CollectiveRow>& rows_;
  const CollectiveParameters& parameters_;
  std::set<std::string> profiles_;
  std::vector<int> ranks_;
  FitProblem problem_;
  bool low_ = true;
  bool tied_ = false;
};

/// Payloads of training are large; the others all take about as long as an empty one.
double importance_of(const CollectiveMeasurement& m) {
  constexpr double kLarge = 1 << 20;
  constexpr double kLeast = 0.1;
  return std::clamp(static_cast<double>(m.payload.value) / kLarge, kLeast, 1.0);
}

/// Names by which rows count and are left out.
struct RowNames {
  std::vector<std::string> groups, ranks, octaves, cells;
};

RowNames names_of(const CollectiveKey& key, const std::vector<CollectiveRow>& rows) {
  RowNames out;
  for (const CollectiveRow& row : rows) {
    const CollectiveMeasurement& m = *row.measurement;
    out.groups.push_back(row.profile->name + ": " + m.group);
    out.ranks.push_back(std::to_string(ranks_at(m, key.level) + 1000) + " ranks");
    const int octave = std::ilogb(static_cast<double>(m.payload.value));
    out.octaves.push_back(std::to_string(octave + 1000));
    out.cells.push_back(row.profile->name + "\n" + out.ranks.back() + "\n" + out.octaves.back());
  }
  return out;
}

std::vector<CollectiveRow> thinned(const CollectiveKey& key,
                                   const std::vector<CollectiveRow>& rows) {
  const RowNames names = names_of(key, rows);
  std::map<std::string, std::size_t> size;
  for (const std::string& cell : names.cells) ++size[cell];
  std::map<std::string, std::size_t> seen;
  std::vector<CollectiveRow> out;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::size_t total = size[names.cells[i]];
    const std::size_t kept = std::min(total, kMostOfCell);
    const std::size_t at = seen[names.cells[i]]++;
    // The rows at which the running share of `kept` passes a whole number.
    if ((at + 1) * kept / total > at * kept / total) out.push_back(rows[i]);
  }
  return out;
}

Estimate estimate(const FitResult& fit, std::size_t i, bool fixed) {
  const double value = fit.value[i];
  return {value, fixed ? 0.0 : std::min(1.0, fit.relative_error[i]) * value, !fixed};
}

void fill_record(const NetworkView& view, const CollectiveFitter& fitter, const FitResult& fit,
                 CollectiveRecord& record) {
  record.fabric = view.levels[level_index(record.level)].fabric;
  const bool intranode = record.level == FabricLevel::kIntranode;
  record.topology = intranode ? view.topology : IntranodeTopology::kSwitch;
  const bool mesh = record.topology == IntranodeTopology::kMesh;
  record.node_devices = mesh ? view.node_slots : 0;
  record.step = {fitter.step_of(fit.value), 0.0, false};
  if (!fitter.fixed(kStepAt)) record.step = estimate(fit, kStepAt, false);
  if (fitter.low()) {
    record.low_step = estimate(fit, kLowStepAt, false);
    record.low_share = estimate(fit, kLowShareAt, false);
  }
  std::size_t least = kFixedCount;
  for (std::size_t i = kFixedCount; i < fitter.first_share(); ++i) {
    if (fit.value[i] < fit.value[least]) least = i;
  }
  record.launch = estimate(fit, least, fitter.fixed(least));
  for (std::size_t i = 0; i < fitter.ranks().size(); ++i) {
    record.shares.push_back({fitter.ranks()[i], estimate(fit, fitter.first_share() + i, false)});
  }
  record.evidence.profiles.assign(fitter.profiles().begin(), fitter.profiles().end());
}

std::vector<double> held_out(const CollectiveKey& key, const std::vector<CollectiveRow>& rows,
                             const CollectiveParameters& parameters,
                             const std::vector<double>& weight, const FitResult& fit,
                             const Folds& folds) {
  if (folds.count == 0) return fit.residual;
  std::vector<double> out(rows.size());
  for (int fold = 0; fold < folds.count; ++fold) {
    std::vector<double> others = weight;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (folds.of_row[i] == fold) others[i] = 0.0;
    }
    const FitResult without = CollectiveFitter(key, rows, parameters, others).run();
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (folds.of_row[i] == fold) out[i] = without.residual[i];
    }
  }
  return out;
}

/// Bus bandwidth of a row through one node.
double through_node(const CollectiveRow& row) {
  const CollectiveMeasurement& m = *row.measurement;
  return bus_bandwidth(m.op, m.payload, m.ranks, m.time.median).value;
}

void limit_if_no_port_is_filled(const std::vector<CollectiveRow>& rows,
                                const std::vector<double>& weight, const LinkParameters& documented,
                                CollectiveFit& out) {
  CollectiveRecord& record = out.record;
  if (record.level == FabricLevel::kIntranode) return;
  const auto fills = [](const CollectiveRow& row) {
    const NetworkView::Level& level = row.view->levels[1];
    return row.measurement->ranks_per_node == 1 || through_node(row) >= level.bandwidth.value;
  };
  if (std::any_of(rows.begin(), rows.end(), fills)) return;
  std::vector<double> logs;
  for (const CollectiveRow& row : rows) logs.push_back(std::log(through_node(row)));
  const ResidualStats stats = stats_of(logs, weight);
  const double limit = std::exp(stats.bias);
  record.group_limit = Estimate{limit, limit * stats.spread, true};
  record.shares = {{2, {documented.share_of(2), 0.0, false}}};
  record.evidence.bias = 0.0;
  record.evidence.spread = stats.spread;
  for (double& x : logs) x -= stats.bias;
  record.evidence.median = stats_of(logs, weight).median;
  out.report.notes.emplace_back(
      "no row fills one port: what a group gets through a node is taken as a limit of the "
      "communicator. Several groups at once would tell");
}

void add_outliers(const std::vector<CollectiveRow>& rows, const RowNames& names,
                  const FitResult& fit, CollectiveFit& out) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (is_outlier(fit.residual[i], fit.scale)) order.push_back(i);
  }
  out.record.evidence.outliers = static_cast<int>(order.size());
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::abs(fit.residual[a]) > std::abs(fit.residual[b]);
  });
  order.resize(std::min(order.size(), kMostOutliers));
  for (const std::size_t i : order) {
    const double measured = rows[i].measurement->time.median.value;
    out.report.outliers.push_back({names.groups[i] + ", " + to_text(rows[i].measurement->payload),
                                   {measured},
                                   {measured * std::exp(-fit.residual[i])}});
  }
}

void add_notes(const CollectiveFitter& fitter, const FitResult& fit, RecordReport& report) {
  std::size_t i = kFixedCount;
  for (const std::string& profile : fitter.profiles()) {
    report.notes.push_back("a call of " + profile + " costs " + to_text(Seconds{fit.value[i++]}) +
                           " beside its hops");
  }
  if (!fitter.low()) {
    report.untold.emplace_back(
        "the protocol for small payloads: times of small ones are too few or too scattered. "
        "Measure 1 KB to 1 MB in a CUDA graph");
  }
  if (fitter.fixed(kStepAt)) {
    report.untold.emplace_back(
        "step_s is the documented one, less where launches are: neither payloads nor ranks differ "
        "enough. Measure 1 MB to 1 GB on two numbers of ranks");
  }
}

}  // namespace

double share_at(const std::vector<CollectiveRecord::Share>& shares, int ranks) {
  EXPECTS(!shares.empty());
  const auto above =
      std::find_if(shares.begin(), shares.end(), [&](const auto& s) { return s.ranks >= ranks; });
  if (above == shares.end()) return shares.back().share.value;
  if (above == shares.begin() || above->ranks == ranks) return above->share.value;
  const auto below = above - 1;
  const double x = (1.0 / below->ranks - 1.0 / ranks) / (1.0 / below->ranks - 1.0 / above->ranks);
  return below->share.value + x * (above->share.value - below->share.value);
}

LinkParameters link_of(const CollectiveRecord& record) {
  LinkParameters out;
  out.launch = {record.launch.value};
  out.step = {record.step.value};
  out.low_step = {record.low_step.value};
  out.low_share = record.low_share.value;
  if (record.group_limit) out.group_limit = BytesPerSecond{record.group_limit->value};
  for (int n = 1; n <= LinkParameters::kMostRanks; ++n) {
    out.share[static_cast<std::size_t>(n)] = share_at(record.shares, n);
  }
  return out;
}

std::variant<CollectiveFit, Refusal> fit_collective(const CollectiveKey& key,
                                                    const std::vector<CollectiveRow>& all,
                                                    CollectiveParameters& parameters) {
  const std::vector<CollectiveRow> rows = thinned(key, all);
  EXPECTS(!rows.empty() && level_index(key.level) < rows.front().view->levels.size());
  const RowNames names = names_of(key, rows);
  std::vector<double> importance;
  for (const CollectiveRow& row : rows) importance.push_back(importance_of(*row.measurement));
  const std::vector<double> weight = cell_weights(names.cells, importance);
  CollectiveFitter fitter(key, rows, parameters, weight);
  const FitResult fit = fitter.run();
  CollectiveFit out;
  CollectiveRecord& record = out.record;
  record.level = key.level;
  record.op = key.op;
  fill_record(*rows.front().view, fitter, fit, record);
  record.payload = {1e30, 0.0};
  for (const CollectiveRow& row : rows) {
    const auto payload = static_cast<double>(row.measurement->payload.value);
    record.payload.low = std::min(record.payload.low, payload);
    record.payload.high = std::max(record.payload.high, payload);
  }
  const bool mesh = record.topology == IntranodeTopology::kMesh;
  const bool even = record.topology == IntranodeTopology::kSwitch;
  const Folds folds = !even ? folds_of(names.octaves, names.octaves, "octaves of payload")
                            : folds_of(names.ranks, names.octaves, "octaves of payload");
  const std::vector<double> residuals = held_out(key, rows, parameters, weight, fit, folds);
  const ResidualStats stats = stats_of(residuals, weight);
  record.evidence.rows = static_cast<int>(rows.size());
  if (rows.size() < all.size()) {
    out.report.notes.push_back(std::to_string(rows.size()) + " of " + std::to_string(all.size()) +
                               " rows are used: dense sweeps are thinned");
  }
  record.evidence.held_out = folds.text;
  record.evidence.held_out_rows = folds.count > 0 ? stats.rows : 0;
  record.evidence.bias = stats.bias;
  record.evidence.spread = stats.spread;
  record.evidence.median = stats.median;
  out.report.title = std::string(to_text(key.op)) + " on " + record.fabric + ", " +
                     std::string(kFabricLevelNames[level_index(key.level)]) +
                     (mesh ? ", mesh of " + std::to_string(record.node_devices) : "");
  out.report.groups = by_group(names.groups, residuals, weight);
  const LinkParameters documented = fitter.documented();
  limit_if_no_port_is_filled(rows, weight, documented, out);
  add_outliers(rows, names, fit, out);
  add_notes(fitter, fit, out.report);
  parameters.level[level_index(key.level)][static_cast<std::size_t>(key.op)] = link_of(record);
  return out;
}

}  // namespace towtank
