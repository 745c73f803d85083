// SPDX-License-Identifier: Apache-2.0
#include "sim/detail/wire_format.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <type_traits>

namespace towtank::detail {
namespace {

class Writer {
 public:
  template <class T>
  void value(const T& v) {
    static_assert(std::is_trivially_copyable_v<T>);
    out_.append(reinterpret_cast<const char*>(&v), sizeof v);
  }
  template <class T>
  void array(const std::vector<T>& items) {
    value(static_cast<std::uint64_t>(items.size()));
    if (!items.empty()) {
      out_.append(reinterpret_cast<const char*>(items.data()), items.size() * sizeof(T));
    }
  }
  [[nodiscard]] std::string take() {
    const auto length = static_cast<std::uint64_t>(out_.size());
    std::string message(reinterpret_cast<const char*>(&length), kLengthBytes);
    return message + out_;
  }

 private:
  std::string out_;
};

class Reader {
 public:
  explicit Reader(const std::string& text) : text_(text) {}
  template <class T>
  void value(T& v) {
    std::memcpy(&v, bytes(sizeof v), sizeof v);
  }
  template <class T>
  void array(std::vector<T>& items) {
    std::uint64_t n = 0;
    value(n);
    if (n > (text_.size() - at_) / sizeof(T)) throw std::runtime_error("a message is cut short");
    items.resize(n);
    if (n > 0) std::memcpy(items.data(), bytes(n * sizeof(T)), n * sizeof(T));
  }

 private:
  const char* bytes(std::size_t n) {
    if (n > text_.size() - at_) throw std::runtime_error("a message is cut short");
    const char* p = text_.data() + at_;
    at_ += n;
    return p;
  }
  const std::string& text_;
  std::size_t at_ = 0;
};

template <class Stream, class Request>
void fields(Stream& s, Request& r) {
  s.value(r.contention);
  s.array(r.duration);
  s.array(r.first_flow);
  s.array(r.flows);
  s.array(r.flow);
  s.array(r.first_successor);
  s.array(r.successors);
  s.array(r.predecessors);
  s.array(r.capacity);
  s.array(r.first_route_link);
  s.array(r.route_links);
  s.array(r.background);
}

}  // namespace

SimulationRequest request_of(const TaskGraph& graph, const Network& network, bool contention) {
  SimulationRequest r;
  r.contention = contention;
  for (const Task& t : graph.tasks) {
    r.duration.push_back(t.duration);
    r.first_flow.push_back(t.first_flow);
    r.flows.push_back(t.flows);
  }
  r.flow = graph.flows;
  r.first_successor = graph.first_successor;
  r.successors = graph.successors;
  r.predecessors = graph.predecessors;
  for (const SharedLink& link : network.links) r.capacity.push_back(link.capacity);
  for (const auto& route : network.routes) {
    r.first_route_link.push_back(static_cast<std::int32_t>(r.route_links.size()));
    r.route_links.insert(r.route_links.end(), route.begin(), route.end());
  }
  r.first_route_link.push_back(static_cast<std::int32_t>(r.route_links.size()));
  r.background = network.background;
  return r;
}

std::string encode(const SimulationRequest& request) {
  Writer w;
  fields(w, request);
  return w.take();
}

SimulationRequest decode_request(const std::string& message) {
  Reader reader(message);
  SimulationRequest r;
  fields(reader, r);
  return r;
}

std::string encode(const SimulationReply& reply) {
  Writer w;
  const auto* times = std::get_if<TaskTimes>(&reply);
  w.value(times != nullptr);
  if (times != nullptr) {
    w.array(times->start);
    w.array(times->end);
  } else {
    const auto& text = std::get<std::string>(reply);
    w.array(std::vector<char>(text.begin(), text.end()));
  }
  return w.take();
}

SimulationReply decode_reply(const std::string& message) {
  Reader reader(message);
  bool good = false;
  reader.value(good);
  if (!good) {
    std::vector<char> text;
    reader.array(text);
    return std::string(text.begin(), text.end());
  }
  TaskTimes times;
  reader.array(times.start);
  reader.array(times.end);
  return times;
}

bool write_message(int descriptor, const std::string& message) {
  std::size_t done = 0;
  while (done < message.size()) {
    const ssize_t n = ::write(descriptor, message.data() + done, message.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    done += static_cast<std::size_t>(n);
  }
  return true;
}

namespace {

bool read_bytes(int descriptor, char* to, std::size_t count) {
  std::size_t done = 0;
  while (done < count) {
    const ssize_t n = ::read(descriptor, to + done, count - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    done += static_cast<std::size_t>(n);
  }
  return true;
}

}  // namespace

bool read_message(int descriptor, std::string& message) {
  std::uint64_t length = 0;
  if (!read_bytes(descriptor, reinterpret_cast<char*>(&length), sizeof length)) return false;
  constexpr std::uint64_t kMost = std::uint64_t{1} << 34U;
  if (length > kMost) return false;
  message.resize(length);
  return read_bytes(descriptor, message.data(), length);
}

}  // namespace towtank::detail
