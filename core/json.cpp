// SPDX-License-Identifier: Apache-2.0
#include "core/json.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "core/contracts.h"
#include "core/file.h"
#include "core/text.h"
#include "core/unit_text.h"

namespace towtank {
namespace {

using Members = Json::object_t;
using Elements = Json::array_t;

// --- words ---------------------------------------------------------------------------------------

constexpr std::size_t kMaxKeyInText = 80;

/// One step of a JSON pointer (RFC 6901), safe to print.
std::string pointer_step(std::string_view key) {
  if (key.find_first_of("~/") == std::string_view::npos) return "/" + printable(key, kMaxKeyInText);
  std::string escaped;
  for (const char c : key) {
    if (c == '~') {
      escaped += "~0";
    } else if (c == '/') {
      escaped += "~1";
    } else {
      escaped += c;
    }
  }
  return "/" + printable(escaped, kMaxKeyInText);
}

std::string place(const std::string& file, const std::string& pointer) {
  return pointer.empty() ? file : file + ": " + pointer;
}

/// `"abc" is a string`, `an object`: what a value is, for a fault about its type.
std::string described(const Json& value) {
  switch (value.type()) {
    case Json::value_t::object:
      return "is an object";
    case Json::value_t::array:
      return "is an array";
    case Json::value_t::string:
      return in_quotes(value.get_ref<const std::string&>()) + " is a string";
    case Json::value_t::boolean:
      return value.dump() + " is a boolean";
    case Json::value_t::number_integer:
    case Json::value_t::number_unsigned:
    case Json::value_t::number_float:
      return value.dump() + " is a number";
    case Json::value_t::null:
    case Json::value_t::binary:
    case Json::value_t::discarded:
      break;
  }
  return "is null";
}

/// The number as a person would write it: 8 for 8.0.
std::string number_text(double value) { return Json(value == 0.0 ? 0.0 : value).dump(); }

std::string limit_text(double value) {
  if (value == std::floor(value) && std::abs(value) < 1e15) {
    return std::to_string(static_cast<std::int64_t>(value));
  }
  return number_text(value);
}

std::string range_text(const JsonRange& range) {
  const JsonRange all;
  if (range.low <= all.low) return "must be <= " + limit_text(range.high);
  if (range.high >= all.high) return "must be >= " + limit_text(range.low);
  return "must be in " + limit_text(range.low) + " to " + limit_text(range.high);
}

// --- syntax faults -------------------------------------------------------------------------------

struct Position {
  std::size_t line = 1;
  std::size_t column = 1;  ///< in characters
};

Position position_of(std::string_view text, std::size_t offset) {
  Position position;
  for (const char c : text.substr(0, offset)) {
    if (c == '\n') {
      ++position.line;
      position.column = 1;
    } else if ((static_cast<unsigned char>(c) & 0xc0U) != 0x80U) {
      ++position.column;
    }
  }
  return position;
}

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

bool is_structural(char c) { return std::string_view("{}[],:").find(c) != std::string_view::npos; }

/// Where a text stops being JSON.
struct Stop {
  std::size_t start = 0;   ///< of the token at fault
  std::string_view token;  ///< as written; empty at the end of the text
  char before = '\0';      ///< the last byte before it that is no space
};

std::size_t token_end(std::string_view text, std::size_t start) {
  if (is_structural(text[start])) return start + 1;
  if (text[start] != '"') {
    std::size_t end = start + 1;
    while (end < text.size() && !is_space(text[end]) && !is_structural(text[end]) &&
           text[end] != '"') {
      ++end;
    }
    return end;
  }
  std::size_t end = start + 1;
  while (end < text.size() && text[end] != '"') end += text[end] == '\\' ? 2U : 1U;
  return std::min(end + 1, text.size());
}

/// What the library's lexer says of the token that it stopped at.
enum class Verdict { kUnexpected, kMalformed, kMalformedString };

Verdict verdict_of(const nlohmann::detail::exception& error) {
  // "... syntax error while parsing object key - invalid string: ..."
  const std::string_view text = error.what();
  const std::size_t dash = text.find(" - ");
  if (dash == std::string_view::npos) return Verdict::kUnexpected;
  const std::string_view verdict = text.substr(dash + 3);
  if (verdict.starts_with("invalid string")) return Verdict::kMalformedString;
  return verdict.starts_with("invalid") ? Verdict::kMalformed : Verdict::kUnexpected;
}

/// `read` is the number of bytes that the lexer had read, one more than there are at the end.
/// Everything before is well formed, so a plain scan finds the token.
Stop find_stop(std::string_view text, std::size_t read, Verdict verdict) {
  Stop previous;
  Stop stop;
  for (std::size_t i = 0; i < std::min(read, text.size());) {
    if (is_space(text[i])) {
      ++i;
      continue;
    }
    const std::size_t end = token_end(text, i);
    previous = std::exchange(
        stop, {i, text.substr(i, end - i), stop.token.empty() ? '\0' : stop.token.back()});
    i = end;
  }
  if (read > text.size() && verdict != Verdict::kMalformedString) {
    return {text.size(), {}, stop.token.empty() ? '\0' : stop.token.back()};
  }
  // A broken literal such as tru} is reported after the byte that broke it.
  const bool broke = verdict == Verdict::kMalformed && !stop.token.empty() &&
                     (is_structural(stop.token[0]) || stop.token[0] == '"');
  return broke && !previous.token.empty() ? previous : stop;
}

struct Advice {
  std::string problem;
  std::string why;
  std::string hint;
};

std::optional<Advice> wrong_kind_of_file(std::string_view text) {
  if (text.starts_with("\x1f\x8b")) return Advice{"is gzip data, not JSON", "", "Unzip it first."};
  if (text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff")) {
    return Advice{"is UTF-16 text", "JSON files are UTF-8", "Save it as UTF-8."};
  }
  if (text.starts_with("version https://git-lfs")) {
    return Advice{"is a Git LFS pointer, not the file itself", "", "Run git lfs pull."};
  }
  if (text.starts_with('<')) return Advice{"is HTML or XML, not JSON", "", ""};
  if (std::all_of(text.begin(), text.end(), is_space)) {
    return Advice{"is blank", "a JSON value is needed", ""};
  }
  return std::nullopt;
}

/// The mistakes that people make, by the token at fault.
std::string syntax_hint(const Stop& stop, bool at_root) {
  const std::string_view token = stop.token;
  if (token == "NaN" || token == "nan" || token.ends_with("Infinity") || token.ends_with("inf")) {
    return "JSON has finite numbers only; write null for an unknown one.";
  }
  if (token == "True" || token == "False" || token == "None") {
    const std::string right = token == "True" ? "true" : token == "False" ? "false" : "null";
    return "Write " + right + ".";
  }
  if (token.starts_with('#') || token.starts_with("//") || token.starts_with("/*")) {
    return "JSON has no comments; remove it.";
  }
  if (token.starts_with('\'')) return "Write strings in double quotes.";
  if ((token == "}" || token == "]") && stop.before == ',') return "Remove the comma before it.";
  if (at_root && token == "{") return "One value is read; JSON Lines files have many.";
  if (std::isalnum(static_cast<unsigned char>(token[0])) != 0 &&
      token.find_first_not_of("0123456789.+-eE") != token.npos) {
    return "Write text in double quotes.";
  }
  if (token.size() > 1 && token[0] == '0' && token.find_first_not_of("0123456789") == token.npos) {
    return "Numbers do not start with 0.";
  }
  return "";
}

// --- the value from the text ---------------------------------------------------------------------

/// Builds the value without recursion. Children wait on one stack until their container ends, so
/// that it is made once, in its size.
class Builder {
 public:
  Builder(std::string name, std::string_view text, std::size_t skipped)
      : name_(std::move(name)), text_(text), skipped_(skipped) {}

  Json take() { return std::move(values_.back()); }

  // The interface of nlohmann::json_sax.
  bool null() { return add(nullptr); }
  bool boolean(bool value) { return add(value); }
  bool number_integer(Json::number_integer_t value) { return add(value); }
  bool number_unsigned(Json::number_unsigned_t value) {
    // Signed wherever it fits, so that equal numbers have one type.
    if (value <= static_cast<Json::number_unsigned_t>(INT64_MAX)) {
      return add(static_cast<Json::number_integer_t>(value));
    }
    return add(value);
  }
  bool number_float(Json::number_float_t value, const std::string& /*text*/) { return add(value); }
  bool string(std::string& value) { return add(std::move(value)); }
  bool binary(Json::binary_t& /*value*/) { return false; }
  bool start_object(std::size_t /*size*/) { return open(true); }
  bool start_array(std::size_t /*size*/) { return open(false); }
  bool key(std::string& value) {
    keys_.push_back(std::move(value));
    return true;
  }
  bool end_object() {
    const Frame frame = frames_.back();
    refuse_twin_keys(frame);
    Json object = Json::object();
    auto& members = object.get_ref<Members&>();
    members.reserve(keys_.size() - frame.keys);
    for (std::size_t i = 0; frame.keys + i < keys_.size(); ++i) {
      members.emplace_back(std::move(keys_[frame.keys + i]), std::move(values_[frame.values + i]));
    }
    keys_.resize(frame.keys);
    return close(std::move(object));
  }
  bool end_array() {
    Json array = Json::array();
    const auto first = values_.begin() + static_cast<std::ptrdiff_t>(frames_.back().values);
    array.get_ref<Elements&>().assign(std::make_move_iterator(first),
                                      std::make_move_iterator(values_.end()));
    return close(std::move(array));
  }
  bool parse_error(std::size_t read, const std::string& /*token*/,
                   const nlohmann::detail::exception& error) {
    const Verdict verdict = verdict_of(error);
    const bool in_string = verdict == Verdict::kMalformedString;
    const Stop stop = find_stop(text_, read, verdict);
    const Position at = position_of(text_, stop.start);
    const std::string where =
        name_ + ": line " + std::to_string(at.line) + ", column " + std::to_string(at.column);
    if (error.id == kNumberOverflow) {
      throw InputError({where, printable(stop.token) + " is too large", "at most 1.8e308", ""});
    }
    if (read > text_.size()) {
      throw InputError({where, "ends in the middle of " + (in_string ? "a string" : open_thing()),
                        in_string ? "" : "expected " + expected(stop), "Is the file complete?"});
    }
    if (in_string) throw InputError(broken_string(where, read));
    throw InputError({where, "not JSON: found " + printable(stop.token, 30),
                      "expected " + expected(stop), syntax_hint(stop, frames_.empty())});
  }

 private:
  struct Frame {
    bool is_object = false;
    std::size_t values = 0;  ///< size of values_ at its start
    std::size_t keys = 0;
  };
  static constexpr int kNumberOverflow = 406;  // nlohmann: out_of_range, "number overflow parsing"

  template <class T>
  bool add(T&& value) {
    values_.emplace_back(std::forward<T>(value));
    return true;
  }

  bool open(bool is_object) {
    if (frames_.size() >= static_cast<std::size_t>(kMaxJsonDepth)) {
      throw InputError({name_, "nests deeper than " + std::to_string(kMaxJsonDepth) + " levels",
                        "the limit for arrays and objects", ""});
    }
    frames_.push_back({is_object, values_.size(), keys_.size()});
    return true;
  }

  bool close(Json value) {
    values_.resize(frames_.back().values);
    frames_.pop_back();
    values_.push_back(std::move(value));
    return true;
  }

  /// Of the container that is open at a level.
  [[nodiscard]] std::string pointer(std::size_t level) const {
    std::string text;
    for (std::size_t i = 0; i < level; ++i) {
      const Frame& next = frames_[i + 1];
      text += frames_[i].is_object ? pointer_step(keys_[next.keys - 1])
                                   : "/" + std::to_string(next.values - frames_[i].values);
    }
    return text;
  }

  void refuse_twin_keys(const Frame& frame) const {
    const auto first = keys_.begin() + static_cast<std::ptrdiff_t>(frame.keys);
    const std::string* twin = nullptr;
    constexpr std::size_t kFew = 16;
    if (keys_.size() - frame.keys <= kFew) {
      for (auto i = first; i != keys_.end() && twin == nullptr; ++i) {
        if (std::find(first, i, *i) != i) twin = &*i;
      }
    } else {
      std::unordered_set<std::string_view> seen;
      seen.reserve(keys_.size() - frame.keys);
      for (auto i = first; i != keys_.end() && twin == nullptr; ++i) {
        if (!seen.insert(*i).second) twin = &*i;
      }
    }
    if (twin == nullptr) return;
    throw InputError({place(name_, pointer(frames_.size() - 1) + pointer_step(*twin)),
                      "this key is given twice", "the keys of an object differ", "Remove one."});
  }

  [[nodiscard]] std::string open_thing() const {
    if (frames_.empty()) return "a value";
    return frames_.back().is_object ? "an object" : "an array";
  }

  /// What could have stood where the text stops.
  [[nodiscard]] std::string expected(const Stop& stop) const {
    if (frames_.empty()) return values_.empty() ? "a value" : "the end of the file";
    const Frame& frame = frames_.back();
    const std::size_t values = values_.size() - frame.values;
    if (!frame.is_object) {
      if (values == 0) return "a value or ]";
      return stop.before == ',' ? "a value" : "a comma or ]";
    }
    if (keys_.size() - frame.keys > values) return stop.before == ':' ? "a value" : "a colon";
    if (values == 0) return "a key in double quotes or }";
    return stop.before == ',' ? "a key in double quotes" : "a comma or }";
  }

  [[nodiscard]] Fault broken_string(const std::string& where, std::size_t read) const {
    const std::size_t at = read - 1;
    const auto byte = static_cast<unsigned char>(text_[at]);
    if (byte == '\n' || byte == '\r') {
      return {where, "not JSON: the string that starts here has no end on its line", "",
              "Close it with a double quote."};
    }
    if (byte < 0x20U) {
      return {where, "not JSON: the string that starts here has a control character",
              "byte " + std::to_string(skipped_ + at), "Write it as \\u00XX."};
    }
    if (byte >= 0x80U) {
      return {where, "not JSON: the string that starts here is not UTF-8",
              "byte " + std::to_string(skipped_ + at), "Save the file as UTF-8."};
    }
    return {where, "not JSON: the string that starts here has a wrong escape",
            "byte " + std::to_string(skipped_ + at),
            "Known: \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX."};
  }

  std::string name_;
  std::string_view text_;
  std::size_t skipped_;
  std::vector<Json> values_;
  std::vector<std::string> keys_;
  std::vector<Frame> frames_;
};

Json parse_value(std::string_view text, const std::string& name) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  const std::size_t skipped = text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
  text.remove_prefix(skipped);
  if (const auto advice = wrong_kind_of_file(text)) {
    throw InputError({name, advice->problem, advice->why, advice->hint});
  }
  Builder builder(name, text, skipped);
  const bool whole = Json::sax_parse(text.data(), text.data() + text.size(), &builder);
  ENSURES(whole);
  return builder.take();
}

/// By position; operator[] of the library takes keys.
const Members::value_type& member_at(const Members& members, std::size_t i) {
  return members.begin()[static_cast<std::ptrdiff_t>(i)];
}

const Json& null_value() {
  static const Json kNull;
  return kNull;
}

/// NaN and infinity have no JSON; the library would write null in their place.
bool all_finite(const Json& value) {
  if (value.is_number_float()) return std::isfinite(value.get<double>());
  if (!value.is_structured()) return true;
  return std::all_of(value.begin(), value.end(), all_finite);
}

}  // namespace

// --- JsonReader ----------------------------------------------------------------------------------

struct JsonReader::Shared {
  /// What readers asked of one object.
  struct Asked {
    std::vector<char> present;                                ///< by index of the key: asked for
    std::vector<std::string> missing;                         ///< asked for and not there
    std::unordered_map<std::string_view, std::size_t> index;  ///< of large objects only
  };

  std::string name;
  std::string hash;
  Json root;
  std::vector<Fault> faults;
  std::unordered_set<std::string> said;  ///< a fault is told once
  std::unordered_map<const Json*, Asked> asked;
  bool other_format = false;  ///< another kind of file: every further fault would be noise

  void add(Fault fault) {
    if (other_format || !said.insert(fault.where + '\n' + fault.problem).second) return;
    faults.push_back(std::move(fault));
  }

  Asked& asked_of(const Json& object) {
    const auto [it, inserted] = asked.try_emplace(&object);
    Asked& state = it->second;
    if (!inserted) return state;
    const auto& members = object.get_ref<const Members&>();
    state.present.resize(members.size());
    constexpr std::size_t kLarge = 32;
    if (members.size() >= kLarge) {
      state.index.reserve(members.size());
      for (std::size_t i = 0; i < members.size(); ++i) {
        state.index.emplace(member_at(members, i).first, i);
      }
    }
    return state;
  }

  /// The member of a key, counted as asked for; none if it is absent.
  const Json* ask(const Json& object, std::string_view key) {
    Asked& state = asked_of(object);
    const auto& members = object.get_ref<const Members&>();
    std::size_t i = members.size();
    if (state.index.empty()) {
      i = static_cast<std::size_t>(std::find_if(members.begin(), members.end(),
                                                [&](const auto& m) { return m.first == key; }) -
                                   members.begin());
    } else if (const auto found = state.index.find(key); found != state.index.end()) {
      i = found->second;
    }
    if (i < members.size()) {
      state.present[i] = 1;
      return &member_at(members, i).second;
    }
    if (std::find(state.missing.begin(), state.missing.end(), key) == state.missing.end()) {
      state.missing.emplace_back(key);
    }
    return nullptr;
  }
};

// A reader with value_ == nullptr comes from a fault that is told already: it adds no other.

JsonReader::JsonReader(std::shared_ptr<Shared> shared, const Json* value, std::string pointer)
    : shared_(std::move(shared)), value_(value), pointer_(std::move(pointer)) {}

const Json& JsonReader::raw() const { return value_ == nullptr ? null_value() : *value_; }

bool JsonReader::is_null() const { return raw().is_null(); }
bool JsonReader::is_object() const { return raw().is_object(); }
bool JsonReader::is_array() const { return raw().is_array(); }
bool JsonReader::is_string() const { return raw().is_string(); }
bool JsonReader::is_number() const { return raw().is_number(); }
bool JsonReader::is_boolean() const { return raw().is_boolean(); }

std::size_t JsonReader::size() const { return raw().is_structured() ? raw().size() : 0; }

std::vector<std::string> JsonReader::keys() const {
  std::vector<std::string> names;
  if (!is_object()) return names;
  for (const auto& member : raw().get_ref<const Members&>()) names.push_back(member.first);
  return names;
}

std::string JsonReader::where() const { return place(shared_->name, pointer_); }

std::string JsonReader::dump() const {
  return raw().dump(-1, ' ', false, Json::error_handler_t::replace);
}

void JsonReader::fault(std::string problem, std::string why, std::string hint) const {
  if (value_ == nullptr) return;
  shared_->add({where(), std::move(problem), std::move(why), std::move(hint)});
}

bool JsonReader::needs(bool is_it, const char* what) const {
  if (value_ == nullptr) return false;
  if (!is_it) fault(described(*value_), std::string("must be ") + what);
  return is_it;
}

std::optional<JsonReader> JsonReader::find(std::string_view key) const {
  if (!needs(is_object(), "an object")) return std::nullopt;
  const Json* member = shared_->ask(*value_, key);
  if (member == nullptr || member->is_null()) return std::nullopt;
  return JsonReader(shared_, member, pointer_ + pointer_step(key));
}

bool JsonReader::has(std::string_view key) const {
  if (!needs(is_object(), "an object")) return false;
  const Json* member = shared_->ask(*value_, key);
  return member != nullptr && !member->is_null();
}

void JsonReader::ignore(std::string_view key) const {
  if (is_object()) static_cast<void>(shared_->ask(*value_, key));
}

JsonReader JsonReader::at(std::string_view key) const {
  const std::string pointer = pointer_ + pointer_step(key);
  if (!needs(is_object(), "an object")) return {shared_, nullptr, pointer};
  const Json* member = shared_->ask(*value_, key);
  if (member == nullptr) {
    shared_->add({place(shared_->name, pointer), "missing key", "it is required", ""});
  }
  return {shared_, member, pointer};
}

std::string JsonReader::as_string() const {
  if (!needs(is_string(), "a string")) return "";
  return value_->get_ref<const std::string&>();
}

bool JsonReader::as_bool() const {
  return needs(is_boolean(), "true or false") && value_->get<bool>();
}

bool JsonReader::within(double value, const JsonRange& range) const {
  if (value >= range.low && value <= range.high) return true;
  fault(dump() + (value < range.low ? " is too small" : " is too large"), range_text(range));
  return false;
}

std::int64_t JsonReader::as_integer(JsonRange range) const {
  EXPECTS(range.low <= range.high);
  // The nearest to 0 that is allowed: callers may divide by it before finish() throws.
  const auto harmless = static_cast<std::int64_t>(
      std::clamp(0.0, std::max(range.low, -0x1p62), std::min(range.high, 0x1p62)));
  if (!needs(is_number(), "an integer")) return harmless;
  const auto real = value_->get<double>();
  if (value_->is_number_integer() && !value_->is_number_unsigned()) {
    return within(real, range) ? value_->get<std::int64_t>() : harmless;
  }
  // 4.0 and 1e9 are integers too: JSON has one kind of number.
  if (real != std::floor(real)) {
    fault(dump() + " is not a whole number", "must be an integer");
    return harmless;
  }
  if (!(real >= -0x1p63 && real < 0x1p63)) {
    fault(dump() + " is out of range", "integers have 64 bits");
    return harmless;
  }
  return within(real, range) ? static_cast<std::int64_t>(real) : harmless;
}

double JsonReader::as_number(JsonRange range) const {
  EXPECTS(range.low <= range.high);
  const double harmless = std::clamp(0.0, range.low, range.high);
  if (!needs(is_number(), "a number")) return harmless;
  const auto value = value_->get<double>();
  return within(value, range) ? value : harmless;
}

std::vector<JsonReader> JsonReader::elements() const {
  std::vector<JsonReader> readers;
  if (!needs(is_array(), "an array")) return readers;
  const auto& elements = value_->get_ref<const Elements&>();
  readers.reserve(elements.size());
  for (std::size_t i = 0; i < elements.size(); ++i) {
    readers.push_back(JsonReader(shared_, &elements[i], pointer_ + "/" + std::to_string(i)));
  }
  return readers;
}

template <class Q, class Parse>
Q JsonReader::quantity(Parse parse, const char* example) const {
  const std::string what = std::string("text with a unit, such as \"") + example + "\"";
  if (!needs(is_string() || is_number(), what.c_str())) return Q{};
  const bool bare = is_number();
  const std::string text = bare ? dump() : value_->get_ref<const std::string&>();
  const Parsed<Q> parsed = parse(text);
  if (const auto* quantity = std::get_if<Q>(&parsed)) return *quantity;
  const auto& wrong = std::get<UnitFault>(parsed);
  std::string problem = wrong.problem;
  // A bare number stood in the file without quotes.
  if (bare && problem.starts_with(in_quotes(text))) {
    problem = text + problem.substr(in_quotes(text).size());
  }
  fault(problem, wrong.why, wrong.hint);
  return Q{};
}

Seconds JsonReader::as_seconds() const { return quantity<Seconds>(parse_seconds, "5 us"); }
Bytes JsonReader::as_bytes() const { return quantity<Bytes>(parse_bytes, "80 GiB"); }
BytesPerSecond JsonReader::as_bytes_per_second() const {
  return quantity<BytesPerSecond>(parse_bytes_per_second, "450 GB/s");
}
FlopPerSecond JsonReader::as_flop_per_second() const {
  return quantity<FlopPerSecond>(parse_flop_per_second, "989 TFLOP/s");
}
Watts JsonReader::as_watts() const { return quantity<Watts>(parse_watts, "700 W"); }
Usd JsonReader::as_usd() const { return quantity<Usd>(parse_usd, "$1.50"); }

std::string JsonReader::string(std::string_view key) const { return at(key).as_string(); }
bool JsonReader::boolean(std::string_view key) const { return at(key).as_bool(); }
std::int64_t JsonReader::integer(std::string_view key, JsonRange range) const {
  return at(key).as_integer(range);
}
double JsonReader::number(std::string_view key, JsonRange range) const {
  return at(key).as_number(range);
}
std::vector<JsonReader> JsonReader::array(std::string_view key) const { return at(key).elements(); }

std::string JsonReader::string_or(std::string_view key, std::string_view fallback) const {
  const auto value = find(key);
  return value ? value->as_string() : std::string(fallback);
}
bool JsonReader::boolean_or(std::string_view key, bool fallback) const {
  const auto value = find(key);
  return value ? value->as_bool() : fallback;
}
std::int64_t JsonReader::integer_or(std::string_view key, std::int64_t fallback,
                                    JsonRange range) const {
  const auto value = find(key);
  return value ? value->as_integer(range) : fallback;
}
double JsonReader::number_or(std::string_view key, double fallback, JsonRange range) const {
  const auto value = find(key);
  return value ? value->as_number(range) : fallback;
}

std::size_t JsonReader::one_of(std::string_view key,
                               std::span<const std::string_view> names) const {
  const JsonReader value = at(key);
  if (!value.needs(value.is_string(), "a string")) return 0;
  const auto& word = value.raw().get_ref<const std::string&>();
  const auto it = std::find(names.begin(), names.end(), word);
  if (it != names.end()) return static_cast<std::size_t>(it - names.begin());
  const auto near = nearest(word, names);
  value.fault(in_quotes(word) + " is not one of the known values",
              "known: " + join({names.begin(), names.end()}, ", "),
              near ? "Did you mean \"" + *near + "\"?" : "");
  return 0;
}

void JsonReader::expect_format(std::string_view format, int version) const {
  if (!needs(is_object(), "an object")) return;
  const std::string wanted = "\"" + std::string(format) + "\"";
  const Json* stated = shared_->ask(*value_, "format");
  const JsonReader found{shared_, stated, pointer_ + "/format"};
  if (stated == nullptr) {
    static_cast<void>(shared_->ask(*value_, "version"));
    shared_->add(
        {found.where(), "missing key", "it is required",
         "Write \"format\": " + wanted + ", \"version\": " + std::to_string(version) + " first."});
    return;
  }
  if (stated->is_string() && stated->get_ref<const std::string&>() != format) {
    found.fault(in_quotes(stated->get_ref<const std::string&>()) + " is another format",
                "must be " + wanted);
    shared_->other_format = shared_->other_format || pointer_.empty();
    return;
  }
  static_cast<void>(found.as_string());
  const JsonReader number = at("version");
  const std::int64_t value = number.as_integer({.low = 1});
  if (value <= version) return;
  number.fault(number.dump() + " is newer than this program",
               "it reads versions up to " + std::to_string(version), "Update towtank.");
  shared_->other_format = shared_->other_format || pointer_.empty();
}

void JsonReader::no_other_keys(std::span<const std::string_view> also_known) const {
  if (!needs(is_object(), "an object")) return;
  const Shared::Asked& asked = shared_->asked_of(*value_);
  const auto& members = value_->get_ref<const Members&>();
  std::vector<std::string> known;
  for (std::size_t i = 0; i < members.size(); ++i) {
    const std::string& key = member_at(members, i).first;
    if (asked.present[i] != 0 ||
        std::find(also_known.begin(), also_known.end(), key) != also_known.end()) {
      continue;
    }
    if (known.empty()) {
      // What is missing first: a key that is there already is seldom what was meant.
      known = asked.missing;
      for (std::size_t k = 0; k < members.size(); ++k) {
        if (asked.present[k] != 0) known.push_back(member_at(members, k).first);
      }
      known.insert(known.end(), also_known.begin(), also_known.end());
    }
    const auto near = nearest(key, known);
    shared_->add({place(shared_->name, pointer_ + pointer_step(key)), "unknown key", "",
                  near ? "Did you mean \"" + printable(*near) + "\"?" : ""});
  }
}

// --- JsonFile ------------------------------------------------------------------------------------

JsonFile::JsonFile(std::shared_ptr<JsonReader::Shared> shared) : shared_(std::move(shared)) {}

JsonFile JsonFile::load(const std::string& path) {
  return parse(read_file(path), path == "-" ? "standard input" : printable(path, 400));
}

JsonFile JsonFile::parse(const std::string& text, std::string name) {
  auto shared = std::make_shared<JsonReader::Shared>();
  shared->hash = content_hash(text);
  shared->root = parse_value(text, name);
  shared->name = std::move(name);
  return JsonFile(std::move(shared));
}

JsonReader JsonFile::root() const { return {shared_, &shared_->root, ""}; }
const std::string& JsonFile::name() const { return shared_->name; }
std::string JsonFile::hash() const { return shared_->hash; }
const std::vector<Fault>& JsonFile::faults() const { return shared_->faults; }

void JsonFile::finish() const {
  if (!shared_->faults.empty()) throw InputError(shared_->faults);
}

std::string to_text(const Json& value) {
  EXPECTS(all_finite(value));
  return value.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace towtank
