// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Device and node kinds that platform files share by `"use": "<name>"`: the embedded files
/// device-kinds.json and node-kinds.json, each parsed when a file first uses one of it.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/json.h"

namespace towtank {

/// "device-kinds" and "node-kinds": files of the library that are not platforms.
[[nodiscard]] bool is_shared_kinds_file(std::string_view stem);

class SharedKinds {
 public:
  [[nodiscard]] std::optional<JsonReader> device(const std::string& name);
  [[nodiscard]] std::optional<JsonReader> node(const std::string& name);
  [[nodiscard]] std::vector<std::string> device_names();
  [[nodiscard]] std::vector<std::string> node_names();
  /// Throws if a shared entry that was read has a fault.
  void finish() const;

 private:
  JsonReader kinds(std::optional<JsonFile>& file, std::string_view stem, std::string_view key);
  std::optional<JsonFile> devices_;
  std::optional<JsonFile> nodes_;
};

}  // namespace towtank
