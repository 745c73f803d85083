// SPDX-License-Identifier: Apache-2.0
#include "core/json.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "core/contracts.h"
#include "core/rng.h"
#include "core/text.h"
#include "tests/support/expect_fault.h"

namespace towtank {
namespace {

/// The faults of reading a text in one way, as the user sees them; "" if there is none.
template <class Read>
std::string json_faults(const std::string& text, Read read) {
  const JsonFile file = JsonFile::parse(text, "f.json");
  read(file.root());
  return testing::fault_of([&] { file.finish(); }) == "(no InputError was thrown)"
             ? ""
             : testing::fault_of([&] { file.finish(); });
}

std::string syntax_fault(const std::string& text) {
  return testing::fault_of([&] { static_cast<void>(JsonFile::parse(text, "f.json")); });
}

TEST(UnitJson, ReadsEveryKindOfValue) {
  const JsonFile file = JsonFile::parse(
      R"({"s": "text", "t": true, "i": -7, "d": 2.5, "a": [1, 2, 3], "o": {"k": "v"}, "n": null})",
      "f.json");
  const JsonReader root = file.root();
  EXPECT_EQ(root.string("s"), "text");
  EXPECT_TRUE(root.boolean("t"));
  EXPECT_EQ(root.integer("i"), -7);
  EXPECT_EQ(root.number("d"), 2.5);
  EXPECT_EQ(root.number("i"), -7.0);
  std::int64_t sum = 0;
  for (const JsonReader& item : root.array("a")) sum += item.as_integer();
  EXPECT_EQ(sum, 1 + 2 + 3);
  EXPECT_EQ(root.at("o").string("k"), "v");
  EXPECT_TRUE(root.at("n").is_null());
  EXPECT_EQ(root.size(), 7U);
  EXPECT_EQ(root.at("a").size(), 3U);
  EXPECT_EQ(root.at("s").size(), 0U);
  EXPECT_EQ(join(root.keys(), " "), "s t i d a o n");
  EXPECT_EQ(root.at("o").dump(), R"({"k":"v"})");
  EXPECT_EQ(root.where(), "f.json");
  EXPECT_EQ(root.array("a")[2].where(), "f.json: /a/2");
  EXPECT_EQ(root.at("o").raw().at("k"), "v");
  EXPECT_TRUE(root.is_object() && root.at("a").is_array() && root.at("s").is_string());
  EXPECT_TRUE(root.at("d").is_number() && root.at("i").is_number() && root.at("t").is_boolean());
  EXPECT_FALSE(root.at("s").is_number() || root.at("s").is_object() || root.at("d").is_string());
  EXPECT_NO_THROW(file.finish());
  EXPECT_EQ(file.name(), "f.json");
}

TEST(UnitJson, ReadsQuantities) {
  const JsonFile file = JsonFile::parse(
      R"({"t": "5 us", "m": "80 GiB", "b": "400 Gbit/s", "f": "989 TFLOP/s", "w": "700 W",
          "c": "$1.50"})",
      "f.json");
  const JsonReader root = file.root();
  EXPECT_EQ(root.at("t").as_seconds(), Seconds{5e-6});
  EXPECT_EQ(root.at("m").as_bytes(), Bytes{80LL << 30});
  EXPECT_EQ(root.at("b").as_bytes_per_second(), BytesPerSecond{400e9 / 8});
  EXPECT_EQ(root.at("f").as_flop_per_second(), FlopPerSecond{989e12});
  EXPECT_EQ(root.at("w").as_watts(), Watts{700.0});
  EXPECT_EQ(root.at("c").as_usd(), Usd{1.5});
  EXPECT_NO_THROW(file.finish());
}

TEST(UnitJson, AbsentAndNullTakeTheFallback) {
  const JsonFile file =
      JsonFile::parse(R"({"s": null, "i": 3, "d": 1.5, "b": false, "t": "x"})", "f.json");
  const JsonReader root = file.root();
  EXPECT_EQ(root.string_or("s", "fallback"), "fallback");
  EXPECT_EQ(root.string_or("none", "fallback"), "fallback");
  EXPECT_EQ(root.string_or("t", "fallback"), "x");
  EXPECT_EQ(root.integer_or("i", 9), 3);
  EXPECT_EQ(root.integer_or("none", 9), 9);
  EXPECT_EQ(root.number_or("d", 9.0), 1.5);
  EXPECT_EQ(root.number_or("none", 9.0), 9.0);
  EXPECT_FALSE(root.boolean_or("b", true));
  EXPECT_TRUE(root.boolean_or("none", true));
  EXPECT_FALSE(root.has("s"));
  EXPECT_FALSE(root.has("none"));
  EXPECT_TRUE(root.has("b"));
  EXPECT_FALSE(root.find("s").has_value());
  EXPECT_TRUE(root.find("i").has_value());
  EXPECT_NO_THROW(file.finish());
}

TEST(UnitJson, NumbersKeepTheirPrecision) {
  const JsonFile file = JsonFile::parse(
      "[9223372036854775807, -9223372036854775808, 9007199254740993, 1e3, 4.0, 0.1, 1e18, -0]",
      "f.json");
  const auto items = file.root().elements();
  EXPECT_EQ(items[0].as_integer(), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(items[1].as_integer(), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(items[2].as_integer(), (std::int64_t{1} << 53) + 1);
  EXPECT_EQ(items[3].as_integer(), 1000);
  EXPECT_EQ(items[4].as_integer(), 4);
  EXPECT_EQ(items[5].as_number(), 0.1);
  EXPECT_EQ(items[6].as_integer(), 1'000'000'000'000'000'000);
  EXPECT_EQ(items[7].as_integer(), 0);
  EXPECT_NO_THROW(file.finish());
}

TEST(UnitJson, ByteOrderMarkIsTolerated) {
  EXPECT_EQ(JsonFile::parse("\xef\xbb\xbf{\"a\": 1}", "f.json").root().integer("a"), 1);
}

TEST(UnitJson, HashIsOfTheText) {
  EXPECT_EQ(JsonFile::parse("{}", "f.json").hash(), content_hash("{}"));
  EXPECT_NE(JsonFile::parse("{}", "f.json").hash(), JsonFile::parse("{} ", "f.json").hash());
}

TEST(UnitJson, WritesWithOrderIndentAndShortestNumbers) {
  Json value;
  value["format"] = "towtank-plan";
  value["version"] = 1;
  value["a"] = {0.1, 1e22, 3};
  EXPECT_EQ(to_text(value),
            "{\n  \"format\": \"towtank-plan\",\n  \"version\": 1,\n  \"a\": [\n    0.1,\n"
            "    1e+22,\n    3\n  ]\n}\n");
  value["bad"] = std::nan("");
  EXPECT_THROW(static_cast<void>(to_text(value)), ContractViolation);
}

TEST(UnitJson, OneOfGivesTheIndex) {
  constexpr std::array<std::string_view, 3> kNames{"gpipe", "1f1b", "interleaved"};
  const JsonFile file = JsonFile::parse(R"({"schedule": "interleaved"})", "f.json");
  EXPECT_EQ(file.root().one_of("schedule", kNames), 2U);
  EXPECT_NO_THROW(file.finish());
}

TEST(UnitJson, UnderstoodKeysAreNotOthers) {
  constexpr std::array<std::string_view, 1> kUnused{"torch_dtype"};
  const auto read = [&](const JsonReader& root) {
    static_cast<void>(root.integer("asked"));
    static_cast<void>(root.has("probed"));
    static_cast<void>(root.string_or("fallback", ""));
    root.ignore("ignored");
    root.no_other_keys(kUnused);
  };
  EXPECT_EQ(json_faults(R"({"asked": 1, "probed": 2, "fallback": null, "ignored": 3,
                            "torch_dtype": 4})",
                        read),
            "");
}

TEST(UnitJson, ReaderOutlivesTheFile) {
  const JsonReader root = [] { return JsonFile::parse(R"({"a": "b"})", "f.json").root(); }();
  EXPECT_EQ(root.string("a"), "b");
}

TEST(FaultJson, TypesSayWhatWasThere) {
  const auto read = [](const JsonReader& root) {
    static_cast<void>(root.integer("s"));
    static_cast<void>(root.number("t"));
    static_cast<void>(root.string("i"));
    static_cast<void>(root.boolean("o"));
    static_cast<void>(root.array("s2"));
    static_cast<void>(root.at("a").string("key"));
    static_cast<void>(root.string("n"));
    static_cast<void>(root.at("o2").as_bytes());
  };
  EXPECT_EQ(json_faults(R"({"s": "12", "t": true, "i": 12, "o": {}, "s2": "x\ny", "a": [],
                            "n": null, "o2": {}})",
                        read),
            "f.json: /s: \"12\" is a string (must be an integer)\n"
            "f.json: /t: true is a boolean (must be a number)\n"
            "f.json: /i: 12 is a number (must be a string)\n"
            "f.json: /o: is an object (must be true or false)\n"
            "f.json: /s2: \"x\\ny\" is a string (must be an array)\n"
            "f.json: /a: is an array (must be an object)\n"
            "f.json: /n: is null (must be a string)\n"
            "f.json: /o2: is an object (must be text with a unit, such as \"80 GiB\")");
}

TEST(FaultJson, NumbersOutOfRange) {
  const auto read = [](const JsonReader& root) {
    EXPECT_EQ(root.integer("low", {.low = 1}), 1);
    EXPECT_EQ(root.integer("high", {.high = 8}), 0);
    EXPECT_EQ(root.integer("both", {.low = 1, .high = 8}), 1);
    EXPECT_EQ(root.number("real", {.low = 0.25, .high = 0.5}), 0.25);
    EXPECT_EQ(root.integer("half"), 0);
    EXPECT_EQ(root.integer("huge"), 0);
    EXPECT_EQ(root.integer("huger"), 0);
    EXPECT_EQ(root.number("huger"), 3.15e23);
    EXPECT_EQ(root.integer("zero", {.low = 1}), 1);
  };
  EXPECT_EQ(json_faults(R"({"low": -3, "high": 9, "both": 9, "real": 0.75, "half": 2.5,
                            "huge": 9223372036854775808, "huger": 315000000000000000000000,
                            "zero": 0})",
                        read),
            "f.json: /low: -3 is too small (must be >= 1)\n"
            "f.json: /high: 9 is too large (must be <= 8)\n"
            "f.json: /both: 9 is too large (must be in 1 to 8)\n"
            "f.json: /real: 0.75 is too large (must be in 0.25 to 0.5)\n"
            "f.json: /half: 2.5 is not a whole number (must be an integer)\n"
            "f.json: /huge: 9223372036854775808 is out of range (integers have 64 bits)\n"
            "f.json: /huger: 3.15e+23 is out of range (integers have 64 bits)\n"
            "f.json: /zero: 0 is too small (must be >= 1)");
}

TEST(FaultJson, QuantitiesHaveTheirPlace) {
  const auto read = [](const JsonReader& root) {
    static_cast<void>(root.at("memory").as_bytes());
    static_cast<void>(root.at("bare").as_bytes());
    static_cast<void>(root.array("links")[0].at("bandwidth").as_bytes_per_second());
    static_cast<void>(root.at("empty").as_seconds());
    static_cast<void>(root.at("price").as_usd());
  };
  EXPECT_EQ(json_faults(R"({"memory": "-80 GiB", "bare": 80, "links": [{"bandwidth": "4 Gb/s"}],
                            "empty": "", "price": 1.5})",
                        read),
            "f.json: /memory: \"-80 GiB\" is negative (must be >= 0)\n"
            "f.json: /bare: 80 has no unit (bytes need one). Write \"80 GiB\" or \"80 GB\".\n"
            "f.json: /links/0/bandwidth: \"4 Gb/s\" is ambiguous (b has been read as bit and as "
            "byte). Write \"4 Gbit/s\" or \"4 GB/s\".\n"
            "f.json: /empty: is empty (a number and a unit are needed). Write for example "
            "\"5 us\".\n"
            "f.json: /price: 1.5 has no unit (prices need one). Write \"$1.5\" or \"1.5 USD\".");
}

TEST(FaultJson, UnknownKeyNamesTheNearest) {
  const auto read = [](const JsonReader& root) {
    static_cast<void>(root.integer_or("hidden_size", 1));
    static_cast<void>(root.integer_or("num_layers", 1));
    root.no_other_keys();
  };
  EXPECT_EQ(json_faults(R"({"hiden_size": 1, "num_layers": 2, "zzz": 3})", read),
            "f.json: /hiden_size: unknown key. Did you mean \"hidden_size\"?\n"
            "f.json: /zzz: unknown key");
}

TEST(FaultJson, MissingKeyIsToldOnceWhateverIsReadBelowIt) {
  const auto read = [](const JsonReader& root) {
    const JsonReader device = root.at("device");
    EXPECT_TRUE(device.is_null());
    EXPECT_EQ(device.integer("count", {.low = 1}), 1);
    EXPECT_EQ(device.string("name"), "");
    EXPECT_EQ(device.at("memory").as_bytes(), Bytes{0});
    EXPECT_TRUE(device.array("links").empty());
    EXPECT_FALSE(device.has("x"));
    EXPECT_FALSE(device.find("x").has_value());
    EXPECT_TRUE(device.keys().empty());
    EXPECT_EQ(device.size(), 0U);
    EXPECT_EQ(device.dump(), "null");
    EXPECT_EQ(device.string_or("x", "fallback"), "fallback");
    device.expect_format("towtank-platform", 1);
    device.no_other_keys();
    device.ignore("x");
    device.fault("is not what it should be");
    static_cast<void>(root.at("device"));
  };
  EXPECT_EQ(json_faults("{}", read), "f.json: /device: missing key (it is required)");
}

TEST(FaultJson, WrongTypeIsToldOnceWhateverIsReadBelowIt) {
  const auto read = [](const JsonReader& root) {
    static_cast<void>(root.integer("a"));
    static_cast<void>(root.at("b").at("c").as_bytes());
    static_cast<void>(root.find("d"));
    static_cast<void>(root.has("e"));
    root.expect_format("towtank-plan", 1);
    root.no_other_keys();
  };
  EXPECT_EQ(json_faults("[1]", read), "f.json: is an array (must be an object)");
  EXPECT_EQ(json_faults("\"a\"", read), "f.json: \"a\" is a string (must be an object)");
}

TEST(FaultJson, OneOfListsTheNames) {
  constexpr std::array<std::string_view, 3> kNames{"gpipe", "1f1b", "interleaved"};
  const auto read = [&](const JsonReader& root) {
    EXPECT_EQ(root.one_of("a", kNames), 0U);
    EXPECT_EQ(root.one_of("b", kNames), 0U);
    EXPECT_EQ(root.one_of("c", kNames), 0U);
    EXPECT_EQ(root.one_of("d", kNames), 0U);
  };
  EXPECT_EQ(json_faults(R"({"a": "1f2b", "b": "zzz", "c": 3})", read),
            "f.json: /a: \"1f2b\" is not one of the known values (known: gpipe, 1f1b, "
            "interleaved). Did you mean \"1f1b\"?\n"
            "f.json: /b: \"zzz\" is not one of the known values (known: gpipe, 1f1b, "
            "interleaved)\n"
            "f.json: /c: 3 is a number (must be a string)\n"
            "f.json: /d: missing key (it is required)");
}

TEST(FaultJson, FormatAndVersion) {
  const auto read = [](const JsonReader& root) {
    root.expect_format("towtank-plan", 2);
    static_cast<void>(root.string("name"));
    root.no_other_keys();
  };
  EXPECT_EQ(json_faults(R"({"format": "towtank-plan", "version": 2, "name": "x"})", read), "");
  EXPECT_EQ(json_faults(R"({"format": "towtank-plan", "version": 1, "name": "x"})", read), "");
  // Another kind of file: its other faults would be noise.
  EXPECT_EQ(json_faults(R"({"format": "towtank-case", "version": 1, "zzz": 0})", read),
            "f.json: /format: \"towtank-case\" is another format (must be \"towtank-plan\")");
  EXPECT_EQ(json_faults(R"({"format": "towtank-plan", "version": 3, "zzz": 0})", read),
            "f.json: /version: 3 is newer than this program (it reads versions up to 2). Update "
            "towtank.");
  EXPECT_EQ(json_faults(R"({"version": 1, "name": "x"})", read),
            "f.json: /format: missing key (it is required). Write \"format\": \"towtank-plan\", "
            "\"version\": 2 first.");
  EXPECT_EQ(json_faults(R"({"format": "towtank-plan", "name": "x"})", read),
            "f.json: /version: missing key (it is required)");
  EXPECT_EQ(json_faults(R"({"format": 7, "version": 0, "name": "x"})", read),
            "f.json: /format: 7 is a number (must be a string)\n"
            "f.json: /version: 0 is too small (must be >= 1)");
}

TEST(FaultJson, AnEmbeddedForeignFormatHidesNothingElse) {
  const auto read = [](const JsonReader& root) {
    root.at("workload").expect_format("towtank-workload", 1);
    static_cast<void>(root.string("name"));
  };
  EXPECT_EQ(json_faults(R"({"workload": {"format": "towtank-plan", "version": 1}})", read),
            "f.json: /workload/format: \"towtank-plan\" is another format (must be "
            "\"towtank-workload\")\n"
            "f.json: /name: missing key (it is required)");
}

TEST(FaultJson, PointersAreEscapedAndPrintable) {
  const auto read = [](const JsonReader& root) {
    for (const std::string& key : root.keys()) static_cast<void>(root.string(key));
  };
  EXPECT_EQ(json_faults(R"({"a/b": 1, "c~d": 2, "e\u001bf": 3, "": 4})", read),
            "f.json: /a~1b: 1 is a number (must be a string)\n"
            "f.json: /c~0d: 2 is a number (must be a string)\n"
            "f.json: /e\\x1bf: 3 is a number (must be a string)\n"
            "f.json: /: 4 is a number (must be a string)");
}

TEST(FaultJson, ReadersAddTheirOwnFaults) {
  const auto read = [](const JsonReader& root) {
    root.at("a").fault("3 is odd", "must be even", "Double it.");
    root.fault("is inconsistent");
  };
  EXPECT_EQ(json_faults(R"({"a": 3})", read),
            "f.json: /a: 3 is odd (must be even). Double it.\nf.json: is inconsistent");
}

TEST(FaultJson, CutFiles) {
  EXPECT_EQ(syntax_fault("{\n  \"a\": 1"),
            "f.json: line 2, column 9: ends in the middle of an object (expected a comma or }). "
            "Is the file complete?");
  EXPECT_EQ(syntax_fault("{\"a\""),
            "f.json: line 1, column 5: ends in the middle of an object (expected a colon). Is the "
            "file complete?");
  EXPECT_EQ(syntax_fault("{\"a\": [1,"),
            "f.json: line 1, column 10: ends in the middle of an array (expected a value). Is the "
            "file complete?");
  EXPECT_EQ(syntax_fault("{\"a\": \"b\\\""),
            "f.json: line 1, column 7: ends in the middle of a string. Is the file complete?");
  EXPECT_EQ(syntax_fault("-"),
            "f.json: line 1, column 2: ends in the middle of a value (expected a value). Is the "
            "file complete?");
}

TEST(FaultJson, UnexpectedTokens) {
  EXPECT_EQ(syntax_fault("{\"a\": 1,\n}"),
            "f.json: line 2, column 1: not JSON: found } (expected a key in double quotes). "
            "Remove the comma before it.");
  EXPECT_EQ(syntax_fault("[1, 2,]"),
            "f.json: line 1, column 7: not JSON: found ] (expected a value). Remove the comma "
            "before it.");
  EXPECT_EQ(syntax_fault("{\"a\" 1}"),
            "f.json: line 1, column 6: not JSON: found 1 (expected a colon)");
  EXPECT_EQ(syntax_fault("{\"a\": 1 \"b\": 2}"),
            "f.json: line 1, column 9: not JSON: found \"b\" (expected a comma or })");
  EXPECT_EQ(syntax_fault("[1}"),
            "f.json: line 1, column 3: not JSON: found } (expected a comma or ])");
  EXPECT_EQ(syntax_fault("[}"),
            "f.json: line 1, column 2: not JSON: found } (expected a value or ])");
  EXPECT_EQ(syntax_fault("{a: 1}"),
            "f.json: line 1, column 2: not JSON: found a (expected a key in double quotes or }). "
            "Write text in double quotes.");
  EXPECT_EQ(syntax_fault("{\"memory\": 80GiB}"),
            "f.json: line 1, column 12: not JSON: found 80GiB (expected a comma or }). Write text "
            "in double quotes.");
  EXPECT_EQ(syntax_fault("{\"\xc3\xa9\": tru}"),
            "f.json: line 1, column 7: not JSON: found tru (expected a value). Write text in "
            "double quotes.");
  EXPECT_EQ(syntax_fault("]"), "f.json: line 1, column 1: not JSON: found ] (expected a value)");
  EXPECT_EQ(syntax_fault("{}\n{}"),
            "f.json: line 2, column 1: not JSON: found { (expected the end of the file). One value "
            "is read; JSON Lines files have many.");
}

TEST(FaultJson, HabitsOfOtherLanguages) {
  EXPECT_EQ(syntax_fault("[NaN]"),
            "f.json: line 1, column 2: not JSON: found NaN (expected a value or ]). JSON has "
            "finite numbers only; write null for an unknown one.");
  EXPECT_EQ(syntax_fault("{\"a\": -Infinity}"),
            "f.json: line 1, column 7: not JSON: found -Infinity (expected a value). JSON has "
            "finite numbers only; write null for an unknown one.");
  EXPECT_EQ(syntax_fault("{\"a\": None}"),
            "f.json: line 1, column 7: not JSON: found None (expected a value). Write null.");
  EXPECT_EQ(syntax_fault("{'a': 1}"),
            "f.json: line 1, column 2: not JSON: found 'a' (expected a key in double quotes or }). "
            "Write strings in double quotes.");
  EXPECT_EQ(syntax_fault("{} // end"),
            "f.json: line 1, column 4: not JSON: found // (expected the end of the file). JSON has "
            "no comments; remove it.");
  EXPECT_EQ(syntax_fault("[007]"),
            "f.json: line 1, column 2: not JSON: found 007 (expected a comma or ]). Numbers do not "
            "start with 0.");
}

TEST(FaultJson, Strings) {
  EXPECT_EQ(syntax_fault("{\"a\": \"b\n\"}"),
            "f.json: line 1, column 7: not JSON: the string that starts here has no end on its "
            "line. Close it with a double quote.");
  EXPECT_EQ(syntax_fault("[\"a\\qb\"]"),
            "f.json: line 1, column 2: not JSON: the string that starts here has a wrong escape "
            "(byte 4). Known: \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX.");
  EXPECT_EQ(syntax_fault("\xef\xbb\xbf[\"a\xff\"]"),
            "f.json: line 1, column 2: not JSON: the string that starts here is not UTF-8 (byte "
            "6). Save the file as UTF-8.");
  EXPECT_EQ(syntax_fault("[\"a\x01\"]"),
            "f.json: line 1, column 2: not JSON: the string that starts here has a control "
            "character (byte 3). Write it as \\u00XX.");
}

TEST(FaultJson, NumbersThatNoDoubleHolds) {
  EXPECT_EQ(syntax_fault("{\"a\": -1e400}"),
            "f.json: line 1, column 7: -1e400 is too large (at most 1.8e308)");
}

TEST(FaultJson, KeysGivenTwice) {
  EXPECT_EQ(syntax_fault(R"({"a": [{}, {"b": {"c/d": 1, "e": 2, "c/d": 3}}]})"),
            "f.json: /a/1/b/c~1d: this key is given twice (the keys of an object differ). Remove "
            "one.");
  std::string large = "{";
  for (int i = 0; i < 100; ++i) large += "\"k" + std::to_string(i) + "\": 0, ";
  EXPECT_EQ(syntax_fault(large + "\"k57\": 1}"),
            "f.json: /k57: this key is given twice (the keys of an object differ). Remove one.");
  EXPECT_NO_THROW(static_cast<void>(JsonFile::parse(large + "\"k100\": 1}", "f.json")));
}

TEST(FaultJson, DepthIsLimited) {
  const auto nested = [](int depth) {
    const auto n = static_cast<std::size_t>(depth);
    return std::string(n, '[') + std::string(n, ']');
  };
  EXPECT_NO_THROW(static_cast<void>(JsonFile::parse(nested(kMaxJsonDepth), "f.json")));
  const std::string text = "f.json: nests deeper than 64 levels (the limit for arrays and objects)";
  EXPECT_EQ(syntax_fault(nested(kMaxJsonDepth + 1)), text);
  EXPECT_EQ(syntax_fault(std::string(1'000'000, '[')), text);
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
  EXPECT_EQ(syntax_fault(objects), text);
}

TEST(FaultJson, OtherKindsOfFiles) {
  EXPECT_EQ(syntax_fault(" \n\t"), "f.json: is blank (a JSON value is needed)");
  EXPECT_EQ(syntax_fault(""), "f.json: is blank (a JSON value is needed)");
  EXPECT_EQ(syntax_fault("\x1f\x8b\x08"), "f.json: is gzip data, not JSON. Unzip it first.");
  EXPECT_EQ(syntax_fault("\xff\xfe{"),
            "f.json: is UTF-16 text (JSON files are UTF-8). Save it as UTF-8.");
  EXPECT_EQ(syntax_fault("<html>"), "f.json: is HTML or XML, not JSON");
  EXPECT_EQ(syntax_fault("version https://git-lfs.github.com/spec/v1\n"),
            "f.json: is a Git LFS pointer, not the file itself. Run git lfs pull.");
}

TEST(FaultJson, LoadNamesTheFile) {
  EXPECT_FAULT(JsonFile::load("no-such-file.json"), "no-such-file.json: no such file");
}

/// Reads a text in every way there is; returns false if an InputError refused it.
bool reads_whole(const std::string& text) {
  try {
    const JsonFile file = JsonFile::parse(text, "f.json");
    const JsonReader root = file.root();
    root.expect_format("towtank-platform", 1);
    static_cast<void>(root.string("name"));
    static_cast<void>(root.integer("count", {.low = 1, .high = 1e9}));
    static_cast<void>(root.number_or("share", 0.5, {.low = 0, .high = 1}));
    for (const JsonReader& level : root.array("levels")) {
      static_cast<void>(level.at("bandwidth").as_bytes_per_second());
      static_cast<void>(level.at("latency").as_seconds());
      static_cast<void>(level.at("memory").as_bytes());
      level.no_other_keys();
    }
    for (const std::string& key : root.keys()) static_cast<void>(root.at(key).dump());
    root.no_other_keys();
    static_cast<void>(to_text(root.raw()));
    file.finish();
    return true;
  } catch (const InputError& error) {
    EXPECT_FALSE(error.faults().empty());
    for (const char c : std::string_view(error.what())) {
      EXPECT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= 0x20U);
    }
    return false;
  }
}

TEST(LawJson, NoMutatedTextBreaksTheReader) {
  const std::string seed_text =
      R"({"format": "towtank-platform", "version": 1, "name": "h\u0031\ud83d\udea2", "count": 8,
 "share": 0.25e0, "levels": [{"bandwidth": "450 GB/s", "latency": "1.5 us", "memory": "80 GiB"},
 {"bandwidth": "400 Gbit/s", "latency": "5 us", "memory": "79.6 GiB"}]})";
  ASSERT_TRUE(reads_whole(seed_text));
  constexpr std::string_view kTokens = "{}[]:,\"\\-+.eE0123456789ntfu/ \n\x01\x7f\x80\xc3\xff";
  Rng rng(42);
  int refused = 0;
  constexpr int kInputs = 20'000;
  for (int i = 0; i < kInputs; ++i) {
    std::string text = seed_text;
    const std::int64_t edits = rng.integer(1, 4);
    for (std::int64_t k = 0; k < edits && !text.empty(); ++k) {
      const auto size = static_cast<std::int64_t>(text.size());
      const auto at = static_cast<std::size_t>(rng.integer(0, size - 1));
      const char token = kTokens[static_cast<std::size_t>(
          rng.integer(0, static_cast<std::int64_t>(kTokens.size()) - 1))];
      switch (rng.integer(0, 5)) {
        case 0:
          text[at] = token;
          break;
        case 1:
          text.insert(at, 1, token);
          break;
        case 2:
          text.erase(at, static_cast<std::size_t>(rng.integer(1, 8)));
          break;
        case 3:
          text.resize(at);
          break;
        case 4:
          text.insert(at, text.substr(at, static_cast<std::size_t>(rng.integer(1, 40))));
          break;
        default:
          text[at] = static_cast<char>(rng.integer(0, 255));
          break;
      }
    }
    refused += reads_whole(text) ? 0 : 1;
  }
  // Some edits are harmless (a letter of the name), most are not.
  EXPECT_GT(refused, kInputs / 2);
  EXPECT_LT(refused, kInputs);
}

TEST(LawJson, EveryPrefixOfAFileIsRefused) {
  const std::string text = R"({"a": [1, -2.5e3, true, null, "x\u00e9"], "b": {"c": "d"}})";
  for (std::size_t n = 1; n < text.size(); ++n) {
    const std::string fault = syntax_fault(text.substr(0, n));
    EXPECT_NE(fault.find("ends in the middle of"), std::string::npos) << n << ": " << fault;
  }
  EXPECT_NO_THROW(static_cast<void>(JsonFile::parse(text, "f.json")));
}

/// A random value; strings of random bytes below 0x80.
Json any_json(Rng& rng, int depth) {
  switch (rng.integer(0, depth > 0 ? 7 : 5)) {
    case 0:
      return nullptr;
    case 1:
      return rng.integer(0, 1) == 1;
    case 2:
      return rng.integer(std::numeric_limits<std::int64_t>::min(),
                         std::numeric_limits<std::int64_t>::max());
    case 3:
      return rng.uniform(-1.0, 1.0) * std::pow(10.0, rng.uniform(-300.0, 300.0));
    case 4:
      return rng.integer(-100, 100);
    case 5: {
      std::string text(static_cast<std::size_t>(rng.integer(0, 12)), ' ');
      for (char& c : text) c = static_cast<char>(rng.integer(0, 127));
      return text;
    }
    case 6: {
      Json array = Json::array();
      for (std::int64_t n = rng.integer(0, 5); n > 0; --n)
        array.push_back(any_json(rng, depth - 1));
      return array;
    }
    default: {
      Json object = Json::object();
      for (std::int64_t n = rng.integer(0, 40); n > 0; n -= 2) {
        object["key" + std::to_string(n)] = any_json(rng, depth - 1);
      }
      return object;
    }
  }
}

TEST(LawJson, WhatIsWrittenReadsBackTheSame) {
  Rng rng(13);
  for (int i = 0; i < 500; ++i) {
    const Json value = any_json(rng, 4);
    const std::string text = to_text(value);
    const JsonFile file = JsonFile::parse(text, "f.json");
    ASSERT_EQ(file.root().raw(), value) << text;
    ASSERT_EQ(to_text(file.root().raw()), text);
  }
}

TEST(LawJson, LargeObjectsAreReadInLinearTime) {
  // 2e5 keys: any quadratic step would take minutes, so that the suite's time limit catches it.
  constexpr int kKeys = 200'000;
  std::string text = "{";
  for (int i = 0; i < kKeys; ++i)
    text += "\"key" + std::to_string(i) + "\":" + std::to_string(i) + ",";
  text.back() = '}';
  const JsonFile file = JsonFile::parse(text, "f.json");
  std::int64_t sum = 0;
  for (const std::string& key : file.root().keys()) sum += file.root().integer(key);
  file.root().no_other_keys();
  EXPECT_EQ(sum, std::int64_t{kKeys} * (kKeys - 1) / 2);
  EXPECT_NO_THROW(file.finish());
}

}  // namespace
}  // namespace towtank
