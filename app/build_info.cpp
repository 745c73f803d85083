// SPDX-License-Identifier: Apache-2.0
#include "app/build_info.h"

#include <nlohmann/json.hpp>

#include "app/commands.h"
#include "app/text_table.h"
#include "core/json.h"
#include "core/text.h"
#include "platforms/catalogue.h"
#include "profiler/import/chakra/chakra_reader.h"
#include "profiler/import/nsys/nsys_reader.h"
#include "sim/simulate.h"
#include "validate/run/launch.h"

namespace towtank {
namespace {

/// A part that a build may lack.
struct Component {
  std::string name;
  bool present = false;
  std::string says;  ///< what it is for, or why it is absent
};

std::vector<Library> libraries_of(std::string_view list) {
  std::vector<Library> out;
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(','), list.size());
    const std::string_view item = list.substr(0, end);
    const std::size_t blank = item.rfind(' ');
    out.push_back({std::string(item.substr(0, blank)), std::string(item.substr(blank + 1))});
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return out;
}

BuildInfo make_info() {
  BuildInfo info;
  info.version = TOWTANK_VERSION;
  info.compiler = TOWTANK_COMPILER;
  info.libraries = libraries_of(TOWTANK_LIBRARIES);
  return info;
}

/// What this build can do; the worker that simulates is a program of its own.
std::vector<Component> find_components() {
  const bool simulates = !find_worker().empty();
  const bool runs = !find_runtime().empty();
  return {
      {"closed form", true, "plan, predict: step time, memory and cost without a device"},
      {"SimGrid", simulates,
       simulates ? "simulate: shared links, through towtank-sim"
                 : "towtank-sim is not here: install libsimgrid-dev and build again"},
      {"SQLite", reads_nsys(),
       reads_nsys() ? "import: traces of Nsight Systems"
                    : "import reads no trace of Nsight Systems: install libsqlite3-dev and build "
                      "again"},
      {"protobuf", reads_chakra(),
       reads_chakra() ? "import: Chakra execution traces"
                      : "import reads no Chakra trace: install libprotobuf-dev and build again"},
      {"libtorch", runs,
       runs ? "run: plans with real processes, through towtank-runtime"
            : "towtank-runtime is not here: install libtorch-dev and libgloo-dev, build again"},
      {"CUPTI", false, "measuring kernels is not part of this version"},
      {"NCCL", false, "measuring collectives is not part of this version"},
  };
}

/// The catalogue is data: whether each of its files is read is what a doctor should try.
struct CatalogueCheck {
  std::size_t machines = 0;
  std::vector<std::string> faults;
};

CatalogueCheck check_catalogue() {
  CatalogueCheck out;
  for (const std::string& name : catalogue_names()) {
    try {
      static_cast<void>(load_platform(name));
      ++out.machines;
    } catch (const InputError& error) {
      for (const Fault& fault : error.faults()) out.faults.push_back(to_text(fault));
    }
  }
  return out;
}

std::string colour_text(const Terminal& terminal) {
  if (!terminal.out_is_terminal) return "no colour: standard output is not a terminal";
  return terminal.no_color ? "no colour: NO_COLOR is set" : "colour";
}

std::string doctor_json(const CatalogueCheck& catalogue) {
  Json out{{"format", "towtank-doctor"}, {"version", 1}, {"towtank", TOWTANK_VERSION}};
  out["catalogue"] = {{"machines", catalogue.machines}, {"faults", catalogue.faults}};
  out["components"] = Json::array();
  for (const Component& c : find_components()) {
    out["components"].push_back({{"name", c.name}, {"present", c.present}, {"says", c.says}});
  }
  return to_text(out);
}

}  // namespace

const BuildInfo& build_info() {
  static const BuildInfo info = make_info();
  return info;
}

Outcome run_version(const Arguments& arguments, const Terminal&) {
  Outcome outcome;
  const BuildInfo& info = build_info();
  if (arguments.flags.contains("--json")) {
    Json out{{"format", "towtank-version"},
             {"version", 1},
             {"towtank", std::string(info.version)},
             {"compiler", info.compiler}};
    for (const Library& l : info.libraries) out["libraries"][l.name] = l.version;
    outcome.out = to_text(out);
    return outcome;
  }
  outcome.out = "towtank " + std::string(info.version) + ", " + info.compiler + "\n";
  TextTable table({{"", Align::kLeft, 2}, {"", Align::kLeft, 2}});
  for (const Library& l : info.libraries) table.add_row({l.name, l.version});
  outcome.out += table.text();
  return outcome;
}

Outcome run_doctor(const Arguments& arguments, const Terminal& terminal) {
  Outcome outcome;
  const CatalogueCheck catalogue = check_catalogue();
  if (!catalogue.faults.empty()) outcome.exit_code = kExitInternal;
  outcome.messages = catalogue.faults;
  if (arguments.flags.contains("--json")) {
    outcome.out = doctor_json(catalogue);
    return outcome;
  }
  TextTable table({{"", Align::kLeft, 2}, {"", Align::kLeft, 2}, {"", Align::kLeft, 2}});
  for (const Component& c : find_components()) {
    table.add_row({c.present ? "ok" : "absent", c.name, c.says});
  }
  table.add_row({catalogue.faults.empty() ? "ok" : "FAULT", "catalogue",
                 std::to_string(catalogue.machines) + " machines are read without a fault"});
  table.add_row({"ok", "terminal", colour_text(terminal)});
  outcome.out = "towtank " + std::string(build_info().version) + "\n" + table.text();
  return outcome;
}

}  // namespace towtank
