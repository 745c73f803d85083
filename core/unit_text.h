// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Quantities as people write them ("450 GB/s", "80 GiB", "5 us"), in and out.
///
/// Read: a number, optional space, a unit. Decimal prefixes k M G T P E are powers of 1000, binary
/// Ki Mi Gi Ti (Pi Ei for bytes) powers of 1024. Rates of bytes: B/s with a prefix, or bit/s ("400
/// Gbit/s" = 50e9 bytes/s). "Gb/s" is refused: it has been read both ways. A bare number has no
/// unit and is refused.
///
///   Seconds          s ms us ns min h d       BytesPerSecond   B/s, bit/s, bps with prefix
///   Bytes            B with prefix            FlopPerSecond    FLOP/s, FLOPS with prefix
///   Watts            W kW MW GW               Usd              "$1,234.50", "1.50 USD"
///
/// Negative amounts are refused; a rate of zero too. Bytes are exact for whole numbers and rounded
/// to the nearest byte for fractions.
///
/// Write: three significant digits and the unit that makes the number lie in [1, 1000) (1024 for
/// bytes). What is written reads back within those digits.
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "core/units.h"

namespace towtank {

/// Why a text is not a quantity: the fault's problem, why and hint, without its place.
struct UnitFault {
  std::string problem;
  std::string why;
  std::string hint;
};

template <class Q>
using Parsed = std::variant<Q, UnitFault>;

[[nodiscard]] Parsed<Seconds> parse_seconds(std::string_view text);
[[nodiscard]] Parsed<Bytes> parse_bytes(std::string_view text);
[[nodiscard]] Parsed<BytesPerSecond> parse_bytes_per_second(std::string_view text);
[[nodiscard]] Parsed<FlopPerSecond> parse_flop_per_second(std::string_view text);
[[nodiscard]] Parsed<Watts> parse_watts(std::string_view text);
[[nodiscard]] Parsed<Usd> parse_usd(std::string_view text);

[[nodiscard]] std::string to_text(
    Seconds);  ///< "1.23 ms", "3.2 h" (from 2 h on), "34 d" (from 100 h)
[[nodiscard]] std::string to_text(Bytes);           ///< binary: "79.6 GiB"
[[nodiscard]] std::string to_text(BytesPerSecond);  ///< "450 GB/s"
[[nodiscard]] std::string to_text(FlopPerSecond);   ///< "989 TFLOP/s"
[[nodiscard]] std::string to_text(Flop);            ///< "3.15e23 FLOP" or "12.3 TFLOP"
[[nodiscard]] std::string to_text(Watts);
[[nodiscard]] std::string to_text(Usd);  ///< "$1,234"
/// Digits in groups of three: 1,234,567.
[[nodiscard]] std::string with_thousands(std::int64_t);
/// Three significant digits, no exponent within [1e-4, 1e7).
[[nodiscard]] std::string three_digits(double);
/// "12.3 %" from a fraction 0.123.
[[nodiscard]] std::string percent(double fraction);

}  // namespace towtank
