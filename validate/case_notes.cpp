// SPDX-License-Identifier: Apache-2.0
// The normative tokens of a case's notes.
#include <algorithm>
#include <cctype>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>

#include "validate/case_json.h"

namespace towtank {
namespace {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

/// The token as whole words: "PURE" is not in "IMPURE".
bool has_token(std::string_view text, std::string_view token) {
  for (std::size_t at = text.find(token); at != std::string_view::npos;
       at = text.find(token, at + 1)) {
    const std::size_t end = at + token.size();
    const bool starts = at == 0 || !is_word(text[at - 1]);
    if (starts && (end == text.size() || !is_word(text[end]))) return true;
  }
  return false;
}

/// The bracketed text that follows a token, brackets included; nullopt if it is not closed.
std::optional<std::string_view> bracketed(std::string_view text, std::size_t open) {
  int depth = 0;
  for (std::size_t i = open; i < text.size(); ++i) {
    if (text[i] == '[') ++depth;
    if (text[i] == ']' && --depth == 0) return text.substr(open, i + 1 - open);
  }
  return std::nullopt;
}

/// JSON that stands in brackets after a token; faults at notes if it cannot be read.
std::optional<Json> json_after(const JsonReader& notes, std::string_view text,
                               std::string_view token) {
  const std::size_t at = text.find(token);
  if (at == std::string_view::npos) return std::nullopt;
  const auto list = bracketed(text, at + token.size() - 1);
  Json json = list ? Json::parse(*list, nullptr, false) : Json(Json::value_t::discarded);
  if (json.is_discarded()) {
    notes.fault("has \"" + std::string(token) + "\" without a list that can be read");
    return std::nullopt;
  }
  return json;
}

constexpr int kMostLayers = 100000;

std::optional<int> small_number(const Json& value) {
  if (!value.is_number_integer()) return std::nullopt;
  const auto number = value.get<std::int64_t>();
  if (number < 0 || number > kMostLayers) return std::nullopt;
  return static_cast<int>(number);
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

std::optional<CaseStage> stage_of(const Json& item) {
  if (!item.is_object() || item.size() != 2 || !item.contains("layers") ||
      !item.contains("replicas") || !item["replicas"].is_array() || item["replicas"].empty()) {
    return std::nullopt;
  }
  const auto layers = small_number(item["layers"]);
  if (!layers) return std::nullopt;
  CaseStage stage{*layers, {}};
  for (const Json& replica : item["replicas"]) {
    if (!replica.is_array() || replica.size() != 2 || !replica[0].is_string()) return std::nullopt;
    const auto tensor = small_number(replica[1]);
    if (!tensor || *tensor < 1) return std::nullopt;
    stage.replicas.push_back({lower(replica[0].get<std::string>()), *tensor});
  }
  return stage;
}

void read_stage_list(const JsonReader& notes, std::string_view text, CaseNotes& out) {
  const auto json = json_after(notes, text, "stages=[");
  if (!json) return;
  for (const Json& item : *json) {
    const auto stage = stage_of(item);
    if (!stage) {
      notes.fault("has a stage that is not {\"layers\": n, \"replicas\": [[device, tensor], ...]}",
                  item.dump());
      return;
    }
    out.stages.push_back(*stage);
  }
}

void read_layer_list(const JsonReader& notes, std::string_view text, CaseNotes& out) {
  const auto json = json_after(notes, text, "layers per stage [");
  if (!json) return;
  for (const Json& item : *json) {
    const auto layers = small_number(item);
    if (!layers) {
      notes.fault("has layers per stage that are not whole numbers", item.dump());
      return;
    }
    out.layers_per_stage.push_back(*layers);
  }
}

/// Reads a number at the start of a text and drops it; nullopt if there is none.
std::optional<int> take_number(std::string_view& text) {
  int value = 0;
  std::size_t digits = 0;
  while (digits < text.size() && std::isdigit(static_cast<unsigned char>(text[digits])) != 0) {
    value = std::min(value * 10 + (text[digits] - '0'), kMostLayers);
    ++digits;
  }
  text.remove_prefix(digits);
  return digits > 0 ? std::optional(value) : std::nullopt;
}

bool take(std::string_view& text, std::string_view word) {
  if (text.substr(0, word.size()) != word) return false;
  text.remove_prefix(word.size());
  return true;
}

/// "78 layers on 12 stages: 7 on the first 11 stages, 1 on the last"
std::vector<int> uneven_split(std::string_view text) {
  constexpr std::string_view kWords = " layers on ";
  const std::size_t at = text.find(kWords);
  if (at == std::string_view::npos) return {};
  std::string_view rest = text.substr(at + kWords.size());
  const auto stages = take_number(rest);
  if (!stages || !take(rest, " stages: ")) return {};
  const auto each = take_number(rest);
  if (!each || !take(rest, " on the first ")) return {};
  const auto count = take_number(rest);
  if (!count || !take(rest, " stages, ")) return {};
  const auto last = take_number(rest);
  if (!last || !take(rest, " on the last") || *count + 1 != *stages) return {};
  std::vector<int> split(static_cast<std::size_t>(*count), *each);
  split.push_back(*last);
  return split;
}

/// "gradient reduction 0.00823 s of the step"
std::optional<Seconds> measured_reduction(std::string_view text) {
  constexpr std::string_view kWords = "gradient reduction ";
  const std::size_t at = text.find(kWords);
  if (at == std::string_view::npos) return std::nullopt;
  const char* last = text.data() + text.size();
  double seconds = 0;
  const auto read = std::from_chars(text.data() + at + kWords.size(), last, seconds);
  if (read.ec != std::errc() || !(seconds > 0)) return std::nullopt;
  const std::string_view rest(read.ptr, static_cast<std::size_t>(last - read.ptr));
  return rest.starts_with(" s of the step") ? std::optional(Seconds{seconds}) : std::nullopt;
}

}  // namespace

CaseNotes read_notes(const JsonReader& notes) {
  const std::string text = notes.as_string();
  CaseNotes out;
  out.pure = has_token(text, "PURE");
  out.bf16_optimizer = has_token(text, "BF16 optimizer");
  out.fp16_gradients = has_token(text, "fp16 gradients");
  out.compile = has_token(text, "torch.compile");
  out.packed_samples = has_token(text, "packed samples") || has_token(text, "packed sequences");
  out.ends_count_as_layers = has_token(text, "layer partition type:transformer|embedding") ||
                             has_token(text, "embedding and loss count as layers") ||
                             has_token(text, "count embedding and head as one layer each");
  read_stage_list(notes, text, out);
  read_layer_list(notes, text, out);
  if (out.layers_per_stage.empty()) out.layers_per_stage = uneven_split(text);
  out.gradient_reduction = measured_reduction(text);
  return out;
}

}  // namespace towtank
