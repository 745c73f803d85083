// SPDX-License-Identifier: Apache-2.0
#include "model/graph/hf_fields.h"

#include <algorithm>

#include "core/text.h"

namespace towtank {
namespace {

std::string name_of(FieldNames names) { return std::string(*names.begin()); }

std::string number_text(double value) {
  std::string text = std::to_string(value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

}  // namespace

std::optional<JsonReader> HfFields::find(FieldNames names) const {
  std::optional<JsonReader> first;
  std::string_view first_name;
  for (const std::string_view name : names) {
    const auto value = object_.find(name);
    if (!value) continue;
    if (!first) {
      first = value;
      first_name = name;
    } else if (value->dump() != first->dump()) {
      value->fault(value->dump() + " differs from " + std::string(first_name) + " = " +
                       printable(first->dump()),
                   "they are one field", "Remove one.");
    }
  }
  return first;
}

void HfFields::assume(std::string text) const {
  auto& all = notes_.assumptions;
  if (std::find(all.begin(), all.end(), text) == all.end()) all.push_back(std::move(text));
}

void HfFields::contradiction(std::string problem, std::string hint) const {
  if (notes_.file->faults().empty()) object_.fault(std::move(problem), "", std::move(hint));
}

void HfFields::fault(Fault fault) const {
  auto& all = notes_.faults;
  if (std::find(all.begin(), all.end(), fault) == all.end()) all.push_back(std::move(fault));
}

bool HfFields::stated(FieldNames names) const {
  const std::vector<std::string> keys = object_.keys();
  return std::any_of(names.begin(), names.end(), [&](std::string_view name) {
    return std::find(keys.begin(), keys.end(), name) != keys.end();
  });
}

int HfFields::need(FieldNames names, int class_default, int most) const {
  if (const auto value = find(names)) {
    return static_cast<int>(value->as_integer({.low = 1, .high = static_cast<double>(most)}));
  }
  if (outer_) {
    assume(name_of(names) + " = " + std::to_string(class_default) + " (" + family_ + " default)");
    return class_default;
  }
  std::vector<std::string> others;
  for (const std::string_view name : names) {
    if (name != *names.begin()) others.emplace_back(name);
  }
  std::string why = family_ + " has no default for it";
  if (!others.empty()) why += "; also read as " + join(others, ", ");
  object_.fault(name_of(names) + " is missing", std::move(why));
  return class_default;
}

int HfFields::take(FieldNames names, int class_default, int least, int most) const {
  if (const auto value = find(names)) {
    return static_cast<int>(
        value->as_integer({.low = static_cast<double>(least), .high = static_cast<double>(most)}));
  }
  assume(name_of(names) + " = " + std::to_string(class_default) + " (" + family_ + " default)");
  return class_default;
}

std::optional<int> HfFields::maybe(FieldNames names, int most) const {
  const auto value = find(names);
  if (!value) return std::nullopt;
  return static_cast<int>(value->as_integer({.low = 1, .high = static_cast<double>(most)}));
}

bool HfFields::flag(FieldNames names, bool class_default) const {
  if (const auto value = find(names)) return value->as_bool();
  assume(name_of(names) + " = " + (class_default ? "true" : "false") + " (" + family_ +
         " default)");
  return class_default;
}

bool HfFields::tied(bool class_default) const {
  constexpr std::string_view kKey = "tie_word_embeddings";
  if (!object_.find(kKey) && outer_) {
    if (const auto value = outer_->find(kKey)) return value->as_bool();
  }
  return flag({kKey}, class_default);
}

double HfFields::rate(FieldNames names, double class_default) const {
  if (const auto value = find(names)) return value->as_number({.low = 0, .high = 1});
  assume(name_of(names) + " = " + number_text(class_default) + " (" + family_ + " default)");
  return class_default;
}

std::string HfFields::text(FieldNames names, std::string_view class_default) const {
  if (const auto value = find(names)) return value->as_string();
  assume(name_of(names) + " = " + std::string(class_default) + " (" + family_ + " default)");
  return std::string(class_default);
}

}  // namespace towtank
