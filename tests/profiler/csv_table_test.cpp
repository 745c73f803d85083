// SPDX-License-Identifier: Apache-2.0
#include "profiler/import/csv_table.h"

#include <gtest/gtest.h>

#include "core/input_error.h"
#include "tests/support/expect_fault.h"

namespace towtank {
namespace csv_table_test {

using Severity = ImportStats::Severity;

/// A mapping with these members behind its head.
CsvMapping mapping_of(const std::string& members) {
  return parse_csv_mapping(JsonFile::parse(
      R"({"format": "towtank-csv-mapping", "version": 1, "name": "m", "source": "by hand",
          "launch_included": false, )" +
          members + "}",
      "m.json"));
}

/// A matmul of the columns m, n, k, in microseconds.
constexpr const char* kProduct =
    R"("ops": [{"label": "fc", "kind": "matmul", "dtype": "fp16", "m": "m", "n": "n", "k": "k",
                "time": {"value": "t", "unit": "us"}}])";

Profile imported(const std::string& mapping, const std::string& table,
                 const ImportOptions& options = {}, const std::string& name = "dir/a.csv") {
  return import_csv({{name, table}}, mapping_of(mapping), options);
}

std::vector<std::string> reasons(const Profile& p) {
  std::vector<std::string> out;
  for (const auto& c : p.stats.counts) {
    out.push_back(std::string(kSeverityNames[static_cast<std::size_t>(c.severity)]) + ": " +
                  std::to_string(c.rows) + " " + c.what + " (" + c.first + ")");
  }
  return out;
}

TEST(ImportCsvTable, AProductHasTheSignatureThatItsShapeImplies) {
  const Profile p = imported(kProduct, "m,n,k,t\n16,32,64,2.5\n");
  ASSERT_EQ(p.ops.size(), 1U);
  const OpSignature& s = p.ops[0].signature;
  EXPECT_EQ(s.kind, OpKind::kMatmul);
  EXPECT_EQ(s.dtype, DType::kFp16);
  EXPECT_EQ(s.m, 16);
  EXPECT_EQ(s.n, 32);
  EXPECT_EQ(s.k, 64);
  EXPECT_EQ(s.work.value, 2.0 * 16 * 32 * 64);
  EXPECT_EQ(s.traffic.value, 2 * (16 * 64 + 64 * 32 + 16 * 32));
  EXPECT_EQ(s.kernels, 1);
  EXPECT_DOUBLE_EQ(p.ops[0].time.median.value, 2.5e-6);
  EXPECT_FALSE(p.ops[0].time.low.has_value());
  EXPECT_EQ(p.ops[0].group, "a");
  EXPECT_EQ(p.stats.rows_read, 1);
  EXPECT_EQ(p.stats.rows_kept, 1);
  EXPECT_TRUE(p.stats.counts.empty());
}

TEST(ImportCsvTable, BothGradientsAreTwoProductsOfOneTime) {
  const Profile p = imported(
      R"("ops": [{"label": "scores", "kind": "matmul", "dtype": "fp32", "pass": "input_grad",
                  "both_gradients": true, "batch": 3, "m": 4, "n": 5, "k": 6, "kernels": 4,
                  "extra_traffic_bytes": 100, "extra_work_flop": 7,
                  "time": {"value": "t", "unit": "s"}}])",
      "t\n1\n");
  const OpSignature& s = p.ops.at(0).signature;
  EXPECT_EQ(s.pass, Pass::kInputGrad);
  EXPECT_EQ(s.batch, 2 * 3);
  EXPECT_EQ(s.work.value, 2 * 3 * (2.0 * 4 * 5 * 6) + 7);
  EXPECT_EQ(s.traffic.value, 2 * 3 * 4 * (4 * 6 + 6 * 5 + 4 * 5) + 100);
  EXPECT_EQ(s.kernels, 4);
}

TEST(ImportCsvTable, MemoryOpsTakeTheirBytesFromTheMapping) {
  const Profile p = imported(
      R"("let": {"bytes": {"column": "type", "values": {"half": 2, "single": 4}},
                 "elements": "rows * 10"},
         "op_defaults": {"time": {"value": "t", "unit": "ms"}, "group": "g {type}",
                         "dtype": {"column": "type", "values": {"half": "fp16", "single": "fp32"}}},
         "ops": [{"label": "{type} add", "kind": "elementwise", "kernels": 2,
                  "traffic_bytes": "3 * elements * bytes", "work_flop": "elements"}])",
      "type,rows,t\nhalf,7,1\nsingle,7,2\n");
  ASSERT_EQ(p.ops.size(), 2U);
  EXPECT_EQ(p.ops[0].signature.traffic.value, 3 * 70 * 2);
  EXPECT_EQ(p.ops[0].signature.work.value, 70);
  EXPECT_EQ(p.ops[0].signature.kernels, 2);
  EXPECT_EQ(p.ops[0].label, "half add");
  EXPECT_EQ(p.ops[1].signature.traffic.value, 3 * 70 * 4);
  EXPECT_EQ(p.ops[1].signature.dtype, DType::kFp32);
  EXPECT_EQ(p.ops[1].group, "g single");
  EXPECT_DOUBLE_EQ(p.ops[1].time.median.value, 2e-3);
}

constexpr const char* kReduce =
    R"("collectives": [{"op": "all_reduce", "payload_bytes": "size", "ranks": "n",
                        "ranks_per_node": "here", "group": "{n} ranks",
                        "time": {"value": ["a", "b"], "unit": "ns"}}])";

TEST(ImportCsvTable, TimesInAListAreRepeats) {
  const Profile p = imported(kReduce, "size,n,here,a,b\n1024,8,4,300,100\n");
  ASSERT_EQ(p.collectives.size(), 1U);
  const CollectiveMeasurement& c = p.collectives[0];
  EXPECT_EQ(c.op, Collective::kAllReduce);
  EXPECT_EQ(c.payload.value, 1024);
  EXPECT_EQ(c.ranks, 8);
  EXPECT_EQ(c.ranks_per_node, 4);
  EXPECT_DOUBLE_EQ(c.time.median.value, (300e-9 + 100e-9) / 2);
  EXPECT_DOUBLE_EQ(c.time.low->value, 100e-9);
  EXPECT_DOUBLE_EQ(c.time.high->value, 300e-9);
  EXPECT_EQ(c.time.repeats, 2);
  EXPECT_EQ(c.group, "8 ranks");
}

TEST(ImportCsvTable, TheCommandLineWinsOverTheMapping) {
  ImportOptions options;
  options.name = "mine";
  options.device_kind = "d";
  options.fabric_intranode = "f";
  options.ranks = 16;
  options.ranks_per_node = 2;
  const Profile p = imported(kReduce, "size,n,here,a,b\n1024,8,4,1,1\n", options);
  EXPECT_EQ(p.name, "mine");
  EXPECT_EQ(p.device_kind, "d");
  EXPECT_EQ(p.fabric_intranode, "f");
  EXPECT_EQ(p.collectives.at(0).ranks, 16);
  EXPECT_EQ(p.collectives.at(0).ranks_per_node, 2);
}

TEST(ImportCsvTable, ColumnsOfOneNameAreToldApart) {
  const Profile p = imported(
      R"("let": {"ranks": {"file": "AR_GPU*_"}},
         "collectives": [{"op": "all_reduce", "payload_bytes": "`size(B)`", "ranks": "ranks",
                          "time": {"value": ["`time(ns)`", "`time(ns)#2`"], "unit": "ns"}}])",
      "size(B),time(ns),busbw(GB/s),time(ns)\n8,10,1,30\n", {}, "x/AR_GPU6_1M_LUT");
  EXPECT_EQ(p.collectives.at(0).ranks, 6);
  EXPECT_DOUBLE_EQ(p.collectives.at(0).time.median.value, 20e-9);
}

TEST(ImportCsvTable, RowsAreSelectedDroppedAndCountedWithTheFirstPlace) {
  ImportOptions options;
  options.select = {{"gpu", "A"}};
  const Profile p = imported(
      R"("where": [{"value": "t", "at_most": 100}],
         "drop": [{"where": [{"value": "t", "above": 50}], "because": "slow", "severity": "info"},
                  {"where": [{"column": "gpu", "equals": "A"}, {"column": "k", "not": ["1", "2"]}],
                   "because": "odd k"}],)" +
          std::string(kProduct),
      "gpu,m,n,k,t\n"
      "A,1,1,1,1\n"    // kept
      "B,1,1,1,1\n"    // not selected
      "A,1,1,1,101\n"  // not meant
      "A,1,1,1,60\n"   // slow
      "A,1,1,3,1\n"    // odd k
      "A,1,1,4,1\n",   // odd k
      options);
  EXPECT_EQ(p.ops.size(), 1U);
  EXPECT_EQ(p.stats.rows_read, 6);
  EXPECT_EQ(p.stats.rows_kept, 1);
  EXPECT_EQ(reasons(p),
            (std::vector<std::string>{"info: 2 rows that are not selected (dir/a.csv: line 3)",
                                      "info: 1 slow (dir/a.csv: line 5)",
                                      "loss: 2 odd k (dir/a.csv: line 6)"}));
}

TEST(ImportCsvTable, DirtIsCountedByWhatIsWrongWithIt) {
  const Profile p = imported(kProduct,
                             "m,n,k,t\n"
                             "1,1,1,1\n"
                             "1,1,1\n"
                             "1,1,1,1,1\n"
                             "1,x,1,1\n"
                             "1,1.5,1,1\n"
                             "0,1,1,1\n"
                             "1,1,1,0\n"
                             "1,1,1,-2\n"
                             "1,1,1,nan\n"
                             "1,1,1,1e13\n"
                             "1,1,1,\"2\n");
  EXPECT_EQ(p.ops.size(), 1U);
  EXPECT_EQ(p.stats.rows_read, 11);
  EXPECT_EQ(reasons(p),
            (std::vector<std::string>{
                "error: 2 rows with more or fewer cells than columns (dir/a.csv: line 3)",
                "error: 1 rows whose n is not a number (dir/a.csv: line 5)",
                "error: 1 rows whose n is not a whole number above zero (dir/a.csv: line 6)",
                "error: 1 rows whose m is not a whole number above zero (dir/a.csv: line 7)",
                "loss: 2 rows with times of zero or less (dir/a.csv: line 8)",
                "error: 1 rows whose time is not a number (dir/a.csv: line 10)",
                "loss: 1 rows with times of more than a week (dir/a.csv: line 11)",
                "error: 1 rows with a quote that is not closed (dir/a.csv: line 12)"}));
}

TEST(ImportCsvTable, AValueThatALookUpDoesNotNameIsALoss) {
  const Profile p = imported(
      R"("ops": [{"label": "fc", "kind": "matmul", "m": 1, "n": 1, "k": 1,
                  "dtype": {"text": "{gpu} {type}", "values": {"A h": "fp16"}},
                  "time": {"value": "t", "unit": "us"}}])",
      "gpu,type,t\nA,h,1\nA,q,1\nB,q,1\n");
  EXPECT_EQ(reasons(p), (std::vector<std::string>{
                            "loss: 1 rows with {gpu} {type} = \"A q\" (dir/a.csv: line 3)",
                            "loss: 1 rows with {gpu} {type} = \"B q\" (dir/a.csv: line 4)"}));
}

TEST(ImportCsvTable, ARowThatNoEntryTakesIsALoss) {
  const Profile p = imported(
      R"("collectives": [{"op": "send_recv", "where": [{"column": "op", "equals": "p2p"}],
                          "payload_bytes": 8, "ranks": "n", "time": {"value": 1, "unit": "s"}}])",
      "op,n\np2p,2\nbarrier,2\np2p,1\n");
  EXPECT_EQ(p.collectives.size(), 1U);
  EXPECT_EQ(reasons(p), (std::vector<std::string>{
                            "loss: 1 rows that no entry of the mapping takes (dir/a.csv: line 3)",
                            "loss: 1 collectives of one rank (dir/a.csv: line 4)"}));
}

TEST(ImportCsvTable, ADeviceThatAColumnNamesIsThatOfEveryRow) {
  const std::string mapping =
      R"("device_kind": {"column": "gpu", "values": {"A": "a", "B": "b"}},)" +
      std::string(kProduct);
  const std::string table = "gpu,m,n,k,t\nA,1,1,1,1\nB,1,1,1,1\n";
  ImportOptions options;
  options.select = {{"gpu", "B"}};
  EXPECT_EQ(imported(mapping, table, options).device_kind, "b");
  EXPECT_FAULT(imported(mapping, table),
               "dir/a.csv: line 3: is of \"b\" (rows before are of \"a\"; a profile is not of two "
               "devices). Choose rows with --select COLUMN=TEXT, or say it with --device.");
}

TEST(FaultCsvTable, WhatTheMappingCannotMeanIsAFault) {
  EXPECT_FAULT(imported(kProduct, "m,n,depth,t\n1,1,1,1\n"),
               "m.json: /ops/0/k: names the column \"k\" (dir/a.csv has none of this name). It has "
               "m, n, depth, t.");
  EXPECT_FAULT(imported(kProduct, ""), "dir/a.csv: has no header line");
  EXPECT_FAULT(imported(kProduct, "m,n,k,t\n"),
               "dir/a.csv: no row gives a measurement (it has no rows)");
  EXPECT_FAULT(imported(kProduct, "m,n,k,t\n1,1,1,0\n"),
               "dir/a.csv: no row gives a measurement (1 rows with times of zero or less)");
  EXPECT_FAULT(imported(R"("columns": ["m", "n", "k"],)" + std::string(kProduct), "m,n,k,t\n"),
               "dir/a.csv: line 1: has 4 columns (the mapping names 3)");
  EXPECT_FAULT(imported(R"("collectives": [{"op": "all_reduce", "payload_bytes": "s",
                            "time": {"value": "t", "unit": "us"}}])",
                        "s,t\n1,1\n"),
               "m.json: /collectives/0/op: nothing says how many ranks. Give --ranks, and "
               "--ranks-per-node where they are fewer.");
  EXPECT_FAULT(
      imported(R"("let": {"n": {"file": "GPU*_"}},)" + std::string(kProduct), "m,n,k,t\n1,1,1,1\n"),
      "m.json: /let/n: \"GPU*_\" is not in the file's name (dir/a.csv)");
  ImportOptions options;
  options.select = {{"gpu", "A"}};
  EXPECT_FAULT(imported(kProduct, "m,n,k,t\n1,1,1,1\n", options),
               "--select gpu: names the column \"gpu\" (dir/a.csv has none of this name). It has "
               "m, n, k, t.");
}

TEST(FaultCsvMapping, EveryFaultIsToldWithItsPlace) {
  EXPECT_FAULT(mapping_of(R"("ops": [{"label": "a", "kind": "matmul", "dtyp": "fp16", "m": "2 +",
                             "time": {"value": [], "unit": "us"}}])"),
               "m.json: /ops/0/dtype: missing key (it is required)\n"
               "m.json: /ops/0/m: \"2 +\" is not an expression (it ends too early)\n"
               "m.json: /ops/0/time/value: is empty (a time needs a value)\n"
               "m.json: /ops/0/dtyp: unknown key. Did you mean \"dtype\"?");
  EXPECT_FAULT(mapping_of(R"("separator": ";;", "header": false)"),
               "m.json: /separator: \";;\" is not one character\n"
               "m.json: has neither a header nor \"columns\" (columns need names)\n"
               "m.json: has neither ops nor collectives (a mapping says what rows measure)");
  EXPECT_FAULT(
      mapping_of(R"("where": [{"column": "a"}, {"value": "a"}, {"column": "a", "equals": "b",
                             "not": "c"}],)" +
                 std::string(kProduct)),
      "m.json: /where/0: needs one of \"equals\" and \"not\" (a column is compared with "
      "texts)\n"
      "m.json: /where/1: has no limit (at_least, above, at_most or below)\n"
      "m.json: /where/2: needs one of \"equals\" and \"not\" (a column is compared with "
      "texts)");
  EXPECT_FAULT(mapping_of(R"("let": {"a": {"file": "x"}},)" + std::string(kProduct)),
               "m.json: /let/a: has not one * (it stands for the number in the file's name)");
  EXPECT_FAULT(
      imported(R"("ops": [{"label": "a", "kind": "matmull", "dtype": "fp16",
                           "time": {"value": 1, "unit": "us"}}])",
               "m\n1\n"),
      "m.json: /ops/0/kind: \"matmull\" is not a known value (known: matmul, attention, norm, "
      "elementwise, embedding, cross_entropy, routing, convolution, optimizer)");
}

}  // namespace csv_table_test
}  // namespace towtank
