// SPDX-License-Identifier: Apache-2.0
#include "profiler/import/all_reduce_bench.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <deque>
#include <map>
#include <optional>
#include <string_view>

#include "core/input_error.h"
#include "core/text.h"

namespace towtank {
namespace {

using Severity = ImportStats::Severity;

constexpr double kBitsAndPasses = 16;      // per byte of payload, in the script's throughput
constexpr double kDurationStep = 0.00005;  // seconds: four decimals are printed
constexpr double kDurationShare = 0.001;

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

/// The number at the start of a text, and what follows it.
std::optional<double> leading_number(std::string_view& text) {
  text = trimmed(text);
  double value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(result.ptr - text.data()));
  return value;
}

std::optional<double> number_after(std::string_view line, std::string_view label) {
  if (!line.starts_with(label)) return std::nullopt;
  line.remove_prefix(label.size());
  return leading_number(line);
}

bool is_rank(double value) {
  constexpr double kMostRanks = 1e7;
  return value >= 0 && value < kMostRanks && value == std::floor(value);
}

class LogReader {
 public:
  LogReader(const SourceText& file, ImportStats& stats) : file_(&file), stats_(&stats) {}

  CollectiveMeasurement read(const ImportOptions& options) {
    std::string_view rest = file_->text;
    for (line_ = 1; !rest.empty(); ++line_) {
      const std::size_t end = std::min(rest.find('\n'), rest.size());
      take(trimmed(rest.substr(0, end)));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    return measurement(options);
  }

 private:
  [[nodiscard]] std::string place() const { return at_line(file_->name, line_); }

  void take(std::string_view line) {
    if (const auto local = number_after(line, "local_rank:")) {
      if (is_rank(*local)) local_ranks_ = std::max(local_ranks_, static_cast<int>(*local) + 1);
    } else if (const auto duration = number_after(line, "duration:")) {
      durations_.push_back(*duration);
    } else if (const auto throughput = number_after(line, "algo throughput:")) {
      take_throughput(*throughput);
    } else {
      take_rank_line(line);
    }
  }

  /// "17 data size: 4.0 GB" or "17:"
  void take_rank_line(std::string_view line) {
    std::string_view text = line;
    const auto rank = leading_number(text);
    if (!rank || !is_rank(*rank)) return;
    text = trimmed(text);
    if (text == ":") {
      waiting_.push_back(static_cast<int>(*rank));
    } else if (const auto size = number_after(text, "data size:")) {
      if (!text.ends_with(" GB")) {
        throw InputError({place(), "has a data size in another unit", "GB is known", ""});
      }
      constexpr double kGiga = 1e9, kMostGiga = 1e6;
      if (!(*size > 0 && *size <= kMostGiga)) {
        throw InputError({place(), "has a data size of " + std::to_string(*size) + " GB",
                          "must lie above 0 and at most 1e6", ""});
      }
      const Bytes bytes = bytes_from(*size * kGiga);
      if (payload_.value != 0 && payload_ != bytes) {
        throw InputError({place(), "has another data size than the ranks before",
                          "a log is of one payload", ""});
      }
      payload_ = bytes;
      ranks_[static_cast<int>(*rank)];
    }
  }

  void take_throughput(double throughput) {
    ++stats_->rows_read;
    if (waiting_.empty() || !(throughput > 0)) {
      stats_->add("throughputs without a rank", Severity::kError, 1, place());
      return;
    }
    const double time = kBitsAndPasses * static_cast<double>(payload_.value) / throughput;
    const auto printed = std::find_if(durations_.begin(), durations_.end(), [&](double duration) {
      return std::abs(time - duration) <= kDurationStep + kDurationShare * duration;
    });
    if (printed == durations_.end()) {
      throw InputError({place(), "has a throughput that does not fit duration and data size",
                        "throughput = 16 x size / duration", ""});
    }
    durations_.erase(printed);
    // Ranks whose lines interleave are in the same trial: whose time it is does not matter.
    ranks_[waiting_.front()].push_back(Seconds{time});
    waiting_.pop_front();
  }

  CollectiveMeasurement measurement(const ImportOptions& options) {
    const std::string name = printable(file_->name, 400);
    if (payload_.value == 0) throw InputError({name, "has no data size", "one line a rank", ""});
    CollectiveMeasurement out;
    out.op = Collective::kAllReduce;
    out.payload = payload_;
    out.ranks = static_cast<int>(ranks_.size());
    out.ranks_per_node = local_ranks_ > 0 ? std::min(local_ranks_, out.ranks) : out.ranks;
    if (options.ranks_per_node) out.ranks_per_node = std::min(*options.ranks_per_node, out.ranks);
    if (options.ranks && *options.ranks != out.ranks) {
      throw InputError({name, "is of " + std::to_string(out.ranks) + " ranks",
                        "--ranks says " + std::to_string(*options.ranks), "Leave --ranks out."});
    }
    out.group = "all_reduce on " + std::to_string(out.ranks) + " ranks, " +
                std::to_string(out.ranks_per_node) + " a node";
    std::vector<Seconds> trials = trial_times(name);
    stats_->add("times of the first trial, which sets up the communicator", Severity::kInfo,
                out.ranks, name);
    trials.erase(trials.begin());
    stats_->rows_kept += static_cast<long>(trials.size()) * out.ranks;
    out.time = duration_of(std::move(trials));
    return out;
  }

  /// Median over the ranks of each trial that all of them finished.
  std::vector<Seconds> trial_times(const std::string& name) const {
    std::size_t trials = 0, least = 0;
    bool first = true;
    for (const auto& [rank, times] : ranks_) {
      trials = std::max(trials, times.size());
      least = first ? times.size() : std::min(least, times.size());
      first = false;
    }
    if (least < trials) {
      for (const auto& [rank, times] : ranks_) {
        stats_->add("times of trials that some rank did not finish", Severity::kLoss,
                    static_cast<long>(times.size() - least), name);
      }
    }
    if (least < 2) {
      throw InputError({name, "has fewer than two trials of all ranks",
                        "the first sets up the communicator", ""});
    }
    std::vector<Seconds> out;
    for (std::size_t trial = 0; trial < least; ++trial) {
      std::vector<Seconds> times;
      for (const auto& [rank, of_rank] : ranks_) times.push_back(of_rank[trial]);
      out.push_back(duration_of(std::move(times)).median);
    }
    return out;
  }

  const SourceText* file_;
  ImportStats* stats_;
  long line_ = 0;
  Bytes payload_;
  int local_ranks_ = 0;
  std::deque<int> waiting_;        ///< ranks that announced a result
  std::vector<double> durations_;  ///< not yet matched with a throughput
  std::map<int, std::vector<Seconds>> ranks_;
};

}  // namespace

bool is_all_reduce_bench(const std::string& text) {
  return text.find("algo throughput:") != std::string::npos &&
         text.find("data size:") != std::string::npos;
}

Profile import_all_reduce_bench(const std::vector<SourceText>& files,
                                const ImportOptions& options) {
  Profile out;
  out.name = options.name.empty() ? "all-reduce-bench" : options.name;
  out.device_kind = options.device_kind;
  out.fabric_intranode = options.fabric_intranode;
  out.fabric_internode = options.fabric_internode;
  out.launch_included = true;
  std::vector<std::string> names;
  for (const SourceText& file : files) {
    names.push_back(base_name(file.name));
    out.collectives.push_back(LogReader(file, out.stats).read(options));
  }
  out.source =
      options.source.empty() ? "all_reduce_bench.py logs: " + join(names, ", ") : options.source;
  return out;
}

}  // namespace towtank
