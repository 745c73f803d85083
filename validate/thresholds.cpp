// SPDX-License-Identifier: Apache-2.0
#include "validate/thresholds.h"

#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <system_error>

#include "core/contracts.h"
#include "core/text.h"
#include "core/unit_text.h"

namespace towtank {
namespace {

constexpr std::array<std::string_view, 12> kNames{
    "mape",   "median", "p90",        "bias",       "regret",     "worst",
    "memory", "tau",    "coverage50", "coverage90", "oom_missed", "oom_false"};

bool at_least(ThresholdFigure figure) {
  return figure == ThresholdFigure::kTau || figure == ThresholdFigure::kCoverage50 ||
         figure == ThresholdFigure::kCoverage90;
}

std::optional<double> times_100(std::optional<double> fraction) {
  if (fraction) *fraction *= 100;
  return fraction;
}

/// The figure in the table's unit.
std::optional<double> figure_of(const Score& s, ThresholdFigure figure) {
  switch (figure) {
    case ThresholdFigure::kMape:
      return times_100(s.mape);
    case ThresholdFigure::kMedian:
      return times_100(s.median);
    case ThresholdFigure::kP90:
      return times_100(s.p90);
    case ThresholdFigure::kBias:
      return s.bias ? std::optional(100 * std::abs(*s.bias)) : std::nullopt;
    case ThresholdFigure::kRegret:
      return times_100(s.regret_mean);
    case ThresholdFigure::kWorst:
      return times_100(s.regret_worst);
    case ThresholdFigure::kMemory:
      return times_100(s.memory_mape);
    case ThresholdFigure::kTau:
      return s.tau;
    case ThresholdFigure::kCoverage50:
      return times_100(s.coverage50);
    case ThresholdFigure::kCoverage90:
      return times_100(s.coverage90);
    case ThresholdFigure::kOomMissed:
      return s.measured_oom.ran;
    case ThresholdFigure::kOomFalse:
      return s.measured_ran.oom;
  }
  contract_violated("EXPECTS", "a known figure", __FILE__, __LINE__);
}

std::string_view name_of(ThresholdFigure figure) {
  return kNames[static_cast<std::size_t>(figure)];
}

std::optional<Threshold> parse_one(std::string_view text, const std::string& where,
                                   Faults& faults) {
  const std::size_t equals = text.find('=');
  const std::size_t colon = text.rfind(':', equals);
  Threshold out;
  if (colon != std::string_view::npos) out.set = std::string(text.substr(0, colon));
  const std::size_t start = colon == std::string_view::npos ? 0 : colon + 1;
  const std::string_view name =
      equals == std::string_view::npos ? text.substr(start) : text.substr(start, equals - start);
  const auto* at = std::find(kNames.begin(), kNames.end(), name);
  if (at == kNames.end()) {
    const auto near = nearest(name, kNames);
    faults.add({where, in_quotes(name) + " is not a figure that has a bar", "",
                near ? "Did you mean " + *near + "?" : "Give one as mape=10"});
    return std::nullopt;
  }
  out.figure = static_cast<ThresholdFigure>(at - kNames.begin());
  const std::string_view number =
      equals == std::string_view::npos ? std::string_view() : text.substr(equals + 1);
  const auto read = std::from_chars(number.data(), number.data() + number.size(), out.bar);
  if (read.ec != std::errc() || read.ptr != number.data() + number.size() ||
      !std::isfinite(out.bar)) {
    faults.add({where, in_quotes(text) + " has no number", "", "Give one as mape=10"});
    return std::nullopt;
  }
  return out;
}

std::optional<std::string> missed_by(const Threshold& t, const SetScore& set) {
  const auto figure = figure_of(set.score, t.figure);
  const std::string name = set.name + ": " + std::string(name_of(t.figure));
  if (!figure) {
    if (t.set.empty()) return std::nullopt;
    return name + " cannot be computed: no case has what it needs";
  }
  const bool met = at_least(t.figure) ? *figure >= t.bar : *figure <= t.bar;
  if (met) return std::nullopt;
  return name + " is " + three_digits(*figure) + ", must be " +
         (at_least(t.figure) ? ">= " : "<= ") + three_digits(t.bar);
}

}  // namespace

std::vector<Threshold> parse_thresholds(std::string_view text, const std::string& where,
                                        Faults& faults) {
  std::vector<Threshold> out;
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t end = std::min(text.find(',', start), text.size());
    if (auto one = parse_one(text.substr(start, end - start), where, faults)) {
      out.push_back(std::move(*one));
    }
    start = end + 1;
  }
  return out;
}

std::vector<std::string> missed(const std::vector<Threshold>& thresholds, const Validation& v) {
  std::vector<std::string> out;
  for (const Threshold& t : thresholds) {
    bool found = t.set.empty();
    const auto look = [&](const SetScore& set) {
      if (!t.set.empty() && set.name != t.set) return;
      found = true;
      if (auto text = missed_by(t, set)) out.push_back(std::move(*text));
    };
    for (const SetScore& set : v.sets) look(set);
    if (v.pooled) look(*v.pooled);
    if (!found) out.push_back(t.set + ": no case of this set was given");
  }
  return out;
}

}  // namespace towtank
