// SPDX-License-Identifier: Apache-2.0
#include "profiler/import/nccl_tests.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <string_view>

#include "core/input_error.h"
#include "core/text.h"
#include "profiler/import/detail/nccl_block.h"

namespace towtank {
namespace {

using detail::NcclBlock;
using detail::NcclRow;
using detail::NcclSide;
using Severity = ImportStats::Severity;

bool is_digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](unsigned char c) { return std::isdigit(c) != 0; });
}

int rank_number(std::string_view text) {
  return static_cast<int>(detail::nccl_count(detail::nccl_number(text), detail::kMostNcclRanks));
}

/// Without what mpirun and srun put before a line: "[1,0]<stdout>:", "[node:pid]", "12: ".
std::string_view without_prefix(std::string_view line) {
  const auto skip_space = [&] {
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  };
  skip_space();
  if (line.starts_with('[')) {
    const std::size_t close = line.find(']');
    if (close == std::string_view::npos) return line;
    line.remove_prefix(close + 1);
    if (line.starts_with("<std")) {
      line.remove_prefix(std::min(line.find('>') + 1, line.size()));
      if (line.starts_with(':')) line.remove_prefix(1);
    }
    skip_space();
  } else if (const std::size_t colon = line.find(':'); colon != std::string_view::npos &&
                                                       is_digits(line.substr(0, colon)) &&
                                                       line.substr(colon).starts_with(": ")) {
    line.remove_prefix(colon + 1);
    skip_space();
  }
  return line;
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  constexpr std::string_view kBetween = " \t\r,";
  while (true) {
    const std::size_t first = line.find_first_not_of(kBetween);
    if (first == std::string_view::npos) return words;
    const std::size_t end = std::min(line.find_first_of(kBetween, first), line.size());
    words.push_back(line.substr(first, end - first));
    line.remove_prefix(end);
  }
}

/// Which words of a row are what. A side is found by its time column.
struct Columns {
  std::size_t size = 0, type = 0, redop = 0, test = 0, ranks = 0, ranks_per_node = 0;  ///< 0: none
  struct Side {
    std::size_t time = 0, algbw = 0, busbw = 0, wrong = 0;
  };
  std::vector<Side> sides;
  bool cpu_time = false;

  /// Words that a row needs at least: a timestamp may follow, and the second side be missing.
  [[nodiscard]] std::size_t least_words() const {
    const Side& side = sides.front();
    return 1 + std::max({size, type, redop, test, ranks, ranks_per_node, side.time, side.algbw,
                         side.busbw});
  }
};

/// From the names in a header line.
std::optional<Columns> columns_named(const std::vector<std::string_view>& names) {
  const auto has = [&](std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  if (!has("size") || !(has("time") || has("cputime")) || !has("algbw")) return std::nullopt;
  Columns out;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string_view name = names[i];
    if (name == "size") out.size = i;
    if (name == "type") out.type = i;
    if (name == "redop") out.redop = i;
    if (name == "collective") out.test = i;
    if (name == "ranks" || name == "gpus") out.ranks = i;
    if (name == "ranksPerNode") out.ranks_per_node = i;
    if (name == "time" || name == "cputime") out.sides.push_back({i, 0, 0, 0});
    if (name == "cputime") out.cpu_time = true;
    if (out.sides.empty()) continue;
    if (name == "algbw") out.sides.back().algbw = i;
    if (name == "busbw") out.sides.back().busbw = i;
    if (name == "#wrong" || name == "error") out.sides.back().wrong = i;
  }
  const bool whole = std::all_of(out.sides.begin(), out.sides.end(), [](const Columns::Side& side) {
    return side.algbw > 0 && side.busbw > 0;
  });
  if (!whole) return std::nullopt;
  return out;
}

/// From the number of words, where there is no header: three to five, then two sides of four.
std::optional<Columns> columns_guessed(const std::vector<std::string_view>& words) {
  if (words.size() < 11 || words.size() > 13) return std::nullopt;
  Columns out;
  out.type = 2;
  const bool has_redop = words.size() > 11 && std::isnan(detail::nccl_number(words[3]));
  out.redop = has_redop ? 3 : 0;
  for (const std::size_t first : {words.size() - 8, words.size() - 4}) {
    out.sides.push_back({first, first + 1, first + 2, first + 3});
  }
  return out;
}

class TextReader {
 public:
  TextReader(const SourceText& file, ImportStats& stats) : file_(&file), stats_(&stats) { start(); }

  std::vector<NcclBlock> read() {
    std::string_view rest = file_->text;
    for (long line = 1; !rest.empty(); ++line) {
      const std::size_t end = std::min(rest.find('\n'), rest.size());
      take(without_prefix(rest.substr(0, end)), line);
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    finish();
    return std::move(blocks_);
  }

 private:
  void start() {
    block_ = {};
    block_.file = file_->name;
    columns_.reset();
  }
  void finish() {
    if (!block_.rows.empty() || !block_.hosts.empty()) blocks_.push_back(std::move(block_));
    start();
  }

  void take(std::string_view line, long number) {
    if (line.find("_perf") != std::string_view::npos) note_test(line);
    const auto words = words_of(line);
    if (words.empty()) return;
    if (line.starts_with('#')) return take_comment(line, words, number);
    if (auto named = columns_named(words)) {
      columns_ = std::move(named);
      block_.has_header = true;
      return;
    }
    if (columns_ && columns_->test > 0) return take_row(words, number);
    const bool starts_as_row =
        words.size() > 2 && is_digits(words[0]) && is_digits(words[1]) && !is_digits(words[2]);
    if (starts_as_row && (columns_ || columns_guessed(words))) take_row(words, number);
  }

  /// A program's name stands in the line of its start, or in the command that someone kept above.
  void note_test(std::string_view line) {
    if (line.find("concluded") != std::string_view::npos) return;
    for (const std::string_view word : words_of(line)) {
      if (!word.ends_with("_perf")) continue;
      if (!block_.rows.empty()) finish();
      block_.test = std::string(word);
    }
  }

  void take_comment(std::string_view line, std::vector<std::string_view> words, long number) {
    if (words[0] == "#") {
      words.erase(words.begin());
    } else {
      words[0].remove_prefix(1);
    }
    if (words.empty()) return;
    if (words[0] == "nThread" || words[0] == "nThread:") {
      if (!block_.rows.empty()) finish();
      const auto graph = std::find(words.begin(), words.end(), "graph:");
      block_.graph = graph != words.end() && graph + 1 != words.end() && graph[1] != "0";
    } else if (words[0] == "Rank" && words.size() > 1) {
      take_device(line, words);
    } else if (words[0] == "nccl-tests" && words.size() > 2) {
      block_.versions = printable(line.substr(line.find_first_not_of("# ")), 100);
    } else if (line.find("Out of bounds values") != std::string_view::npos &&
               line.find("FAILED") != std::string_view::npos) {
      stats_->add("runs with values out of bounds", Severity::kError, 1,
                  at_line(file_->name, number));
    } else if (auto named = columns_named(words)) {
      columns_ = std::move(named);
      block_.has_header = true;
    }
  }

  /// "# Rank  0 Group  0 Pid 43 on HOST device  0 [0x0f] NVIDIA A100-SXM4-40GB"
  void take_device(std::string_view line, const std::vector<std::string_view>& words) {
    if (!is_digits(words[1])) return;
    const auto on = std::find(words.begin(), words.end(), "on");
    const std::string host = on != words.end() && on + 1 != words.end() ? std::string(on[1]) : "";
    if (!block_.rows.empty()) finish();
    block_.hosts[rank_number(words[1])] = host;
    const std::size_t close = line.find(']');
    if (block_.device.empty() && close != std::string_view::npos) {
      std::string_view device = line.substr(close + 1);
      device.remove_prefix(std::min(device.find_first_not_of(" \t"), device.size()));
      while (device.ends_with('\r') || device.ends_with(' ')) device.remove_suffix(1);
      block_.device = printable(device, 100);
    }
  }

  void take_row(const std::vector<std::string_view>& words, long number) {
    const std::string place = at_line(file_->name, number);
    const auto columns = columns_ ? columns_ : columns_guessed(words);
    if (!columns || words.size() < columns->least_words()) {
      stats_->add("rows with too few numbers", Severity::kError, 1, place);
      return;
    }
    if (columns->cpu_time) {
      stats_->add("rows with the host's time in place of the device's", Severity::kLoss, 1, place);
      return;
    }
    if (columns->test > 0) group_of_row(*columns, words);
    NcclRow row;
    row.line = number;
    row.size =
        detail::nccl_count(detail::nccl_number(words[columns->size]), detail::kMostNcclBytes);
    if (columns->type > 0) row.type = std::string(words[columns->type]);
    if (columns->redop > 0) row.redop = std::string(words[columns->redop]);
    for (const Columns::Side& side : columns->sides) {
      if (std::max({side.time, side.algbw, side.busbw}) >= words.size()) continue;
      NcclSide out{detail::nccl_number(words[side.time]), detail::nccl_number(words[side.algbw]),
                   detail::nccl_number(words[side.busbw]), 0};
      if (side.wrong > 0 && side.wrong < words.size()) out.wrong = wrong_of(words[side.wrong]);
      row.sides.push_back(out);
    }
    block_.rows.push_back(std::move(row));
  }

  /// `error` of old versions is the largest difference, with a * where it is too large.
  double wrong_of(std::string_view word) const {
    const double value = detail::nccl_number(word);
    if (std::isnan(value)) return 0;
    const bool is_count = value == std::floor(value) && word.find('e') == std::string_view::npos;
    return word.ends_with('*') ? 1 : is_count ? value : 0;
  }

  /// Tables of rccl-tests name the test and its ranks in each row.
  void group_of_row(const Columns& columns, const std::vector<std::string_view>& words) {
    const std::string test(words[columns.test]);
    const int ranks = columns.ranks > 0 ? rank_number(words[columns.ranks]) : 0;
    if (block_.test == test && block_.stated_ranks == ranks) return;
    const auto kept = columns_;
    if (!block_.rows.empty()) finish();
    columns_ = kept;
    block_.has_header = true;
    block_.test = test;
    block_.stated_ranks = ranks;
    block_.stated_ranks_per_node =
        columns.ranks_per_node > 0 ? rank_number(words[columns.ranks_per_node]) : ranks;
  }

  const SourceText* file_;
  ImportStats* stats_;
  NcclBlock block_;
  std::optional<Columns> columns_;
  std::vector<NcclBlock> blocks_;
};

/// Size, count and type, then the numbers of two sides.
bool is_row(const std::vector<std::string_view>& words) {
  return words.size() > 2 && is_digits(words[0]) && is_digits(words[1]) && !is_digits(words[2]) &&
         columns_guessed(words).has_value();
}

bool has_row(std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (is_row(words_of(without_prefix(text.substr(0, end))))) return true;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return false;
}

bool is_json(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos &&
         (text[first] == '{' || text.substr(first, 2) == "[{" || text.substr(first, 2) == "[\n");
}

}  // namespace

bool is_nccl_tests(const std::string& text) {
  const std::string_view head = std::string_view(text).substr(0, 1 << 16);
  const auto has = [&](std::string_view word) { return head.find(word) != std::string_view::npos; };
  if (is_json(text)) {
    return (has("\"out_of_place\"") && has("\"nccl_version\"")) ||
           (has("\"algBw\"") && has("\"busBw\""));
  }
  return (has("algbw") && has("busbw")) || has_row(head);
}

Profile import_nccl_tests(const std::vector<SourceText>& files, const ImportOptions& options) {
  Profile out;
  out.name = options.name.empty() ? "nccl-tests" : options.name;
  out.device_kind = options.device_kind;
  out.fabric_intranode = options.fabric_intranode;
  out.fabric_internode = options.fabric_internode;
  out.launch_included = true;
  std::vector<std::string> names;
  bool graph = false, no_graph = false;
  for (const SourceText& file : files) {
    names.push_back(base_name(file.name));
    const auto blocks = is_json(file.text) ? detail::nccl_json_blocks(file, out.stats)
                                           : TextReader(file, out.stats).read();
    for (const NcclBlock& block : blocks) {
      add_block(out, block, options);
      (block.graph ? graph : no_graph) = true;
    }
  }
  out.source = options.source.empty() ? "nccl-tests output: " + join(names, ", ") : options.source;
  if (graph && no_graph) {
    throw InputError({names.front(), "has runs with and without CUDA graphs",
                      "a profile's times all include launches, or none does",
                      "Import them as two profiles."});
  }
  out.launch_included = !graph;
  if (!out.collectives.empty()) return out;
  std::vector<std::string> reasons;
  for (const auto& count : out.stats.counts) {
    reasons.push_back(std::to_string(count.rows) + " " + count.what);
  }
  throw InputError({files.empty() ? "no file" : printable(files.front().name, 400),
                    "no row gives a measurement",
                    reasons.empty() ? "it has no rows of numbers" : join(reasons, "; "), ""});
}

}  // namespace towtank
