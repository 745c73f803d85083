// SPDX-License-Identifier: Apache-2.0
#include "app/calibrate_command.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "app/text_table.h"
#include "core/json.h"
#include "core/text.h"
#include "core/unit_text.h"
#include "model/cost/calibration_json.h"
#include "platforms/catalogue.h"
#include "profiler/profile_json.h"

namespace towtank {
namespace {

/// Items of a list without blanks around them.
std::vector<std::string> items_of(const std::string& text, char separator) {
  std::vector<std::string> out;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    const std::size_t first = text.find_first_not_of(' ', begin);
    if (first < end) {
      out.push_back(text.substr(first, text.find_last_not_of(' ', end - 1) - first + 1));
    }
    begin = end + 1;
  }
  return out;
}

std::vector<LeaveOut> leave_out_of(const ArgumentReader& reader) {
  std::vector<LeaveOut> out;
  for (const std::string& item : items_of(reader.text("--leave-out").value_or(""), ';')) {
    const std::size_t slash = item.find('/');
    const std::size_t equals = item.find('=', slash == std::string::npos ? 0 : slash);
    if (slash == std::string::npos || equals == std::string::npos || equals + 1 == item.size()) {
      reader.faults().add({"--leave-out", in_quotes(item) + " is not PROFILE/LABEL=REASON", "",
                           "For example \"vidur-a100-ops/attn_rope=an inference kernel\"."});
      continue;
    }
    out.push_back({item.substr(0, slash), item.substr(slash + 1, equals - slash - 1),
                   item.substr(equals + 1)});
  }
  return out;
}

/// As the user typed it, options after files.
std::string command_line(const Arguments& parsed) {
  std::string out = "towtank calibrate";
  for (const std::string& path : parsed.positionals) out += " " + path;
  for (const auto& [name, value] : parsed.values) {
    const bool plain = value.find_first_of(" ;*") == std::string::npos;
    out += " " + name + " " + (plain ? value : "'" + value + "'");
  }
  return out;
}

/// Devices of the profiles that the catalogue knows.
std::vector<DeviceKind> devices_of(const std::vector<Profile>& profiles) {
  std::set<std::string> names;
  for (const Profile& profile : profiles) {
    if (!profile.ops.empty() && !profile.device_kind.empty()) names.insert(profile.device_kind);
  }
  std::vector<DeviceKind> out;
  for (const std::string& name : names) {
    try {
      out.push_back(load_device_kind(name));
    } catch (const InputError&) {
      continue;  // the result refuses its rows and says so
    }
  }
  return out;
}

std::string estimate_text(double value, double error, bool fitted, bool seconds) {
  const auto text = [&](double x) { return seconds ? to_text(Seconds{x}) : three_digits(x); };
  return text(value) + (fitted ? " +- " + text(error) : " (not told)");
}

std::string evidence_text(const FitEvidence& e) {
  std::string out = with_thousands(e.rows) + " rows";
  if (e.host_bound > 0) {
    out += " (" + with_thousands(e.host_bound) + " of them bound by their launch)";
  }
  out += ", " + std::to_string(e.outliers) + " outliers";
  if (e.held_out.empty()) return out + "; nothing could be left out: errors are of the fit itself";
  return out + "; left out " + e.held_out + " in turn: median error " + percent(e.median) +
         ", bias " + percent(e.bias) + ", spread " + percent(e.spread);
}

void add(std::string& out, const std::string& label, const std::string& text) {
  out += labelled("  " + label, text, 14);
}

void add_report(std::string& out, const RecordReport& report) {
  for (const std::string& note : report.notes) add(out, "note", note);
  for (const std::string& untold : report.untold) add(out, "not told", untold);
  if (report.groups.size() > 1) {
    TextTable table({{"group", Align::kLeft, 14},
                     {"rows", Align::kRight, 2},
                     {"bias", Align::kRight, 2},
                     {"median", Align::kRight, 2},
                     {"spread", Align::kRight, 2}});
    for (const GroupResiduals& g : report.groups) {
      table.add_row({cut(g.group, 46), with_thousands(g.stats.rows), percent(g.stats.bias),
                     percent(g.stats.median), percent(g.stats.spread)});
    }
    out += table.text();
  }
  constexpr std::size_t kShown = 3;
  for (std::size_t i = 0; i < std::min(kShown, report.outliers.size()); ++i) {
    const Outlier& o = report.outliers[i];
    add(out, "outlier",
        o.what + ": measured " + to_text(o.measured) + ", fitted " + to_text(o.predicted));
  }
}

std::string terms_text(const OpRecord& record) {
  std::vector<std::string> terms;
  for (const OpTerm term : terms_of(record.kind, record.fused)) {
    const auto i = static_cast<std::size_t>(term);
    if (!record.terms[i]) continue;
    const Estimate& e = *record.terms[i];
    const std::string name(kOpTermNames[i]);
    const bool seconds = name.ends_with("_s");
    terms.push_back((seconds ? name.substr(0, name.size() - 2) : name) + " " +
                    estimate_text(e.value, e.error, e.fitted, seconds));
  }
  if (!record.families.empty()) {
    std::size_t shapes = 0;
    for (const ShapeFamily& family : record.families) shapes += family.knots.size();
    terms.push_back(std::to_string(shapes) + " measured shapes");
  }
  return join(terms, ", ");
}

std::string terms_text(const CollectiveRecord& record) {
  std::vector<std::string> terms{
      "launch " +
          estimate_text(record.launch.value, record.launch.error, record.launch.fitted, true),
      "step " + estimate_text(record.step.value, record.step.error, record.step.fitted, true)};
  if (record.low_share.value > 0.0) {
    terms.push_back("small payloads: step " + to_text(Seconds{record.low_step.value}) + ", " +
                    percent(record.low_share.value) + " of the bandwidth");
  }
  if (record.group_limit) {
    terms.push_back("a group gets " + to_text(BytesPerSecond{record.group_limit->value}) + " +- " +
                    to_text(BytesPerSecond{record.group_limit->error}) + " through a node");
  }
  for (const auto& s : record.shares) {
    terms.push_back("share of " + std::to_string(s.ranks) + " " +
                    estimate_text(s.share.value, s.share.error, s.share.fitted, false));
  }
  return join(terms, ", ");
}

Json report_json(const RecordReport& report) {
  Json groups = Json::array();
  for (const GroupResiduals& g : report.groups) {
    groups.push_back({{"group", g.group},
                      {"rows", g.stats.rows},
                      {"bias", g.stats.bias},
                      {"median", g.stats.median},
                      {"spread", g.stats.spread}});
  }
  Json outliers = Json::array();
  for (const Outlier& o : report.outliers) {
    outliers.push_back(
        {{"what", o.what}, {"measured_s", o.measured.value}, {"fitted_s", o.predicted.value}});
  }
  return {{"title", report.title},
          {"groups", groups},
          {"outliers", outliers},
          {"not_told", report.untold},
          {"notes", report.notes}};
}

}  // namespace

CommandSpec calibrate_spec() {
  constexpr std::string_view kWhat = "What is fitted";
  constexpr std::string_view kOutput = "Output";
  CommandSpec spec{
      "calibrate",
      "fit cost parameters to profiles",
      "calibrate PROFILE... [--platform NAME,...] [options] -o calibration.json",
      "Fits what a device or a fabric reaches to profiles that `towtank import` wrote: products, "
      "attention, norms and other ops by kind and dtype, collectives by fabric and level. Prints "
      "each parameter with its standard error, the errors of groups of rows that were left out in "
      "turn, outliers, and what the rows cannot tell with the measurement that would. Predictions "
      "use the file with --calibration.",
      {"PROFILE..."},
      {{"--platform", "NAME,...", kWhat,
        "machines whose fabrics the collectives crossed: their hardware rates are what shares are "
        "of",
        ValueKind::kPlatform},
       {"--leave-out", "RULE;...", kWhat,
        "rows that are not to be fitted, as PROFILE/LABEL=REASON: an op's label, alone or with its "
        "pass, or a collective; * for any",
        ValueKind::kText},
       {"--name", "NAME", kOutput, "name of the calibration", ValueKind::kText},
       {"--output", "FILE", kOutput, "write the calibration to a file", ValueKind::kFile, {}, 'o'},
       {"--json", "", kOutput, "the report as JSON", ValueKind::kNone}},
      {}};
  spec.examples = {
      {"calibrate examples/profiles/all-reduce-profile.json --platform dgx-h100",
       "all-reduces that `towtank import` read"},
  };
  return spec;
}

std::string calibrate_text(const CalibrationResult& result) {
  std::string out = labelled("Calibration", result.calibration.name, 14);
  out += labelled("Source", result.calibration.source, 14);
  for (const LeftOut& left : result.left_out) {
    out += labelled("Left out",
                    with_thousands(left.rows) + " rows " + left.rule.profile + "/" +
                        left.rule.label + ": " + left.rule.reason,
                    14);
  }
  std::size_t i = 0;
  const auto add_record = [&](const auto& record) {
    const RecordReport& report = result.reports[i++];
    out += "\n" + report.title + "\n";
    add(out, "fit", terms_text(record));
    add(out, "rows", evidence_text(record.evidence));
    add_report(out, report);
  };
  for (const OpRecord& record : result.calibration.ops) add_record(record);
  for (const CollectiveRecord& record : result.calibration.collectives) add_record(record);
  for (const Refusal& refusal : result.refusals) {
    out += "\n" + refusal.title + "\n";
    add(out, "refused", refusal.why + ". " + refusal.measure + ".");
  }
  return out;
}

std::string calibrate_json(const CalibrationResult& result) {
  Json out{{"format", "towtank-calibrate"}, {"version", 1}};
  out["calibration"] = to_json(result.calibration);
  out["reports"] = Json::array();
  for (const RecordReport& report : result.reports) out["reports"].push_back(report_json(report));
  out["refused"] = Json::array();
  for (const Refusal& r : result.refusals) {
    out["refused"].push_back({{"title", r.title}, {"why", r.why}, {"measure", r.measure}});
  }
  out["left_out"] = Json::array();
  for (const LeftOut& left : result.left_out) {
    out["left_out"].push_back({{"profile", left.rule.profile},
                               {"label", left.rule.label},
                               {"reason", left.rule.reason},
                               {"rows", left.rows}});
  }
  return to_text(out);
}

Outcome run_calibrate(const Arguments& arguments, const Terminal& /*terminal*/) {
  Faults faults;
  const ArgumentReader reader(arguments, faults);
  CalibrateOptions options;
  options.command = command_line(arguments);
  options.leave_out = leave_out_of(reader);
  if (arguments.positionals.empty()) {
    faults.add({"PROFILE", "is missing", "", "Give profiles that towtank import wrote."});
  }
  faults.throw_if_any();
  std::vector<Profile> profiles;
  for (const std::string& path : arguments.positionals) profiles.push_back(load_profile(path));
  for (const std::string& name : items_of(reader.text("--platform").value_or(""), ',')) {
    options.platforms.push_back(load_platform(name));
  }
  options.devices = devices_of(profiles);
  options.name = reader.text("--name").value_or(profiles.front().name);
  const CalibrationResult result = calibrate(profiles, options);
  Outcome out;
  out.out = reader.flag("--json") ? calibrate_json(result) : calibrate_text(result);
  for (const LeftOut& left : result.left_out) {
    if (left.rows > 0) continue;
    out.messages.push_back("note: --leave-out " + left.rule.profile + "/" + left.rule.label +
                           " meets no row");
  }
  const Calibration& made = result.calibration;
  if (const auto path = reader.text("--output")) {
    if (made.ops.empty() && made.collectives.empty()) {
      throw InputError({*path, "is not written: no record could be fitted", "", ""});
    }
    out.files.emplace_back(*path, calibration_text(made));
  }
  return out;
}

}  // namespace towtank
