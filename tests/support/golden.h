// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Outputs compared with files under tests/golden/. UPDATE_GOLDEN=1 writes the files instead; their
/// diff is then to be read like code.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace towtank::testing {

[[nodiscard]] inline std::string golden_path(const std::string& name) {
  return std::string(TOWTANK_SOURCE_DIR) + "/tests/golden/" + name;
}

[[nodiscard]] inline std::string content_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

inline void expect_same_as_file(const std::string& path, const std::string& actual) {
  const char* update = std::getenv("UPDATE_GOLDEN");
  if (update != nullptr && std::string(update) == "1") {
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path, std::ios::binary) << actual;
    return;
  }
  ASSERT_TRUE(std::filesystem::exists(path)) << path << " is missing: UPDATE_GOLDEN=1 writes it";
  EXPECT_EQ(content_of(path), actual) << "differs from " << path;
}

/// `name` is relative to tests/golden/.
inline void expect_golden(const std::string& name, const std::string& actual) {
  expect_same_as_file(golden_path(name), actual);
}

}  // namespace towtank::testing
