// SPDX-License-Identifier: Apache-2.0
#include "sim/simgrid/engine.h"

#include <xbt/log.h>
#include <simgrid/kernel/Timer.hpp>
#include <simgrid/s4u.hpp>

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>

#include "core/rng.h"

namespace towtank::detail {
namespace {

namespace s4u = simgrid::s4u;

/// A host with a private uplink, for one flow at a time on one route.
struct Channel {
  s4u::Host* host = nullptr;
  s4u::Link* limit = nullptr;
  std::size_t route = 0;
};

class Simulation {
 public:
  Simulation(const SimulationRequest& request, const RouteChannels& channels)
      : request_(request),
        waiting_(request.predecessors),
        flows_left_(request.flows),
        channels_of_(channels),
        needed_(channels),
        times_{std::vector<double>(request.duration.size(), 0.0),
               std::vector<double>(request.duration.size(), 0.0)} {
    double largest = 1;
    for (const Flow& f : request.flow) largest = std::max(largest, f.bytes);
    for (const LinkTraffic& b : request.background) largest = std::max(largest, b.bytes);
    constexpr int kMantissa = 52;
    scale_ = std::exp2(kMantissa - std::ceil(std::log2(largest)));
    build(channels);
  }

  /// False if some route had too few channels.
  bool run() {
    s4u::Activity::on_completion_cb([this](const s4u::Activity& a) { completed(a); });
    s4u::Engine::on_time_advance_cb([this](double) { graveyard_.clear(); });
    for (std::size_t i = 0; i < waiting_.size(); ++i) {
      if (waiting_[i] == 0) ready_.push_back(i);
    }
    drain(0.0);
    for (std::size_t b = 0; b < others_.size(); ++b) next_of_others(b, 0.0);
    s4u::Engine::get_instance()->run();
    if (exhausted_) return false;
    if (done_ != waiting_.size()) throw std::runtime_error("some tasks never ran");
    return true;
  }

  [[nodiscard]] TaskTimes take_times() { return std::move(times_); }
  [[nodiscard]] RouteChannels needed() const { return needed_; }

 private:
  void build(const RouteChannels& channels) {
    auto* zone = s4u::create_star_zone("network");
    std::vector<const s4u::Link*> shared;
    for (std::size_t i = 0; i < request_.capacity.size(); ++i) {
      shared.push_back(
          zone->create_link("s" + std::to_string(i), scale_ * request_.capacity[i])->seal());
    }
    sink_ = zone->create_host("sink", 1.0);
    // The far end of every route holds nothing up.
    constexpr double kBoundless = 1e30;
    const s4u::Link* end = zone->create_link("end", kBoundless)
                               ->set_sharing_policy(s4u::Link::SharingPolicy::FATPIPE)
                               ->seal();
    zone->add_route(nullptr, sink_->get_netpoint(), nullptr, nullptr, {s4u::LinkInRoute(end)},
                    false);
    free_.resize(channels.size());
    for (std::size_t r = 0; r < channels.size(); ++r) {
      for (int c = 0; c < channels[r]; ++c) {
        const std::string name = std::to_string(r) + "." + std::to_string(c);
        Channel channel{zone->create_host("h" + name, 1.0), zone->create_link("p" + name, 1.0), r};
        channel.limit->seal();
        std::vector<const s4u::Link*> links;
        if (request_.contention) {
          for (auto l = request_.first_route_link[r]; l < request_.first_route_link[r + 1]; ++l) {
            const auto at = static_cast<std::size_t>(l);
            links.push_back(shared[static_cast<std::size_t>(request_.route_links[at])]);
          }
        }
        add_route(zone, channel, links);
        free_[r].push_back(static_cast<int>(channels_.size()));
        channels_.push_back(channel);
      }
    }
    if (request_.contention) {
      for (const LinkTraffic& b : request_.background) {
        const std::string name = "b" + std::to_string(others_.size());
        Others& o = others_.emplace_back(Rng(b.seed));
        o.channel = {zone->create_host("h" + name, 1.0), zone->create_link("p" + name, 1.0), 0};
        o.channel.limit->seal();
        add_route(zone, o.channel, {shared[static_cast<std::size_t>(b.link)]});
      }
    }
    zone->seal();
  }

  static void add_route(s4u::NetZone* zone, const Channel& channel,
                        const std::vector<const s4u::Link*>& shared) {
    std::vector<s4u::LinkInRoute> links{s4u::LinkInRoute(channel.limit)};
    for (const s4u::Link* link : shared) links.emplace_back(link);
    zone->add_route(channel.host->get_netpoint(), nullptr, nullptr, nullptr, links, false);
  }

  /// The next flow of others on a link, after its gap; none once every task has run.
  void next_of_others(std::size_t which, double now) {
    if (done_ == waiting_.size() || exhausted_) return;
    const LinkTraffic& b = request_.background[which];
    if (b.mean_gap <= 0) {
      start_of_others(which);
      return;
    }
    const double gap = -b.mean_gap * std::log1p(-others_[which].rng.uniform());
    simgrid::kernel::timer::Timer::set(now + gap, [this, which] {
      if (done_ < waiting_.size()) start_of_others(which);
    });
  }

  void start_of_others(std::size_t which) {
    const LinkTraffic& b = request_.background[which];
    const s4u::CommPtr comm = send(others_[which].channel, b.bytes, b.rate);
    others_in_flight_.emplace(comm.get(), std::pair(comm, which));
    comm->vetoable_start();
  }

  [[nodiscard]] s4u::CommPtr send(const Channel& c, double bytes, double rate) const {
    const double size = std::max(1.0, std::round(bytes * scale_));
    c.limit->set_bandwidth(size / (bytes / rate));
    s4u::CommPtr comm = s4u::Comm::sendto_init(c.host, sink_);
    comm->set_payload_size(static_cast<std::uint64_t>(size));
    return comm;
  }

  /// Starts everything that is ready; tasks of no length may make others ready.
  void drain(double now) {
    while (!ready_.empty()) {
      const std::size_t task = ready_.back();
      ready_.pop_back();
      times_.start[task] = now;
      const double duration = request_.duration[task];
      if (duration <= 0) {
        timer_done(task, now);
        continue;
      }
      const double date = now + duration;
      simgrid::kernel::timer::Timer::set(date, [this, task, date] {
        timer_done(task, date);
        drain(date);
      });
    }
  }

  void timer_done(std::size_t task, double now) {
    if (flows_left_[task] == 0) {
      finish(task, now);
      return;
    }
    const auto first = static_cast<std::size_t>(request_.first_flow[task]);
    const auto count = static_cast<std::size_t>(request_.flows[task]);
    for (std::size_t f = first; f < first + count; ++f) start(task, request_.flow[f]);
  }

  void start(std::size_t task, const Flow& flow) {
    const auto route = request_.contention ? static_cast<std::size_t>(flow.route) : 0;
    if (free_[route].empty()) {
      exhausted_ = true;  // the rest of this run is thrown away
      needed_[route] = 2 * channels_of_[route];
      return;
    }
    const int channel = free_[route].back();
    free_[route].pop_back();
    const s4u::CommPtr comm =
        send(channels_[static_cast<std::size_t>(channel)], flow.bytes, flow.rate);
    in_flight_.emplace(comm.get(), InFlight{comm, task, channel});
    comm->vetoable_start();
  }

  void completed(const s4u::Activity& activity) {
    if (const auto other = others_in_flight_.find(&activity); other != others_in_flight_.end()) {
      const auto [comm, which] = other->second;
      graveyard_.push_back(comm);
      others_in_flight_.erase(other);
      next_of_others(which, s4u::Engine::get_clock());
      return;
    }
    const auto at = in_flight_.find(&activity);
    if (at == in_flight_.end()) return;
    const InFlight flight = at->second;
    graveyard_.push_back(flight.comm);  // it may not die inside its own callback
    in_flight_.erase(at);
    const Channel& c = channels_[static_cast<std::size_t>(flight.channel)];
    free_[c.route].push_back(flight.channel);
    if (--flows_left_[flight.task] > 0 || exhausted_) return;
    const double now = s4u::Engine::get_clock();
    finish(flight.task, now);
    drain(now);
  }

  void finish(std::size_t task, double now) {
    times_.end[task] = now;
    ++done_;
    const auto first = static_cast<std::size_t>(request_.first_successor[task]);
    const auto last = static_cast<std::size_t>(request_.first_successor[task + 1]);
    for (std::size_t s = first; s < last; ++s) {
      const auto next = static_cast<std::size_t>(request_.successors[s]);
      if (--waiting_[next] == 0) ready_.push_back(next);
    }
  }

  /// What sends for others on one link.
  struct Others {
    explicit Others(Rng seeded) : rng(seeded) {}
    Channel channel;
    Rng rng;
  };
  struct InFlight {
    s4u::CommPtr comm;
    std::size_t task;
    int channel;
  };

  const SimulationRequest& request_;
  std::vector<std::int32_t> waiting_, flows_left_;
  RouteChannels channels_of_, needed_;
  TaskTimes times_;
  double scale_ = 1;
  s4u::Host* sink_ = nullptr;
  std::vector<Channel> channels_;
  std::vector<std::vector<int>> free_;  ///< by route
  std::vector<std::size_t> ready_;
  std::unordered_map<const s4u::Activity*, InFlight> in_flight_;
  std::vector<Others> others_;  ///< by entry of the background
  std::unordered_map<const s4u::Activity*, std::pair<s4u::CommPtr, std::size_t>> others_in_flight_;
  std::vector<s4u::CommPtr> graveyard_;
  std::size_t done_ = 0;
  bool exhausted_ = false;
};

}  // namespace

RouteChannels first_channels(const SimulationRequest& request) {
  constexpr int kPerRoute = 4;  // sends of one pipeline cut seldom overlap more
  constexpr int kOfAll = 64;    // without contention all flows are alike
  if (!request.contention) return RouteChannels(1, kOfAll);
  return RouteChannels(request.first_route_link.size() - 1, kPerRoute);
}

std::variant<TaskTimes, RouteChannels> run_engine(const SimulationRequest& request,
                                                  const RouteChannels& channels) {
  int argc = 1;
  std::string name = "towtank-sim";
  char* arguments[] = {name.data(), nullptr};
  xbt_log_control_set("root.threshold:error");
  s4u::Engine engine(&argc, arguments);
  s4u::Engine::set_config("network/model:CM02");
  s4u::Engine::set_config("network/crosstraffic:0");
  s4u::Engine::set_config("network/TCP-gamma:0");
  s4u::Engine::set_config("network/weight-S:0");
  Simulation simulation(request, channels);
  if (simulation.run()) return simulation.take_times();
  return simulation.needed();
}

}  // namespace towtank::detail
