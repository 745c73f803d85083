// SPDX-License-Identifier: Apache-2.0
#include "app/import_command.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/file.h"
#include "profiler/profile_json.h"
#include "tests/app/run_towtank.h"

namespace towtank::app_testing {
namespace import_command_test {

constexpr const char* kMapping = R"({"format": "towtank-csv-mapping", "version": 1, "name": "m",
  "source": "by hand", "launch_included": false,
  "ops": [{"label": "fc", "kind": "matmul", "dtype": "fp16", "m": "m", "n": 500, "k": 1000,
           "time": {"value": "t", "unit": "us"}}]})";

/// The last line is an empty cell; 2 m n k is 1 MFLOP a row of m.
constexpr const char* kTable = "m,t\n10,1\n20,1\n30,0\n40,\n";

TEST(UnitImportCommand, SaysWhatBecameOfEachRowAndWritesTheProfile) {
  const ScratchFolder scratch;
  const InFolder here(scratch.path());
  write_text("map.json", kMapping);
  write_text("t.csv", kTable);
  const Ran ran = run("import t.csv --mapping map.json --device h100-sxm-80g --name p -o p.json");
  EXPECT_EQ(ran.code, kExitOk);
  EXPECT_EQ(ran.err, "");
  EXPECT_EQ(ran.out,
            "Profile   p\n"
            "Device    h100-sxm-80g\n"
            "Times     of the device alone\n"
            "Source    by hand\n"
            "Rows      4 read, 2 kept\n"
            "          loss           1  rows with times of zero or less (first: t.csv: line 4)\n"
            "          error          1  rows whose time is not a number (first: t.csv: line 5)\n"
            "\n"
            "op      pass     dtype  rows             FLOP/s reached          bytes/s reached\n"
            "matmul  forward  fp16      2   10 TFLOP/s .. 20 TFLOP/s   1.03 TB/s .. 1.06 TB/s\n");
  const Profile profile = load_profile("p.json");
  EXPECT_EQ(profile.name, "p");
  EXPECT_EQ(profile.device_kind, "h100-sxm-80g");
  EXPECT_EQ(profile.ops.size(), 2U);
}

TEST(UnitImportCommand, TheJsonSummaryHasTheSameFigures) {
  const ScratchFolder scratch;
  const InFolder here(scratch.path());
  write_text("map.json", kMapping);
  write_text("t.csv", kTable);
  const Ran ran = run("import t.csv --mapping map.json --json --source me");
  const auto out = nlohmann::json::parse(ran.out);
  EXPECT_EQ(out["format"], "towtank-import");
  EXPECT_EQ(out["source"], "me");
  EXPECT_EQ(out["rows_read"], 4);
  EXPECT_EQ(out["counts"][0]["rows"], 1);
  EXPECT_DOUBLE_EQ(out["ops"][0]["flop_per_s"][1].get<double>(), 2.0 * 20 * 500 * 1000 / 1e-6);
  EXPECT_EQ(ran.err,
            "towtank: note: no device is stated, so these ops calibrate nothing; give --device\n");
}

TEST(UnitImportCommand, RowsAreSelectedByText) {
  const ScratchFolder scratch;
  const InFolder here(scratch.path());
  write_text("map.json", kMapping);
  write_text("t.csv", "gpu,mode,m,t\nA,x,1,1\nA,y,1,1\nB,x,1,1\n");
  const Ran ran = run("import t.csv --mapping map.json --device t4 --select gpu=A,mode=x --json");
  EXPECT_EQ(nlohmann::json::parse(ran.out)["rows_kept"], 1);
}

TEST(UnitImportCommand, TheExamplesRun) {
  const InFolder root(TOWTANK_SOURCE_DIR);
  for (const ExampleSpec& example : import_spec().examples) {
    const Ran ran = run(std::string(example.arguments));
    EXPECT_EQ(ran.code, kExitOk) << example.arguments << "\n" << ran.err;
  }
}

TEST(FaultImportCommand, EveryFaultNamesItsOption) {
  const ScratchFolder scratch;
  const InFolder here(scratch.path());
  write_text("t.csv", kTable);
  EXPECT_EQ(run("import").err,
            "towtank: FILE: is missing. Give a file, or - for standard input.\n");
  EXPECT_EQ(run("import t.csv --mapping sailer_ops").err.substr(0, 55),
            "towtank: --mapping: \"sailer_ops\" is not a mapping (know");
  EXPECT_EQ(run("import t.csv --mapping x --select gpu --ranks 1").err,
            "towtank: --ranks: 1 is out of range (it must lie in 2 to 1048576)\n"
            "towtank: --select: \"gpu\" is not COLUMN=TEXT. For example --select "
            "gpu=A100-40,precision=fp16.\n");
  const Ran unknown = run("import t.csv");
  EXPECT_EQ(unknown.code, kExitBadInput);
  EXPECT_NE(unknown.err.find("A table of columns needs --mapping NAME|FILE"), std::string::npos);
}

TEST(FaultImportCommand, NothingIsWrittenWhenItFails) {
  const ScratchFolder scratch;
  const InFolder here(scratch.path());
  write_text("map.json", kMapping);
  write_text("t.csv", "m,t\n1,0\n");
  EXPECT_EQ(run("import t.csv --mapping map.json -o p.json").code, kExitBadInput);
  EXPECT_FALSE(std::filesystem::exists("p.json"));
}

TEST(UnitImportCommand, UnknownDeviceNamesAreAllowedAndSaid) {
  const ScratchFolder scratch;
  const InFolder here(scratch.path());
  write_text("map.json", kMapping);
  write_text("t.csv", kTable);
  const Ran ran = run("import t.csv --mapping map.json --device h100-sxm-80");
  EXPECT_EQ(ran.code, kExitOk);
  EXPECT_EQ(ran.err,
            "towtank: note: \"h100-sxm-80\" is not a device kind of the catalogue; the nearest is "
            "h100-sxm-80g\n");
}

}  // namespace import_command_test
}  // namespace towtank::app_testing
