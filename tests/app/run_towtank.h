// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Runs the program inside the test: a command line in, exit code and both streams out.
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "app/run_app.h"

namespace towtank::app_testing {

struct Ran {
  int code = 0;
  std::string out, err;
};

/// Splits at blanks; no quoting.
[[nodiscard]] inline std::vector<std::string> words_of(const std::string& line) {
  std::istringstream in(line);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

[[nodiscard]] inline Ran run_words(const std::vector<std::string>& words,
                                   const Terminal& terminal = {}) {
  std::ostringstream out, err;
  Ran ran;
  ran.code = run_app(words, out, err, terminal);
  ran.out = out.str();
  ran.err = err.str();
  return ran;
}

[[nodiscard]] inline Ran run(const std::string& line, const Terminal& terminal = {}) {
  return run_words(words_of(line), terminal);
}

/// The current folder for as long as it lives; the one before it afterwards.
class InFolder {
 public:
  explicit InFolder(const std::filesystem::path& folder)
      : before_(std::filesystem::current_path()) {
    std::filesystem::current_path(folder);
  }
  InFolder(const InFolder&) = delete;
  InFolder& operator=(const InFolder&) = delete;
  ~InFolder() { std::filesystem::current_path(before_); }

 private:
  std::filesystem::path before_;
};

/// A new empty folder, removed at the end.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "towtank-test-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no scratch folder");
    path_ = name;
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

inline void write_text(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

[[nodiscard]] inline std::string source_file(const std::string& name) {
  return std::string(TOWTANK_SOURCE_DIR) + "/" + name;
}

}  // namespace towtank::app_testing
