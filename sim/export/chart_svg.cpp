// SPDX-License-Identifier: Apache-2.0
#include "sim/export/chart_svg.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>

#include "core/contracts.h"
#include "core/unit_text.h"

namespace towtank {
namespace {

constexpr double kWidth = 1200, kLeft = 150, kRight = 20, kTop = 60, kLane = 14, kGap = 6;
constexpr double kLoadHeight = 70, kNarrowest = 0.1;

std::string_view colour_of(Label label) {
  switch (label) {
    case Label::kForward:
    case Label::kKernel:
      return "#4e79a7";
    case Label::kBackward:
    case Label::kInputGrad:
      return "#59a14f";
    case Label::kWeightGrad:
      return "#8cd17d";
    case Label::kSend:
      return "#f28e2b";
    case Label::kReduce:
    case Label::kGather:
    case Label::kTiedReduce:
    case Label::kNorm:
    case Label::kCollective:
      return "#e15759";
    case Label::kOptimizer:
      return "#b07aa1";
    case Label::kExchange:
      return "#edc948";
    case Label::kBucketReady:
    case Label::kHostGap:
    case Label::kInput:
    case Label::kJoin:
    case Label::kHostCall:
      return "#bab0ac";
  }
  contract_violated("EXPECTS", "a known label", __FILE__, __LINE__);
}

std::string fixed(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2f", value);
  return text.data();
}

std::string label(double x, double y, std::string_view text, std::string_view anchor = "start") {
  return "<text x=\"" + fixed(x) + "\" y=\"" + fixed(y) + "\" text-anchor=\"" +
         std::string(anchor) + "\">" + std::string(text) + "</text>\n";
}

std::string box(double x, double y, double width, double height, std::string_view colour,
                const std::string& tip) {
  return "<rect x=\"" + fixed(x) + "\" y=\"" + fixed(y) + "\" width=\"" + fixed(width) +
         "\" height=\"" + fixed(height) + "\" fill=\"" + std::string(colour) + "\"" +
         (tip.empty() ? "/>\n" : "><title>" + tip + "</title></rect>\n");
}

class Chart {
 public:
  Chart(const LoweredStep& step, const StepResult& result)
      : graph_(step.tasks), network_(step.network), result_(result) {}

  std::string text(const ChartOptions& options) {
    double y = kTop;
    const auto n = graph_.actors.size();
    const auto half = static_cast<std::size_t>(std::max(1, options.actors / 2));
    for (std::size_t a = 0; a < n; ++a) {
      if (n > 2 * half && a == half) {
        body_ += label(kLeft, y + kLane - 3, "... " + std::to_string(n - 2 * half) + " more ...");
        y += kLane + kGap;
        a = n - half;
      }
      y = add_actor(static_cast<std::int32_t>(a), y) + kGap;
    }
    if (!result_.links.empty()) y = add_load(result_.links.front(), y);
    return head(options.title, y) + body_ + "</svg>\n";
  }

 private:
  [[nodiscard]] double x_of(double time) const {
    return kLeft + (kWidth - kLeft - kRight) * time / result_.step_time.value;
  }

  double add_actor(std::int32_t actor, double y) {
    const Actor& a = graph_.actors[static_cast<std::size_t>(actor)];
    std::string name = "rank " + std::to_string(a.first_rank);
    if (a.ranks > 1) name += " +" + std::to_string(a.ranks - 1);
    body_ += label(4, y + kLane - 3, name);
    for (std::size_t s = 0; s < kStreamCount; ++s) {
      const std::string tasks = lane(actor, static_cast<Stream>(s), y);
      if (tasks.empty()) continue;
      body_ += label(kLeft - 6, y + kLane - 3, kStreamNames[s], "end") + tasks;
      y += kLane;
    }
    return y;
  }

  [[nodiscard]] std::string lane(std::int32_t actor, Stream stream, double y) const {
    std::string out;
    for (std::size_t t = 0; t < graph_.tasks.size(); ++t) {
      const Task& task = graph_.tasks[t];
      if (task.stream != stream || task.kind == TaskKind::kDelay) continue;
      const auto members = graph_.members_of(task);
      const auto last = task.label == Label::kSend ? members.begin() + 1 : members.end();
      if (std::find(members.begin(), last, actor) == last) continue;
      const double start = result_.times.start[t], end = result_.times.end[t];
      const double width = x_of(end) - x_of(start);
      if (width < kNarrowest) continue;
      std::string tip =
          task_text(task) + ": " + to_text(Seconds{start}) + " to " + to_text(Seconds{end});
      if (task.kind == TaskKind::kCommunication) {
        tip += ", alone " + to_text(Seconds{task.lone()});
      }
      out += box(x_of(start), y + 1, width, kLane - 2, colour_of(task.label), tip);
    }
    return out;
  }

  /// Steps of the rate through a link, in time order.
  [[nodiscard]] std::map<double, double> rate_changes(std::int32_t link) const {
    std::map<double, double> out;
    for (std::size_t t = 0; t < graph_.tasks.size(); ++t) {
      const Task& task = graph_.tasks[t];
      const double start = result_.times.start[t] + task.duration, end = result_.times.end[t];
      if (end <= start) continue;
      for (const Flow& flow : graph_.flows_of(task)) {
        const auto& links = network_.routes[static_cast<std::size_t>(flow.route)];
        if (std::find(links.begin(), links.end(), link) == links.end()) continue;
        out[start] += flow.bytes / (end - start);
        out[end] -= flow.bytes / (end - start);
      }
    }
    return out;
  }

  double add_load(const LinkUse& use, double y) {
    const SharedLink& link = network_.links[static_cast<std::size_t>(use.link)];
    y += kLane;
    body_ += label(kLeft, y - 3,
                   link.name + ", the busiest link: load; the line is its " +
                       to_text(BytesPerSecond{link.capacity}) + ", " + percent(use.utilisation) +
                       " used");
    const double bottom = y + kLoadHeight;
    const auto height = [&](double rate) {
      return bottom - kLoadHeight * std::clamp(rate / link.capacity, 0.0, 1.0);
    };
    std::string points = fixed(kLeft) + "," + fixed(bottom);
    double rate = 0;
    for (const auto& [time, change] : rate_changes(use.link)) {
      points += " " + fixed(x_of(time)) + "," + fixed(height(rate));
      rate += change;
      points += " " + fixed(x_of(time)) + "," + fixed(height(rate));
    }
    body_ += "<polygon points=\"" + points + " " + fixed(kWidth - kRight) + "," + fixed(bottom) +
             "\" fill=\"#f28e2b\" fill-opacity=\"0.6\"/>\n";
    body_ += box(kLeft, y, kWidth - kLeft - kRight, 1, "#333333", "");
    return bottom + kGap;
  }

  [[nodiscard]] std::string head(const std::string& title, double height) const {
    std::string out = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + fixed(kWidth) +
                      "\" height=\"" + fixed(height + kGap) +
                      "\" font-family=\"sans-serif\" font-size=\"11\">\n";
    out += box(0, 0, kWidth, height + kGap, "#ffffff", "");
    out += label(4, 16, title + ": simulated step " + to_text(result_.step_time));
    constexpr std::array<std::pair<Label, const char*>, 7> kLegend{
        {{Label::kForward, "forward"},
         {Label::kBackward, "backward"},
         {Label::kWeightGrad, "weight gradient"},
         {Label::kSend, "send"},
         {Label::kReduce, "reduce, gather"},
         {Label::kExchange, "exchange"},
         {Label::kOptimizer, "optimizer"}}};
    double x = kLeft;
    for (const auto& [what, name] : kLegend) {
      out += box(x, 26, 10, 10, colour_of(what), "") + label(x + 14, 35, name);
      x += 110;
    }
    constexpr int kTicks = 8;
    for (int i = 0; i <= kTicks; ++i) {
      const Seconds time = static_cast<double>(i) / kTicks * result_.step_time;
      out += box(x_of(time.value), kTop - 8, 0.5, height - kTop + 8, "#cccccc", "") +
             label(x_of(time.value), kTop - 11, to_text(time), i == kTicks ? "end" : "middle");
    }
    return out;
  }

  const TaskGraph& graph_;
  const Network& network_;
  const StepResult& result_;
  std::string body_;
};

}  // namespace

std::string chart_svg(const LoweredStep& step, const StepResult& result,
                      const ChartOptions& options) {
  return Chart(step, result).text(options);
}

}  // namespace towtank
