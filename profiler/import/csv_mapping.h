// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Which columns of a table are what: mapping files ("format": "towtank-csv-mapping", "version":
/// 1). They hold facts about column names, units and shapes; no measured number.
///
///   name, source, machine, launch_included       of the profile; source says who measured it
///   device_kind, fabric_intranode, ..internode   TEXT, optional: the command line can say it
///   separator, header, columns                   ",", true; names for the columns, in order
///   where        [CONDITION..]                   rows that are meant; the others are counted
///   drop         [{where, because, severity}]    rows to leave out, counted under the reason
///   let          {name: NUMBER}                  names for other expressions, in order
///   op_defaults  {key: ..}                       for keys that an entry of ops does not give
///   ops          [{label, kind, dtype, time; pass, group, where, drop, batch, m, n, k, work_flop,
///                  traffic_bytes, extra_traffic_bytes, extra_work_flop, kernels, causal, fused,
///                  both_gradients}]
///   collectives  [{op, payload_bytes, time; ranks, ranks_per_node, group, where, drop}]
///
///   NUMBER     12 | "expression" (expression.h) | {"text": TEXT, "values": {text: number}}
///              | {"file": "AR_GPU*_"}: the number in the file's name where the * stands
///   TEXT       "a {column} and {file}" | {"text": "{column}", "values": {text: text}}; in place
///              of "text": "{column}" also "column": "column"
///   CONDITION  {"column": c, "equals" or "not": text or [texts]}
///              | {"value": NUMBER, "at_least", "above", "at_most", "below": limits}
///   time       {"value": NUMBER or [repeats], "unit": ns us ms s; low, high, repeats}
///
/// A matmul's work and traffic follow from its shape (op_signature.h); extra_.. are added to them.
/// `both_gradients` doubles batch, work and traffic: see profile.h. Columns of the same name are
/// told apart as "name", "name#2". Every entry whose `where` holds makes a measurement of a row.
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/json.h"
#include "profiler/import/expression.h"
#include "profiler/profile.h"

namespace towtank {

struct NumberRule {
  std::optional<Expression> expression;
  std::string pattern;  ///< or a look-up of a text with {column}
  std::map<std::string, double> values;
  std::string file_pattern;  ///< or a number in the file's name
  std::string where;         ///< place in the mapping file
};

struct TextRule {
  std::string pattern;  ///< with {column}
  bool is_look_up = false;
  std::map<std::string, std::string> values;
  std::string where;
};

struct RowCondition {
  std::string column;  ///< text test if not empty
  std::vector<std::string> texts;
  bool negated = false;
  std::optional<NumberRule> value;  ///< else a test of a number
  std::optional<double> at_least, above, at_most, below;
  std::string where;
};
using RowConditions = std::vector<RowCondition>;  ///< all must hold

struct DropRule {
  RowConditions conditions;
  std::string because;
  ImportStats::Severity severity = ImportStats::Severity::kLoss;
};

struct TimeRule {
  std::vector<NumberRule> values;  ///< more than one: repeats
  double seconds_per_unit = 1;
  std::optional<NumberRule> low, high, repeats;
};

struct OpRule {
  RowConditions conditions;
  std::vector<DropRule> drops;
  TextRule label, group, kind, pass, dtype;
  std::optional<NumberRule> batch, m, n, k, work, traffic, extra_work, extra_traffic, kernels;
  bool causal = false, fused = true, both_gradients = false;
  TimeRule time;
};

struct CollectiveRule {
  RowConditions conditions;
  std::vector<DropRule> drops;
  TextRule op, group;
  std::optional<NumberRule> payload, ranks, ranks_per_node;
  TimeRule time;
};

struct CsvMapping {
  std::string name, source, machine;
  bool launch_included = false;
  std::optional<TextRule> device_kind, fabric_intranode, fabric_internode;
  char separator = ',';
  bool header = true;
  std::vector<std::string> columns;  ///< empty: the header's
  RowConditions conditions;
  std::vector<DropRule> drops;
  std::vector<std::pair<std::string, NumberRule>> lets;
  std::vector<OpRule> ops;
  std::vector<CollectiveRule> collectives;
};

/// Throws InputError with every fault of the file.
[[nodiscard]] CsvMapping parse_csv_mapping(const JsonFile& file);

}  // namespace towtank
