// SPDX-License-Identifier: Apache-2.0
#include "model/graph/hf_import.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/contracts.h"
#include "core/text.h"
#include "model/graph/graph_json.h"
#include "model/graph/hf_families.h"

namespace towtank {
namespace {

/// The config of the text model, and whether it stood inside another.
struct TextConfig {
  JsonReader object;
  bool nested = false;
  std::string path;  ///< keys that were descended
};

TextConfig text_config(const JsonReader& root) {
  constexpr std::array<std::string_view, 4> kInner{"text_config", "llm_config", "language_config",
                                                   "thinker_config"};
  TextConfig found{root, false, ""};
  for (int depth = 0; depth < kMaxJsonDepth; ++depth) {
    bool deeper = false;
    for (const std::string_view key : kInner) {
      const auto inner = found.object.find(key);
      if (!inner || !inner->is_object()) continue;
      found = {*inner, true, found.path + (found.path.empty() ? "" : ".") + std::string(key)};
      deeper = true;
      break;
    }
    if (!deeper) break;
  }
  return found;
}

std::vector<std::string_view> family_names() {
  std::vector<std::string_view> names;
  for (const HfFamily& family : hf_families()) names.push_back(family.model_type);
  return names;
}

std::string known_families() {
  const auto names = family_names();
  return "understood: " + join({names.begin(), names.end()}, ", ");
}

/// "Llama" of "LlamaForCausalLM".
std::string_view class_stem(std::string_view name) {
  constexpr std::array<std::string_view, 6> kEnds{"For",  "LMHead",  "DoubleHeads",
                                                  "With", "Encoder", "Model"};
  for (const std::string_view end : kEnds) {
    const std::size_t at = name.find(end);
    if (at != std::string_view::npos && at > 0) name = name.substr(0, at);
  }
  return name;
}

const HfFamily* family_of_class(std::string_view name) {
  const std::string_view stem = class_stem(name);
  if (stem == "RW") return find_hf_family("falcon");
  for (const HfFamily& family : hf_families()) {
    if (family.class_stem == stem) return &family;
  }
  return nullptr;
}

/// The family that the class names name, if one of them does; all must agree with `stated`.
const HfFamily* check_architectures(const JsonReader& object, const HfFamily* stated,
                                    HfNotes& notes) {
  const auto list = object.find("architectures");
  if (!list) return stated;
  for (const JsonReader& item : list->elements()) {
    const std::string name = item.as_string();
    const HfFamily* named = family_of_class(name);
    if (named == nullptr) {
      if (stated != nullptr && !name.empty()) {
        notes.assumptions.push_back("class " + printable(name) + " is a " +
                                    std::string(stated->model_type) + " (model_type)");
      }
      continue;
    }
    if (stated == nullptr) return named;
    if (named != stated) {
      item.fault(in_quotes(name) + " is a " + std::string(named->model_type) +
                     " class, but model_type is " + std::string(stated->model_type),
                 known_families(), "Correct one of the two.");
    }
  }
  return stated;
}

/// nullptr after a fault.
const HfFamily* family_of(const TextConfig& text, HfNotes& notes) {
  const JsonReader& object = text.object;
  const auto type = object.find("model_type");
  if (!type) {
    const HfFamily* named = check_architectures(object, nullptr, notes);
    if (named == nullptr) {
      object.fault("model_type is missing", known_families(),
                   object.find("architectures") ? "" : "Is this a Hugging Face config.json?");
    } else {
      notes.assumptions.push_back("model_type = " + std::string(named->model_type) +
                                  " (from architectures)");
    }
    return named;
  }
  const std::string name = type->as_string();
  const HfFamily* family = find_hf_family(name);
  if (family == nullptr) {
    if (type->is_string()) {
      const auto near = nearest(name, family_names());
      type->fault("unknown family " + in_quotes(name), known_families(),
                  near ? "Did you mean \"" + *near + "\"?" : "");
    }
    return nullptr;
  }
  return check_architectures(object, family, notes);
}

void note_quantization(const JsonReader& object, HfNotes& notes) {
  if (object.find("quantization_config")) {
    notes.assumptions.emplace_back(
        "quantization_config is not used: weights are trained in the workload's precision");
  }
}

std::vector<std::string_view> known_keys(const HfFamily& family) {
  const auto common = hf_ignored_keys();
  std::vector<std::string_view> keys(common.begin(), common.end());
  keys.insert(keys.end(), family.ignored.begin(), family.ignored.end());
  return keys;
}

}  // namespace

ModelGraph import_hf_config(const JsonFile& file, int sequence_length) {
  EXPECTS(sequence_length >= 0);
  const JsonReader root = file.root();
  if (!root.is_object()) {
    root.fault("is not a JSON object", "a Hugging Face config.json is one");
    file.finish();
  }
  const TextConfig text = text_config(root);
  HfNotes notes;
  notes.file = &file;
  if (text.nested) notes.assumptions.push_back("only the model under " + text.path + " is trained");
  const HfFamily* family = family_of(text, notes);
  ModelGraph graph;
  if (family != nullptr) {
    const HfFields fields(text.object, std::string(family->model_type),
                          text.nested ? std::optional(root) : std::nullopt, notes);
    graph = family->read(fields, {.sequence_length = sequence_length});
    note_quantization(root, notes);
    if (text.nested) note_quantization(text.object, notes);
    text.object.no_other_keys(known_keys(*family));
  }
  std::vector<Fault> faults = file.faults();
  faults.insert(faults.end(), notes.faults.begin(), notes.faults.end());
  if (!faults.empty()) throw InputError(std::move(faults));
  const auto name = text.object.find("_name_or_path");
  const bool named = name && name->is_string() && !name->as_string().empty();
  graph.name = named ? printable(name->as_string()) : std::string(family->model_type);
  graph.assumptions = std::move(notes.assumptions);
  return graph;
}

ModelGraph import_model(const JsonFile& file, int sequence_length) {
  if (file.root().is_object() && file.root().has("format")) return parse_graph(file);
  return import_hf_config(file, sequence_length);
}

}  // namespace towtank
