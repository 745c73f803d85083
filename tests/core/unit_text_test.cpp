// SPDX-License-Identifier: Apache-2.0
#include "core/unit_text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <variant>

#include "core/input_error.h"
#include "core/rng.h"
#include "tests/support/near.h"

namespace towtank {
namespace {

using testing::kSameArithmetic;
using testing::kThreeDigits;

/// The fault's text, or the value where there is none.
template <class Q>
std::string unit_fault(const Parsed<Q>& parsed) {
  if (const auto* fault = std::get_if<UnitFault>(&parsed)) {
    return to_text(Fault{"", fault->problem, fault->why, fault->hint});
  }
  return "reads as " + std::to_string(std::get<Q>(parsed).value);
}

template <class Q>
double value_of(const Parsed<Q>& parsed) {
  const auto* quantity = std::get_if<Q>(&parsed);
  return quantity != nullptr ? static_cast<double>(quantity->value) : std::nan("");
}

/// In whole bytes; -1 for a fault.
std::int64_t bytes_of(std::string_view text) {
  const Parsed<Bytes> parsed = parse_bytes(text);
  const auto* bytes = std::get_if<Bytes>(&parsed);
  return bytes != nullptr ? bytes->value : -1;
}

TEST(UnitUnitText, Seconds) {
  EXPECT_EQ(value_of(parse_seconds("5 s")), 5.0);
  EXPECT_EQ(value_of(parse_seconds("5 us")), 5e-6);
  EXPECT_EQ(value_of(parse_seconds("5us")), 5e-6);
  EXPECT_EQ(value_of(parse_seconds("5 \xc2\xb5s")), 5e-6);
  EXPECT_EQ(value_of(parse_seconds("5 \xce\xbcs")), 5e-6);
  EXPECT_EQ(value_of(parse_seconds(" 1.5 ms ")), 1.5e-3);
  EXPECT_EQ(value_of(parse_seconds("700ns")), 700e-9);
  EXPECT_EQ(value_of(parse_seconds("2 min")), 2 * 60.0);
  EXPECT_EQ(value_of(parse_seconds("3 h")), 3 * 3600.0);
  EXPECT_EQ(value_of(parse_seconds("2 d")), 2 * 24 * 3600.0);
  EXPECT_EQ(value_of(parse_seconds("0 s")), 0.0);
  EXPECT_EQ(value_of(parse_seconds("-0 s")), 0.0);
  EXPECT_EQ(value_of(parse_seconds("+1e-3 s")), 1e-3);
  EXPECT_EQ(value_of(parse_seconds(".5 s")), 0.5);
  EXPECT_EQ(value_of(parse_seconds("5. s")), 5.0);
}

TEST(UnitUnitText, Bytes) {
  EXPECT_EQ(bytes_of("80 GiB"), 80LL << 30);
  EXPECT_EQ(bytes_of("80 GB"), 80'000'000'000);
  EXPECT_EQ(bytes_of("1 B"), 1);
  EXPECT_EQ(bytes_of("3 kB"), 3000);
  EXPECT_EQ(bytes_of("3 KiB"), 3 * 1024);
  EXPECT_EQ(bytes_of("2 TiB"), 2LL << 40);
  EXPECT_EQ(bytes_of("2 PB"), 2'000'000'000'000'000);
  EXPECT_EQ(bytes_of("0 B"), 0);
  // Rounded to the nearest byte: 79.6 x 2^30 = 85469849190.4; half a byte away from zero.
  EXPECT_EQ(bytes_of("79.6 GiB"), 85'469'849'190);
  EXPECT_EQ(bytes_of("0.4 B"), 0);
  EXPECT_EQ(bytes_of("0.5 B"), 1);
  EXPECT_EQ(bytes_of("1e3 B"), 1000);
}

TEST(UnitUnitText, BytesAreExactWhereDoublesAreNot) {
  const std::int64_t odd = (std::int64_t{1} << 53) + 1;
  EXPECT_EQ(bytes_of(std::to_string(odd) + " B"), odd);
  const std::int64_t max = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(bytes_of(std::to_string(max) + " B"), max);
}

TEST(UnitUnitText, Rates) {
  EXPECT_EQ(value_of(parse_bytes_per_second("450 GB/s")), 450e9);
  EXPECT_EQ(value_of(parse_bytes_per_second("400 Gbit/s")), 400e9 / 8);
  EXPECT_EQ(value_of(parse_bytes_per_second("400 Gbps")), 400e9 / 8);
  EXPECT_EQ(value_of(parse_bytes_per_second("12 bit/s")), 12.0 / 8);
  EXPECT_EQ(value_of(parse_bytes_per_second("3.35 TB/s")), 3.35e12);
  EXPECT_EQ(value_of(parse_bytes_per_second("2 GiB/s")), 2.0 * 1024 * 1024 * 1024);
  EXPECT_EQ(value_of(parse_flop_per_second("989 TFLOP/s")), 989e12);
  EXPECT_EQ(value_of(parse_flop_per_second("1.5 PFLOPS")), 1.5e15);
  EXPECT_EQ(value_of(parse_watts("700 W")), 700.0);
  EXPECT_EQ(value_of(parse_watts("1.2 MW")), 1.2e6);
}

TEST(UnitUnitText, Money) {
  EXPECT_EQ(value_of(parse_usd("$1.50")), 1.5);
  EXPECT_EQ(value_of(parse_usd("$ 1.50")), 1.5);
  EXPECT_EQ(value_of(parse_usd("1.50 USD")), 1.5);
  EXPECT_EQ(value_of(parse_usd("$1,234,567.25")), 1234567.25);
  EXPECT_EQ(value_of(parse_usd("$12,345")), 12345.0);
  EXPECT_EQ(value_of(parse_usd("$0")), 0.0);
}

TEST(FaultUnitText, NoUnit) {
  EXPECT_EQ(unit_fault(parse_bytes("80")),
            "\"80\" has no unit (bytes need one). Write \"80 GiB\" or \"80 GB\".");
  EXPECT_EQ(unit_fault(parse_seconds("5")),
            "\"5\" has no unit (times need one). Write \"5 s\" or \"5 ms\".");
  EXPECT_EQ(unit_fault(parse_bytes_per_second("450")),
            "\"450\" has no unit (rates need one). Write \"450 GB/s\" or \"450 Gbit/s\".");
  EXPECT_EQ(unit_fault(parse_flop_per_second("989")),
            "\"989\" has no unit (FLOP rates need one). Write \"989 TFLOP/s\" or \"989 GFLOP/s\".");
  EXPECT_EQ(unit_fault(parse_watts("700")),
            "\"700\" has no unit (powers need one). Write \"700 W\" or \"700 kW\".");
  EXPECT_EQ(unit_fault(parse_usd("1.50")),
            "\"1.50\" has no unit (prices need one). Write \"$1.50\" or \"1.50 USD\".");
}

TEST(FaultUnitText, BitOrByte) {
  EXPECT_EQ(unit_fault(parse_bytes_per_second("400 Gb/s")),
            "\"400 Gb/s\" is ambiguous (b has been read as bit and as byte). "
            "Write \"400 Gbit/s\" or \"400 GB/s\".");
  EXPECT_EQ(unit_fault(parse_bytes_per_second("400gb/s")),
            "\"400gb/s\" is ambiguous (b has been read as bit and as byte). "
            "Write \"400 Gbit/s\" or \"400 GB/s\".");
  EXPECT_EQ(unit_fault(parse_bytes("80 Gb")),
            "\"80 Gb\" is ambiguous (b has been read as bit and as byte). Write \"80 GB\".");
  EXPECT_EQ(unit_fault(parse_bytes_per_second("8 b/s")),
            "\"8 b/s\" is ambiguous (b has been read as bit and as byte). "
            "Write \"8 bit/s\" or \"8 B/s\".");
}

TEST(FaultUnitText, UnknownUnit) {
  const std::string known_bytes = "known: B, kB, MB, GB, TB, PB, EB, KiB, MiB, GiB, TiB, PiB, EiB";
  EXPECT_EQ(unit_fault(parse_bytes("80 bananas")),
            "\"80 bananas\" has the unknown unit \"bananas\" (" + known_bytes + ")");
  EXPECT_EQ(unit_fault(parse_bytes("80 gib")), "\"80 gib\" has the unknown unit \"gib\" (" +
                                                   known_bytes + "). Did you mean \"80 GiB\"?");
  EXPECT_EQ(unit_fault(parse_bytes("80 KB")),
            "\"80 KB\" has the unknown unit \"KB\" (" + known_bytes + "). Did you mean \"80 kB\"?");
  EXPECT_EQ(
      unit_fault(parse_bytes_per_second("80 GB")),
      "\"80 GB\" has the unknown unit \"GB\" (known: B/s, kB/s, MB/s, GB/s, TB/s, PB/s, EB/s, "
      "KiB/s, MiB/s, GiB/s, TiB/s, bit/s, kbit/s, Mbit/s, Gbit/s, Tbit/s, Pbit/s). "
      "Did you mean \"80 GB/s\"?");
  EXPECT_EQ(unit_fault(parse_flop_per_second("989 TFLOP")),
            "\"989 TFLOP\" has the unknown unit \"TFLOP\" (known: FLOP/s, kFLOP/s, MFLOP/s, "
            "GFLOP/s, TFLOP/s, PFLOP/s, EFLOP/s). Did you mean \"989 TFLOP/s\"?");
  const std::string known_times = "known: s, ms, us, ns, min, h, d";
  EXPECT_EQ(unit_fault(parse_seconds("5 seconds")),
            "\"5 seconds\" has the unknown unit \"seconds\" (" + known_times +
                "). Did you mean \"5 s\"?");
  EXPECT_EQ(unit_fault(parse_seconds("5 m")),
            "\"5 m\" has the unknown unit \"m\" (" + known_times + "). Did you mean \"5 min\"?");
  EXPECT_EQ(unit_fault(parse_seconds("5 x")),
            "\"5 x\" has the unknown unit \"x\" (" + known_times + ")");
  EXPECT_EQ(unit_fault(parse_watts("700 kw")),
            "\"700 kw\" has the unknown unit \"kw\" (known: W, kW, MW, GW). "
            "Did you mean \"700 kW\"?");
  EXPECT_EQ(unit_fault(parse_usd("3 EUR")), "\"3 EUR\" has the unknown unit \"EUR\" (known: USD)");
}

TEST(FaultUnitText, NegativeAndZero) {
  EXPECT_EQ(unit_fault(parse_bytes("-80 GiB")), "\"-80 GiB\" is negative (must be >= 0)");
  EXPECT_EQ(unit_fault(parse_seconds("-1 s")), "\"-1 s\" is negative (must be >= 0)");
  EXPECT_EQ(unit_fault(parse_bytes_per_second("-1 GB/s")), "\"-1 GB/s\" is negative (must be > 0)");
  EXPECT_EQ(unit_fault(parse_bytes_per_second("0 GB/s")), "\"0 GB/s\" is zero (must be > 0)");
  EXPECT_EQ(unit_fault(parse_flop_per_second("0 FLOP/s")), "\"0 FLOP/s\" is zero (must be > 0)");
  EXPECT_EQ(unit_fault(parse_usd("-$2")), "\"-$2\" is negative (must be >= 0)");
  EXPECT_EQ(unit_fault(parse_usd("$-2")),
            "\"$-2\" is not a number with a unit. Write for example \"$1.50\".");
  EXPECT_EQ(unit_fault(parse_watts("-1 W")), "\"-1 W\" is negative (must be >= 0)");
}

TEST(FaultUnitText, TooLarge) {
  EXPECT_EQ(unit_fault(parse_bytes("10000 PB")), "\"10000 PB\" is too large (must be below 8 EiB)");
  EXPECT_EQ(unit_fault(parse_bytes("8 EiB")), "\"8 EiB\" is too large (must be below 8 EiB)");
  EXPECT_EQ(unit_fault(parse_bytes("9223372036854775808 B")),
            "\"9223372036854775808 B\" is too large (must be below 8 EiB)");
  EXPECT_EQ(unit_fault(parse_seconds("1e400 s")),
            "\"1e400 s\" has a number that is out of range (it must lie in 1e-307 to 1e308)");
  EXPECT_EQ(unit_fault(parse_seconds("1e308 d")),
            "\"1e308 d\" is too large (must be below 1e308 base units)");
}

TEST(FaultUnitText, NotAQuantity) {
  EXPECT_EQ(unit_fault(parse_bytes("")),
            "is empty (a number and a unit are needed). Write for example \"80 GiB\".");
  EXPECT_EQ(unit_fault(parse_bytes("  ")),
            "is empty (a number and a unit are needed). Write for example \"80 GiB\".");
  for (const std::string text : {"GiB", "nan B", "inf s", "--5 s", ". s", "e5 s", "$5"}) {
    EXPECT_EQ(unit_fault(parse_bytes(text)),
              "\"" + text + "\" is not a number with a unit. Write for example \"80 GiB\".");
  }
  EXPECT_EQ(unit_fault(parse_bytes("1,000 GB")),
            "\"1,000 GB\" has a separator in its number "
            "(a point starts the decimals, and nothing groups the digits)");
  for (const std::string text : {"$1,23", "$1234,567", "$,123", "$1.5,000", "$5 USD", "$", "$1,"}) {
    EXPECT_EQ(unit_fault(parse_usd(text)),
              "\"" + text + "\" is not a number with a unit. Write for example \"$1.50\".");
  }
  EXPECT_EQ(unit_fault(parse_bytes("0x10 B")).substr(0, 34),
            "\"0x10 B\" has the unknown unit \"x10");
}

TEST(UnitUnitText, ThreeDigits) {
  EXPECT_EQ(three_digits(0.0), "0");
  EXPECT_EQ(three_digits(-0.0), "0");
  EXPECT_EQ(three_digits(1.0), "1");
  EXPECT_EQ(three_digits(1.2345), "1.23");
  EXPECT_EQ(three_digits(-12.345), "-12.3");
  EXPECT_EQ(three_digits(999.4), "999");
  EXPECT_EQ(three_digits(999.6), "1000");
  EXPECT_EQ(three_digits(9.996), "10");
  EXPECT_EQ(three_digits(1234567), "1230000");
  EXPECT_EQ(three_digits(9'994'999), "9990000");
  EXPECT_EQ(three_digits(9'995'001), "1e7");
  EXPECT_EQ(three_digits(3.15e23), "3.15e23");
  EXPECT_EQ(three_digits(1e-4), "0.0001");
  EXPECT_EQ(three_digits(0.00012345), "0.000123");
  EXPECT_EQ(three_digits(9.99e-5), "9.99e-5");
  EXPECT_EQ(three_digits(-1e-10), "-1e-10");
  EXPECT_EQ(three_digits(std::nan("")), "nan");
  EXPECT_EQ(three_digits(-HUGE_VAL), "-inf");
}

TEST(UnitUnitText, WritesTimes) {
  EXPECT_EQ(to_text(Seconds{0}), "0 s");
  EXPECT_EQ(to_text(Seconds{1.234e-3}), "1.23 ms");
  EXPECT_EQ(to_text(Seconds{4.56}), "4.56 s");
  EXPECT_EQ(to_text(Seconds{5e-6}), "5 us");
  EXPECT_EQ(to_text(Seconds{0.9996}), "1 s");
  EXPECT_EQ(to_text(Seconds{0.9994}), "999 ms");
  EXPECT_EQ(to_text(Seconds{2.5e-10}), "0.25 ns");
  EXPECT_EQ(to_text(Seconds{999.0}), "999 s");
  EXPECT_EQ(to_text(Seconds{1000.0}), "16.7 min");  // 1000/60
  EXPECT_EQ(to_text(Seconds{7100.0}), "118 min");   // 7100/60
  EXPECT_EQ(to_text(Seconds{7200.0}), "2 h");
  EXPECT_EQ(to_text(Seconds{3.2 * 3600}), "3.2 h");
  EXPECT_EQ(to_text(Seconds{96 * 3600.0}), "96 h");
  EXPECT_EQ(to_text(Seconds{34 * 24 * 3600.0}), "34 d");
  EXPECT_EQ(to_text(Seconds{-1.5e-3}), "-1.5 ms");
}

TEST(UnitUnitText, WritesAmountsAndRates) {
  EXPECT_EQ(to_text(Bytes{85'469'849'190}), "79.6 GiB");
  EXPECT_EQ(to_text(Bytes{0}), "0 B");
  EXPECT_EQ(to_text(Bytes{1023}), "1023 B");
  EXPECT_EQ(to_text(Bytes{1024}), "1 KiB");
  EXPECT_EQ(to_text(Bytes{-(5LL << 20)}), "-5 MiB");
  EXPECT_EQ(to_text(Bytes{(1LL << 30) - 1}), "1020 MiB");
  EXPECT_EQ(to_text(Bytes{std::numeric_limits<std::int64_t>::max()}), "8 EiB");
  EXPECT_EQ(to_text(BytesPerSecond{450e9}), "450 GB/s");
  EXPECT_EQ(to_text(BytesPerSecond{400e9 / 8}), "50 GB/s");
  EXPECT_EQ(to_text(BytesPerSecond{999.6e6}), "1 GB/s");
  EXPECT_EQ(to_text(BytesPerSecond{0.0}), "0 B/s");
  EXPECT_EQ(to_text(FlopPerSecond{989e12}), "989 TFLOP/s");
  EXPECT_EQ(to_text(FlopPerSecond{16384 * 989e12}), "16.2 EFLOP/s");
  EXPECT_EQ(to_text(Flop{12.34e12}), "12.3 TFLOP");
  EXPECT_EQ(to_text(Flop{3.15e23}), "3.15e23 FLOP");
  EXPECT_EQ(to_text(Watts{700.0}), "700 W");
  EXPECT_EQ(to_text(Watts{11.47e6}), "11.5 MW");
}

TEST(UnitUnitText, WritesMoneyCountsAndShares) {
  EXPECT_EQ(to_text(Usd{1234.4}), "$1,234");
  EXPECT_EQ(to_text(Usd{1.5}), "$1.50");
  EXPECT_EQ(to_text(Usd{99.994}), "$99.99");
  EXPECT_EQ(to_text(Usd{99.996}), "$100");
  EXPECT_EQ(to_text(Usd{0.0123}), "$0.0123");
  EXPECT_EQ(to_text(Usd{0.0}), "$0");
  EXPECT_EQ(to_text(Usd{-5.0}), "-$5.00");
  EXPECT_EQ(to_text(Usd{4e20}), "$4e20");
  EXPECT_EQ(with_thousands(0), "0");
  EXPECT_EQ(with_thousands(999), "999");
  EXPECT_EQ(with_thousands(1000), "1,000");
  EXPECT_EQ(with_thousands(-1'234'567), "-1,234,567");
  EXPECT_EQ(with_thousands(-999), "-999");
  EXPECT_EQ(with_thousands(std::numeric_limits<std::int64_t>::min()), "-9,223,372,036,854,775,808");
  EXPECT_EQ(percent(0.123), "12.3 %");
  EXPECT_EQ(percent(0.0), "0 %");
  EXPECT_EQ(percent(1.0), "100 %");
  EXPECT_EQ(percent(-0.05), "-5 %");
}

/// A number whose exponent is uniform: every unit has its turn.
double any_size(Rng& rng, double low_exponent, double high_exponent) {
  return std::pow(10.0, rng.uniform(low_exponent, high_exponent));
}

TEST(LawUnitText, WhatIsWrittenReadsBackWithinThreeDigits) {
  Rng rng(20240601);
  for (int i = 0; i < 5000; ++i) {
    const Seconds t{any_size(rng, -14, 9)};
    ASSERT_LE(testing::relative_difference(value_of(parse_seconds(to_text(t))), t.value),
              kThreeDigits)
        << to_text(t);
    const Bytes bytes{rng.integer(0, std::int64_t{1} << rng.integer(0, 62))};
    ASSERT_LE(testing::relative_difference(value_of(parse_bytes(to_text(bytes))),
                                           static_cast<double>(bytes.value)),
              kThreeDigits)
        << to_text(bytes);
    const BytesPerSecond rate{any_size(rng, -3, 20)};
    ASSERT_LE(
        testing::relative_difference(value_of(parse_bytes_per_second(to_text(rate))), rate.value),
        kThreeDigits)
        << to_text(rate);
    const FlopPerSecond work_rate{any_size(rng, -3, 22)};
    ASSERT_LE(testing::relative_difference(value_of(parse_flop_per_second(to_text(work_rate))),
                                           work_rate.value),
              kThreeDigits)
        << to_text(work_rate);
    const Watts power{any_size(rng, -3, 10)};
    ASSERT_LE(testing::relative_difference(value_of(parse_watts(to_text(power))), power.value),
              kThreeDigits)
        << to_text(power);
    const Usd money{any_size(rng, -6, 18)};
    ASSERT_LE(testing::relative_difference(value_of(parse_usd(to_text(money))), money.value),
              kThreeDigits)
        << to_text(money);
  }
}

TEST(LawUnitText, AWrittenNumberIsItsOwnText) {
  // Rounding once is enough: what was read back is written the same.
  Rng rng(5);
  for (int i = 0; i < 5000; ++i) {
    const std::string text = to_text(BytesPerSecond{any_size(rng, 0, 15)});
    const auto parsed = parse_bytes_per_second(text);
    ASSERT_TRUE(std::holds_alternative<BytesPerSecond>(parsed)) << text;
    EXPECT_EQ(to_text(std::get<BytesPerSecond>(parsed)), text);
  }
}

TEST(LawUnitText, UnitsScaleAlike) {
  Rng rng(6);
  for (int i = 0; i < 1000; ++i) {
    const std::string number = std::to_string(rng.uniform(0.001, 1000.0));
    const double us = value_of(parse_seconds(number + " us"));
    EXPECT_CLOSE(value_of(parse_seconds(number + " ms")), 1000.0 * us, kSameArithmetic);
    const double gbit = value_of(parse_bytes_per_second(number + " Gbit/s"));
    EXPECT_CLOSE(value_of(parse_bytes_per_second(number + " GB/s")), 8.0 * gbit, kSameArithmetic);
  }
}

TEST(LawUnitText, NoTextBreaksTheReaders) {
  constexpr std::string_view kAlphabet = "0123456789.,eE+-$_ \tkMGTPiBbits/sFLOPmunhdW\xc2\xb5\0";
  Rng rng(9);
  int read = 0;
  for (int i = 0; i < 50'000; ++i) {
    std::string text;
    const std::int64_t size = rng.integer(0, 12);
    for (std::int64_t k = 0; k < size; ++k) {
      text += kAlphabet[static_cast<std::size_t>(
          rng.integer(0, static_cast<std::int64_t>(kAlphabet.size()) - 1))];
    }
    const Parsed<Bytes> bytes = parse_bytes(text);
    if (const auto* value = std::get_if<Bytes>(&bytes)) {
      ++read;
      EXPECT_GE(value->value, 0) << text;
    }
    EXPECT_FALSE(value_of(parse_seconds(text)) < 0.0) << text;
    EXPECT_FALSE(value_of(parse_bytes_per_second(text)) <= 0.0) << text;
    EXPECT_FALSE(value_of(parse_usd(text)) < 0.0) << text;
  }
  EXPECT_GT(read, 10);
}

}  // namespace
}  // namespace towtank
