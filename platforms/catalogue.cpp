// SPDX-License-Identifier: Apache-2.0
#include "platforms/catalogue.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/input_error.h"
#include "core/json.h"
#include "core/text.h"
#include "platforms/embedded_library.h"
#include "platforms/platform_json.h"
#include "platforms/shared_kinds.h"

namespace towtank {
namespace {

bool is_platform(const EmbeddedFile& file) { return !is_shared_kinds_file(file.name); }

Platform load_embedded(const EmbeddedFile& file) {
  return parse_platform(
      JsonFile::parse(std::string(file.text), "catalogue/" + std::string(file.name) + ".json"));
}

/// Only files whose text has the quoted name are parsed: names of platforms cost nothing.
std::optional<Platform> load_by_alias(const std::string& alias) {
  const std::string quoted = '"' + alias + '"';
  for (const EmbeddedFile& file : embedded_library()) {
    if (!is_platform(file) || file.text.find(quoted) == std::string_view::npos) continue;
    Platform platform = load_embedded(file);
    const auto& aliases = platform.aliases;
    if (std::find(aliases.begin(), aliases.end(), alias) != aliases.end()) return platform;
  }
  return std::nullopt;
}

bool is_path(std::string_view text) {
  constexpr std::string_view kJson = ".json";
  return text.find('/') != std::string_view::npos || text == "-" ||
         (text.size() >= kJson.size() && text.substr(text.size() - kJson.size()) == kJson);
}

Fault unknown_platform(const std::string& name) {
  const std::vector<std::string> names = catalogue_names();
  std::string hint = "`towtank platforms` lists it; a file is given by its path.";
  if (const auto near = nearest(name, names)) hint = "Did you mean \"" + *near + "\"? " + hint;
  return {.where = "platform",
          .problem = in_quotes(name) + " is not in the catalogue",
          .why = "",
          .hint = hint};
}

}  // namespace

std::vector<std::string> catalogue_names() {
  std::vector<std::string> names;
  for (const EmbeddedFile& file : embedded_library()) {
    if (is_platform(file)) names.emplace_back(file.name);
  }
  return names;
}

Platform load_platform(const std::string& name_or_path) {
  if (is_path(name_or_path)) return parse_platform(JsonFile::load(name_or_path));
  for (const EmbeddedFile& file : embedded_library()) {
    if (is_platform(file) && file.name == name_or_path) return load_embedded(file);
  }
  if (auto platform = load_by_alias(name_or_path)) return *std::move(platform);
  throw InputError(unknown_platform(name_or_path));
}

DeviceKind load_device_kind(const std::string& name) {
  Json node{{"device", name}, {"devices", 1}, {"source", "one device"}};
  const Json platform{
      {"format", "towtank-platform"},
      {"version", 1},
      {"name", "one-device"},
      {"description", "One device."},
      {"node_kinds", {{"one", node}}},
      {"nodes", Json::array({Json{{"kind", "one"}, {"count", 1}, {"source", "one device"}}})}};
  return parse_platform(JsonFile::parse(platform.dump(), "device kind"))
      .device_kinds[DeviceKindId{0}];
}

}  // namespace towtank
