// SPDX-License-Identifier: Apache-2.0
#include "profiler/import/nsys/nsys_reader.h"

#include <sqlite3.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "core/input_error.h"
#include "core/text.h"

namespace towtank {
namespace {

using Severity = ImportStats::Severity;

constexpr std::string_view kMagic = "SQLite format 3";
constexpr std::size_t kMostInMemory = 2U << 30U;
constexpr std::int64_t kLongestNs = 7LL * 24 * 3600 * 1'000'000'000;
constexpr std::int64_t kLatestNs = std::numeric_limits<std::int64_t>::max() / 4;
/// globalTid and globalPid hold the process id from bit 24 on (Nsight Systems user guide).
constexpr std::int64_t kProcessUnit = 0x1000000;
constexpr std::int64_t kCorrelationBits = 36;

class Database {
 public:
  explicit Database(ByteSource& source) : name_(source.name()) {
    if (!source.plain_path().empty()) {
      check(sqlite3_open_v2(source.plain_path().c_str(), &db_, SQLITE_OPEN_READONLY, nullptr));
    } else {
      text_ = read_rest(source, kMostInMemory);
      check(sqlite3_open_v2(":memory:", &db_, SQLITE_OPEN_READWRITE, nullptr));
      check(sqlite3_deserialize(db_, "main", reinterpret_cast<unsigned char*>(text_.data()),
                                static_cast<sqlite3_int64>(text_.size()),
                                static_cast<sqlite3_int64>(text_.size()),
                                SQLITE_DESERIALIZE_READONLY));
    }
    sqlite3_db_config(db_, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
    sqlite3_db_config(db_, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  }
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;
  ~Database() { sqlite3_close_v2(db_); }

  [[nodiscard]] sqlite3* get() const { return db_; }
  [[nodiscard]] std::string error() const { return printable(sqlite3_errmsg(db_), 200); }
  void check(int result) const {
    if (result == SQLITE_OK) return;
    throw InputError({name_, "cannot be read as SQLite", db_ == nullptr ? "" : error(), ""});
  }

 private:
  std::string name_;
  std::string text_;
  sqlite3* db_ = nullptr;
};

/// Rows of one statement.
class Rows {
 public:
  Rows(const Database& db, const std::string& sql) {
    good_ = sqlite3_prepare_v2(db.get(), sql.c_str(), -1, &statement_, nullptr) == SQLITE_OK;
  }
  Rows(const Rows&) = delete;
  Rows& operator=(const Rows&) = delete;
  ~Rows() { sqlite3_finalize(statement_); }

  bool next() {
    if (!good_) return false;
    const int result = sqlite3_step(statement_);
    good_ = result == SQLITE_ROW || result == SQLITE_DONE;
    return result == SQLITE_ROW;
  }
  /// False once something could not be read.
  [[nodiscard]] bool good() const { return good_; }
  [[nodiscard]] bool is_null(int column) const {
    return sqlite3_column_type(statement_, column) == SQLITE_NULL;
  }
  [[nodiscard]] std::int64_t integer(int column) const {
    return sqlite3_column_int64(statement_, column);
  }
  [[nodiscard]] std::string text(int column) const {
    const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
    const int size = sqlite3_column_bytes(statement_, column);
    return bytes == nullptr ? std::string() : std::string(bytes, static_cast<std::size_t>(size));
  }

 private:
  sqlite3_stmt* statement_ = nullptr;
  bool good_ = false;
};

class Reading {
 public:
  Reading(const Database& db, Trace& trace) : db_(db), trace_(trace), texts_(trace) {}

  void run() {
    find_tables();
    if (columns("CUPTI_ACTIVITY_KIND_KERNEL").count("_id_") > 0) {
      throw InputError({trace_.name, "has the tables of nvprof, not of Nsight Systems",
                        "those are not read", "Record it with nsys and export it again."});
    }
    read_devices();
    device_events("CUPTI_ACTIVITY_KIND_KERNEL", TraceCategory::kKernel);
    device_events("CUPTI_ACTIVITY_KIND_MEMCPY", TraceCategory::kCopy);
    device_events("CUPTI_ACTIVITY_KIND_MEMSET", TraceCategory::kFill);
    host_calls("CUPTI_ACTIVITY_KIND_RUNTIME");
    host_calls("CUPTI_ACTIVITY_KIND_DRIVER");
    annotations();
    if (!known_) {
      throw InputError({trace_.name, "has no table of Nsight Systems",
                        "it is an SQLite file of something else", ""});
    }
    sort_events(trace_);
  }

 private:
  void find_tables() {
    Rows rows(db_, "SELECT name FROM sqlite_master WHERE type = 'table'");
    while (rows.next()) tables_.insert(rows.text(0));
    if (!rows.good()) {
      throw InputError({trace_.name, "cannot be read as SQLite", db_.error(), ""});
    }
  }

  [[nodiscard]] std::set<std::string> columns(const std::string& table) const {
    std::set<std::string> out;
    if (tables_.count(table) == 0) return out;
    Rows rows(db_, "PRAGMA table_info(" + table + ")");
    while (rows.next()) out.insert(rows.text(1));
    return out;
  }

  /// A column as SQL; NULL if the table has none of this name.
  static std::string column(const std::set<std::string>& has, const std::string& name) {
    return has.count(name) > 0 ? "t." + name : "NULL";
  }
  /// The text that a column of ids names.
  [[nodiscard]] std::string looked_up(const std::set<std::string>& has,
                                      const std::string& name) const {
    if (has.count(name) == 0 || tables_.count("StringIds") == 0) return "NULL";
    return "(SELECT value FROM StringIds WHERE id = t." + name + ")";
  }

  void broken(const Rows& rows, const std::string& table) {
    if (!rows.good()) {
      trace_.stats.add("tables that cannot be read to their end", Severity::kError, 1, table);
    }
  }

  bool set_times(const Rows& rows, TraceEvent& event, const std::string& table) {
    ++trace_.stats.rows_read;
    const auto leave_out = [&](const char* why) {
      trace_.stats.add(why, Severity::kLoss, 1, table);
      return false;
    };
    if (rows.is_null(0) || rows.is_null(1)) return leave_out("events without a start or an end");
    const std::int64_t start = rows.integer(0), end = rows.integer(1);
    if (start < -kLatestNs || start > kLatestNs || end < -kLatestNs || end > kLatestNs) {
      return leave_out("events without a time");
    }
    if (end < start) return leave_out("durations under 0");
    if (end - start > kLongestNs) return leave_out("durations over 7 days");
    event.start_ns = start;
    event.duration_ns = end - start;
    return true;
  }

  void keep(const TraceEvent& event) {
    ++trace_.stats.rows_kept;
    trace_.events.push_back(event);
  }

  std::int64_t correlation(const Rows& rows, int id, int process) {
    if (rows.is_null(id)) return -1;
    const std::int64_t which = rows.is_null(process) ? 0 : rows.integer(process) / kProcessUnit;
    const auto known = processes_.emplace(which, static_cast<std::int64_t>(processes_.size()));
    const std::int64_t low = rows.integer(id) & ((std::int64_t{1} << kCorrelationBits) - 1);
    return ((known.first->second & 0xFFFFFF) << kCorrelationBits) | low;
  }

  std::int32_t track(const std::string& process, const std::string& thread, int device,
                     std::int64_t stream) {
    const auto [at, added] = tracks_.emplace(std::tuple(process, thread, device, stream),
                                             static_cast<std::int32_t>(trace_.tracks.size()));
    if (added) trace_.tracks.push_back({process, thread, device, stream});
    return at->second;
  }

  void device_events(const std::string& table, TraceCategory category) {
    const auto has = columns(table);
    if (has.count("start") == 0 || has.count("end") == 0) return;
    known_ = true;
    Rows rows(db_, "SELECT t.start, t.end, " + column(has, "deviceId") + ", " +
                       column(has, "streamId") + ", " + column(has, "correlationId") + ", " +
                       column(has, "globalPid") + ", " + looked_up(has, "shortName") + ", " +
                       looked_up(has, "demangledName") + ", " + column(has, "bytes") + " FROM " +
                       table + " AS t");
    while (rows.next()) {
      TraceEvent event;
      if (!set_times(rows, event, table)) continue;
      event.category = category;
      const auto device = static_cast<int>(std::clamp<std::int64_t>(rows.integer(2), 0, 1 << 20));
      event.track = track("device", "", device, rows.integer(3));
      event.correlation = correlation(rows, 4, 5);
      std::string name = rows.is_null(6) ? rows.text(7) : rows.text(6);
      if (name.empty()) {
        name = category == TraceCategory::kCopy   ? "copy"
               : category == TraceCategory::kFill ? "fill"
                                                  : "unnamed kernel";
      }
      event.name = texts_.id(printable(name, kLongestName));
      if (!rows.is_null(8)) event.bytes = std::max<std::int64_t>(rows.integer(8), 0);
      keep(event);
    }
    broken(rows, table);
  }

  void host_calls(const std::string& table) {
    const auto has = columns(table);
    if (has.count("start") == 0 || has.count("end") == 0) return;
    known_ = true;
    Rows rows(db_, "SELECT t.start, t.end, " + column(has, "globalTid") + ", " +
                       column(has, "correlationId") + ", " + looked_up(has, "nameId") + " FROM " +
                       table + " AS t");
    while (rows.next()) {
      TraceEvent event;
      if (!set_times(rows, event, table)) continue;
      event.category = TraceCategory::kHostCall;
      event.track = track("host", std::to_string(rows.integer(2)), -1, -1);
      event.correlation = correlation(rows, 3, 2);
      event.name = texts_.id(printable(rows.text(4), kLongestName));
      keep(event);
    }
    broken(rows, table);
  }

  void annotations() {
    const std::string table = "NVTX_EVENTS";
    const auto has = columns(table);
    if (has.count("start") == 0 || has.count("end") == 0) return;
    known_ = true;
    Rows rows(db_, "SELECT t.start, t.end, " + column(has, "globalTid") + ", " +
                       column(has, "text") + ", " + looked_up(has, "textId") +
                       " FROM NVTX_EVENTS AS t");
    long marks = 0;
    while (rows.next()) {
      if (rows.is_null(1)) {
        ++marks;
        continue;
      }
      TraceEvent event;
      if (!set_times(rows, event, table)) continue;
      std::string name = rows.is_null(3) ? rows.text(4) : rows.text(3);
      const bool op = name.starts_with("aten::");
      if (op) name = name.substr(0, name.find(','));
      event.category = op ? TraceCategory::kCpuOp : TraceCategory::kAnnotation;
      event.track = track("host", std::to_string(rows.integer(2)), -1, -1);
      event.name = texts_.id(printable(name, kLongestName));
      keep(event);
    }
    broken(rows, table);
    trace_.stats.add("marks and ranges without an end", Severity::kInfo, marks, table);
  }

  void read_devices() {
    const auto has = columns("TARGET_INFO_GPU");
    if (has.count("name") == 0) return;
    Rows rows(db_, "SELECT " + column(has, "id") + ", t.name, " + column(has, "totalMemory") +
                       " FROM TARGET_INFO_GPU AS t");
    while (rows.next()) {
      const auto id = static_cast<int>(std::clamp<std::int64_t>(rows.integer(0), 0, 1 << 20));
      trace_.devices.push_back(
          {id, printable(rows.text(1)), std::max<std::int64_t>(rows.integer(2), 0)});
    }
  }

  static constexpr std::size_t kLongestName = 2000;
  const Database& db_;
  Trace& trace_;
  TextIndex texts_;
  std::set<std::string> tables_;
  std::map<std::int64_t, std::int64_t> processes_;
  std::map<std::tuple<std::string, std::string, int, std::int64_t>, std::int32_t> tracks_;
  bool known_ = false;
};

class NsysReader final : public TraceReader {
 public:
  [[nodiscard]] std::string_view format() const override { return "Nsight Systems"; }
  [[nodiscard]] bool recognises(std::string_view head) const override {
    return head.starts_with(kMagic);
  }
  [[nodiscard]] Trace read(ByteSource& source) const override {
    Trace trace;
    trace.name = source.name();
    trace.format = format();
    const Database db(source);
    Reading(db, trace).run();
    return trace;
  }
};

}  // namespace

std::unique_ptr<TraceReader> nsys_reader() { return std::make_unique<NsysReader>(); }

bool reads_nsys() { return true; }

}  // namespace towtank
