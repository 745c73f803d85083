// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Platforms by name: the shipped catalogue (platforms/library/*.json, embedded in the program)
/// and users' own files by path.
#include <string>
#include <string_view>
#include <vector>

#include "platforms/platform.h"

namespace towtank {

/// Names in the catalogue, sorted.
[[nodiscard]] std::vector<std::string> catalogue_names();
/// A catalogue name (or alias), or the path of a file (it contains '/' or ends in .json).
/// Throws InputError with the nearest names if there is none.
[[nodiscard]] Platform load_platform(const std::string& name_or_path);
/// A device kind that platforms share (platforms/library/device-kinds.json). Throws InputError with
/// the nearest names if there is none.
[[nodiscard]] DeviceKind load_device_kind(const std::string& name);

}  // namespace towtank
