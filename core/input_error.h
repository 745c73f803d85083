// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Bad input, told so that a person can mend it: `where: problem (why). Hint.`
///
/// Readers collect every fault of a file into Faults and throw one InputError with all of them.
/// Caught in main and in tests only.
#include <stdexcept>
#include <string>
#include <vector>

namespace towtank {

struct Fault {
  std::string where;    ///< "file: /json/pointer", "file" or "--flag"
  std::string problem;  ///< what is wrong, with the value that was given
  std::string why;      ///< the rule that it breaks; may be empty
  std::string hint;     ///< what to do; may be empty
  friend bool operator==(const Fault&, const Fault&) = default;
};

/// "where: problem (why). Hint."
[[nodiscard]] std::string to_text(const Fault&);

class InputError : public std::runtime_error {
 public:
  explicit InputError(Fault fault);
  /// Pre: faults is not empty.
  explicit InputError(std::vector<Fault> faults);
  [[nodiscard]] const std::vector<Fault>& faults() const { return faults_; }

 private:
  std::vector<Fault> faults_;
};

/// Collects faults so that all of them are reported, not the first.
class Faults {
 public:
  void add(Fault fault) { faults_.push_back(std::move(fault)); }
  [[nodiscard]] bool empty() const { return faults_.empty(); }
  [[nodiscard]] const std::vector<Fault>& all() const { return faults_; }
  /// Throws InputError with every fault if there is any.
  void throw_if_any() const;

 private:
  std::vector<Fault> faults_;
};

}  // namespace towtank
