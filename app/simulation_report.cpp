// SPDX-License-Identifier: Apache-2.0
#include "app/simulation_report.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "app/build_info.h"
#include "app/text_table.h"
#include "core/json.h"
#include "core/text.h"
#include "core/unit_text.h"
#include "placement/plan_json.h"
#include "sim/export/gantt.h"

namespace towtank {
namespace {

constexpr std::size_t kFewLinks = 5;

std::string signed_text(Seconds t) {
  return (t.value < 0 ? "-" : "+") + to_text(Seconds{std::abs(t.value)});
}

/// What slow ranks add, sharing of links aside.
Seconds straggling(const SimulationReport& r) {
  return r.result->step_time - r.result->contention - r.closed_form;
}

/// Below this share of the step a difference is rounding.
constexpr double kRounding = 1e-9;
bool counts(Seconds t, const SimulationReport& r) {
  return std::abs(t.value) > kRounding * r.result->step_time.value;
}

std::string head_text(const SimulationReport& r) {
  const StepResult& result = *r.result;
  std::string out =
      "simulated step " + to_text(result.step_time) + " = closed form " + to_text(r.closed_form);
  if (counts(straggling(r), r)) out += " " + signed_text(straggling(r)) + " slow ranks";
  if (!r.contention) return out + "; contention is off\n";
  if (!counts(result.contention, r)) return out + "; no link holds anything up\n";
  return out + " " + signed_text(result.contention) + " contention (" +
         percent(result.contention / result.step_time) + " of the step)\n";
}

std::string others_text(const SimulationReport& r) {
  if (!r.background) return "";
  const auto& traffic = r.step->network.background;
  const bool random = std::any_of(traffic.begin(), traffic.end(),
                                  [](const LinkTraffic& t) { return t.mean_gap > 0; });
  return "others send " + printable(*r.background) +
         (random ? ", at random times of seed " + std::to_string(r.seed) : "") + "\n";
}

std::string critical_text(const StepResult& result) {
  TextTable table({{"critical path", Align::kLeft, 2}, {"", Align::kRight}, {"", Align::kRight}});
  for (std::size_t c = 0; c < kComponentCount; ++c) {
    if (result.critical[c] <= kRounding * result.step_time.value) continue;
    table.add_row({std::string(kComponentNames[c]), to_text(Seconds{result.critical[c]}),
                   percent(result.critical[c] / result.step_time.value)});
  }
  return table.text();
}

std::string links_text(const SimulationReport& r) {
  const auto& links = r.result->links;
  if (links.empty()) return "  no link is used between devices\n";
  TextTable table({{"busiest links", Align::kLeft, 2},
                   {"alike", Align::kRight},
                   {"capacity", Align::kRight},
                   {"carries", Align::kRight},
                   {"used", Align::kRight}});
  const std::size_t n = r.all_links ? links.size() : std::min(links.size(), kFewLinks);
  for (std::size_t i = 0; i < n; ++i) {
    const SharedLink& link = r.step->network.links[static_cast<std::size_t>(links[i].link)];
    table.add_row({link.name, with_thousands(link.copies), to_text(BytesPerSecond{link.capacity}),
                   to_text(Bytes{static_cast<std::int64_t>(links[i].bytes)}),
                   percent(links[i].utilisation)});
  }
  return table.text();
}

std::string idle_text(const SimulationReport& r) {
  TextTable table({{"idle by stage rank", Align::kLeft, 2},
                   {"computes", Align::kRight},
                   {"idle", Align::kRight},
                   {"", Align::kRight}});
  for (std::size_t a = 0; a < r.result->actors.size(); ++a) {
    const ActorUse& use = r.result->actors[a];
    table.add_row({r.step->tasks.actors[a].name(), to_text(Seconds{use.busy}),
                   to_text(Seconds{use.idle}), percent(use.idle / r.result->step_time.value)});
  }
  return table.text();
}

}  // namespace

std::string simulation_text(const Question& q, const std::string& title, const SimulationReport& r,
                            const Style& style) {
  std::string out =
      header_text(q) + "\n" + style.strong(title) + "\n" + head_text(r) + others_text(r) + "\n";
  out += critical_text(*r.result) + "\n" + links_text(r) + "\n" + idle_text(r) + "\n";
  GanttOptions options;
  options.columns = static_cast<int>(kScreenWidth);
  out +=
      "F forward  B backward  I, W its halves  O optimizer  x exchange between nodes\n"
      "s sends, computes nothing  r reduce or gather (dp: on the data stream)  . idle\n" +
      gantt(*r.step, *r.result, options);
  return out;
}

std::string simulation_json(const Question& q, const Plan& plan, const SimulationReport& r) {
  const StepResult& result = *r.result;
  Json out{{"format", "towtank-simulation"},
           {"version", 1},
           {"towtank", std::string(build_info().version)},
           {"platform", q.platform.name},
           {"devices", q.devices},
           {"plan", to_json(plan)},
           {"contention", r.contention},
           {"step_time_s", result.step_time.value},
           {"closed_form_s", r.closed_form.value},
           {"slow_ranks_s", straggling(r).value},
           {"contention_s", result.contention.value}};
  out["background"] = r.background ? Json(*r.background) : Json();
  out["seed"] = r.seed;
  Json critical = Json::object();
  for (std::size_t c = 0; c < kComponentCount; ++c) {
    std::string key(kComponentNames[c]);
    std::replace(key.begin(), key.end(), ' ', '_');
    critical[key + "_s"] = result.critical[c];
  }
  out["critical_path"] = std::move(critical);
  Json links = Json::array();
  for (const LinkUse& use : result.links) {
    const SharedLink& link = r.step->network.links[static_cast<std::size_t>(use.link)];
    links.push_back({{"name", link.name},
                     {"level", link.level},
                     {"alike", link.copies},
                     {"capacity_bytes_per_s", link.capacity},
                     {"bytes", use.bytes},
                     {"utilisation", use.utilisation}});
  }
  out["links"] = std::move(links);
  Json actors = Json::array();
  for (std::size_t a = 0; a < result.actors.size(); ++a) {
    const Actor& actor = r.step->tasks.actors[a];
    actors.push_back({{"pipeline_rank", actor.pipeline_rank},
                      {"first_rank", actor.first_rank},
                      {"ranks", actor.ranks},
                      {"replicas", actor.replicas},
                      {"busy_s", result.actors[a].busy},
                      {"idle_s", result.actors[a].idle}});
  }
  out["actors"] = std::move(actors);
  return to_text(out);
}

}  // namespace towtank
