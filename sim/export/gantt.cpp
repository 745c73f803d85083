// SPDX-License-Identifier: Apache-2.0
#include "sim/export/gantt.h"

#include <algorithm>
#include <array>

#include "core/contracts.h"

namespace towtank {
namespace {

constexpr std::string_view kLetters = "FBIWOxsrkc";
constexpr std::size_t kSendLetter = 6;

/// Index into kLetters; -1: not drawn.
int letter_of(const Task& task) {
  if (task.kind == TaskKind::kDelay) return -1;
  switch (task.label) {
    case Label::kForward:
      return 0;
    case Label::kBackward:
      return 1;
    case Label::kInputGrad:
      return 2;
    case Label::kWeightGrad:
      return 3;
    case Label::kOptimizer:
      return 4;
    case Label::kExchange:
      return 5;
    case Label::kSend:
      return 6;
    case Label::kReduce:
    case Label::kGather:
    case Label::kTiedReduce:
    case Label::kNorm:
      return 7;
    case Label::kKernel:
      return 8;
    case Label::kCollective:
      return 9;
    case Label::kBucketReady:
    case Label::kHostCall:
    case Label::kHostGap:
    case Label::kInput:
    case Label::kJoin:
      return -1;
  }
  contract_violated("EXPECTS", "a known label", __FILE__, __LINE__);
}

using Cell = std::array<double, kLetters.size()>;
using Row = std::vector<Cell>;

void draw(Row& row, double width, double start, double end, int letter) {
  const std::size_t last = row.size() - 1;
  const auto first = std::min(last, static_cast<std::size_t>(start / width));
  for (std::size_t column = first; column <= last; ++column) {
    const double from = static_cast<double>(column) * width;
    if (from >= end) return;
    const double covered = std::min(end, from + width) - std::max(start, from);
    row[column][static_cast<std::size_t>(letter)] += std::max(0.0, covered);
  }
}

std::string text_of(const Row& row, double width) {
  std::string out;
  for (const Cell& cell : row) {
    Cell own = cell;
    own[kSendLetter] = 0;
    double all = 0;
    for (const double t : own) all += t;
    const auto most = std::max_element(own.begin(), own.end());
    if (all >= 0.5 * width) {
      out += kLetters[static_cast<std::size_t>(most - own.begin())];
    } else {
      out += all + cell[kSendLetter] >= 0.5 * width ? kLetters[kSendLetter] : '.';
    }
  }
  return out;
}

}  // namespace

std::string gantt(const LoweredStep& step, const StepResult& result, const GanttOptions& options) {
  EXPECTS(options.columns >= 40);
  const TaskGraph& graph = step.tasks;
  std::size_t label = 0;
  std::vector<std::string> names;
  for (const Actor& a : graph.actors) {
    std::string name = "rank " + std::to_string(a.first_rank);
    if (a.ranks > 1) name += " +" + std::to_string(a.ranks - 1);
    label = std::max(label, name.size() + 4);
    names.push_back(std::move(name));
  }
  const std::size_t columns = static_cast<std::size_t>(options.columns) - label - 2;
  const double width = result.step_time.value / static_cast<double>(columns);
  std::vector<Row> compute(graph.actors.size(), Row(columns)), data = compute;
  for (std::size_t t = 0; t < graph.tasks.size(); ++t) {
    const Task& task = graph.tasks[t];
    const int letter = letter_of(task);
    if (letter < 0 || width <= 0) continue;
    const bool on_data = task.stream == Stream::kData;
    // Sends are drawn with the sender.
    const auto members = graph.members_of(task);
    const std::size_t count = task.label == Label::kSend ? 1 : members.size();
    for (std::size_t m = 0; m < count; ++m) {
      draw((on_data ? data : compute)[static_cast<std::size_t>(members[m])], width,
           result.times.start[t], result.times.end[t], letter);
    }
  }
  std::string out;
  const std::size_t n = graph.actors.size();
  const auto half = static_cast<std::size_t>(std::max(1, options.rows / 2));
  for (std::size_t a = 0; a < n; ++a) {
    if (n > 2 * half && a == half) {
      out += "... " + std::to_string(n - 2 * half) + " more ...\n";
      a = n - half;
    }
    names[a].resize(label, ' ');
    out.append(names[a]).append("  ").append(text_of(compute[a], width)).append("\n");
    const std::string stream = text_of(data[a], width);
    if (stream.find_first_not_of('.') != std::string::npos) {
      std::string under = "  dp";
      under.resize(label, ' ');
      out.append(under).append("  ").append(stream).append("\n");
    }
  }
  return out;
}

}  // namespace towtank
