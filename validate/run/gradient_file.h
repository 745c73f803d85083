// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Gradients as the ranks of a run hold them, put together again to compare runs of one model under
/// different plans. A file has one rank's pieces; a parameter's pieces may lie in several files.
///
/// Binary, of this machine's byte order: text lengths and dimensions are int64, values fp64. It is
/// for comparing runs of one build, not for keeping.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace towtank {

/// Elements [begin, begin + values.size()) of the part of a parameter that a tensor rank has.
struct GradientPiece {
  std::string name;
  std::vector<std::int64_t> whole;  ///< full shape
  std::int64_t split = -1;          ///< divided dimension; -1 = none
  std::int64_t part = 0, parts = 1;
  std::int64_t begin = 0;
  std::vector<double> values;
};

[[nodiscard]] std::string encode(const std::vector<GradientPiece>&);
/// Throws std::runtime_error on anything else than what encode() makes.
[[nodiscard]] std::vector<GradientPiece> decode_gradients(const std::string& bytes);

struct Difference {
  std::string name;    ///< of the parameter with the largest error
  double error = 0;    ///< largest |a - b| over the largest |a| of the parameter
  int parameters = 0;  ///< compared
};

/// Whole gradients by name. Throws std::runtime_error if an element is missing, or if two pieces
/// give one element values further apart than `tolerance` times the parameter's largest.
[[nodiscard]] std::map<std::string, std::vector<double>> assemble(
    const std::vector<std::vector<GradientPiece>>& ranks, double tolerance);
/// Throws std::runtime_error if names or sizes differ.
[[nodiscard]] Difference compare(const std::map<std::string, std::vector<double>>& reference,
                                 const std::map<std::string, std::vector<double>>& other);

}  // namespace towtank
