// SPDX-License-Identifier: Apache-2.0
#include "model/cost/fit/op_fit.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "core/contracts.h"
#include "core/text.h"
#include "core/unit_text.h"
#include "model/cost/fit/parts.h"
#include "model/cost/fit/shape_families.h"
#include "model/cost/fit/term_bounds.h"
#include "model/cost/op_formula.h"

namespace towtank {
namespace {

constexpr double kTile = 128.0;
constexpr double kLeastImportance = 0.1;
constexpr std::size_t kLeastShapes = 8;
constexpr std::size_t kMostOutliers = 10;
// A launch on the device alone takes 2 us; calls that are slower than a millisecond are no
// launches.
constexpr double kLeastHost = 1e-7;
constexpr double kMostHost = 1e-3;

bool is_backward(const OpRow& row) { return row.measurement->signature.pass != Pass::kForward; }

double size_of(const OpSignature& s) {
  return s.kind == OpKind::kMatmul ? s.work.value : static_cast<double>(s.traffic.value);
}

/// Products narrower than a tile count less.
double importance_of(const OpSignature& s) {
  if (s.kind != OpKind::kMatmul || s.m == 0) return 1.0;
  const auto narrowest = static_cast<double>(std::min({s.m, s.n, s.k}));
  return std::clamp(narrowest / kTile, kLeastImportance, 1.0);
}

std::string shape_text(const OpSignature& s) {
  if (s.m == 0) return to_text(s.traffic);
  return std::to_string(s.batch) + " x " + std::to_string(s.m) + " x " + std::to_string(s.n) +
         " x " + std::to_string(s.k);
}

class OpFitter {
 public:
  OpFitter(const DeviceKind& device, const OpKey& key, const std::vector<OpRow>& rows,
           OpParameters& parameters)
      : device_(device), key_(key), rows_(rows), parameters_(parameters) {
    terms_ = terms_of(key.kind, key.fused);
    for (const OpRow& row : rows) parts_.push_back(parts_of(row.measurement->signature));
    set_names();
    set_launchers();
    set_problem();
  }

  OpFit run() {
    FitResult fit = fit_told();
    mark_host_bound(fit);
    const std::vector<double> out = held_out_residuals(problem_, fit, folds());
    OpFit result;
    apply(fit.value, parameters_);
    fill_record(fit, out, result.record);
    fill_report(fit, out, result.report);
    return result;
  }

 private:
  void set_names() {
    for (const OpRow& row : rows_) {
      const OpMeasurement& m = *row.measurement;
      groups_.push_back(row.profile->name + ": " + m.group);
      const int octave = std::ilogb(std::max(1.0, size_of(m.signature)));
      octaves_.push_back(std::to_string(octave + 1000));
      cells_.push_back(groups_.back() + "\n" + m.label + "\n" + octaves_.back() +
                       (is_backward(row) ? "b" : "f"));
    }
  }

  /// A parameter for each profile and direction whose times contain a launch.
  void set_launchers() {
    std::map<std::string, std::size_t> number;
    for (const OpRow& row : rows_) {
      if (!row.profile->launch_included) {
        launcher_.push_back(kNone);
        continue;
      }
      const std::string name = row.profile->name + (is_backward(row) ? " backward" : " forward");
      const auto [at, added] = number.emplace(name, launchers_.size());
      if (added) launchers_.push_back(name);
      launcher_.push_back(at->second);
    }
  }

  void set_problem() {
    std::vector<double> importance;
    for (const OpRow& row : rows_) {
      problem_.log_measured.push_back(std::log(row.measurement->time.median.value));
      importance.push_back(importance_of(row.measurement->signature));
    }
    problem_.weight = cell_weights(cells_, importance);
    const bool backward = std::any_of(rows_.begin(), rows_.end(), is_backward);
    for (const OpTerm term : terms_) {
      FitParameter p = bounds_of(key_.kind, key_.fused, term);
      p.start = std::clamp(documented(term), p.low, p.high);
      p.fixed = (term == OpTerm::kBackwardShare && !backward) ||
                (hides_behind_launch(term) && launchers_only());
      problem_.parameters.push_back(p);
    }
    for (std::size_t i = 0; i < launchers_.size(); ++i) {
      problem_.parameters.push_back({host_start(i), kLeastHost, kMostHost, false});
    }
    problem_.predict = [this](std::span<const double> values, std::span<double> out) {
      predict(values, out);
    };
  }

  /// Times that all contain a launch say nothing of the first microseconds on the device.
  [[nodiscard]] bool launchers_only() const {
    return std::none_of(launcher_.begin(), launcher_.end(),
                        [](std::size_t launcher) { return launcher == kNone; });
  }
  [[nodiscard]] static bool hides_behind_launch(OpTerm term) {
    return term == OpTerm::kGap || term == OpTerm::kRamp;
  }

  /// About where the shortest times of a launcher lie.
  [[nodiscard]] double host_start(std::size_t launcher) const {
    std::vector<double> times;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      if (launcher_[i] == launcher) times.push_back(rows_[i].measurement->time.median.value);
    }
    std::sort(times.begin(), times.end());
    return std::clamp(times[times.size() / 10], kLeastHost, kMostHost / 2.0);
  }

  [[nodiscard]] double documented(OpTerm term) const {
    return term_of(parameters_, key_.kind, key_.fused, key_.dtypes.front(), term);
  }

  void apply(std::span<const double> values, OpParameters& to) const {
    for (std::size_t i = 0; i < terms_.size(); ++i) {
      double value = values[i];
      // Without a backward row, gradients reach what forward does.
      if (terms_[i] == OpTerm::kBackwardShare && no_backward()) value = values[0];
      for (const DType d : key_.dtypes) set_term(to, key_.kind, key_.fused, d, terms_[i], value);
    }
  }
  [[nodiscard]] bool no_backward() const {
    return std::none_of(rows_.begin(), rows_.end(), is_backward);
  }

  /// Seconds of the parts of a row, without its launcher.
  [[nodiscard]] double device_time(const OpFormula& formula, std::size_t i) const {
    double sum = 0.0;
    for (const OpSignature& part : parts_[i]) sum += formula(part).time.value;
    return sum;
  }
  [[nodiscard]] double host_time(std::span<const double> values, std::size_t i) const {
    return launcher_[i] == kNone ? 0.0 : values[terms_.size() + launcher_[i]];
  }
  [[nodiscard]] OpFormula formula_with(std::span<const double> values) const {
    OpParameters p = parameters_;
    p.host = {0.0};
    apply(values, p);
    return {device_, p};
  }
  void predict(std::span<const double> values, std::span<double> out) const {
    const OpFormula formula = formula_with(values);
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      out[i] = std::log(std::max(device_time(formula, i), host_time(values, i)));
    }
  }

  /// Fixes what the rows do not tell, the least told first, and fits again.
  FitResult fit_told() {
    for (;;) {
      FitResult fit = fit_robustly(problem_);
      std::size_t worst = kNone;
      for (std::size_t i = 0; i < terms_.size(); ++i) {
        if (fit.told[i]) continue;
        if (worst == kNone || fit.relative_error[i] > fit.relative_error[worst]) worst = i;
      }
      if (worst == kNone) return fit;
      problem_.parameters[worst].fixed = true;
      untold_.push_back(terms_[worst]);
    }
  }

  void mark_host_bound(const FitResult& fit) {
    const OpFormula formula = formula_with(fit.value);
    of_device_ = problem_.weight;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      host_bound_.push_back(host_time(fit.value, i) > device_time(formula, i));
      if (host_bound_.back()) of_device_[i] = 0.0;
    }
  }

  [[nodiscard]] Folds folds() const { return folds_of(groups_, octaves_, "octaves of size"); }

  void fill_record(const FitResult& fit, const std::vector<double>& out, OpRecord& record) const {
    record.device_kind = device_.name;
    record.generation = device_.generation;
    record.memory_bandwidth = device_.memory_bandwidth;
    record.peak = product_peak(device_, DType::kBf16);
    record.kind = key_.kind;
    record.fused = key_.fused;
    record.dtypes = key_.dtypes;
    for (std::size_t i = 0; i < terms_.size(); ++i) {
      Estimate e;
      e.value = documented(terms_[i]);
      e.fitted = !problem_.parameters[i].fixed;
      e.error = e.fitted ? std::min(1.0, fit.relative_error[i]) * e.value : 0.0;
      record.terms[static_cast<std::size_t>(terms_[i])] = e;
    }
    fill_ranges(record);
    if (key_.kind == OpKind::kMatmul) record.families = families(fit);
    FitEvidence& evidence = record.evidence;
    std::set<std::string> profiles;
    for (const OpRow& row : rows_) profiles.insert(row.profile->name);
    evidence.profiles.assign(profiles.begin(), profiles.end());
    evidence.rows = static_cast<int>(rows_.size());
    evidence.host_bound =
        static_cast<int>(std::count(host_bound_.begin(), host_bound_.end(), true));
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      evidence.outliers += !host_bound_[i] && is_outlier(fit.residual[i], fit.scale) ? 1 : 0;
    }
    const ResidualStats stats = stats_of(out, of_device_);
    evidence.held_out = folds().text;
    evidence.held_out_rows = folds().count > 0 ? stats.rows : 0;
    evidence.bias = stats.bias;
    evidence.spread = stats.spread;
    evidence.median = stats.median;
  }

  void fill_ranges(OpRecord& record) const {
    const auto widen = [](Range& range, double x) {
      range.low = range.high == 0.0 ? x : std::min(range.low, x);
      range.high = std::max(range.high, x);
    };
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      if (host_bound_[i]) continue;
      const OpSignature& s = parts_[i].front();
      widen(record.traffic, static_cast<double>(rows_[i].measurement->signature.traffic.value));
      if (s.m == 0) continue;
      widen(record.m, static_cast<double>(s.m));
      widen(record.n, static_cast<double>(s.n));
      widen(record.k, static_cast<double>(s.k));
    }
  }

  /// Of rows that are one product and nothing else.
  [[nodiscard]] std::vector<ShapeFamily> families(const FitResult& fit) const {
    std::vector<MeasuredProduct> products;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const OpSignature& s = rows_[i].measurement->signature;
      const bool lone = parts_[i].size() == 1 && s.kernels == 1 && s.m > 0;
      if (!lone || host_bound_[i] || is_outlier(fit.residual[i], fit.scale)) continue;
      products.push_back({s.batch, s.m, s.n, s.k, fit.residual[i]});
    }
    return shape_families(products);
  }

  void fill_report(const FitResult& fit, const std::vector<double>& out,
                   RecordReport& report) const {
    report.title = to_text(key_) + ", on " + device_.name;
    report.groups = by_group(groups_, out, of_device_);
    for (const OpTerm term : untold_) {
      report.untold.push_back(std::string(kOpTermNames[static_cast<std::size_t>(term)]) +
                              " keeps " + three_digits(documented(term)) + ": " +
                              how_to_tell(key_.kind, term));
    }
    if (launchers_only()) {
      report.untold.push_back("ramp_s and gap_s keep " + three_digits(documented(OpTerm::kGap)) +
                              " and the like: " + how_to_tell(key_.kind, OpTerm::kGap));
    }
    if (key_.kind != OpKind::kMatmul && no_backward()) {
      report.untold.emplace_back(
          "backward_share is taken from share: no row is of a backward pass");
    }
    for (std::size_t i = 0; i < launchers_.size(); ++i) {
      report.notes.push_back("a launch of " + launchers_[i] + " takes " +
                             to_text(Seconds{fit.value[terms_.size() + i]}));
    }
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      if (!host_bound_[i] && is_outlier(fit.residual[i], fit.scale)) order.push_back(i);
    }
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return std::abs(fit.residual[a]) > std::abs(fit.residual[b]);
    });
    order.resize(std::min(order.size(), kMostOutliers));
    for (const std::size_t i : order) {
      const OpMeasurement& m = *rows_[i].measurement;
      const double measured = m.time.median.value;
      report.outliers.push_back({groups_[i] + ", " + m.label + ", " + shape_text(m.signature),
                                 {measured},
                                 {measured * std::exp(-fit.residual[i])}});
    }
  }

  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();
  const DeviceKind& device_;
  const OpKey& key_;
  const std::vector<OpRow>& rows_;
  OpParameters& parameters_;
  std::vector<OpTerm> terms_, untold_;
  std::vector<std::vector<OpSignature>> parts_;
  std::vector<std::string> groups_, octaves_, cells_;
  std::vector<std::string> launchers_;
  std::vector<std::size_t> launcher_;
  std::vector<bool> host_bound_;
  std::vector<double> of_device_;  ///< weights without host-bound rows
  FitProblem problem_;
};

}  // namespace

std::vector<DType> dtypes_with(OpKind kind, bool fused, DType d) {
  const bool product = kind == OpKind::kMatmul || kind == OpKind::kConvolution ||
                       (kind == OpKind::kAttention && fused);
  if (!product) {
    return element_width(d) == ElementWidth::kNarrow
               ? std::vector{DType::kFp16, DType::kBf16, DType::kFp8, DType::kFp4, DType::kInt8}
               : std::vector{DType::kFp32, DType::kTf32, DType::kFp64};
  }
  if (d == DType::kFp16 || d == DType::kBf16) return {DType::kFp16, DType::kBf16};
  return {d};
}

std::string to_text(const OpKey& key) {
  std::string text(to_text(key.kind));
  if (key.kind == OpKind::kAttention) text += key.fused ? " (fused)" : " (unfused)";
  std::vector<std::string> names;
  for (const DType d : key.dtypes) names.emplace_back(to_text(d));
  return text + ", " + join_and(names);
}

std::variant<OpFit, Refusal> fit_op(const DeviceKind& device, const OpKey& key,
                                    const std::vector<OpRow>& rows, OpParameters& parameters) {
  EXPECTS(!rows.empty() && !key.dtypes.empty());
  std::set<double> sizes;
  for (const OpRow& row : rows) sizes.insert(size_of(row.measurement->signature));
  if (sizes.size() < kLeastShapes) {
    return Refusal{
        to_text(key) + ", on " + device.name,
        "only " + std::to_string(sizes.size()) + " sizes were measured",
        "Measure " + std::to_string(kLeastShapes) + " sizes or more, over a factor of a hundred"};
  }
  return OpFitter(device, key, rows, parameters).run();
}

}  // namespace towtank
