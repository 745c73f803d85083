// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Typed indices: a RankId cannot be passed where a StageId is wanted, and an IdVector can be
/// indexed by its own id type only.
#include <compare>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace towtank {

template <class Tag>
struct Id {
  std::int32_t value = 0;
  friend constexpr auto operator<=>(Id, Id) = default;
};

template <class I, class T>
class IdVector {
 public:
  IdVector() = default;
  explicit IdVector(std::size_t n) : items_(n) {}
  IdVector(std::size_t n, const T& item) : items_(n, item) {}
  T& operator[](I id) { return items_[static_cast<std::size_t>(id.value)]; }
  const T& operator[](I id) const { return items_[static_cast<std::size_t>(id.value)]; }
  [[nodiscard]] std::size_t size() const { return items_.size(); }
  [[nodiscard]] bool empty() const { return items_.empty(); }
  I push_back(T item) {
    items_.push_back(std::move(item));
    return I{static_cast<std::int32_t>(items_.size()) - 1};
  }
  [[nodiscard]] auto begin() { return items_.begin(); }
  [[nodiscard]] auto end() { return items_.end(); }
  [[nodiscard]] auto begin() const { return items_.begin(); }
  [[nodiscard]] auto end() const { return items_.end(); }

 private:
  std::vector<T> items_;
};

}  // namespace towtank
