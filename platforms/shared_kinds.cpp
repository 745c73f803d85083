// SPDX-License-Identifier: Apache-2.0
#include "platforms/shared_kinds.h"

#include <algorithm>

#include "core/contracts.h"
#include "platforms/embedded_library.h"

namespace towtank {
namespace {

constexpr std::string_view kDeviceStem = "device-kinds";
constexpr std::string_view kNodeStem = "node-kinds";

}  // namespace

bool is_shared_kinds_file(std::string_view stem) {
  return stem == kDeviceStem || stem == kNodeStem;
}

JsonReader SharedKinds::kinds(std::optional<JsonFile>& file, std::string_view stem,
                              std::string_view key) {
  if (!file) {
    const auto library = embedded_library();
    const auto found = std::find_if(library.begin(), library.end(),
                                    [&](const EmbeddedFile& f) { return f.name == stem; });
    EXPECTS(found != library.end());
    file = JsonFile::parse(std::string(found->text), "catalogue/" + std::string(stem) + ".json");
    file->root().expect_format("towtank-" + std::string(stem), 1);
  }
  return file->root().at(key);
}

std::optional<JsonReader> SharedKinds::device(const std::string& name) {
  return kinds(devices_, kDeviceStem, "device_kinds").find(name);
}

std::optional<JsonReader> SharedKinds::node(const std::string& name) {
  return kinds(nodes_, kNodeStem, "node_kinds").find(name);
}

std::vector<std::string> SharedKinds::device_names() {
  return kinds(devices_, kDeviceStem, "device_kinds").keys();
}

std::vector<std::string> SharedKinds::node_names() {
  return kinds(nodes_, kNodeStem, "node_kinds").keys();
}

void SharedKinds::finish() const {
  if (devices_) devices_->finish();
  if (nodes_) nodes_->finish();
}

}  // namespace towtank
