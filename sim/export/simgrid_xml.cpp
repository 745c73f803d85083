// SPDX-License-Identifier: Apache-2.0
#include "sim/export/simgrid_xml.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "core/unit_text.h"
#include "sim/detail/units.h"

namespace towtank {
namespace {

using detail::UnitLevel;

std::string number(double value) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  return {text.data(), end};
}

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

/// "node 3 rail 0" as an id.
std::string id_of(std::string name) {
  std::replace(name.begin(), name.end(), ' ', '-');
  return escaped(name);
}

double speed_of(const DeviceKind& device) {
  for (const DType type : {DType::kBf16, DType::kFp16, DType::kFp32}) {
    if (const auto peak = device.peak_of(type)) return peak->value;
  }
  return device.vector_peak.value;
}

class Writer {
 public:
  explicit Writer(const PlanProblem& problem)
      : problem_(problem), levels_(detail::unit_levels(problem)) {}

  std::string text(const std::string& origin) {
    out_ =
        "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n";
    // Two hyphens may not stand in a comment.
    std::string how = escaped(origin);
    for (std::size_t at = 0; (at = how.find("--", at)) != std::string::npos;) how[at + 1] = '_';
    out_ += "<!-- " + how + "\n     Run with network/model:CM02 network/crosstraffic:0 " +
            "network/TCP-gamma:0. -->\n<platform version=\"4.1\">\n" +
            "  <zone id=\"network\" routing=\"DijkstraCache\">\n";
    devices();
    routers();
    links();
    routes();
    return out_ + "  </zone>\n</platform>\n";
  }

 private:
  [[nodiscard]] int units(std::size_t level) const {
    return (problem_.devices() + levels_[level].size - 1) / levels_[level].size;
  }
  /// What joins the units of a level: "intranode-0" the devices of node 0, "leaf-0" its rails.
  [[nodiscard]] std::string router(std::size_t level, int unit) const {
    const int group = unit * levels_[level].size / problem_.view.levels[level].group;
    return id_of(problem_.view.levels[level].name) + "-router-" + std::to_string(group);
  }
  /// The router below a unit of level l >= 1, or the rail that its devices share.
  [[nodiscard]] std::string below(std::size_t level, int unit) const {
    if (level == 1 && rails()) return id_of(unit_name(levels_[1], unit)) + "-port";
    const int first = unit * levels_[level].size / levels_[level - 1].size;
    return router(level - 1, first);
  }
  [[nodiscard]] bool rails() const { return levels_.size() > 1 && levels_[1].rails > 1; }
  /// Half of what a level adds to the latency of the path below it.
  [[nodiscard]] double latency(std::size_t level) const {
    const double own = problem_.view.levels[level].latency.value;
    const bool first = level == 0 || (level == 1 && rails());
    const double under = first ? 0.0 : problem_.view.levels[level - 1].latency.value;
    return std::max(0.0, own - under) / 2;
  }

  void devices() {
    const DeviceKind& device = problem_.device();
    for (int d = 0; d < problem_.devices(); ++d) {
      out_ += "    <host id=\"" + id_of(unit_name(levels_[0], d)) + "\" speed=\"" +
              number(speed_of(device)) + "f\"><prop id=\"kind\" value=\"" + escaped(device.name) +
              "\"/><prop id=\"memory_bytes\" value=\"" + std::to_string(device.memory.value) +
              "\"/></host>\n";
    }
  }
  void routers() {
    for (std::size_t l = 0; l < levels_.size(); ++l) {
      std::string last;
      for (int u = 0; u < units(l); ++u) {
        if (l == 1 && rails()) add_router(below(1, u));
        std::string name = router(l, u);
        if (name != last) add_router(name);
        last = std::move(name);
      }
    }
  }
  void add_router(const std::string& id) { out_ += "    <router id=\"" + id + "\"/>\n"; }

  void links() {
    if (rails()) {
      out_ +=
          "    <link id=\"to-port\" bandwidth=\"1e18Bps\" latency=\"0s\" "
          "sharing_policy=\"FATPIPE\"/>\n";
    }
    for (std::size_t l = 0; l < levels_.size(); ++l) {
      for (int u = 0; u < units(l); ++u) {
        out_ += "    <link id=\"" + id_of(unit_name(levels_[l], u)) + "-link\" bandwidth=\"" +
                number(levels_[l].capacity) + "Bps\" latency=\"" + number(latency(l)) +
                "s\" sharing_policy=\"SPLITDUPLEX\"/>\n";
      }
    }
  }
  void routes() {
    for (std::size_t l = 0; l < levels_.size(); ++l) {
      for (int u = 0; u < units(l); ++u) {
        const std::string name = id_of(unit_name(levels_[l], u));
        add_route(l == 0 ? name : below(l, u), router(l, u),
                  "<link_ctn id=\"" + name + "-link\" direction=\"UP\"/>");
      }
    }
    if (!rails()) return;
    // Two links, so that no path inside a node goes through a port.
    for (int d = 0; d < problem_.devices(); ++d) {
      add_route(id_of(unit_name(levels_[0], d)), below(1, d / levels_[1].size),
                R"(<link_ctn id="to-port"/><link_ctn id="to-port"/>)");
    }
  }
  void add_route(const std::string& from, const std::string& to, const std::string& links) {
    out_ += "    <route src=\"" + from + "\" dst=\"" + to + "\">" + links + "</route>\n";
  }

  const PlanProblem& problem_;
  std::vector<UnitLevel> levels_;
  std::string out_;
};

}  // namespace

std::string simgrid_xml(const PlanProblem& problem, const std::string& origin) {
  return Writer(problem).text(origin);
}

}  // namespace towtank
