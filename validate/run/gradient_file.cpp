// SPDX-License-Identifier: Apache-2.0
#include "validate/run/gradient_file.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>

namespace towtank {
namespace {

void put(std::string& out, std::int64_t value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out.append(bytes, sizeof value);
}

class Cursor {
 public:
  explicit Cursor(const std::string& bytes) : bytes_(bytes) {}
  [[nodiscard]] bool at_end() const { return at_ == bytes_.size(); }
  std::int64_t integer() {
    std::int64_t value = 0;
    std::memcpy(&value, take(sizeof value), sizeof value);
    return value;
  }
  /// A count of things of `size` bytes each that are still to come.
  std::size_t count(std::size_t size) {
    const std::int64_t n = integer();
    if (n < 0 || static_cast<std::size_t>(n) > (bytes_.size() - at_) / size) {
      throw std::runtime_error("a gradient file ends too early");
    }
    return static_cast<std::size_t>(n);
  }
  const char* take(std::size_t n) {
    if (n > bytes_.size() - at_) throw std::runtime_error("a gradient file ends too early");
    at_ += n;
    return bytes_.data() + at_ - n;
  }

 private:
  const std::string& bytes_;
  std::size_t at_ = 0;
};

/// Index in the whole parameter of element i of a piece's part.
std::size_t whole_index(const GradientPiece& p, std::int64_t i) {
  if (p.split < 0) return static_cast<std::size_t>(i);
  std::int64_t inner = 1;
  for (std::size_t d = static_cast<std::size_t>(p.split) + 1; d < p.whole.size(); ++d) {
    inner *= p.whole[d];
  }
  const std::int64_t rows = p.whole[static_cast<std::size_t>(p.split)];
  const std::int64_t own = rows / p.parts;
  const std::int64_t outer = i / (own * inner), row = i / inner % own, column = i % inner;
  return static_cast<std::size_t>((outer * rows + p.part * own + row) * inner + column);
}

std::size_t size_of(const GradientPiece& p) {
  std::int64_t n = 1;
  for (const std::int64_t d : p.whole) n *= d;
  return static_cast<std::size_t>(n);
}

double largest(const std::vector<double>& values) {
  double top = 0;
  for (const double v : values) top = std::max(top, std::abs(v));
  return top;
}

}  // namespace

std::string encode(const std::vector<GradientPiece>& pieces) {
  std::string out;
  for (const GradientPiece& p : pieces) {
    put(out, static_cast<std::int64_t>(p.name.size()));
    out += p.name;
    put(out, static_cast<std::int64_t>(p.whole.size()));
    for (const std::int64_t d : p.whole) put(out, d);
    for (const std::int64_t v : {p.split, p.part, p.parts, p.begin}) put(out, v);
    put(out, static_cast<std::int64_t>(p.values.size()));
    const std::size_t before = out.size();
    out.resize(before + p.values.size() * sizeof(double));
    if (!p.values.empty()) {
      std::memcpy(out.data() + before, p.values.data(), p.values.size() * sizeof(double));
    }
  }
  return out;
}

std::vector<GradientPiece> decode_gradients(const std::string& bytes) {
  std::vector<GradientPiece> pieces;
  Cursor in(bytes);
  while (!in.at_end()) {
    GradientPiece p;
    const std::size_t length = in.count(1);
    p.name.assign(in.take(length), length);
    p.whole.resize(in.count(sizeof(std::int64_t)));
    for (std::int64_t& d : p.whole) d = in.integer();
    for (std::int64_t* v : {&p.split, &p.part, &p.parts, &p.begin}) *v = in.integer();
    p.values.resize(in.count(sizeof(double)));
    const char* values = in.take(p.values.size() * sizeof(double));
    if (!p.values.empty()) {
      std::memcpy(p.values.data(), values, p.values.size() * sizeof(double));
    }
    pieces.push_back(std::move(p));
  }
  return pieces;
}

std::map<std::string, std::vector<double>> assemble(
    const std::vector<std::vector<GradientPiece>>& ranks, double tolerance) {
  constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();
  std::map<std::string, std::vector<double>> out;
  std::map<std::string, double> apart;  // where several ranks have an element
  for (const auto& pieces : ranks) {
    for (const GradientPiece& p : pieces) {
      std::vector<double>& whole = out.try_emplace(p.name, size_of(p), kMissing).first->second;
      for (std::size_t i = 0; i < p.values.size(); ++i) {
        double& element = whole.at(whole_index(p, p.begin + static_cast<std::int64_t>(i)));
        if (!std::isnan(element)) {
          apart[p.name] = std::max(apart[p.name], std::abs(element - p.values[i]));
        }
        element = p.values[i];
      }
    }
  }
  for (const auto& [name, whole] : out) {
    for (const double v : whole) {
      if (std::isnan(v))
        throw std::runtime_error(name + ": no rank has an element of its gradient");
    }
    if (const auto found = apart.find(name);
        found != apart.end() && found->second > tolerance * largest(whole)) {
      throw std::runtime_error(name + ": the ranks that share it differ by " +
                               std::to_string(found->second / largest(whole)));
    }
  }
  return out;
}

Difference compare(const std::map<std::string, std::vector<double>>& reference,
                   const std::map<std::string, std::vector<double>>& other) {
  Difference worst;
  if (reference.size() != other.size()) {
    throw std::runtime_error(std::to_string(reference.size()) + " parameters against " +
                             std::to_string(other.size()));
  }
  // A gradient that is zero but for rounding (a key's bias) has no scale of its own.
  constexpr double kLeastScale = 1e-3;
  double scale = 0;
  for (const auto& [name, a] : reference) scale = std::max(scale, largest(a));
  for (const auto& [name, a] : reference) {
    const auto found = other.find(name);
    if (found == other.end() || found->second.size() != a.size()) {
      throw std::runtime_error(name + ": not in both runs with the same size");
    }
    double error = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      error = std::max(error, std::abs(a[i] - found->second[i]));
    }
    const double top = std::max(largest(a), kLeastScale * scale);
    if (top > 0) error /= top;
    if (worst.name.empty() || error > worst.error) worst = {name, error, 0};
  }
  worst.parameters = static_cast<int>(reference.size());
  return worst;
}

}  // namespace towtank
