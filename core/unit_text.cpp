// SPDX-License-Identifier: Apache-2.0
#include "core/unit_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "core/text.h"

namespace towtank {
namespace {

struct Unit {
  std::string_view name;
  double factor = 1.0;
};

struct Alias {
  std::string_view wrong;
  std::string_view right;
};

enum class Lowest { kZero, kAboveZero };

/// All that differs between quantities.
struct Grammar {
  std::string_view noun;           ///< "bytes need one"
  std::string_view examples;       ///< two forms of a number: printf-like, % is the number
  std::string_view example;        ///< a whole quantity, where no number could be read
  std::span<const Unit> units;     ///< canonical names first
  std::span<const Alias> aliases;  ///< what people write instead
  Lowest lowest = Lowest::kZero;
};

constexpr double kKi = 1024.0;
constexpr double kMi = kKi * kKi;
constexpr double kGi = kKi * kMi;
constexpr double kTi = kKi * kGi;
constexpr double kPi = kKi * kTi;
constexpr double kEi = kKi * kPi;
constexpr double kBit = 1.0 / 8.0;  // bytes

constexpr std::array kSecondUnits{
    Unit{"s", 1.0},         Unit{"ms", 1e-3},        Unit{"us", 1e-6},
    Unit{"ns", 1e-9},       Unit{"min", 60.0},       Unit{"h", 3600.0},
    Unit{"d", 24 * 3600.0}, Unit{"\xc2\xb5s", 1e-6}, Unit{"\xce\xbcs", 1e-6}};
constexpr std::array kSecondAliases{
    Alias{"sec", "s"},    Alias{"secs", "s"},     Alias{"second", "s"},    Alias{"seconds", "s"},
    Alias{"msec", "ms"},  Alias{"usec", "us"},    Alias{"nsec", "ns"},     Alias{"m", "min"},
    Alias{"mins", "min"}, Alias{"minute", "min"}, Alias{"minutes", "min"}, Alias{"hr", "h"},
    Alias{"hrs", "h"},    Alias{"hour", "h"},     Alias{"hours", "h"},     Alias{"day", "d"},
    Alias{"days", "d"}};

constexpr std::array kByteUnits{
    Unit{"B", 1.0},   Unit{"kB", 1e3},  Unit{"MB", 1e6},  Unit{"GB", 1e9},  Unit{"TB", 1e12},
    Unit{"PB", 1e15}, Unit{"EB", 1e18}, Unit{"KiB", kKi}, Unit{"MiB", kMi}, Unit{"GiB", kGi},
    Unit{"TiB", kTi}, Unit{"PiB", kPi}, Unit{"EiB", kEi}};
constexpr std::array kByteAliases{Alias{"byte", "B"}, Alias{"bytes", "B"}, Alias{"Ki", "KiB"},
                                  Alias{"Mi", "MiB"}, Alias{"Gi", "GiB"},  Alias{"Ti", "TiB"},
                                  Alias{"K", "kB"},   Alias{"M", "MB"},    Alias{"G", "GB"},
                                  Alias{"T", "TB"}};

constexpr std::array kRateUnits{Unit{"B/s", 1.0},
                                Unit{"kB/s", 1e3},
                                Unit{"MB/s", 1e6},
                                Unit{"GB/s", 1e9},
                                Unit{"TB/s", 1e12},
                                Unit{"PB/s", 1e15},
                                Unit{"EB/s", 1e18},
                                Unit{"KiB/s", kKi},
                                Unit{"MiB/s", kMi},
                                Unit{"GiB/s", kGi},
                                Unit{"TiB/s", kTi},
                                Unit{"bit/s", kBit},
                                Unit{"kbit/s", 1e3 * kBit},
                                Unit{"Mbit/s", 1e6 * kBit},
                                Unit{"Gbit/s", 1e9 * kBit},
                                Unit{"Tbit/s", 1e12 * kBit},
                                Unit{"Pbit/s", 1e15 * kBit},
                                Unit{"bps", kBit},
                                Unit{"kbps", 1e3 * kBit},
                                Unit{"Mbps", 1e6 * kBit},
                                Unit{"Gbps", 1e9 * kBit},
                                Unit{"Tbps", 1e12 * kBit},
                                Unit{"Pbps", 1e15 * kBit}};
constexpr std::array kRateAliases{
    Alias{"MBps", "MB/s"},      Alias{"GBps", "GB/s"},      Alias{"TBps", "TB/s"},
    Alias{"MB", "MB/s"},        Alias{"GB", "GB/s"},        Alias{"TB", "TB/s"},
    Alias{"GiB", "GiB/s"},      Alias{"Mbit", "Mbit/s"},    Alias{"Gbit", "Gbit/s"},
    Alias{"Tbit", "Tbit/s"},    Alias{"Mbits/s", "Mbit/s"}, Alias{"Gbits/s", "Gbit/s"},
    Alias{"Tbits/s", "Tbit/s"}, Alias{"MB/sec", "MB/s"},    Alias{"GB/sec", "GB/s"},
    Alias{"TB/sec", "TB/s"}};

constexpr std::array kWorkRateUnits{
    Unit{"FLOP/s", 1.0},   Unit{"kFLOP/s", 1e3},  Unit{"MFLOP/s", 1e6},  Unit{"GFLOP/s", 1e9},
    Unit{"TFLOP/s", 1e12}, Unit{"PFLOP/s", 1e15}, Unit{"EFLOP/s", 1e18}, Unit{"FLOPS", 1.0},
    Unit{"kFLOPS", 1e3},   Unit{"MFLOPS", 1e6},   Unit{"GFLOPS", 1e9},   Unit{"TFLOPS", 1e12},
    Unit{"PFLOPS", 1e15},  Unit{"EFLOPS", 1e18}};
constexpr std::array kWorkRateAliases{Alias{"FLOP", "FLOP/s"},      Alias{"GFLOP", "GFLOP/s"},
                                      Alias{"TFLOP", "TFLOP/s"},    Alias{"PFLOP", "PFLOP/s"},
                                      Alias{"GFLOPS/s", "GFLOP/s"}, Alias{"TFLOPS/s", "TFLOP/s"},
                                      Alias{"PFLOPS/s", "PFLOP/s"}};

constexpr std::array kWattUnits{Unit{"W", 1.0}, Unit{"kW", 1e3}, Unit{"MW", 1e6}, Unit{"GW", 1e9}};
constexpr std::array kWattAliases{Alias{"watt", "W"}, Alias{"watts", "W"}};

constexpr std::array kUsdUnits{Unit{"USD", 1.0}};
constexpr std::array kUsdAliases{Alias{"dollar", "USD"}, Alias{"dollars", "USD"}};

constexpr Grammar kSeconds{"times",      "% s|% ms",     "5 us",
                           kSecondUnits, kSecondAliases, Lowest::kZero};
constexpr Grammar kBytes{"bytes", "% GiB|% GB", "80 GiB", kByteUnits, kByteAliases, Lowest::kZero};
constexpr Grammar kRates{"rates",    "% GB/s|% Gbit/s", "450 GB/s",
                         kRateUnits, kRateAliases,      Lowest::kAboveZero};
constexpr Grammar kWorkRates{"FLOP rates",   "% TFLOP/s|% GFLOP/s", "989 TFLOP/s",
                             kWorkRateUnits, kWorkRateAliases,      Lowest::kAboveZero};
constexpr Grammar kWatts{"powers", "% W|% kW", "700 W", kWattUnits, kWattAliases, Lowest::kZero};
constexpr Grammar kUsd{"prices", "$%|% USD", "$1.50", kUsdUnits, kUsdAliases, Lowest::kZero};

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool same_but_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return lower(x) == lower(y); });
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// `Write "80 GiB" or "80 GB".`
std::string write_examples(const Grammar& grammar, std::string_view number) {
  std::string hint = "Write \"";
  for (const char c : grammar.examples) {
    if (c == '%') {
      hint += number;
    } else if (c == '|') {
      hint += "\" or \"";
    } else {
      hint += c;
    }
  }
  return hint + "\".";
}

/// What text says: the number, its digits as written, and what follows.
struct Split {
  double number = 0.0;
  bool negative = false;
  std::string_view digits;  ///< without its sign
  std::string_view unit;
};

/// Length of [0-9]+(.[0-9]*)?(e[+-]?[0-9]+)? or .[0-9]+..., 0 if there is none. An "e" without
/// digits belongs to the unit.
std::size_t number_length(std::string_view text) {
  const auto run = [&](std::size_t i) {
    while (i < text.size() && is_digit(text[i])) ++i;
    return i;
  };
  std::size_t end = run(0);
  const bool whole = end > 0;
  if (end < text.size() && text[end] == '.') {
    const std::size_t fraction = run(end + 1);
    if (!whole && fraction == end + 1) return 0;
    end = fraction;
  } else if (!whole) {
    return 0;
  }
  if (end < text.size() && lower(text[end]) == 'e') {
    std::size_t exponent = end + 1;
    if (exponent < text.size() && (text[exponent] == '+' || text[exponent] == '-')) ++exponent;
    const std::size_t after = run(exponent);
    if (after > exponent) end = after;
  }
  return end;
}

UnitFault not_a_quantity(std::string_view text, const Grammar& grammar) {
  if (trimmed(text).empty()) {
    return {"is empty", "a number and a unit are needed",
            "Write for example \"" + std::string(grammar.example) + "\"."};
  }
  return {in_quotes(text) + " is not a number with a unit", "",
          "Write for example \"" + std::string(grammar.example) + "\"."};
}

Parsed<Split> split(std::string_view whole, const Grammar& grammar) {
  Split result;
  std::string_view text = trimmed(whole);
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) {
    result.negative = text[0] == '-';
    text = trimmed(text.substr(1));
  }
  const std::size_t length = number_length(text);
  if (length == 0) return not_a_quantity(whole, grammar);
  result.digits = text.substr(0, length);
  result.unit = trimmed(text.substr(length));
  const std::from_chars_result read =
      std::from_chars(result.digits.data(), result.digits.data() + length, result.number);
  if (read.ec != std::errc()) {
    return UnitFault{in_quotes(whole) + " has a number that is out of range",
                     "it must lie in 1e-307 to 1e308", ""};
  }
  if (!result.unit.empty() && (result.unit[0] == ',' || result.unit[0] == '_')) {
    return UnitFault{in_quotes(whole) + " has a separator in its number",
                     "a point starts the decimals, and nothing groups the digits", ""};
  }
  return result;
}

UnitFault negative(std::string_view text, const Grammar& grammar) {
  return {in_quotes(text) + " is negative",
          grammar.lowest == Lowest::kZero ? "must be >= 0" : "must be > 0", ""};
}

/// "Gb/s" has been read as bits and as bytes: the fault if the unit is such a one.
std::optional<UnitFault> ambiguous(std::string_view text, const Split& parts,
                                   const Grammar& grammar) {
  const std::string_view unit = parts.unit;
  const std::size_t b = unit.find('b');
  if (b > 1) return std::nullopt;  // npos too
  const std::string_view rest = unit.substr(b + 1);
  if (!rest.empty() && rest != "/s") return std::nullopt;
  const auto known = std::find_if(grammar.units.begin(), grammar.units.end(), [&](const Unit& u) {
    return u.name.find('B') != std::string_view::npos && same_but_case(u.name, unit);
  });
  if (known == grammar.units.end()) return std::nullopt;
  const std::string number = std::string(parts.digits) + " ";
  const std::string bytes(known->name);
  std::string bits = bytes;
  bits.replace(bits.find('B'), 1, "bit");
  const bool has_bits = std::any_of(grammar.units.begin(), grammar.units.end(),
                                    [&](const Unit& u) { return u.name == bits; });
  std::string hint = "Write \"";
  if (has_bits) hint += number + bits + "\" or \"";
  hint += number + bytes + "\".";
  return UnitFault{in_quotes(text) + " is ambiguous", "b has been read as bit and as byte", hint};
}

UnitFault unknown_unit(std::string_view text, const Split& parts, const Grammar& grammar) {
  std::string right;
  for (const Unit& unit : grammar.units) {
    if (right.empty() && same_but_case(unit.name, parts.unit)) right = unit.name;
  }
  for (const Alias& alias : grammar.aliases) {
    if (right.empty() && same_but_case(alias.wrong, parts.unit)) right = alias.right;
  }
  std::vector<std::string> names;
  for (const Unit& unit : grammar.units) {
    const bool second_name = unit.name.ends_with("bps") || unit.name.ends_with("FLOPS") ||
                             static_cast<unsigned char>(unit.name[0]) >= 0x80U;
    if (!second_name) names.emplace_back(unit.name);
  }
  if (right.empty() && parts.unit.size() >= 3) right = nearest(parts.unit, names).value_or("");
  UnitFault fault{in_quotes(text) + " has the unknown unit " + in_quotes(parts.unit),
                  "known: " + join(names, ", "), ""};
  if (!right.empty()) {
    fault.hint = "Did you mean \"" + std::string(parts.digits) + " " + right + "\"?";
  }
  return fault;
}

struct Found {
  Split parts;
  double factor = 1.0;
};

Parsed<Found> parse(std::string_view text, const Grammar& grammar) {
  const Parsed<Split> divided = split(text, grammar);
  if (const auto* fault = std::get_if<UnitFault>(&divided)) return *fault;
  const Split& parts = std::get<Split>(divided);
  if (parts.unit.empty()) {
    return UnitFault{in_quotes(text) + " has no unit", std::string(grammar.noun) + " need one",
                     write_examples(grammar, parts.digits)};
  }
  const auto unit = std::find_if(grammar.units.begin(), grammar.units.end(),
                                 [&](const Unit& u) { return u.name == parts.unit; });
  if (unit == grammar.units.end()) {
    if (auto fault = ambiguous(text, parts, grammar)) return *fault;
    return unknown_unit(text, parts, grammar);
  }
  if (parts.negative && parts.number > 0.0) return negative(text, grammar);
  if (grammar.lowest == Lowest::kAboveZero && parts.number == 0.0) {
    return UnitFault{in_quotes(text) + " is zero", "must be > 0", ""};
  }
  return Found{parts, unit->factor};
}

template <class Q>
Parsed<Q> parse_real(std::string_view text, const Grammar& grammar) {
  const Parsed<Found> result = parse(text, grammar);
  if (const auto* fault = std::get_if<UnitFault>(&result)) return *fault;
  const Found& found = std::get<Found>(result);
  // Dividing by a whole number is exact where multiplying by its inverse (1e-6) is not.
  const double value = found.factor < 1.0 ? found.parts.number / std::round(1.0 / found.factor)
                                          : found.parts.number * found.factor;
  if (std::isinf(value)) {
    return UnitFault{in_quotes(text) + " is too large", "must be below 1e308 base units", ""};
  }
  return Q{value};
}

/// Exact for whole numbers; nothing if it does not fit.
std::optional<std::int64_t> whole_bytes(std::string_view digits, double factor) {
  std::int64_t number = 0;
  const std::from_chars_result read =
      std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (read.ec != std::errc() || read.ptr != digits.data() + digits.size()) return std::nullopt;
  std::int64_t bytes = 0;
  if (__builtin_mul_overflow(number, static_cast<std::int64_t>(factor), &bytes)) {
    return std::nullopt;
  }
  return bytes;
}

// --- writing -------------------------------------------------------------------------------------

constexpr int kDigits = 3;

/// The nearest number of three significant digits, so that 999.7 ms finds its unit as 1000 ms.
double rounded(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.*e", kDigits - 1, value);
  double result = value;
  std::from_chars(text.data(), text.data() + text.size(), result);
  return std::isfinite(value) ? result : value;
}

void strip_zeros(std::string& text) {
  if (text.find('.') == std::string::npos) return;
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
}

/// The largest unit of an ascending list in which the number is at least 1.
std::string with_unit(double value, std::span<const Unit> ascending) {
  const double shown = std::abs(rounded(value));
  const Unit* best = &ascending[0];
  for (const Unit& unit : ascending) {
    if (shown >= unit.factor * (1.0 - 1e-12)) best = &unit;
  }
  return three_digits(value / best->factor) + " " + std::string(best->name);
}

}  // namespace

Parsed<Seconds> parse_seconds(std::string_view text) { return parse_real<Seconds>(text, kSeconds); }

Parsed<BytesPerSecond> parse_bytes_per_second(std::string_view text) {
  return parse_real<BytesPerSecond>(text, kRates);
}

Parsed<FlopPerSecond> parse_flop_per_second(std::string_view text) {
  return parse_real<FlopPerSecond>(text, kWorkRates);
}

Parsed<Watts> parse_watts(std::string_view text) { return parse_real<Watts>(text, kWatts); }

Parsed<Bytes> parse_bytes(std::string_view text) {
  const Parsed<Found> result = parse(text, kBytes);
  if (const auto* fault = std::get_if<UnitFault>(&result)) return *fault;
  const Found& found = std::get<Found>(result);
  if (const auto exact = whole_bytes(found.parts.digits, found.factor)) return Bytes{*exact};
  const double value = std::round(found.parts.number * found.factor);
  if (!(value < 0x1p63)) {
    return UnitFault{in_quotes(text) + " is too large", "must be below 8 EiB", ""};
  }
  return Bytes{static_cast<std::int64_t>(value)};
}

Parsed<Usd> parse_usd(std::string_view text) {
  // Money alone is written with its unit in front and with grouped digits: "$1,234.50".
  std::string_view rest = trimmed(text);
  const bool minus = rest.starts_with('-');
  if (minus) rest = trimmed(rest.substr(1));
  const bool sign_in_front = rest.starts_with('$');
  if (!sign_in_front) return parse_real<Usd>(text, kUsd);
  rest = trimmed(rest.substr(1));
  std::string number;
  std::size_t since_comma = 0;
  bool grouped = false;
  bool whole = true;
  bool misplaced = false;
  for (const char c : rest) {
    if (c == ',') {
      misplaced =
          misplaced || !whole || (grouped ? since_comma != 3 : since_comma > 3) || since_comma == 0;
      grouped = true;
      since_comma = 0;
      continue;
    }
    if (!is_digit(c) && whole) {
      misplaced = misplaced || (grouped && since_comma != 3);
      whole = false;
    }
    ++since_comma;
    number += c;
  }
  misplaced = misplaced || (grouped && whole && since_comma != 3);
  if (misplaced || number.empty() || number_length(number) != number.size()) {
    return not_a_quantity(text, kUsd);
  }
  if (minus) return negative(text, kUsd);
  Parsed<Usd> result = parse_real<Usd>(number + " USD", kUsd);
  if (std::holds_alternative<Usd>(result)) return result;
  return UnitFault{in_quotes(text) + " has a number that is out of range",
                   "it must lie in 1e-307 to 1e308", ""};
}

std::string three_digits(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  if (value == 0.0) return "0";
  const double shown = rounded(value);
  const double size = std::abs(shown);
  std::array<char, 64> text{};
  if (size >= 1e-4 && size < 1e7) {
    const int decimals =
        std::max(0, kDigits - 1 - static_cast<int>(std::floor(std::log10(size) + 1e-12)));
    std::snprintf(text.data(), text.size(), "%.*f", decimals, shown);
    std::string result = text.data();
    strip_zeros(result);
    return result;
  }
  std::snprintf(text.data(), text.size(), "%.*e", kDigits - 1, value);
  const std::string_view whole = text.data();
  const std::size_t e = whole.find('e');
  std::string mantissa(whole.substr(0, e));
  strip_zeros(mantissa);
  std::string_view exponent = whole.substr(e + 1);
  const bool minus = exponent[0] == '-';
  exponent.remove_prefix(1);
  while (exponent.size() > 1 && exponent[0] == '0') exponent.remove_prefix(1);
  return mantissa + (minus ? "e-" : "e") + std::string(exponent);
}

std::string with_thousands(std::int64_t value) {
  std::string digits = std::to_string(value);
  const std::size_t first = value < 0 ? 1 : 0;
  for (std::size_t i = digits.size(); i > first + 3;) {
    i -= 3;
    digits.insert(i, 1, ',');
  }
  return digits;
}

std::string percent(double fraction) { return three_digits(100.0 * fraction) + " %"; }

std::string to_text(Seconds t) {
  // Days only where hours have three digits: queues and reservations think in hours.
  constexpr double kHour = 3600.0;
  const double size = std::abs(rounded(t.value));
  if (size >= 100 * kHour) return three_digits(t.value / (24 * kHour)) + " d";
  if (size >= 2 * kHour) return three_digits(t.value / kHour) + " h";
  if (size >= 1000.0) return three_digits(t.value / 60.0) + " min";
  if (size == 0.0) return "0 s";
  constexpr std::array kUnits{Unit{"ns", 1e-9}, Unit{"us", 1e-6}, Unit{"ms", 1e-3}, Unit{"s", 1.0}};
  return with_unit(t.value, kUnits);
}

std::string to_text(Bytes bytes) {
  constexpr std::array kUnits{Unit{"B", 1.0},   Unit{"KiB", kKi}, Unit{"MiB", kMi},
                              Unit{"GiB", kGi}, Unit{"TiB", kTi}, Unit{"PiB", kPi},
                              Unit{"EiB", kEi}};
  const auto value = static_cast<double>(bytes.value);
  if (std::abs(value) < kKi) return std::to_string(bytes.value) + " B";
  const Unit* best = &kUnits[0];
  for (const Unit& unit : kUnits) {
    if (std::abs(value) >= unit.factor) best = &unit;
  }
  return three_digits(value / best->factor) + " " + std::string(best->name);
}

std::string to_text(BytesPerSecond rate) {
  return with_unit(rate.value, std::span(kRateUnits).first(7));
}

std::string to_text(FlopPerSecond rate) {
  return with_unit(rate.value, std::span(kWorkRateUnits).first(7));
}

std::string to_text(Flop work) {
  constexpr std::array kUnits{Unit{"FLOP", 1.0},  Unit{"kFLOP", 1e3},  Unit{"MFLOP", 1e6},
                              Unit{"GFLOP", 1e9}, Unit{"TFLOP", 1e12}, Unit{"PFLOP", 1e15}};
  // A training run: its order of magnitude is what people compare.
  if (std::abs(rounded(work.value)) >= 1e18) return three_digits(work.value) + " FLOP";
  return with_unit(work.value, kUnits);
}

std::string to_text(Watts power) { return with_unit(power.value, kWattUnits); }

std::string to_text(Usd money) {
  const std::string sign = money.value < 0 ? "-$" : "$";
  const double size = std::abs(money.value);
  if (!(size < 1e15)) return sign + three_digits(size);
  if (size >= 99.995) return sign + with_thousands(std::llround(size));
  if (size < 0.995) return sign + three_digits(size);
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2f", size);
  return sign + text.data();
}

}  // namespace towtank
