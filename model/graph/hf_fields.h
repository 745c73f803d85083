// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Reads the fields of a Hugging Face config: every spelling that families use, their class
/// defaults where a file is silent, a fault where there is none.
///
///   need    architecture: a fault when absent, unless the object is nested in another config,
///           since nested configs are written as differences from the class defaults
///   take    anything else: the class default when absent, told in the assumptions
#include <algorithm>
#include <array>
#include <cstddef>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/input_error.h"
#include "core/json.h"

namespace towtank {

/// Spellings of one field, the one in messages first.
class FieldNames {
 public:
  static constexpr std::size_t kMost = 6;
  constexpr FieldNames(std::initializer_list<std::string_view> names) : count_(names.size()) {
    std::copy(names.begin(), names.end(), names_.begin());
  }
  [[nodiscard]] constexpr const std::string_view* begin() const { return names_.data(); }
  [[nodiscard]] constexpr const std::string_view* end() const { return names_.data() + count_; }

 private:
  std::array<std::string_view, kMost> names_{};
  std::size_t count_;
};

// Larger than any network; smaller than what could overflow a count (products are doubles).
inline constexpr int kMaxWidth = 1 << 24;
inline constexpr int kMaxLayers = 20'000;
inline constexpr int kMaxVocabulary = 1 << 27;
inline constexpr int kMaxTokens = 1 << 26;

/// What reading a config yields beside the graph.
struct HfNotes {
  const JsonFile* file = nullptr;
  std::vector<std::string> assumptions;
  std::vector<Fault> faults;  ///< of other inputs than the file, e.g. --sequence
};

class HfFields {
 public:
  /// `outer`: the config around a nested one.
  HfFields(const JsonReader& object, std::string family, std::optional<JsonReader> outer,
           HfNotes& notes)
      : object_(object), family_(std::move(family)), outer_(std::move(outer)), notes_(notes) {}

  /// An integer in [1, most].
  [[nodiscard]] int need(FieldNames, int class_default, int most = kMaxWidth) const;
  /// An integer in [least, most].
  [[nodiscard]] int take(FieldNames, int class_default, int least = 1, int most = kMaxWidth) const;
  /// An integer in [1, most] or nothing (absent or null), without a note.
  [[nodiscard]] std::optional<int> maybe(FieldNames, int most = kMaxWidth) const;
  [[nodiscard]] bool flag(FieldNames, bool class_default) const;
  /// tie_word_embeddings, of the outer config where the nested one is silent.
  [[nodiscard]] bool tied(bool class_default) const;
  /// A rate in [0, 1], e.g. of dropout.
  [[nodiscard]] double rate(FieldNames, double class_default) const;
  [[nodiscard]] std::string text(FieldNames, std::string_view class_default) const;
  /// The value of the first spelling that is there; different values are a fault.
  [[nodiscard]] std::optional<JsonReader> find(FieldNames) const;

  /// True if a spelling is in the file, be it null.
  [[nodiscard]] bool stated(FieldNames) const;

  void assume(std::string text) const;
  /// Fields that contradict each other; not told where the file has faults, since a faulty field
  /// reads as a harmless value.
  void contradiction(std::string problem, std::string hint = "") const;
  /// A fault that is not the file's; told once.
  void fault(Fault fault) const;
  [[nodiscard]] const JsonReader& object() const { return object_; }
  [[nodiscard]] const std::string& family() const { return family_; }

 private:
  JsonReader object_;
  std::string family_;
  std::optional<JsonReader> outer_;
  HfNotes& notes_;
};

// Spellings that mean the same in every family.
namespace fields {
inline constexpr FieldNames kHidden{"hidden_size", "n_embd", "d_model", "n_embed", "dim"};
inline constexpr FieldNames kLayers{"num_hidden_layers", "n_layer", "n_layers", "num_layers"};
inline constexpr FieldNames kHeads{"num_attention_heads", "n_head", "n_heads", "num_heads"};
inline constexpr FieldNames kKvHeads{"num_key_value_heads", "num_kv_heads", "n_head_kv"};
inline constexpr FieldNames kWidth{"intermediate_size", "n_inner", "ffn_dim", "d_ff",
                                   "ffn_hidden_size"};
inline constexpr FieldNames kVocabulary{"vocab_size"};
inline constexpr FieldNames kPositions{"max_position_embeddings", "n_positions", "n_ctx"};
inline constexpr FieldNames kExperts{"num_local_experts", "num_experts", "n_routed_experts"};
inline constexpr FieldNames kChosen{"num_experts_per_tok", "experts_per_token"};
}  // namespace fields

}  // namespace towtank
