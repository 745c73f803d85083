// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/input_error.h"
#include "core/json.h"
#include "core/text.h"
#include "profiler/import/detail/nccl_block.h"

namespace towtank::detail {
namespace {

using Severity = ImportStats::Severity;

constexpr std::int64_t kNewestKnown = 3;

/// nan is written as the string "nan"; rccl-tests quote numbers too. Absent and null are NaN.
double number_at(const JsonReader& object, std::string_view key) {
  const auto value = object.find(key);
  if (!value) return std::numeric_limits<double>::quiet_NaN();
  if (value->is_number()) return value->as_number();
  return value->is_string() ? nccl_number(value->as_string())
                            : std::numeric_limits<double>::quiet_NaN();
}

std::string text_at(const JsonReader& object, std::string_view key) {
  const auto value = object.find(key);
  return value && value->is_string() ? value->as_string() : "";
}

int int_at(const JsonReader& object, std::string_view key) {
  return static_cast<int>(nccl_count(number_at(object, key), kMostNcclRanks));
}

std::int64_t size_at(const JsonReader& object) {
  return nccl_count(number_at(object, "size"), kMostNcclBytes);
}

std::optional<NcclSide> side_at(const JsonReader& result, std::string_view key, ImportStats& stats,
                                const std::string& file) {
  const auto side = result.find(key);
  if (!side) return std::nullopt;
  if (side->find("cpu_time")) {
    stats.add("rows with the host's time in place of the device's", Severity::kLoss, 1, file);
    return std::nullopt;
  }
  NcclSide out{number_at(*side, "time"), number_at(*side, "alg_bw"), number_at(*side, "bus_bw"), 0};
  const double wrong = number_at(*side, "nwrong");
  if (wrong > 0) out.wrong = wrong;
  return out;
}

/// Each process lists the first of its devices, or all of them: the step between two ranks tells.
void read_devices(const JsonReader& config, NcclBlock& block) {
  const auto devices = config.find("devices");
  if (!devices) return;
  const std::vector<JsonReader> entries = devices->elements();
  std::int64_t each = std::max<std::int64_t>(1, int_at(config, "nthreads")) *
                      std::max<std::int64_t>(1, int_at(config, "ngpus"));
  if (entries.size() > 1) each = int_at(entries[1], "rank") - int_at(entries[0], "rank");
  each = std::clamp<std::int64_t>(each, 1, 1024);  // devices of one process
  std::map<std::string, int> on_host;
  for (const JsonReader& device : entries) {
    if (block.device.empty()) block.device = printable(text_at(device, "device_info"), 100);
    block.stated_ranks += static_cast<int>(each);
    int& here = on_host[text_at(device, "hostname")];
    here += static_cast<int>(each);
    block.stated_ranks_per_node = std::max(block.stated_ranks_per_node, here);
  }
}

NcclBlock read_run(const JsonReader& root, const std::string& file, ImportStats& stats) {
  NcclBlock block;
  block.file = file;
  block.has_header = true;
  const double version = number_at(root, "version");
  if (version > kNewestKnown) {
    stats.add("files of a newer version than " + std::to_string(kNewestKnown), Severity::kInfo, 1,
              file);
  }
  if (root.find("args")) {
    const auto args = root.array("args");
    if (!args.empty() && args.front().is_string()) block.test = args.front().as_string();
  }
  if (const int nccl = int_at(root, "nccl_version"); nccl > 0) {
    block.versions = "nccl " + std::to_string(nccl);
  }
  if (const auto config = root.find("config")) {
    block.graph = int_at(*config, "graph") > 0;
    read_devices(*config, block);
  }
  for (const JsonReader& result : root.array("results")) {
    NcclRow row;
    row.size = size_at(result);
    row.type = text_at(result, "type");
    row.redop = text_at(result, "redop");
    for (const std::string_view key : {"out_of_place", "in_place"}) {
      if (const auto side = side_at(result, key, stats, file)) row.sides.push_back(*side);
    }
    block.rows.push_back(std::move(row));
  }
  return block;
}

/// An entry of rccl-tests: one side of one size.
void add_entry(std::vector<NcclBlock>& blocks, const JsonReader& entry, const std::string& file,
               long line) {
  const std::string test = text_at(entry, "name");
  const int ranks = entry.find("ranks") ? int_at(entry, "ranks") : int_at(entry, "gpus");
  if (blocks.empty() || blocks.back().test != test || blocks.back().stated_ranks != ranks) {
    NcclBlock block;
    block.file = file;
    block.test = test;
    block.has_header = true;
    block.stated_ranks = ranks;
    block.stated_ranks_per_node = int_at(entry, "ranksPerNode");
    blocks.push_back(std::move(block));
  }
  NcclRow row;
  row.line = line;
  row.size = size_at(entry);
  row.type = text_at(entry, "type");
  row.redop = text_at(entry, "redop");
  NcclSide side{number_at(entry, "time"), number_at(entry, "algBw"), number_at(entry, "busBw"), 0};
  if (const double wrong = number_at(entry, "wrong"); wrong > 0) side.wrong = wrong;
  row.sides.push_back(side);
  blocks.back().rows.push_back(std::move(row));
}

std::vector<NcclBlock> read_lines(const SourceText& file, ImportStats& stats) {
  std::vector<NcclBlock> blocks;
  std::string_view rest = file.text;
  for (long line = 1; !rest.empty(); ++line) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    std::string text(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (text.find_first_not_of(" \t\r") == std::string::npos) continue;
    try {
      const JsonFile json = JsonFile::parse(text, at_line(file.name, line));
      add_entry(blocks, json.root(), file.name, line);
    } catch (const InputError&) {
      stats.add("lines that are not JSON", Severity::kError, 1, at_line(file.name, line));
      ++stats.rows_read;
    }
  }
  return blocks;
}

bool is_many_lines(const std::string& text) {
  const std::size_t end = text.find('\n');
  if (text.find_first_not_of(" \t\r\n") == std::string::npos || text[0] != '{') return false;
  return text.find("\"algBw\"") < std::min(end, text.size());
}

}  // namespace

std::vector<NcclBlock> nccl_json_blocks(const SourceText& file, ImportStats& stats) {
  if (is_many_lines(file.text)) return read_lines(file, stats);
  const JsonFile json = JsonFile::parse(file.text, printable(file.name, 400));
  std::vector<NcclBlock> blocks;
  const JsonReader root = json.root();
  if (root.is_array()) {
    for (const JsonReader& entry : root.elements()) add_entry(blocks, entry, file.name, 0);
  } else {
    blocks.push_back(read_run(root, file.name, stats));
  }
  json.finish();
  return blocks;
}

}  // namespace towtank::detail
