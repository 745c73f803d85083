// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Reading JSON that people write: every fault has its file and JSON pointer, an unknown key names
/// the nearest known one, quantities carry their unit in text.
///
/// A JsonReader is a cursor at one value. Getters of the wrong type, a missing key and an out of
/// range number add a fault and return a harmless value, so that one pass reports every fault; call
/// JsonFile::finish() at the end. Structural errors (not JSON, too deep, a key twice) throw at
/// once. Nothing below a value at fault is told again; a harmless number is the nearest to 0 that
/// is allowed.
///
///   JsonFile file = JsonFile::load("platform.json");      // or parse(text, name)
///   JsonReader root = file.root();
///   root.expect_format("towtank-platform", 1);
///   const std::string name = root.string("name");
///   for (JsonReader item : root.array("levels")) ...
///   root.no_other_keys();                                  // every key not asked for is a fault
///   file.finish();                                         // throws InputError with all faults
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/input_error.h"
#include "core/units.h"

namespace towtank {

/// What writers return: keys in the order of writing.
using Json = nlohmann::ordered_json;

inline constexpr int kMaxJsonDepth = 64;

struct JsonRange {
  double low = -1e308;
  double high = 1e308;
};

class JsonReader {
 public:
  [[nodiscard]] bool is_null() const;
  [[nodiscard]] bool is_object() const;
  [[nodiscard]] bool is_array() const;
  [[nodiscard]] bool is_string() const;
  [[nodiscard]] bool is_number() const;
  [[nodiscard]] bool is_boolean() const;
  [[nodiscard]] std::size_t size() const;               ///< elements of an array, keys of an object
  [[nodiscard]] std::vector<std::string> keys() const;  ///< in file order
  [[nodiscard]] std::string where() const;              ///< "file: /pointer"

  /// True if the key is there and not null. Counts as asked for.
  [[nodiscard]] bool has(std::string_view key) const;
  /// The value at a key; a missing one is a fault and reads as null.
  [[nodiscard]] JsonReader at(std::string_view key) const;
  [[nodiscard]] std::optional<JsonReader> find(std::string_view key) const;  ///< null = absent

  // The value at the cursor.
  [[nodiscard]] std::string as_string() const;
  [[nodiscard]] bool as_bool() const;
  [[nodiscard]] std::int64_t as_integer(JsonRange range = {}) const;
  [[nodiscard]] double as_number(JsonRange range = {}) const;
  [[nodiscard]] std::vector<JsonReader> elements() const;
  /// Text with a unit. A bare number is a fault unless it is a suffixed generated key (as_number).
  [[nodiscard]] Seconds as_seconds() const;
  [[nodiscard]] Bytes as_bytes() const;
  [[nodiscard]] BytesPerSecond as_bytes_per_second() const;
  [[nodiscard]] FlopPerSecond as_flop_per_second() const;
  [[nodiscard]] Watts as_watts() const;
  [[nodiscard]] Usd as_usd() const;

  // Short forms of at(key).as_...
  [[nodiscard]] std::string string(std::string_view key) const;
  [[nodiscard]] bool boolean(std::string_view key) const;
  [[nodiscard]] std::int64_t integer(std::string_view key, JsonRange range = {}) const;
  [[nodiscard]] double number(std::string_view key, JsonRange range = {}) const;
  [[nodiscard]] std::vector<JsonReader> array(std::string_view key) const;
  // The same with a value for an absent or null key.
  [[nodiscard]] std::string string_or(std::string_view key, std::string_view fallback) const;
  [[nodiscard]] bool boolean_or(std::string_view key, bool fallback) const;
  [[nodiscard]] std::int64_t integer_or(std::string_view key, std::int64_t fallback,
                                        JsonRange range = {}) const;
  [[nodiscard]] double number_or(std::string_view key, double fallback, JsonRange range = {}) const;

  /// One of the names, else a fault that lists them with the nearest; returns the index (0 then).
  [[nodiscard]] std::size_t one_of(std::string_view key,
                                   std::span<const std::string_view> names) const;

  /// "format" and "version": a newer version, another format or none is a fault. At the root a
  /// newer or another one is the only fault told: the rest would be noise.
  void expect_format(std::string_view format, int version) const;
  /// Every key of this object that no getter asked for is a fault with the nearest known key.
  /// `also_known` are keys that are understood and deliberately not used.
  void no_other_keys(std::span<const std::string_view> also_known = {}) const;
  /// Marks a key as understood.
  void ignore(std::string_view key) const;

  /// Adds a fault at this value.
  void fault(std::string problem, std::string why = "", std::string hint = "") const;
  /// The value as compact JSON text, for messages and hashes.
  [[nodiscard]] std::string dump() const;
  /// The raw value; only .cpp files that include <nlohmann/json.hpp> can use it.
  [[nodiscard]] const Json& raw() const;

 private:
  friend class JsonFile;
  struct Shared;
  JsonReader(std::shared_ptr<Shared> shared, const Json* value, std::string pointer);
  /// False, and a fault unless one is told already, if the value is not what it must be.
  bool needs(bool is_it, const char* what) const;
  bool within(double value, const JsonRange& range) const;
  template <class Q, class Parse>
  Q quantity(Parse parse, const char* example) const;
  std::shared_ptr<Shared> shared_;
  const Json* value_;
  std::string pointer_;
};

class JsonFile {
 public:
  [[nodiscard]] static JsonFile load(const std::string& path);
  [[nodiscard]] static JsonFile parse(const std::string& text, std::string name);
  [[nodiscard]] JsonReader root() const;
  [[nodiscard]] const std::string& name() const;
  [[nodiscard]] std::string hash() const;                  ///< content_hash of the text
  [[nodiscard]] const std::vector<Fault>& faults() const;  ///< so far
  /// Throws InputError with every fault collected, if any.
  void finish() const;

 private:
  explicit JsonFile(std::shared_ptr<JsonReader::Shared> shared);
  std::shared_ptr<JsonReader::Shared> shared_;
};

/// Pretty text of a written value: two-space indent, final newline, shortest round-trip numbers.
[[nodiscard]] std::string to_text(const Json& value);

}  // namespace towtank
